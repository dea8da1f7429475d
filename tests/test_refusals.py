"""Every program refuses in one line with exit code 2, and writes nothing."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

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
    "trainers.h_imagenet stray": "Received: stray",
    "export --run_dir=none": "Received: run_dir=none",
    "export.predict --model=none x.png": "Received: model=none",
    "export.serve --model=none": "`--model` must be a folder",
}
# Starting TensorFlow takes seconds: once for all programs.
FORK = """
import json, os, runpy, sys
import matplotlib.pyplot, trainers.training.loop
folder, *programs = json.loads(sys.argv[1])
for number, (module, *arguments) in enumerate(programs):
    child = os.fork()
    if not child:
        for descriptor, name in ((1, "out"), (2, "err")):
            path = f"{folder}/{number}.{name}"
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), descriptor)
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        sys.exit("It did not end the process.")
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Per program its exit code and words; and what all of them left."""
    said, left = (tmp_path_factory.mktemp(name) for name in ("said", "left"))
    task = [str(said), *(case.split() for case in CASES)]
    codes = subprocess.run(
        [sys.executable, "-c", FORK, json.dumps(task)],
        capture_output=True, text=True, check=True, cwd=left,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ).stdout.split()  # fmt: skip
    found = {
        case: (
            int(codes[number]),
            *((said / f"{number}.{end}").read_text() for end in ("out", "err")),
        )
        for number, case in enumerate(CASES)
    }
    return found, list(left.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_is_one_line_and_exit_code_2(saved, case):
    code, output, error = saved[0][case]
    assert (code, output) == (2, ""), error
    assert re.fullmatch(r"error: .*\n", error)
    assert CASES[case] in error


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
