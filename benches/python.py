"""The Python package beside the command and beside NumPy: samples and scores of an 80³, 4-class, rank-10 distribution.

    python3 benches/python.py

Prints both sides of each ratio; needs the installed package.
"""
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import ssn
from ssn import _program


def seconds(work, turns=3):
    times = []
    for _ in range(turns):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2], result


def numpy_ged2(samples, raters):
    """The peer of `cargo xtask bench ged` on these label maps: its seconds and GED²."""
    with tempfile.TemporaryDirectory() as folder:
        np.concatenate([samples, raters]).tofile(Path(folder) / "labels")
        sizes = map(str, (samples[0].size, 4, len(samples)))
        script = Path(__file__).parent / "peer/ged.py"
        answer = subprocess.run([sys.executable, script, folder, *sizes], check=True, capture_output=True)
    found = json.loads(answer.stdout)
    return found["seconds"], found["ged"]


def smooth(rng, shape):
    coarse = rng.normal(size=(*shape[:-3], 5, 5, 5)).astype(np.float32)
    return np.kron(coarse, np.ones((1,) * (len(shape) - 3) + (16, 16, 16), np.float32))


rng = np.random.default_rng(0)
shape = (4, 80, 80, 80)
d = ssn.LowRankNormal(2 * smooth(rng, shape), smooth(rng, (10, *shape)), np.full(shape, 0.1, np.float32))
with tempfile.TemporaryDirectory() as folder:
    path = d.save(Path(folder) / "case.ssn.safetensors")

    def command():
        out = Path(folder) / f"out{time.perf_counter_ns()}"
        subprocess.run([_program.path(), "sample", path, "--samples", "100", "--out", out, "--quiet"], check=True, capture_output=True)

    python, samples = seconds(lambda: d.sample(100))
    cli, _ = seconds(command, 1)
    print(f"100 samples of 80³, 4 classes, rank 10: Python {python:.3f} s, `ssn sample` to files {cli:.3f} s, ratio {python / cli:.2f}")

samples, raters = samples[:20], d.sample(1, seed=1)
ours, scores = seconds(lambda: ssn.score(samples, raters), 9)
numpy, expected = numpy_ged2(samples, raters)
everything, _ = seconds(lambda: ssn.score(samples, raters, calibration=True), 9)
print(f"scores of 20 label maps against one rater: ssn.score {ours:.4f} s (with calibration {everything:.4f} s), NumPy (one-hot, GED² alone) {numpy:.2f} s, ratio {numpy / ours:.0f}")
print(f"GED²: {scores.ged2:.12f} and {expected:.12f}")
