"""The Python of the first page, the guide and the notebook runs as it stands."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ENGINE

import ssn

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["crates/ssn-py/README.md", "docs/reference/distribution-files.md"])
def test_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "distribution-files" in page:
        pytest.importorskip("safetensors")
    (tmp_path / "predictions").mkdir()
    rng = np.random.default_rng(0)
    d = ssn.LowRankNormal(rng.normal(size=(2, 16, 16)), np.full((2, 16, 16), 0.1), rng.normal(size=(3, 2, 16, 16)))
    for folder in (".", "predictions"):
        d.save(f"{folder}/case1.ssn.safetensors")
    blocks = re.findall(r"```python\n(.*?)```", (DOCS.parent / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {"raters": rng.integers(2, size=(3, 16, 16)).astype(np.uint8)})


NETWORK = """
import torch

class Network(torch.nn.Module):
    def __init__(self, in_channels: int):
        super().__init__()
        self.enter = torch.nn.Conv2d(in_channels, 8, 3, padding=1)
        self.classifier = torch.nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.relu(self.enter(x)))
"""


def test_the_export_of_a_network_runs(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_project.py").write_text(NETWORK, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "guides/any-architecture.md").read_text(encoding="utf-8"), re.S)
    exec(compile(block, "any-architecture.md", "exec"), {})
    assert (tmp_path / "net.pt").exists()


TYPES = """
from collections.abc import Sequence
from typing import Any
import numpy as np
import ssn

image: np.ndarray = np.zeros((8, 8))
images: Sequence[np.ndarray] = []
raters: np.ndarray = np.zeros((2, 8, 8), np.uint8)


def check() -> None:
"""


@pytest.mark.parametrize("page", ["docs/guides/python-train.md", "docs/guides/python-predict.md", "README.md"])
def test_types_of_the_guides(page, tmp_path):
    mypy = pytest.importorskip("mypy.api")
    blocks = re.findall(r"```python(?: no_run)?\n(.*?)```", (DOCS.parent / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    lines = "\n".join(blocks).replace("def on_event(event):", "def on_event(event: ssn.Event) -> Any:").splitlines()
    lines = ["    " + line for line in lines if line != "import ssn"]
    (tmp_path / "guide.py").write_text(TYPES + "\n".join(lines) + "\n", encoding="utf-8")
    said, _, code = mypy.run(["--strict", "--ignore-missing-imports", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "guide.py")])
    assert code == 0, said


def test_the_guide_runs(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python( no_run)?\n(.*?)```", (DOCS / "guides/python.md").read_text(encoding="utf-8"), re.S)
    assert len(blocks) >= 3
    names: dict = {}
    for no_run, block in blocks:
        program = compile(block, "python.md", "exec")
        if not no_run:
            exec(program, names)


def test_the_notebook_runs(tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    # The command is the one beside this interpreter.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(DOCS / "notebooks/quick-start.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert "1.0 of the labels are the same" in printed and "case_sample_2" in printed
    if ENGINE.is_file():
        shown = "".join("".join(output.get("data", {}).get("text/html", "")) for cell in notebook.cells for output in cell.get("outputs", []))
        assert "150/150" in printed and "<ssn.Run" in printed and "ssn-views/case23.html" in shown
        assert (tmp_path / "ssn-views/case23.html").is_file()
