"""Every program refuses in one line with exit code 2, and writes nothing."""

import pathlib
import re

import pytest

from tests import forked
from trainers.cli.programs import PROGRAMS as NAMES

ROOT = pathlib.Path(__file__).parent.parent
# Program and arguments, and what the line says.
CASES = {
    "trainers.fit --dataset=nowhere": "`dataset` must be one of",
    "trainers.fit --dataset=npz:missing.npz": "missing.npz",
    "trainers.fit stray": "takes flags only. Received: stray",
    "trainers.evaluate --run_dir=no": "`run_dir` must be the folder of a run.",
    "trainers.tune --dataset=npz:missing.npz": "missing.npz",
    "trainers.reproduce --experiment=table9": "--experiment must be one of",
    "trainers.launch --workers=2 -- --x=1": "need one --run_dir",
    "trainers.summary encapnet_tiny --bogus": "bogus",
    "trainers.summary encapnet_tiny --input_shape=3,3": "input_shape=(3, 3)",
    "trainers.benchmark --compare=none.json": "A stored benchmark is the",
    "trainers.runs here there": "At most one folder",
    "trainers.command fitt --epochs=1": "Did you mean 'fit'?",
    "trainers.command.completion csh": "`shell` must be one of",
    "trainers.h_imagenet stray": "Received: stray",
    "export --run_dir=none": "Received: run_dir=none",
    "export.predict --model=none x.png": "Received: model=none",
    "export.weights --run_dir=none": "Received: run_dir=none",
    "export.serve --model=none": "`--model` must be a folder",
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Per program what came of it; and what all of them left."""
    left = tmp_path_factory.mktemp("left")
    found = {case: forked.run(*case.split(), cwd=left) for case in CASES}
    return found, list(left.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_is_one_line_and_exit_code_2(saved, case):
    done = saved[0][case]
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert re.fullmatch(r"error: .*\n", done.stderr)
    assert CASES[case] in done.stderr


def test_a_refused_program_leaves_nothing(saved):
    assert saved[1] == []


def test_every_program_is_here():
    programs = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in ("trainers", "export")
        for path in (ROOT / package).rglob("*.py")
        if "cli.run(" in path.read_text()
        and '__name__ == "__main__"' in path.read_text()
    }
    programs = {name.removesuffix(".__main__") for name in programs}
    assert programs == {case.split()[0] for case in CASES}
    assert programs == {*NAMES.values(), "trainers.command"}
