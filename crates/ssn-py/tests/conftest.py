import signal

import numpy as np
import pytest

import ssn


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
