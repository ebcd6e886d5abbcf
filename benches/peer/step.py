"""The peer of `cargo xtask bench step`: the same networks, losses and optimizers in PyTorch, eager.

step.py NETWORK PRECISION ORDER STEPS: NETWORK is unet or deepmedic, PRECISION f32 or bf16 (autocast), ORDER of the channels first or
last; prints JSON.
"""
import json, math, sys, time
import torch
from networks import Learner

network, precision, order, steps = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
learner = Learner(network, batch=4 if network == "unet" else 1, bfloat16=precision == "bf16",
                  channels_last=order == "last")
seconds = []
for step in range(steps + 2):
    start = time.perf_counter()
    value = learner.step()
    assert math.isfinite(value.item())
    if step >= 2:
        seconds.append(time.perf_counter() - start)
seconds.sort()
print(json.dumps({"seconds": seconds[len(seconds) // 2], "steps": steps, "torch": torch.__version__,
                  "threads": torch.get_num_threads()}))
