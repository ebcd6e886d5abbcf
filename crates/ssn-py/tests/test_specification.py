"""A thousand random distributions: Python, the command and the specification in plain Python draw the same bits."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from conftest import command

import ssn

SCRIPT = Path(__file__).parents[2] / "ssn-core/tests/tools/sample.py"
SAMPLES = 2

# The functions of the script, without what it does as a program.
specified: dict = {}
exec(SCRIPT.read_text(encoding="utf-8").split("\nif sys.argv[1]")[0], specified)


def case_seed(seed, case):
    """Section 6 of docs/reference/sampling.md."""
    name = 0xCBF29CE484222325
    for byte in case.encode():
        name = ((name ^ byte) * 0x0100000001B3) % 2**64
    halves = lambda x: (x & 0xFFFFFFFF, x >> 32)
    low, high = specified["philox"]((0x63617365, 0xFFFFFFFE, *halves(name)), halves(seed))[:2]
    return low | high << 32


@pytest.mark.parametrize("block", range(10))
def test_all_draw_the_same_bits(tmp_path, block):
    rng = np.random.default_rng(block)
    made = {}
    for number in range(100):
        classes, rank = int(rng.integers(1, 4)), int(rng.integers(0, 4))
        space = tuple(int(size) for size in rng.integers(1, 6, int(rng.integers(2, 4))))
        shape = (classes, *space)
        mean, diagonal, factor = rng.normal(size=shape), rng.normal(size=shape) ** 2, rng.normal(size=(rank, *shape))
        case = f"case{block}-{number}"
        made[case] = ssn.LowRankNormal(*(array.astype(np.float32) for array in (mean, diagonal, factor)), case=case)
        made[case].save(tmp_path / f"{case}.ssn.safetensors")
    seed, temperature = int(rng.integers(0, 2**63)), 1.25
    options = ["--samples", str(SAMPLES), "--seed", str(seed), "--temperature", str(temperature), "--format", "nrrd"]
    command(["sample", tmp_path, "--out", tmp_path / "out", *options, "--quiet"])
    for case, d in made.items():
        ours = d.sample(SAMPLES, seed=seed, temperature=temperature).reshape(SAMPLES, -1)
        about = {
            "classes": len(d.mean), "voxels": d.mean[0].size, "rank": d.rank, "seed": case_seed(seed, case),
            "diagonal_noise": True, "temperature": [temperature], "class_scales": [1.0] * len(d.mean), "mode_weights": [1.0] * d.rank,
            "mean": d.mean.ravel().tolist(), "diagonal": d.diagonal.ravel().tolist(), "factor": d.factor.ravel().tolist(),
        }
        for index in range(SAMPLES):
            file = (tmp_path / "out" / f"{case}_sample_{index}.nrrd").read_bytes()
            theirs = np.frombuffer(gzip.decompress(file.split(b"\n\n", 1)[1]), np.uint8)
            assert np.array_equal(theirs, ours[index]), case
            assert specified["sample"](about, index)[0] == ours[index].tolist(), case
