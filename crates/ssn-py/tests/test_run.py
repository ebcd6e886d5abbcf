"""Training and prediction: where the package has its engine, and PyTorch is installed."""

import importlib.util
import threading
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
    run = ssn.train(data=dataset, out=tmp_path / "run", set=SMALL, device="cpu", on_step=rows.append)
    assert [row["step"] for row in rows] == [row["step"] for row in run.metrics()] and len(rows) >= 3
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
    assert before < 100_000 and list((tmp_path / "run").rglob("*.safetensors"))


@needs_engine
def test_what_the_engine_refuses_is_an_exception(tmp_path):
    with pytest.raises(ValueError, match="nothing|exist"):
        ssn.train(data=tmp_path / "nothing", out=tmp_path / "run", device="cpu")


def test_wrong_input_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ssn.open(tmp_path / "nothing")
    run = ssn.open(tmp_path)
    for text, image in [("[h, w]", np.zeros(3)), ("not finite", np.full((4, 4), np.nan)), ("[h, w]", np.zeros((0, 4)))]:
        with pytest.raises(ValueError) as raised:
            run.predict(image)
        assert text in str(raised.value)
