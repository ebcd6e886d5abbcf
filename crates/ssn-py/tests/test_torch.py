"""The losses of ssn.torch are those of the engine, to the values that its tests hold."""

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ssn
from ssn.torch import LowRankHead, LowRankNormal, SSNLoss, StochasticNetwork, energy_loss, export_onnx, monte_carlo_loss

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
        (ValueError, "the classes, which are 0 to 2", lambda: energy_loss(d, torch.arange(4).expand(2, 4))),
        (ValueError, "not whole", lambda: energy_loss(d, torch.full((2, 4), 0.5))),
        (ValueError, "need ignore_index", lambda: energy_loss(d, torch.full((2, 4), 255))),
        (ValueError, "present has the shape", lambda: energy_loss(d, torch.zeros(2, 4).long(), present=torch.ones(2, 2))),
        (ValueError, "negative or undefined variances", lambda: LowRankNormal(d.mean, -d.diagonal, d.factor).rsample()),
        (ValueError, "rows have the shape", lambda: LowRankNormal.from_rows(torch.zeros(2, 7, 4), 3)),
        (ValueError, "kind is", lambda: SSNLoss(2, "other")),
        (ValueError, "initial_scale", lambda: LowRankHead(4, 2, initial_scale=0.0)),
        (ValueError, "samples is 0", lambda: monte_carlo_loss(d, torch.zeros(2, 4, dtype=torch.int64), 0)),
        (ValueError, "no rater", lambda: energy_loss(d, torch.zeros(2, 0, 4, dtype=torch.int64))),
        (TypeError, "target is a ndarray", lambda: energy_loss(d, np.zeros((2, 4), int))),
        (ValueError, "samples is 1", lambda: energy_loss(d, torch.zeros(2, 4, dtype=torch.int64), 1)),
        (ValueError, "similarity is", lambda: energy_loss(d, torch.zeros(2, 4, dtype=torch.int64), similarity="x")),
        (ValueError, "factor has the shape", lambda: LowRankNormal(torch.zeros(2, 3, 4), torch.ones(2, 3, 4), torch.zeros(2, 3, 4))),
    ]:
        with pytest.raises(error, match=text):
            call()


LOSSES = [monte_carlo_loss, energy_loss]


def parts_of(rng, b=2, c=3, r=2, space=(4, 5)):
    """Random mean, variances and factor."""
    shapes = [(b, c, *space), (b, c, *space), (b, r, c, *space)]
    mean, diagonal, factor = (torch.tensor(rng.normal(size=shape)) for shape in shapes)
    return [mean.requires_grad_(), diagonal.square().requires_grad_(), factor.requires_grad_()]


def gradients(loss, parts):
    return torch.autograd.grad(loss.sum(), parts)


