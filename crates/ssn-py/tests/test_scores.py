import copy
import csv
import itertools
import pickle

import numpy as np
import pytest
from conftest import command

import ssn


def blobs(rng, count, size=(24, 24), classes=2):
    """Label maps with a disk of every class."""
    grid = np.indices(size)
    maps = np.zeros((count, *size), np.uint8)
    for map_ in maps:
        for label in range(1, classes):
            center = [rng.uniform(0.3, 0.7) * length for length in size]
            distance = sum((axis - middle) ** 2 for axis, middle in zip(grid, center))
            map_[distance < rng.uniform(2, 5) ** 2] = label
    return maps


def ged2(samples, raters, classes):
    """The definition, pair by pair."""

    def distance(a, b):
        values = []
        for label in range(1, classes):
            union = ((a == label) | (b == label)).sum()
            values.append(1.0 if union == 0 else ((a == label) & (b == label)).sum() / union)
        return 1 - np.mean(values)

    def mean(first, second):
        return np.mean([distance(a, b) for a, b in itertools.product(first, second)])

    return 2 * mean(samples, raters) - mean(samples, samples) - mean(raters, raters)


@pytest.mark.parametrize("classes", [2, 4])
def test_ged2_is_the_definition(rng, classes):
    samples, raters = blobs(rng, 9, classes=classes), blobs(rng, 3, classes=classes)
    scores = ssn.score(samples, raters)
    assert scores["ged2"] == pytest.approx(ged2(samples, raters, classes), abs=1e-12)
    assert scores.ged2 == scores["ged2_9"] and 0 < scores.hm_iou < 1 and "ece" not in scores
    assert ssn.score(raters, raters)["ged2"] == 0
    many = ssn.score(blobs(rng, 100), blobs(rng, 2))
    assert many.ged2 == many["ged2_100"] and list(many)[:3] == ["ged2", "ged2_1", "ged2_2"]


def test_masks_sets_and_surfaces(rng):
    samples, raters = blobs(rng, 5, (6, 24, 24), 3), blobs(rng, 2, (6, 24, 24), 3)
    scores = ssn.score(
        samples, raters, classes=["background", "edema", "core"], masks={"tumor": ["edema", "core"]},
        spacing=(3, 1, 1), surfaces=True, sets="all",
    )
    assert len(scores.per_rater("dsc tumor")) == 2
    assert {"hd95 tumor", "consensus_dice tumor", "sample_volume_crps tumor", "matched_dice"} <= set(scores)
    options = {"surfaces": True, "prediction": samples[0]}
    voxels, halves = ssn.score(samples, raters, **options), ssn.score(samples, raters, spacing=0.5, **options)
    assert halves["hd95 class 1"] == voxels["hd95 class 1"] / 2 > 0
    assert "GED²" in repr(scores) and "<table>" in scores._repr_html_()
    with pytest.raises(KeyError, match="there are ged2"):
        scores["nothing"]
    with pytest.raises(AttributeError, match="did you mean 'hm_iou'"):
        scores.hmiou
    with pytest.raises(KeyError, match="no value for each rater"):
        scores.per_rater("ged2")


def test_scores_are_those_of_the_command(rng, tmp_path, make):
    raters = blobs(rng, 3, (20, 20))
    d = make(2, (20, 20), 2, case="a")
    samples = d.sample(12, seed=4)
    for number, rater in enumerate(raters):
        save(tmp_path / "data" / f"rater{number}" / "a.npy", rater)
    save(tmp_path / "data" / "images" / "a.npy", np.zeros((20, 20), np.float32))
    for number, sample in enumerate(samples):
        save(tmp_path / "samples" / f"a_sample_{number}.npy", sample)
    out = tmp_path / "converted"
    command(["evaluate", out, "--samples", tmp_path / "samples", "--raters", tmp_path / "data", "--quiet", "--scores", "all"])
    with next(out.rglob("cases.csv")).open() as file:
        [theirs] = csv.DictReader(file)
    ours = ssn.score(samples, raters, sets="all", surfaces=True, calibration=True)
    shared = [key for key in ours if theirs.get(key)]
    assert len(shared) > 20, (list(theirs), list(ours))
    for key in shared:
        assert ours[key] == pytest.approx(float(theirs[key]), rel=1e-5, abs=1e-6), key


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


def test_a_class_that_no_map_has_counts_as_agreement_if_it_is_named(rng):
    samples, raters = blobs(rng, 4), blobs(rng, 2)
    two, three = ssn.score(samples, raters), ssn.score(samples, raters, classes=["background", "a", "b"])
    assert three.ged2 == pytest.approx(two.ged2 / 2)
    present = ssn.score(samples, raters, classes=["background", "a", "b"], ged_distance="iou-present")
    assert present.ged2 == pytest.approx(two.ged2)


