"""The Python package beside the command and beside NumPy: samples and scores of an 80³, 4-class, rank-10 distribution.

    python3 benches/python.py

Prints both sides of each ratio; needs the installed package.
"""
import subprocess
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
    """One-hot maps and their intersections for every ordered pair: the formulation of benches/peer/ged.py."""

    def one_hot(maps):
        return np.stack([maps.reshape(len(maps), -1) == label for label in range(4)], axis=-1)

    def distances(first, second):
        result = np.empty((len(first), len(second)))
        for i, a in enumerate(first):
            for j, b in enumerate(second):
                intersection, union = (a & b).sum(axis=0), (a | b).sum(axis=0)
                iou = np.where(union == 0, 1.0, intersection / np.maximum(union, 1))
                result[i, j] = 1 - iou[1:].mean()
        return result.mean()

    samples, raters = one_hot(samples), one_hot(raters)
    return 2 * distances(samples, raters) - distances(samples, samples) - distances(raters, raters)


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
numpy, expected = seconds(lambda: numpy_ged2(samples, raters), 1)
everything, _ = seconds(lambda: ssn.score(samples, raters, calibration=True), 9)
print(f"scores of 20 label maps against one rater: ssn.score {ours:.4f} s (with calibration {everything:.4f} s), NumPy (one-hot, GED² alone) {numpy:.2f} s, ratio {numpy / ours:.0f}")
print(f"GED²: {scores.ged2:.12f} and {expected:.12f}")
