import copy
import os
import pickle
import select
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import command

import ssn


def test_parameters_come_back(make):
    d = make(3, (4, 5, 6), 2)
    assert d.shape == (4, 5, 6) and d.rank == 2 and d.kind == "stochastic"
    assert d.mean.shape == (3, 4, 5, 6) and d.factor.shape == (2, 3, 4, 5, 6)
    assert d.classes == ["background", "class 1", "class 2"] and d.spacing is None
    again = ssn.LowRankNormal(d.mean, d.diagonal, d.factor)
    assert np.array_equal(again.factor, d.factor) and np.array_equal(again.diagonal, d.diagonal)


def test_two_dimensions_have_no_depth(make):
    d = make(2, (8, 9), spacing=(0.5, 0.7))
    assert d.shape == (8, 9) and d.spacing == (0.5, 0.7)
    assert d.sample(3).shape == (3, 8, 9) and d.sample(3).dtype == np.uint8
    assert d.probabilities(5).shape == (2, 8, 9) and d.entropy(5).shape == (8, 9)
    assert d.prediction().shape == (8, 9) and d.prediction("marginal").shape == (8, 9)
    assert [len(volumes) for volumes in d.volumes(20).values()] == [20]


def test_samples_do_not_depend_on_how_they_are_asked_for(make):
    d = make()
    whole = d.sample(70, seed=5)
    assert np.array_equal(whole[30:], d.sample(40, seed=5, first=30))
    assert not np.array_equal(whole, d.sample(70, seed=6))
    assert np.array_equal(d.sample(2, temperature=0)[0], d.prediction())


def test_probabilities_are_those_of_the_samples(make):
    d = make(2, (20, 20), 1)
    probabilities = d.probabilities(400)
    assert np.allclose(probabilities.sum(0), 1, atol=1e-5)
    # The softmax is smoother than labels, but on the same side for a steep distribution.
    steep = ssn.LowRankNormal(d.mean * 40, d.diagonal * 1600, d.factor * 40)
    shares = (steep.sample(400) == 1).mean(0)
    assert np.abs(shares - steep.probabilities(400)[1]).max() < 0.05
    assert (steep.entropy(100) >= 0).all() and (steep.entropy(100) <= 1).all()


def test_a_mask_and_a_single_class(make):
    mask = np.zeros((8, 8), bool)
    mask[2:6, 2:6] = True
    d = make(1, (8, 8), 2, mask=mask)
    assert d.classes == ["background", "foreground"]
    samples = d.sample(50)
    assert samples[:, ~mask].max() == 0 and samples.max() == 1
    assert np.array_equal(d.mask, mask)
    assert np.array_equal(d.sample(3, class_scale={"foreground": 0.0})[0], d.prediction())


def test_steering(make):
    d = make(3, (9, 11), 2, classes=["background", "edema", "core"])
    by_name = d.sample(4, class_scale={"edema": 2.0})
    assert np.array_equal(by_name, d.sample(4, class_scale=[1.0, 2.0, 1.0]))
    assert not np.array_equal(by_name, d.sample(4))
    assert np.array_equal(d.sample(4, mode_weights=[0, 0], diagonal_noise=False)[3], d.prediction())
    assert np.array_equal(d.sample(4, mode_weights={1: 2.0}), d.sample(4, mode_weights=[1, 2]))


def test_modes_are_orthogonal_and_ordered(make):
    modes = make(3, (9, 11), 4).modes(4)
    rows = modes.directions.reshape(4, -1).astype(float)
    products = rows @ rows.T
    assert np.abs(products - np.diag(np.diag(products))).max() < 1e-3
    assert (np.diff(modes.shares) <= 0).all() and 0 < modes.shares.sum() < 1
    assert len(make(rank=4).modes(2).shares) == 2


@pytest.mark.parametrize("space", [(16, 17), (3, 8, 9)])
def test_a_file_has_the_samples_of_the_command(make, space, tmp_path):
    affine = np.diag([0.9, 0.8, 2.0, 1.0]) + np.eye(4, k=3) * 5
    d = make(4, space, 3, case="case7", affine=affine, classes=["background", "a", "b", "c"])
    path = d.save(tmp_path / "case7.ssn.safetensors")
    back = ssn.load(path)
    assert isinstance(back, ssn.LowRankNormal) and back.case == "case7" and np.allclose(back.affine, affine)
    ours = d.sample(5, seed=3, temperature=1.2, class_scale={"b": 2.0})
    assert np.array_equal(ours, back.sample(5, seed=3, temperature=1.2, class_scale={"b": 2.0}))
    options = ["--samples", "5", "--seed", "3", "--temperature", "1.2", "--class-scale", "b=2", "--format", "nrrd"]
    command(["sample", path, "--out", tmp_path / "out", *options, "--quiet"])
    for index, map_ in enumerate(ours):
        assert np.array_equal(nrrd(tmp_path / "out" / f"case7_sample_{index}.nrrd").ravel(), map_.ravel())
    assert list(ssn.load_all(tmp_path)) == ["case7"]
    assert ssn.load(tmp_path).case == "case7"


