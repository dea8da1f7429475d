"""The notebook of the tour: its cells, one after the other."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import matplotlib
import matplotlib.pyplot as plt
import pytest

from tests import forked

ROOT = pathlib.Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs" / "tour.ipynb"
CELLS = json.loads(NOTEBOOK.read_text())["cells"]


class Started(forked.Program):
    """In place of `subprocess.Popen`, for what the tour starts."""

    def __init__(self, words, **_):
        _, _, module, *arguments = words
        super().__init__(module, *arguments, cwd=os.getcwd())


@pytest.mark.slow
def test_its_cells_run(tmp_path, monkeypatch, capsys):
    """A few steps of each part."""
    monkeypatch.chdir(ROOT / "docs")
    monkeypatch.setenv("TOUR_QUICK", "1")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(sys, "path", sys.path.copy())
    matplotlib.use("agg")
    names = {"__name__": "tour"}
    for cell in CELLS:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    plt.close("all")
    said = capsys.readouterr().out
    assert "same answers: True" in said
    assert "Written to exported/tour/1" in said
    *_, head, first, _, _, _, _ = said.splitlines()
    assert head.split()[:3] == ["image", "class", "score"]
    assert first.split()[0].endswith(".png")


def test_it_was_run_from_the_first_cell_to_the_last():
    cells = [cell for cell in CELLS if cell["cell_type"] == "code"]
    assert [c["execution_count"] for c in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert "error" not in {output["output_type"] for output in outputs}
    pictures = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) >= 4
    assert NOTEBOOK.stat().st_size < 1e6


def test_it_names_no_machine():
    for word in ("/work/", "/home/", "/root/", "/tmp/"):
        assert word not in NOTEBOOK.read_text()
