"""What the three programs have in common: help, refusals, how soon."""

import os
import subprocess
import sys

import pytest

from encapnet_tf.version import __version__

PROGRAMS = ("export", "export.predict", "export.serve")
SLOW_TO_START = ("tensorflow", "keras", "uvicorn", "fastapi")


@pytest.fixture(scope="module")
def say(tmp_path_factory):
    """Runs a program that fails where it starts something slow."""
    poison = tmp_path_factory.mktemp("poison")
    for name in SLOW_TO_START:
        path = poison / f"{name}.py"
        path.write_text(f"raise SystemExit('{name} was imported')")
    paths = os.pathsep.join((str(poison), os.getcwd()))

    def run(program, *arguments):
        return subprocess.run(
            [sys.executable, "-m", program, *arguments],
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_and_a_misspelt_flag_start_nothing_slow(say, program):
    help_text = say(program, "--help")
    assert (help_text.returncode, help_text.stderr) == (0, "")
    assert f"python -m {program}" in help_text.stdout
    misspelt = say(program, "--hepl")
    assert misspelt.returncode == 2
    assert misspelt.stderr.startswith("error: Unknown command line flag 'hepl'")
    assert misspelt.stderr.count("\n") == 1
    assert say(program, "--version").stdout == f"{__version__}\n"


@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        ("export", ["--run_dir=nowhere"], "Received: run_dir=nowhere"),
        ("export", ["--quantize=int4"], "`quantize` must be one of"),
        ("export", ["--formats=onnx"], "`formats` must be one of"),
        ("export", ["runs/latest"], "takes flags only. Received: runs/latest"),
        ("export.predict", [], "Name image files or folders of them."),
        ("export.predict", ["--model=none", "x.png"], "model=none, which does"),
        ("export.serve", [], "`--model` must name a folder"),
        ("export.serve", ["--model=none"], "--model=none, which is no folder"),
        ("export.serve", ["--model=export"], "--model=export, which has none"),
    ],
)
def test_a_bad_value_is_refused_before_anything_slow_starts(
    say, program, arguments, message
):
    refused = say(program, *arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: ")
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