def nrrd(path):
    """The bytes of a label map."""
    import gzip

    header, data = path.read_bytes().split(b"\n\n", 1)
    assert b"encoding: gzip" in header and b"type: unsigned char" in header
    return np.frombuffer(gzip.decompress(data), np.uint8)


def test_wrong_input_is_named(make, tmp_path):
    d = make()
    mean, factor = d.mean, d.factor
    nan = mean.copy()
    nan[1, 2, 3] = np.nan
    for error, text, call in [
        (ValueError, "mean is nan at [1, 0, 3]", lambda: ssn.LowRankNormal(nan[:, 2:3, :] * np.ones((1, 2, 1), "f4"))),
        (ValueError, "mean has the shape", lambda: ssn.LowRankNormal(mean[0])),
        (ValueError, "mean has the shape", lambda: ssn.LowRankNormal(np.zeros((2, 0, 4)))),
        (ValueError, "factor has the shape", lambda: ssn.LowRankNormal(mean, mean, factor[:, :2])),
        (ValueError, "diagonal has the shape", lambda: ssn.LowRankNormal(mean, mean[:2], factor)),
        (ValueError, "the order is mean, diagonal, factor", lambda: ssn.LowRankNormal(mean, factor, mean)),
        (ValueError, "diagonal is -1.0 at [0, 0, 0]", lambda: ssn.LowRankNormal(mean, np.full_like(mean, -1.0), factor)),
        (ValueError, "mask has the shape", lambda: ssn.LowRankNormal(mean, mask=np.ones((3, 3)))),
        (ValueError, "3 different names are needed", lambda: ssn.LowRankNormal(mean, classes=["a"])),
        (ValueError, "3 different names are needed", lambda: ssn.LowRankNormal(mean, classes=["a", "b", "b"])),
        (ValueError, "there are 4 classes", lambda: ssn.LowRankNormal(mean, classes=["a", "b", "c", "d"])),
        (ValueError, "spacing is (1, 2, 3), but 2", lambda: ssn.LowRankNormal(mean, spacing=(1, 2, 3))),
        (ValueError, "spacing is 'ab'", lambda: ssn.LowRankNormal(mean, spacing="ab")),
        (ValueError, "both given", lambda: ssn.LowRankNormal(mean, spacing=1, affine=np.eye(4))),
        (TypeError, "masked array", lambda: ssn.LowRankNormal(np.ma.masked_array(mean, mean > 0))),
        (ValueError, "mean has the shape ()", lambda: ssn.LowRankNormal(1.0)),
        (ValueError, "mean is inf at [0, 0, 0]", lambda: ssn.LowRankNormal(np.full((2, 3, 3), 1e39))),
        (TypeError, "mean holds complex64", lambda: ssn.LowRankNormal(mean.astype(np.complex64))),
        (TypeError, "mean is a str", lambda: ssn.LowRankNormal("mean")),
        (TypeError, "mean is a NoneType", lambda: ssn.LowRankNormal(None)),
        (ValueError, "affine", lambda: ssn.LowRankNormal(mean, affine=np.eye(3))),
        (ValueError, "n is 0", lambda: d.sample(0)),
        (ValueError, "n is -1", lambda: d.sample(-1)),
        (ValueError, "seed is -1", lambda: d.sample(1, seed=-1)),
        (ValueError, "below 2⁶⁴", lambda: d.sample(1, seed=1 << 64)),
        (TypeError, "seed is None", lambda: d.sample(1, seed=None)),
        (TypeError, "temperature is 'hot'", lambda: d.sample(1, temperature="hot")),
        (TypeError, "class_scale is 2.0", lambda: d.sample(1, class_scale=2.0)),
        (ValueError, "mode_weights names 7", lambda: d.sample(1, mode_weights={7: 1.0})),
        (ValueError, "temperature", lambda: d.sample(1, temperature=np.inf)),
        (ValueError, "temperature is -1.0", lambda: d.sample(1, temperature=-1)),
        (ValueError, "class_scale names 'x'", lambda: d.sample(1, class_scale={"x": 1})),
        (ValueError, "mode_weights has length 1", lambda: d.sample(1, mode_weights=[1])),
        (ValueError, "rule is", lambda: d.prediction("other")),
        (MemoryError, "", lambda: d.sample(1 << 50)),
        (ValueError, "must end with", lambda: d.save(tmp_path / "x.safetensors")),
        (ValueError, "precision is", lambda: d.save(tmp_path / "x.ssn.safetensors", precision="x")),
        (FileNotFoundError, "does not exist", lambda: ssn.load(tmp_path / "none.ssn.safetensors")),
        (FileNotFoundError, "no distribution files", lambda: ssn.load_all(tmp_path)),
        (FileNotFoundError, "no folder", lambda: ssn.load_all(tmp_path / "none")),
        (OSError, "none/x", lambda: d.save(tmp_path / "none/x.ssn.safetensors")),
    ]:
        with pytest.raises(error) as raised:
            call()
        assert text in str(raised.value), (text, str(raised.value))
    broken = tmp_path / "broken.ssn.safetensors"
    broken.write_bytes(os.urandom(500))
    with pytest.raises(ValueError, match="broken.ssn.safetensors"):
        ssn.load(broken)


