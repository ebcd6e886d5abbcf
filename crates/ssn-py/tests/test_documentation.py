"""The Python of the guide and the notebook run as they stand."""

import os
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


def test_the_guide_runs(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python( no_run)?\n(.*?)```", (DOCS / "guides/python.md").read_text(encoding="utf-8"), re.S)
    assert len(blocks) >= 4
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
