"""Predictions by a worker that stays warm."""

import _thread
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import needs_engine
from test_run import children, is_running

import ssn
from ssn import _errors, _images

pytestmark = needs_engine


@pytest.fixture(scope="module")
def predictor(trained):
    with trained[0].predictor(device="cpu") as predictor:
        yield predictor


def images_of(data):
    return {path.stem: np.load(path) for path in sorted((data / "images").glob("*.npy"))}


def test_many_images_by_one_process_are_those_of_the_command(predictor, trained, tmp_path):
    run, data = trained
    ssn.predict(run.path, data, tmp_path / "p", split="all", precision="single", device="cpu", progress=False)
    files = ssn.load_all(tmp_path / "p")
    images = images_of(data)
    many = [(f"case{number % 8}", images[f"case{number % 8}"]) for number in range(100)]
    process = predictor.open()._worker.pid
    found = list(predictor.map(many))
    assert len(found) == 100 and predictor._worker.pid == process
    for d in found:
        same = files[d.case]
        assert np.array_equal(d.mean, same.mean) and np.array_equal(d.diagonal, same.diagonal) and np.array_equal(d.factor, same.factor)
        assert d.shape == same.shape and d.classes == same.classes
    one = predictor(images["case3"], case="case3")
    assert np.array_equal(one.sample(5), files["case3"].sample(5)) and predictor.network_seconds > 0
    assert predictor.about["device"] == "cpu" and predictor.about["classes"] == one.classes


def test_a_map_reads_one_image_ahead_and_may_be_left(predictor, trained):
    images = iter(images_of(trained[1]).values())
    found = predictor.map(images)
    first = next(found)
    assert first.case == "case0" and len(list(images)) == 6
    found.close()
    again = predictor(next(iter(images_of(trained[1]).values())))
    assert np.array_equal(again.mean, first.mean)


def test_masks_and_progress(predictor, trained):
    image = images_of(trained[1])["case0"]
    mask = np.zeros((32, 32), bool)
    mask[4:20, 6:24] = True
    seen = []
    d = predictor(image, mask=mask, on_progress=lambda progress: seen.append((progress.done, progress.total)))
    assert d.region == (slice(4, 20), slice(6, 24)) and seen[-1][0] == seen[-1][1]
    assert not d.sample(20)[:, ~mask].any()
    with pytest.raises(ValueError, match="mask has the shape"):
        predictor(image, mask=mask[1:])


def test_an_interrupt_is_raised_and_the_worker_stays(predictor, trained):
    image = images_of(trained[1])["case0"]
    process = predictor.open()._worker.pid
    with pytest.raises(KeyboardInterrupt):
        predictor(image, on_progress=lambda progress: _thread.interrupt_main())
    with pytest.raises(KeyboardInterrupt):
        for _ in predictor.map([image] * 1000):
            _thread.interrupt_main()
    with pytest.raises(ZeroDivisionError):
        predictor(image, on_progress=lambda progress: 1 / 0)
    assert predictor(image).shape == (32, 32) and predictor._worker.pid == process


def test_a_killed_worker_is_an_error_and_the_next_call_works(predictor, trained):
    image = images_of(trained[1])["case0"]
    before = predictor(image)
    process = predictor._worker.pid

    def kill(progress):
        os.kill(process, signal.SIGKILL)
        while is_running(process):
            time.sleep(0.01)

    with pytest.raises(RuntimeError, match="killed by signal 9; the next call starts another"):
        predictor(image, on_progress=kill)
        predictor(image)
    assert np.array_equal(predictor(image).mean, before.mean) and predictor._worker.pid != process


def test_a_closed_predictor_leaves_its_map_with_an_error(trained):
    images = list(images_of(trained[1]).values())
    with trained[0].predictor(device="cpu") as predictor:
        found = predictor.map(images)
        next(found)
    with pytest.raises(RuntimeError, match="closed before it answered"):
        next(found)
    assert predictor(images[0]).case == "case"
    predictor.close()


def test_images_before_a_broken_one_are_predicted(predictor, trained):
    def broken():
        yield from list(images_of(trained[1]).values())[:2]
        raise OSError("the disk")

    seen = []
    with pytest.raises(OSError, match="the disk"):
        for d in predictor.map(broken()):
            seen.append(d.case)
    assert seen == ["case0", "case1"]


def test_a_second_interrupt_kills_the_worker(predictor, trained):
    image = images_of(trained[1])["case0"]

    def interrupt(progress):
        _thread.interrupt_main()
        time.sleep(0.01)
        _thread.interrupt_main()
        time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        predictor(image, on_progress=interrupt)
        predictor(image)
    assert predictor(image).shape == (32, 32)


def test_a_predictor_can_be_pickled(predictor, trained):
    image = images_of(trained[1])["case0"]
    with pickle.loads(pickle.dumps(predictor)) as same:
        assert np.array_equal(same(image).mean, predictor(image).mean)