def test_numbers_that_differ_from_whole_ones_are_refused(make):
    with pytest.raises(ValueError):
        make().sample(2.5)
    assert make().sample(np.int64(2)).shape[0] == 2


def test_copies_and_pickles_are_the_same(make):
    d = make(3, (5, 6), 2, case="x", spacing=0.5)
    for other in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        assert (other.case, other.classes, other.spacing) == (d.case, d.classes, d.spacing)
        assert np.array_equal(other.sample(9), d.sample(9))


def test_a_forked_process_draws_the_same(make):
    """Threads of the parent do not exist in it."""
    d = make(3, (16, 64, 64), 2)
    expected = d.sample(8)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"same" if np.array_equal(d.sample(8), expected) else b"other")
        os._exit(0)
    os.close(write)
    assert select.select([read], [], [], 60)[0], "the forked process hangs"
    assert os.read(read, 10) == b"same"
    os.waitpid(child, 0)


def test_threads_draw_the_same(make):
    d = make(3, (64, 64), 5)
    expected, found = d.sample(8), [None] * 6
    def draw(index):
        found[index] = d.sample(8)
    threads = [threading.Thread(target=draw, args=(index,)) for index in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(np.array_equal(maps, expected) for maps in found)


def test_ctrl_c_ends_long_work():
    script = """
import _thread, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np, ssn
d = ssn.LowRankNormal(np.zeros((4, 64, 256, 256), "f4"), factor=np.ones((2, 4, 64, 256, 256), "f4"))
maps = np.random.default_rng(0).integers(0, 3, (40, 48, 96, 96)).astype("u1")
for long in (lambda: d.entropy(100_000), lambda: ssn.score(maps, maps[:3], surfaces=True, sets="all")):
    threading.Timer(0.3, _thread.interrupt_main).start()
    try:
        long()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
import os
os._exit(0)
"""
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert printed.stdout == "interrupted\ninterrupted\n", printed.stderr


def test_importing_does_not_import_numpy_or_torch():
    script = "import sys, ssn; print([name for name in ('numpy', 'torch') if name in sys.modules], len(dir(ssn)) > 5)"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert printed.stdout == "[] True\n"


def test_every_class_has_the_color_of_figures_and_background_has_none():
    from ssn import _show, _ssn

    colors = _show._colored(np.arange(9, dtype=np.uint8)[None])[0]
    assert [bytes(color) for color in colors[1:8]] == _ssn.CLASS_COLORS
    assert (colors[8] == colors[1]).all() and tuple(colors[0]) == _show.BACKGROUND


def test_a_notebook_shows_samples(make):
    html = make(2, (16, 16))._repr_html_()
    assert html.count("<img") == 7 and "prediction" in html and "sample 4" in html
    assert "slice" in make(3, (4, 8, 8))._repr_html_()


def test_the_viewer_is_a_page(make, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    page = make(2, (16, 16)).view()
    assert opened == [page.path.as_uri()] and "<html" in page.path.read_text(encoding="utf-8")
    assert len(page._repr_html_()) < 1000


def test_the_command_comes_with_the_package():
    assert f"ssn {ssn.__version__}" in command(["--version"])
    with pytest.raises(subprocess.CalledProcessError) as raised:
        command(["sample", "--no-such-option"])
    assert raised.value.returncode == 2 and "--no-such-option" in raised.value.stderr