@pytest.mark.parametrize("loss", LOSSES)
def test_samples_in_parts_have_the_same_loss_and_gradients(loss, rng):
    parts, target = parts_of(rng), torch.tensor(rng.integers(3, size=(2, 3, 4, 5)))
    noise = LowRankNormal(*parts).noise(7)
    whole = loss(LowRankNormal(*parts), target, noise=noise)
    in_parts = loss(LowRankNormal(*parts), target, noise=noise, samples_at_once=3)
    assert torch.allclose(whole, in_parts, rtol=1e-12)
    for a, b in zip(gradients(whole, parts), gradients(in_parts, parts)):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)
    # Noise that is drawn in each part is the same in the backward pass: the gradient is that of the loss.
    torch.manual_seed(3)
    drawn = loss(LowRankNormal(*parts), target, 6, samples_at_once=2)
    torch.manual_seed(3)
    shifted = [part.detach() + (1e-6 if place == 0 else 0) for place, part in enumerate(parts)]
    moved = loss(LowRankNormal(*shifted), target, 6, samples_at_once=2)
    slope = float((moved - drawn.detach()).sum()) / 1e-6
    assert slope == pytest.approx(float(gradients(drawn, parts)[0].sum()), abs=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_ignored_voxels_and_absent_raters_do_not_count(loss, rng):
    parts, target = parts_of(rng, space=(6,)), torch.tensor(rng.integers(3, size=(2, 2, 6)))
    noise = LowRankNormal(*parts).noise(5)
    ignored = target.clone()
    ignored[..., 4:] = 255
    cut = [part[..., :4] for part in parts]
    found = loss(LowRankNormal(*parts), ignored, noise=noise, ignore_index=255)
    assert torch.allclose(found, loss(LowRankNormal(*cut), target[..., :4], noise=(noise[0], noise[1][..., :4])), rtol=1e-10)
    assert all(gradient[..., 4:].abs().max() == 0 for gradient in gradients(found, parts))
    absent = torch.cat([target, torch.full((2, 1, 6), -1)], 1)
    present = torch.tensor([[True, True, False]] * 2)
    found = loss(LowRankNormal(*parts), absent, noise=noise, ignore_index=-1, present=present)
    assert torch.allclose(found, loss(LowRankNormal(*parts), target, noise=noise), rtol=1e-10)
    nobody = loss(LowRankNormal(*parts), absent, noise=noise, ignore_index=-1, present=torch.zeros(2, 3))
    assert nobody.abs().max() == 0 and all(gradient.abs().max() == 0 for gradient in gradients(nobody, parts))


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_take_whole_floats_and_compile(loss, rng):
    parts, target = [part.detach().float() for part in parts_of(rng)], torch.tensor(rng.integers(3, size=(2, 2, 4, 5)))
    noise = LowRankNormal(*parts).noise(4)
    expected = loss(LowRankNormal(*parts), target, noise=noise)
    assert torch.equal(loss(LowRankNormal(*parts), target.float(), noise=noise), expected)

    def compute(mean, diagonal, factor, target, of_rank, of_voxels):
        return loss(LowRankNormal(mean, diagonal, factor), target, noise=(of_rank, of_voxels))

    compiled = torch.compile(compute, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(*parts, target, *noise), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_half_precision_around_them_does_not_reach_them(loss):
    torch.manual_seed(0)
    head, features = LowRankHead(8, 3, rank=2), torch.randn(2, 8, 6, 6)
    target = torch.randint(3, (2, 2, 6, 6))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        d = head(features.bfloat16())
        assert {part.dtype for part in (d.mean, d.diagonal, d.factor)} == {torch.float32}
        noise = d.noise(5)
        inside = loss(d, target, noise=noise)
    assert torch.equal(inside, loss(d, target, noise=noise))


def test_a_head_stays_finite():
    torch.manual_seed(0)
    head = LowRankHead(4, 2, rank=2)
    d = head(torch.full((1, 4, 3, 3), 1e4))
    assert torch.isfinite(d.diagonal).all() and torch.isfinite(d.rsample(3)).all()
    loss = energy_loss(d, torch.zeros(1, 3, 3).long(), 4)
    loss.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in head.parameters())
    limited = LowRankHead(4, 2, rank=2, log_diagonal_limit=3.0)(torch.full((1, 4, 3, 3), 1e4))
    assert limited.diagonal.max() < 21
    torch.manual_seed(0)
    certain = LowRankHead(4, 2, rank=2, initial_scale=0.1)
    plain = head(torch.ones(1, 4, 3, 3))
    assert torch.allclose(certain(torch.ones(1, 4, 3, 3)).factor, 0.1 * plain.factor, atol=1e-6)


def test_distributions_are_rows_and_parts(rng):
    d = LowRankNormal(*parts_of(rng))
    same = LowRankNormal.from_rows(d.rows, 3)
    assert all(torch.equal(getattr(same, name), getattr(d, name)) for name in ("mean", "diagonal", "factor"))
    assert len(d) == 2 and len(d[-1]) == 1 and torch.equal(d[-1].mean[0], d.mean[1]) and torch.equal(d[1:].factor, d.factor[1:])
    assert not d.detach().mean.requires_grad and d.to(torch.float32).factor.dtype == torch.float32


def test_a_network_trains_through_rows(rng):
    torch.manual_seed(0)
    network = StochasticNetwork(torch.nn.Conv2d(1, 8, 3, padding=1), LowRankHead(8, 2, rank=2))
    image = torch.zeros(2, 1, 16, 16)
    image[:, :, 4:10, 4:10] = 1
    target = image.repeat(1, 2, 1, 1)
    target[:, 1, 4] = 0
    optimizer = torch.optim.Adam(network.parameters(), 0.03)
    values = []
    for kind in ("mean", "likelihood", "energy"):
        loss = SSNLoss(2, kind, samples=8)
        for _ in range(60):
            optimizer.zero_grad()
            value = loss(network(image), target)
            value.backward()
            optimizer.step()
        values.append(float(value.detach()))
    assert values[0] < 0.3 and values[2] < 0.1


def test_onnx_has_the_numbers_of_pytorch(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    network = StochasticNetwork(torch.nn.Conv2d(1, 8, 3, padding=1), LowRankHead(8, 3, rank=2))
    path = export_onnx(network, tmp_path / "net.onnx", torch.randn(1, 1, 16, 16), names=["background", "a", "b"], dynamic_size=True)
    session = runtime.InferenceSession(path)
    for shape in [(1, 1, 16, 16), (3, 1, 24, 20)]:
        image = torch.randn(*shape)
        mean, diagonal, factor = session.run(None, {"image": image.numpy()})
        expected = LowRankNormal.from_rows(network(image).detach(), 3)
        for found, part in zip((mean, diagonal, factor), (expected.mean, expected.diagonal, expected.factor)):
            assert found == pytest.approx(part.numpy(), rel=1e-4, abs=1e-5)
    about = json.loads(session.get_modelmeta().custom_metadata_map["ssn"])
    assert about["rank"] == 2 and about["classes"] == ["background", "a", "b"]
    assert ssn.LowRankNormal(mean[0], diagonal[0], factor[0], classes=about["classes"]).sample(3).shape == (3, 24, 20)