def test_two_threads_share_a_worker(predictor, trained):
    images = images_of(trained[1])
    expected = {name: predictor(image).mean for name, image in images.items()}
    wrong = []

    def work(name):
        for _ in range(5):
            if not np.array_equal(predictor(images[name]).mean, expected[name]):
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(f"case{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_fork_has_to_open_its_own(predictor, trained):
    image = images_of(trained[1])["case0"]
    predictor.open()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            predictor(image)
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert predictor(image).shape == (32, 32)


def test_a_worker_ends_with_python(trained):
    run, data = trained
    script = (
        f"import numpy, ssn, sys; p = ssn.Predictor({str(run.path)!r}, device='cpu'); p(numpy.load({str(data / 'images/case0.npy')!r}));"
        "print(p._worker.pid, flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    worker = int(process.stdout.readline())
    assert is_running(worker) and worker in children(process.pid)
    process.kill()
    process.wait()
    for _ in range(600):
        if not is_running(worker):
            break
        time.sleep(0.1)
    assert not is_running(worker)


def test_a_model_that_cannot_be_opened_is_an_error(tmp_path, trained):
    with pytest.raises(FileNotFoundError):
        ssn.Predictor(tmp_path / "nothing")
    with pytest.raises(ValueError, match="run"):
        ssn.Predictor(tmp_path, device="cpu")(np.zeros((8, 8)))
    with pytest.raises(ValueError, match="three lengths"):
        ssn.Predictor(trained[0].path, tile=(16, 16))
    with pytest.raises(ValueError, match="checkpoint"):
        ssn.Predictor(trained[0].path, checkpoint="worst", device="cpu")(np.zeros((32, 32)))


def test_unusual_images_are_predicted(predictor):
    image = np.zeros((32, 32), np.float32)
    image[0, 0] = 1e-6
    for unusual in (image, image * 0, image + 3e4):
        assert predictor(unusual).sample(2).shape == (2, 32, 32)


def test_images_of_nibabel_keep_their_geometry(predictor, rng):
    nibabel = pytest.importorskip("nibabel")
    affine = np.array([[-0.5, 0.1, 0, 12], [0.1, 0.6, 0, -3], [0, 0, 2, 7], [0, 0, 0, 1.0]])
    array = rng.random((24, 32, 1)).astype(np.float32)
    d = predictor(nibabel.Nifti1Image(array, affine))
    assert d.shape == (32, 24) and np.allclose(d.affine, affine)
    assert np.array_equal(d.mean, predictor(array[:, :, 0].T, affine=affine).mean)
    sample = d.sample_image(3, seed=1)
    assert isinstance(sample, nibabel.Nifti1Image) and sample.shape == array.shape and np.allclose(sample.affine, affine)
    elsewhere = affine.copy()
    elsewhere[0, 3] += 20
    with pytest.raises(ValueError, match="another affine"):
        predictor(nibabel.Nifti1Image(array, affine), mask=nibabel.Nifti1Image(array, elsewhere))
    with pytest.raises(ValueError, match="geometry of its own"):
        predictor(nibabel.Nifti1Image(array, affine), spacing=2.0)
    assert sample.get_data_dtype() == np.uint8 and np.array_equal(np.asarray(sample.dataobj)[:, :, 0].T, d.sample(1, first=3, seed=1)[0])


def test_images_of_simple_itk_keep_their_geometry(predictor, rng):
    itk = pytest.importorskip("SimpleITK")
    array = rng.random((32, 24)).astype(np.float32)
    image = itk.GetImageFromArray(array)
    image.SetSpacing((0.7, 0.9))
    image.SetOrigin((3.0, -4.0))
    d = predictor(image)
    assert d.shape == (32, 24) and np.allclose(d.spacing, (0.9, 0.7)) and np.allclose(d.affine[:2, 3], (-3.0, 4.0))
    sample = d.sample_image()
    assert sample.GetSpacing() == image.GetSpacing() and sample.GetOrigin() == image.GetOrigin()
    assert np.array_equal(itk.GetArrayFromImage(sample), d.sample(1)[0])
    volume = itk.GetImageFromArray(array[None])
    assert predictor(volume).sample_image().GetSize() == (24, 32, 1)
    volume.SetDirection((0, 1, 0, -1, 0, 0, 0, 0, 1))
    volume.SetSpacing((1.0, 2.0, 3.0))
    found = _images.read(volume, None, None)
    assert np.allclose(np.array(found.affine), [[0, -2, 0, 0], [1, 0, 0, 0], [0, 0, 3, 0], [0, 0, 0, 1]])


def test_pictures(predictor, rng):
    pillow = pytest.importorskip("PIL.Image")
    array = rng.integers(256, size=(32, 24)).astype(np.uint8)
    d = predictor(pillow.fromarray(array))
    assert d.shape == (32, 24) and d.spacing is None and np.array_equal(d.mean, predictor(array).mean)
    assert np.array_equal(np.asarray(d.sample_image()), d.sample(1)[0])
    turned = pillow.fromarray(array)
    turned.getexif()[0x0112] = 6
    with pytest.raises(ValueError, match="exif_transpose"):
        predictor(turned)
    with pytest.raises(ValueError, match="mode 'P'"):
        predictor(pillow.fromarray(array).convert("P"))


def test_tensors(predictor, rng):
    torch = pytest.importorskip("torch")
    array = rng.random((32, 24)).astype(np.float32)
    assert np.array_equal(predictor(torch.from_numpy(array)).mean, predictor(array).mean)


def test_messages_speak_python():
    for message, expected in [
        ("go on with `ssn train --resume runs/a`", "go on with `ssn.train(resume='runs/a')`"),
        ("name a new one with --out, or use --overwrite", "name a new one with out, or use overwrite=True"),
        ("run `ssn evaluate p --allow-missing`", "run `ssn.evaluate('p', allow_missing=True)`"),
        ("use `ssn train c.toml --set training.steps=30`", "use `ssn.train('c.toml', set={'training.steps': 30})`"),
        ("see `ssn view p`", "see `ssn view p`"),
        ("the folder that `ssn train --out` made", "the folder that `ssn.train(out=…)` made"),
        ("invalid value 'x' for '--split <SPLIT>'", "invalid value 'x' for split"),
        ("a well-known -- dash", "a well-known -- dash"),
    ]:
        assert _errors.in_python(message) == expected
