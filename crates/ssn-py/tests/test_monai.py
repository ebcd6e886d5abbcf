"""The parts for MONAI."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("monai")
nibabel = pytest.importorskip("nibabel")

from monai.data import DataLoader, Dataset, MetaTensor, decollate_batch
from monai.transforms import Compose, EnsureChannelFirstd, Invertd, LoadImaged, Orientationd, Spacingd

import ssn
from ssn.monai import SaveSSNd, SSNInferer, SSNLoss, SSNMetric, distribution_of
from ssn.torch import LowRankHead, LowRankNormal, StochasticNetwork

AFFINE = np.array([[-1.5, 0, 0, 20], [0, -1, 0, 30], [0, 0, 2.0, -8], [0, 0, 0, 1]])


@pytest.fixture
def network():
    torch.manual_seed(0)
    return StochasticNetwork(torch.nn.Conv3d(1, 4, 3, padding=1), LowRankHead(4, 2, rank=2, dims=3))


@pytest.fixture
def image(tmp_path, rng):
    """A volume with a bright corner: its orientation shows."""
    array = rng.normal(0, 0.1, (12, 16, 10)).astype(np.float32)
    array[1:5, 2:9, 6:9] += 2
    nibabel.save(nibabel.Nifti1Image(array, AFFINE), tmp_path / "patient1.nii.gz")
    return tmp_path / "patient1.nii.gz"


def test_windows_have_the_numbers_of_the_whole(network):
    image = torch.randn(1, 1, 12, 16, 10)
    with torch.no_grad():
        whole = network(image)
        rows = SSNInferer(roi_size=(8, 8, 8), sw_batch_size=2, overlap=0.5)(image, network)
    assert rows.shape == whole.shape == (1, 8, 12, 16, 10)
    # One convolution sees one voxel beyond its window: middles agree.
    assert torch.allclose(SSNInferer(roi_size=(12, 16, 10))(image, network), whole, atol=1e-5)
    assert (rows[:, 2:4] > 0).all()


def test_files_have_the_geometry_of_the_image(network, image, tmp_path):
    transforms = Compose(
        [
            LoadImaged(keys="image"),
            EnsureChannelFirstd(keys="image"),
            Orientationd(keys="image", axcodes="RAS", labels=None),
            Spacingd(keys="image", pixdim=(1.5, 1.0, 2.0)),
        ]
    )
    (batch,) = DataLoader(Dataset([{"image": str(image)}], transforms), batch_size=1)
    with torch.no_grad():
        batch["pred"] = SSNInferer(roi_size=(12, 16, 10))(batch["image"], network)
    back = Compose(
        [
            Invertd(keys="pred", transform=transforms, orig_keys="image", nearest_interp=False, to_tensor=True),
            SaveSSNd(keys="pred", folder=tmp_path / "p", classes=["background", "lesion"], precision="single"),
        ]
    )
    for data in decollate_batch(batch):
        back(data)
    d = ssn.load(tmp_path / "p/patient1.ssn.safetensors")
    assert d.case == "patient1" and d.classes == ["background", "lesion"] and d.shape == (10, 16, 12)
    assert np.allclose(d.affine, AFFINE)
    # The network keeps places: the bright corner of the file is that of the mean.
    with torch.no_grad():
        flipped = np.asarray(nibabel.load(image).dataobj)[::-1, ::-1].copy()
        expected = LowRankNormal.from_rows(network(torch.tensor(flipped)[None, None]), 2).mean[0].numpy()[:, ::-1, ::-1]
    assert np.allclose(d.mean, expected.transpose(0, 3, 2, 1), atol=1e-4)


def test_pictures_are_turned_as_well():
    rows = MetaTensor(torch.rand(8, 5, 7), affine=torch.diag(torch.tensor([0.5, 0.7, 1.0, 1.0])))
    d = distribution_of(rows, 2, case="a")
    assert d.shape == (7, 5) and np.allclose(d.spacing, (0.7, 0.5))
    assert np.array_equal(d.mean, rows.numpy()[:2].transpose(0, 2, 1))


def test_the_metric_is_the_score(network):
    image = torch.randn(2, 1, 8, 8, 8)
    raters = torch.randint(2, (2, 3, 8, 8, 8))
    with torch.no_grad():
        rows = network(image)
    metric = SSNMetric("ged2", classes=2, samples=8)
    metric(rows, raters)
    d = LowRankNormal.from_rows(rows, 2).to_ssn(1, case="image 0-1")
    values = metric.get_buffer()
    assert values.shape == (2, 1) and float(values[1]) == pytest.approx(ssn.score(d.sample(8), raters[1].numpy())["ged2"])
    assert float(metric.aggregate()) == pytest.approx(float(values.mean()))
    metric.reset()
    with pytest.raises(ValueError, match="nothing was scored"):
        metric.aggregate()


def test_it_trains_on_batches(network):
    image = torch.zeros(2, 1, 8, 8, 8)
    image[..., 2:6, 2:6, 2:6] = 1
    label = MetaTensor(image.clone())  # [b, 1, ...] of whole floats
    optimizer = torch.optim.Adam(network.parameters(), 0.03)
    losses = []
    for kind in ("mean", "energy"):
        for _ in range(40):
            optimizer.zero_grad()
            loss = SSNLoss(classes=2, kind=kind, samples=6)(network(MetaTensor(image)), label)
            loss.backward()
            optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[1] < 0.2
