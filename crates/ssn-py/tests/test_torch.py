"""The losses of ssn.torch are those of the engine, to the values that its tests hold."""

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ssn
from ssn.torch import LowRankHead, LowRankNormal, energy_loss, monte_carlo_loss

CASES = json.loads((Path(__file__).parent / "losses.json").read_text())


def tensor(about, **options):
    return torch.tensor(about["values"], **options).reshape(about["shape"])


def loss_of(case, parts, dtype):
    """The loss of a case, with its noise."""
    noise = tuple(tensor(case[name], dtype=dtype) for name in ("noise_of_rank", "noise_of_voxels"))
    target = tensor(case["target"], dtype=torch.int64)
    if case["loss"] == "energy":
        options = {"similarity": case["similarity"], "diversity_weight": case["diversity_weight"]}
        return energy_loss(LowRankNormal(*parts), target, noise=noise, **options)
    return monte_carlo_loss(LowRankNormal(*parts), target, exponent=case["exponent"], noise=noise)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_losses_and_gradients_are_those_of_the_engine(case):
    parts = [tensor(case[name], dtype=torch.float64).requires_grad_() for name in ("mean", "diagonal", "factor")]
    loss = loss_of(case, parts, torch.float64)
    assert loss.detach().numpy() == pytest.approx(case["value"], rel=1e-6, abs=1e-9)
    loss.sum().backward()
    for part, name in zip(parts, ("mean", "diagonal", "factor")):
        expected = tensor(case[f"gradient_of_{name}"], dtype=torch.float64)
        assert torch.allclose(part.grad, expected, rtol=1e-6, atol=1e-9), name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_single_precision_is_close(case):
    parts = [tensor(case[name], dtype=torch.float32) for name in ("mean", "diagonal", "factor")]
    loss = loss_of(case, parts, torch.float32)
    assert loss.numpy() == pytest.approx(case["value"], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_head_gives_a_distribution(dims):
    torch.manual_seed(0)
    space = (6, 5, 4)[:dims]
    head = LowRankHead(8, 3, rank=4, dims=dims)
    d = head(torch.randn(2, 8, *space))
    assert d.mean.shape == (2, 3, *space) and d.factor.shape == (2, 4, 3, *space) and d.rank == 4
    assert d.rsample(7).shape == (7, 2, 3, *space) and (d.diagonal > 0).all()
    energy_loss(d, torch.zeros(2, 3, *space, dtype=torch.int64), 6).mean().backward()
    assert all(parameter.grad is not None for parameter in head.parameters())
    masked = head(torch.randn(2, 8, *space), mask=torch.zeros(2, *space))
    assert masked.factor.abs().max() == 0 and masked.diagonal.max() < 1e-4
    assert LowRankHead(8, 2, rank=0, dims=dims)(torch.randn(1, 8, *space)).rank == 0


def test_training_learns_two_equally_frequent_maps():
    """A line of four voxels that two raters see together or not at all."""
    torch.manual_seed(0)
    head = LowRankHead(4, 2, rank=1, dims=1)
    features = torch.eye(4)[None]
    raters = torch.tensor([[[0, 0, 0, 0], [0, 1, 1, 0]]])
    optimizer = torch.optim.Adam(head.parameters(), 0.03)
    for _ in range(600):
        optimizer.zero_grad()
        energy_loss(head(features), raters, 20).mean().backward()
        optimizer.step()
    d = head(features)
    two = LowRankNormal(*(part.unsqueeze(-2) for part in (d.mean, d.diagonal, d.factor))).to_ssn()
    samples = two.sample(400)[:, 0]
    assert 0.35 < samples[:, 1].mean() < 0.65 and (samples[:, 1] == samples[:, 2]).mean() > 0.9


def test_tensors_are_taken(rng):
    mean = torch.randn(2, 8, 9, requires_grad=True)
    d = ssn.LowRankNormal(mean, torch.rand(2, 8, 9), torch.randn(3, 2, 8, 9, dtype=torch.bfloat16))
    assert np.array_equal(d.mean, mean.detach().numpy())
    raters = torch.randint(2, (3, 8, 9))
    assert ssn.score(torch.from_numpy(d.sample(5)), raters)["ged2"] == ssn.score(d.sample(5), raters.numpy())["ged2"]


def test_wrong_input_is_named():
    d = LowRankNormal(torch.zeros(2, 3, 4), torch.ones(2, 3, 4), torch.zeros(2, 1, 3, 4))
    for error, text, call in [
        (ValueError, "target has the shape", lambda: monte_carlo_loss(d, torch.zeros(2, 5, dtype=torch.int64))),
        (ValueError, "target holds 0 to 3", lambda: energy_loss(d, torch.arange(4).expand(2, 4))),
        (TypeError, "class numbers are whole", lambda: energy_loss(d, torch.zeros(2, 4))),
        (ValueError, "samples is 0", lambda: monte_carlo_loss(d, torch.zeros(2, 4, dtype=torch.int64), 0)),
        (ValueError, "no rater", lambda: energy_loss(d, torch.zeros(2, 0, 4, dtype=torch.int64))),
        (TypeError, "target is a ndarray", lambda: energy_loss(d, np.zeros((2, 4), int))),
        (ValueError, "samples is 1", lambda: energy_loss(d, torch.zeros(2, 4, dtype=torch.int64), 1)),
        (ValueError, "similarity is", lambda: energy_loss(d, torch.zeros(2, 4, dtype=torch.int64), similarity="x")),
        (ValueError, "factor has the shape", lambda: LowRankNormal(torch.zeros(2, 3, 4), torch.ones(2, 3, 4), torch.zeros(2, 3, 4))),
    ]:
        with pytest.raises(error, match=text):
            call()
