"""The peer of `cargo xtask bench gpu`: the same networks, losses and optimizers in PyTorch on an NVIDIA GPU.

gpu.py NETWORK MODE STEPS [cpu]: NETWORK is unet (12 images of 128²) or deepmedic (10 patches of 110³), MODE one of

  eager-f32        channels first, single precision, every setting as PyTorch has it: how the paper's code trains
  search-f32       the same with convolutions chosen by trial (cudnn.benchmark)
  compile-f32      torch.compile, TF32 for matrix products too, channels last, and the whole step a captured CUDA graph
  eager-bf16       channels last, the trunk autocast to bfloat16
  graph-bf16       the same, but the whole step is a captured CUDA graph, with the optimizer's fastest variant and
                   convolutions chosen by trial: the fastest of PyTorch without its compiler
  compile-bf16     the same through torch.compile in its default mode
  autotune-bf16    the same through torch.compile in its mode max-autotune
  profile          the kernels of eager-bf16 by their time, as a table

In single precision PyTorch computes convolutions in TF32, as it does by default.

It prints JSON: the median of the steps, each until the GPU has finished, the seconds from the start of the program to the
first of them, and the peak of memory since the start, trials of convolutions and compilation included. With `cpu` the modes without a graph take their steps on the CPU, with one
image, to try the script where there is no GPU.
"""
import json, math, sys, time
begin = time.perf_counter()
import torch
from networks import Learner

BATCH = {"unet": 12, "deepmedic": 10}
# For each mode: bfloat16, channels last, the search for convolutions, the compiler's mode, one graph.
MODES = {"eager-f32": (False, False, False, None, False),
         "search-f32": (False, False, True, None, False),
         "compile-f32": (False, True, True, "default", True),
         "eager-bf16": (True, True, False, None, False),
         "graph-bf16": (True, True, True, None, True),
         "compile-bf16": (True, True, True, "default", True),
         "autotune-bf16": (True, True, True, "max-autotune-no-cudagraphs", True),
         "profile": (True, True, False, None, False)}
WARM_UP = 3
SHOWN_KERNELS = 30


def captured(step):
    """The step as one CUDA graph; its noise is drawn anew in every replay."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # state and convolutions have to be settled before the capture
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = step()

    def replay():
        graph.replay()
        return value
    return replay


if len(sys.argv) not in (4, 5) or sys.argv[1] not in BATCH or sys.argv[2] not in MODES or sys.argv[4:] not in ([], ["cpu"]):
    sys.exit(f"gpu.py NETWORK MODE STEPS [cpu], with NETWORK of {', '.join(BATCH)} and MODE of {', '.join(MODES)}")
network, mode, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
on_gpu = len(sys.argv) == 4
if on_gpu and not torch.cuda.is_available():
    sys.exit(f"PyTorch {torch.__version__} finds no NVIDIA GPU that it can use")
bfloat16, channels_last, searches, compiler, graph = MODES[mode]
if graph and not on_gpu:
    sys.exit("a CUDA graph needs an NVIDIA GPU")

options = {}
if graph:
    options = {"capturable": True, "fused" if network == "unet" else "foreach": True}  # RMSprop has no fused variant
torch.backends.cudnn.benchmark = searches
if compiler:
    torch.set_float32_matmul_precision("high")
learner = Learner(network, BATCH[network] if on_gpu else 1, "cuda" if on_gpu else "cpu", bfloat16=bfloat16,
                  channels_last=channels_last, compile=compiler, **options)
step = captured(learner.step) if graph else learner.step
finish = torch.cuda.synchronize if on_gpu else lambda: None
for _ in range(WARM_UP):
    step()
finish()
if mode == "profile":
    with torch.profiler.profile() as profile:
        for _ in range(steps):
            step()
        finish()
    order = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    print(profile.key_averages().table(sort_by=order, row_limit=SHOWN_KERNELS))
    sys.exit()
ready = time.perf_counter() - begin
seconds = []
for _ in range(steps):
    start = time.perf_counter()
    value = step()
    finish()
    seconds.append(time.perf_counter() - start)
assert math.isfinite(value.item()), "the loss is not finite"
seconds.sort()
print(json.dumps({"seconds": seconds[len(seconds) // 2], "steps": steps, "ready_seconds": ready,
                  "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
                  "reserved_bytes": torch.cuda.max_memory_reserved() if on_gpu else None,
                  "torch": torch.__version__, "device": torch.cuda.get_device_name() if on_gpu else "cpu",
                  "loss": value.item()}))
