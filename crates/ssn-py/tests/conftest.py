import importlib.util
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ssn
from ssn import _program

ENGINE = Path(_program.__file__).with_name("bin") / "ssn-engine"
needs_engine = pytest.mark.skipif(
    not ENGINE.is_file() or importlib.util.find_spec("torch") is None,
    reason="this wheel has no engine, or PyTorch is not installed",
)
SMALL = {"training.steps": 6, "training.log_every": 2, "training.validate_every": 0, "loss.pretrain_steps": 2, "model.plan": "{width=8, levels=3}"}


def command(words):
    """What the program `ssn` prints."""
    words = [os.fspath(_program.path()), *map(os.fspath, words)]
    return subprocess.run(words, check=True, capture_output=True, text=True, env=_program.environment()).stdout


@pytest.fixture(autouse=True)
def interrupts():
    """Ctrl-C raises, also where the tests were started in the background, with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def make(rng):
    """Makes distributions with random parameters."""

    def of(channels=3, space=(9, 11), rank=2, **about):
        shape = (channels, *space)
        mean, diagonal = rng.normal(size=shape), rng.normal(size=shape) ** 2
        factor = rng.normal(size=(rank, *shape))
        return ssn.LowRankNormal(*(x.astype(np.float32) for x in (mean, diagonal, factor)), **about)

    return of


def write_dataset(folder, cases=8):
    """Writes images with two raters as arrays."""
    rng = np.random.default_rng(7)
    for case in range(cases):
        image = rng.random((32, 32)).astype(np.float32)
        image[8:20, 8 + case : 20 + case] += 1
        for name, array in {"images": image, "rater1": image > 1, "rater2": image > 1.3}.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            np.save(folder / name / f"case{case}.npy", array.astype(np.float32 if name == "images" else np.uint8))
    return folder


@pytest.fixture
def dataset(tmp_path):
    return write_dataset(tmp_path / "data")


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A run of a few steps, and its dataset."""
    folder = tmp_path_factory.mktemp("trained")
    data = write_dataset(folder / "data")
    return ssn.train(data=data, out=folder / "run", set=SMALL, device="cpu", progress=False), data
