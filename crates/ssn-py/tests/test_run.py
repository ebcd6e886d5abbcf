"""Training: where the package has its engine, and PyTorch is installed."""

import math
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL, needs_engine

import ssn


@needs_engine
def test_train_predict_and_score(dataset, tmp_path):
    events = []
    settings = {**SMALL, "training.validate_every": 4}
    run = ssn.train(data=dataset, out=tmp_path / "run", set=settings, device="cpu", on_event=events.append, progress=False)
    assert [event.step for event in events if event.kind == "step"] == [1, 2, 3, 4, 5, 6]
    assert all(math.isfinite(event.loss) for event in events if event.kind == "step")
    kinds = [event.kind for event in events]
    assert kinds[0] == "began" and kinds[-1] == "ended" and {"row", "validated", "saved"} <= set(kinds)
    rows = [event for event in events if event.kind in ("row", "validated")]
    assert list(run.metrics["step"]) == [row.step for row in rows]
    validated = min((event for event in events if event.kind == "validated"), key=lambda event: event.ged)
    assert run.best == {"step": validated.step, "ged": pytest.approx(validated.ged)}
    with pytest.raises(ValueError, match="there is a run in this folder") as raised:
        ssn.train(data=dataset, out=tmp_path / "run", device="cpu", progress=False)
    assert "--" not in str(raised.value)
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

    def interrupt(event):
        if event.kind == "step" and not seen.is_set():
            seen.set()
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt, match=r"saved at step \d+; continue with ssn.train\(resume="):
        ssn.train(data=dataset, out=tmp_path / "run", set={**SMALL, "training.steps": 100_000}, device="cpu", on_event=interrupt, progress=False)
    events = []

    def end(event):
        events.append(event)
        if event.kind == "step":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ssn.train(out=tmp_path / "run", resume=True, device="cpu", on_event=end, progress=False)
    began = next(event for event in events if event.kind == "began")
    assert 0 < began.done < events[-1].step < 100_000


@needs_engine
def test_false_ends_a_training_and_more_steps_extend_it(dataset, tmp_path):
    run = ssn.train(
        data=dataset,
        out=tmp_path / "run",
        set={**SMALL, "training.steps": 100_000},
        device="cpu",
        on_event=lambda event: event.kind != "step" or np.int64(event.step) < 4,
        progress=False,
    )
    assert list((run.path / "checkpoints").iterdir())
    steps = []
    longer = {"training": {"steps": 12, "log_every": 1}}
    ssn.train(resume=run.path, set=longer, device="cpu", on_event=lambda event: steps.append(event.step), progress=False)
    assert steps[-1] == 12
    ssn.train(resume=run.path, set={"training.steps": 14}, device="cpu", on_event=lambda event: steps.append(event.step), progress=False)
    assert steps[-1] == 14
    with pytest.raises(ValueError, match="a run that is continued keeps model.plan"):
        ssn.train(resume=run.path, set={"model.plan": {"width": 4}}, device="cpu", progress=False)


@needs_engine
def test_fewer_steps_shorten_the_phases_of_a_preset(dataset, tmp_path):
    steps = []
    settings = {"training.steps": 3, "model.plan": {"width": 4, "levels": 2}}
    ssn.train(data=dataset, preset="small", out=tmp_path / "run", set=settings, device="cpu", on_event=steps.append, progress=False)
    assert steps[-1].kind == "ended" and steps[-1].step == 3


@needs_engine
def test_the_engine_ends_with_python(dataset, tmp_path):
    """Killed, it cannot tell the engine, which notices and saves."""
    script = f"import ssn; ssn.train(data={str(dataset)!r}, out={str(tmp_path / 'run')!r}, device='cpu', set={ {**SMALL, 'training.steps': 100_000}!r})"
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    metrics = tmp_path / "run/metrics.csv"
    while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") > 1):
        time.sleep(0.05)
    workers = children(process.pid)
    assert workers
    process.kill()
    process.wait()
    for _ in range(600):
        if not any(map(is_running, workers)):
            break
        time.sleep(0.1)
    assert not any(map(is_running, workers))
    assert list((tmp_path / "run/checkpoints").iterdir())


