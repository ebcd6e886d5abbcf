"""Training and prediction: where the package has its engine, and PyTorch is installed."""

import importlib.util
import subprocess
import sys
import threading
import time
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


@pytest.fixture
def dataset(rng, tmp_path):
    for case in range(8):
        image = rng.random((32, 32)).astype(np.float32)
        image[8:20, 8 + case : 20 + case] += 1
        for folder, array in {"images": image, "rater1": image > 1, "rater2": image > 1.3}.items():
            (tmp_path / "data" / folder).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / "data" / folder / f"case{case}.npy", array.astype(np.float32 if folder == "images" else np.uint8))
    return tmp_path / "data"


SMALL = {"training.steps": 6, "training.log_every": 2, "training.validate_every": 0, "loss.pretrain_steps": 2, "model.plan": "{width=8, levels=3}"}


@needs_engine
def test_train_predict_and_score(dataset, tmp_path):
    rows = []
    settings = {**SMALL, "training.validate_every": 4}
    run = ssn.train(data=dataset, out=tmp_path / "run", set=settings, device="cpu", on_step=rows.append)
    assert [row["step"] for row in rows] == [row["step"] for row in run.metrics()] and len(rows) >= 4
    assert all({"step", "loss", "validation_ged"} <= set(row) for row in rows)
    with pytest.raises(ValueError, match="run"):
        ssn.train(data=dataset, out=tmp_path / "run", device="cpu", on_step=lambda row: pytest.fail("an old row"))
    image = np.load(dataset / "images/case0.npy")
    d = ssn.open(tmp_path / "run").predict(image, case="case0", device="cpu")
    assert d.shape == (32, 32) and d.spacing is None and d.rank > 0
    again = run.predict(image[None], spacing=(0.5, 0.5), case="case0", device="cpu")
    assert again.spacing == (0.5, 0.5) and np.array_equal(again.sample(3), d.sample(3))
    raters = [np.load(dataset / f"rater{number}/case0.npy") for number in (1, 2)]
    assert 0 <= ssn.score(d, raters)["ged2"] <= 2
    with pytest.raises(ValueError, match="channels"):
        run.predict(np.zeros((2, 32, 32)), device="cpu")


@needs_engine
def test_an_interrupted_training_goes_on(dataset, tmp_path):
    import _thread

    seen = threading.Event()

    def interrupt(row):
        if not seen.is_set():
            seen.set()
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        ssn.train(data=dataset, out=tmp_path / "run", set={**SMALL, "training.steps": 100_000}, device="cpu", on_step=interrupt)
    before = ssn.open(tmp_path / "run").metrics()[-1]["step"]
    rows = []

    def end(row):
        rows.append(row)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ssn.train(out=tmp_path / "run", resume=True, device="cpu", on_step=end)
    assert 0 < before < rows[0]["step"] < 100_000


@needs_engine
def test_the_engine_ends_with_python(dataset, tmp_path):
    """Killed, it cannot tell the engine, which notices and saves."""
    script = f"import ssn; ssn.train(data={str(dataset)!r}, out={str(tmp_path / 'run')!r}, device='cpu', set={ {**SMALL, 'training.steps': 100_000}!r})"
    process = subprocess.Popen([sys.executable, "-c", script])
    metrics = tmp_path / "run/metrics.csv"
    while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") > 1):
        time.sleep(0.05)
    process.kill()
    process.wait()
    for _ in range(600):
        if not any(str(tmp_path) in line for line in running()):
            break
        time.sleep(0.1)
    assert not [line for line in running() if str(tmp_path) in line]
    assert list((tmp_path / "run/checkpoints").iterdir())


def running():
    """The command lines of all processes."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            pass


@needs_engine
def test_what_the_engine_refuses_is_an_exception(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty"):
        ssn.train(data=tmp_path / "empty", out=tmp_path / "run", device="cpu")


def test_wrong_input_is_named(tmp_path):
    for error, text, options in [
        (FileNotFoundError, "data: nothing does not exist", {"data": "nothing"}),
        (FileNotFoundError, "config: nothing.toml does not exist", {"config": "nothing.toml"}),
        (ValueError, "nothing to train on", {}),
        (ValueError, "seed is given, but a resumed run", {"resume": True, "seed": 1}),
        (TypeError, "set must name settings", {"data": ".", "set": "training.steps=3"}),
    ]:
        with pytest.raises(error, match=text):
            ssn.train(out=tmp_path / "run", **options)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ssn.open(tmp_path / "nothing")
    run = ssn.open(tmp_path)
    for text, image in [("[h, w]", np.zeros(3)), ("not finite", np.full((4, 4), np.nan)), ("[h, w]", np.zeros((0, 4)))]:
        with pytest.raises(ValueError) as raised:
            run.predict(image)
        assert text in str(raised.value)
