import numpy as np
import pytest

import ssn


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
        return ssn.LowRankNormal(*(x.astype(np.float32) for x in (mean, factor, diagonal)), **about)

    return of
