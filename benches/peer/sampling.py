"""The peer of `cargo xtask bench sampling`: the same distribution in PyTorch, as the paper's 3D code samples it.

Float64, torch's LowRankMultivariateNormal over all logits of the image, blocks of two samples, softmax, argmax.
sampling.py DIR VOXELS CLASSES RANK SAMPLES: reads DIR/{mean,diagonal,factor} (float32), prints JSON.
"""
import json, os, sys, time
import numpy, torch

folder, (v, c, r, m) = sys.argv[1], map(int, sys.argv[2:6])
BLOCK = 2
read = lambda name: torch.from_numpy(numpy.fromfile(os.path.join(folder, name), numpy.float32)).double()
mean, diagonal, factor = read("mean"), read("diagonal"), read("factor").view(r, c * v).t().contiguous()

torch.manual_seed(0)
start = time.perf_counter()
distribution = torch.distributions.LowRankMultivariateNormal(mean, factor, diagonal + 1e-5, validate_args=False)
maps = []
with torch.no_grad():
    for _ in range(0, m, BLOCK):
        logits = distribution.sample([BLOCK]).view(BLOCK, c, v)
        maps.append(logits.softmax(1).argmax(1).to(torch.uint8))
maps = torch.cat(maps)
seconds = time.perf_counter() - start
shares = [(maps == k).double().mean().item() for k in range(c)]
print(json.dumps({"seconds": seconds, "label_shares": shares, "torch": torch.__version__,
                  "threads": torch.get_num_threads()}))