def children(parent):
    """The processes that a process has started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int((process / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(process.name))
        except OSError:
            pass
    return found


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@needs_engine
def test_what_the_engine_refuses_is_an_exception(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty"):
        ssn.train(data=tmp_path / "empty", out=tmp_path / "run", device="cpu", progress=False)


@needs_engine
def test_a_dataset_is_checked_predicted_scored_sampled_and_shown(trained, tmp_path, capfd):
    run, data = trained
    found = ssn.check(data, progress=False)
    assert found and found.ok and "8" in repr(found)
    about = ssn.init(data, tmp_path / "ssn.toml")
    assert about["raters"] == 2 and (tmp_path / "ssn.toml").exists()
    seen = []
    predicted = ssn.predict(run.path, data, tmp_path / "p", split="all", device="cpu", progress=False, on_progress=lambda p: seen.append(str(p)))
    assert predicted["predicted"] == 8 and any("8/8 cases" in line for line in seen), seen
    seen.clear()
    scores = ssn.evaluate(tmp_path / "p", samples=10, surface_samples=2, progress=False, on_progress=lambda p: seen.append(str(p)))
    assert 0 <= scores.to_dict()["ged2"] <= 2 and scores["cases"] == 8 and any("8/8 cases" in line for line in seen), seen
    assert "GED" in repr(scores) and "<table>" in scores._repr_html_()
    samples = ssn.sample(tmp_path / "p", tmp_path / "samples", samples=2, class_scale={"foreground": 2.0}, progress=False)
    assert len(samples["samples"]) == 8 * 2 * 2 and len(list((tmp_path / "samples").iterdir())) > 16
    page = ssn.report([tmp_path / "p", run.path], out=tmp_path / "report", cases=1, progress=False)
    assert page.is_file() and page.suffix == ".html"
    with pytest.raises(ValueError, match="overwrite=True"):
        ssn.report(tmp_path / "p", out=tmp_path / "report", progress=False)
    assert capfd.readouterr().out == ""


@needs_engine
def test_a_broken_dataset_is_described(dataset):
    (dataset / "rater1/case3.npy").write_bytes(b"no array")
    found = ssn.check(dataset, progress=False)
    assert not found.ok and "case3" in repr(found)


def test_wrong_input_is_named(tmp_path):
    for error, text, options in [
        (FileNotFoundError, "data: nothing does not exist", {"data": "nothing"}),
        (FileNotFoundError, "config: nothing.toml does not exist", {"config": "nothing.toml"}),
        (ValueError, "nothing to train on", {}),
        (FileNotFoundError, "run does not exist", {"resume": True, "seed": 1}),
        (TypeError, "set must name settings", {"data": ".", "set": "training.steps=3"}),
        (TypeError, "on_event is 3", {"data": ".", "on_event": 3}),
        (ValueError, "training.steps is None", {"data": ".", "set": {"training.steps": None}}),
        (ValueError, "seed is -1", {"data": ".", "seed": -1}),
        (ValueError, "continues in its folder", {"resume": "a"}),
    ]:
        with pytest.raises(error, match=text):
            ssn.train(out=tmp_path / "run", **options)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ssn.open(tmp_path / "nothing")
    with pytest.raises(ValueError, match="data is empty"):
        ssn.predict(tmp_path, [])
    run = ssn.open(tmp_path)
    nan = np.zeros((4, 4))
    nan[1, 2] = np.nan
    for text, image in [("[h, w]", np.zeros(3)), ("image is nan at [1, 2]", nan), ("[h, w]", np.zeros((0, 4)))]:
        with pytest.raises(ValueError) as raised:
            run.predict(image)
        assert text in str(raised.value)
    with pytest.raises(TypeError, match="ssn.predict takes files"):
        run.predict("image.png")
    with pytest.raises(ValueError, match="samples"):
        ssn.evaluate(tmp_path, samples=0, progress=False)
    for verb in (ssn.evaluate, ssn.report, ssn.check, lambda path, **_: ssn.sample(path, tmp_path / "out"), lambda path, **_: ssn.init(path)):
        with pytest.raises(FileNotFoundError, match="nothing does not exist"):
            verb(tmp_path / "nothing", progress=False)