def test_a_distribution_stands_for_its_samples(rng, make):
    d = make(2, (24, 24))
    raters = blobs(rng, 3)
    by_hand = ssn.score(d.sample(100), raters, prediction=d.prediction(), probabilities=d.probabilities(100))
    assert dict(ssn.score(d, raters)) == pytest.approx(dict(by_hand), nan_ok=True)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.int64, np.float32, np.float64])
def test_labels_of_any_type(rng, kind):
    samples, raters = blobs(rng, 4), blobs(rng, 2)
    expected = ssn.score(samples, raters)
    assert dict(ssn.score(samples.astype(kind), list(raters.astype(kind)))) == pytest.approx(dict(expected), nan_ok=True)
    # Other orders of memory, and views.
    assert ssn.score(np.asfortranarray(samples), raters[::-1][::-1])["ged2"] == expected["ged2"]


def test_wrong_input_is_named(rng):
    samples, raters = blobs(rng, 4), blobs(rng, 2)
    halves = np.full_like(samples, 0.5, dtype=float)
    for error, text, call in [
        (ValueError, "samples are 24 × 24, but raters are 23 × 24", lambda: ssn.score(samples, raters[:, 1:])),
        (ValueError, "samples holds values that are no labels", lambda: ssn.score(halves, raters)),
        (ValueError, "samples holds values that are no labels", lambda: ssn.score(samples.astype(int) - 1, raters)),
        (ValueError, "samples holds values that are no labels", lambda: ssn.score(np.full((2, 24, 24), np.nan), raters)),
        (ValueError, "raters is empty", lambda: ssn.score(samples, [])),
        (ValueError, "raters is empty", lambda: ssn.score(samples, raters[:0])),
        (ValueError, "without a single voxel", lambda: ssn.score(samples[:, :0], raters[:, :0])),
        (ValueError, "put a single map into a list", lambda: ssn.score(samples[0], raters)),
        (ValueError, "samples differ in shape", lambda: ssn.score([samples[0], samples[1][1:]], raters)),
        (TypeError, "samples holds complex", lambda: ssn.score(samples.astype(complex), raters)),
        (TypeError, "samples", lambda: ssn.score("samples", raters)),
        (TypeError, "samples", lambda: ssn.score(None, raters)),
        (ValueError, "2 different names are needed", lambda: ssn.score(samples, raters, classes=["one"])),
        (ValueError, "2 different names are needed", lambda: ssn.score(samples, raters, classes="ab")),
        (ValueError, "there are labels up to 255, but none is 1", lambda: ssn.score(samples * 255, raters * 255)),
        (ValueError, "sets names 'x'", lambda: ssn.score(samples, raters, sets="x")),
        (ValueError, "ged_distance is 'x'", lambda: ssn.score(samples, raters, ged_distance="x")),
        (ValueError, "spacing is", lambda: ssn.score(samples, raters, spacing=(0, 1))),
        (ValueError, "the mask 'm' has 'x'", lambda: ssn.score(samples, raters, masks={"m": ["x"]})),
        (ValueError, "the mask 'm' has no class", lambda: ssn.score(samples, raters, masks={"m": []})),
        (TypeError, "masks must name", lambda: ssn.score(samples, raters, masks=["m"])),
        (ValueError, "probabilities have the shape", lambda: ssn.score(samples, raters, probabilities=np.zeros((2, 3, 3)))),
        (ValueError, "apply a softmax", lambda: ssn.score(samples, raters, probabilities=np.full((2, 24, 24), 5.0))),
        (ValueError, "tolerance is", lambda: ssn.score(samples, raters, tolerance=-1)),
    ]:
        with pytest.raises(error) as raised:
            call()
        assert text in str(raised.value), (text, str(raised.value))


def test_scores_can_be_copied_and_listed(rng):
    maps = (rng.random((4, 8, 8)) > 0.5).astype(np.uint8)
    scores = ssn.score(maps, maps[:2])
    for same in (pickle.loads(pickle.dumps(scores)), copy.deepcopy(scores)):
        assert same.to_dict() == pytest.approx(scores.to_dict(), nan_ok=True) and repr(same) == repr(scores)
    pandas = pytest.importorskip("pandas")
    table = scores.to_pandas()
    assert isinstance(table, pandas.DataFrame) and len(table) > 3 and table["value"].notna().any()
