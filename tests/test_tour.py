"""The notebook of the tour: its cells, one after the other."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs" / "tour.ipynb"
CELLS = json.loads(NOTEBOOK.read_text())["cells"]


def code():
    """What the cells of code say, as one program."""
    return "\n\n".join(
        "".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"
    )


@pytest.mark.slow
def test_its_cells_run(tmp_path):
    """In a process of its own, as a notebook's; a few steps of each part."""
    (tmp_path / "tour.py").write_text(code())
    environment = {
        "TOUR_QUICK": "1", "MPLBACKEND": "agg", "TMPDIR": str(tmp_path),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(tmp_path / "tour.py")], cwd=ROOT / "docs",
        env=os.environ | environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "same answers: True" in done.stdout
    assert "Written to exported/tour/1" in done.stdout
    *_, head, first, _, _, _, _ = done.stdout.splitlines()
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
