"""What every program has in common: help, refusals, how soon they come."""

import json
import os
import re
import subprocess
import sys
from dataclasses import fields

import pytest

from encapnet_tf.version import __version__
from trainers import fit
from trainers.cli.programs import PROGRAMS as NAMES
from trainers.recipe import Recipe

PROGRAMS = (
    "trainers.fit", "trainers.tune", "trainers.reproduce", "trainers.evaluate",
    "trainers.summary", "trainers.benchmark", "trainers.h_imagenet",
    "trainers.launch", "trainers.runs", "trainers.command.completion",
    "export", "export.predict", "export.serve", "export.weights",
)  # fmt: skip
SLOW_TO_START = (
    "tensorflow", "keras", "matplotlib", "scipy", "keras_tuner", "uvicorn",
    "fastapi", "onnx", "onnxruntime",
)  # fmt: skip
# What each of these is refused with.
REFUSED = {
    "trainers.fit --variant=encapnet_v": "Did you mean 'encapnet_v",
    "trainers.fit --dataset=cifar": "Did you mean 'cifar10'?",
    "trainers.fit --optimizer=adm": "Did you mean 'adam'?",
    "trainers.fit --log=mlflo": "Did you mean 'mlflow'?",
    "trainers.fit --epochs=0": "`epochs` must be >= 1. Received: epochs=0.",
    "trainers.fit --init_from=nowhere": "Received: init_from=nowhere",
    "trainers.fit --init_from=a.keras": "Received: init_from=a.keras",
    "trainers.fit --run_dir=README.md/run": "Received: README.md/run;",
    "trainers.tune --search=cots": "Did you mean 'cost'?",
    "trainers.fit --agreement_weight=1": "add --agreement=one",
    "trainers.tune --variant=resnet18 --search=cost": "has no agreement units",
    "trainers.reproduce --experiment=table1": "A budget for each run",
    "trainers.evaluate --run_dir=nowhere": "Received: run_dir=nowhere",
    "trainers.benchmark --parts=solvr": "Did you mean 'solver'?",
    "trainers.summary encapnet_smal": "Did you mean 'encapnet_small'?",
    "trainers.summary --dtype_policy=int8": "`dtype_policy` must be one of",
    "trainers.h_imagenet": "--imagenet must be ImageNet's folder",
    "trainers.runs nowhere": "Received: nowhere, no folder",
    "trainers.command.completion tcsh": "`shell` must be one of",
    "trainers.command evalute": "Did you mean 'evaluate'?",
    "trainers.command fit --variant=encapnet_v": "Did you mean 'encapnet_v",
    "trainers.launch": "The workers need one --run_dir",
    "export --run_dir=nowhere": "Received: run_dir=nowhere",
    "export --quantize=int4": "`quantize` must be one of",
    "export --formats=onxx": "Did you mean 'onnx'?",
    "export --formats=onnx": "Try `pip install '.[onnx]'`.",
    "export runs/latest": "takes flags only. Received: runs/latest",
    "export.predict": "Name image files or folders of them.",
    "export.predict --model=none x.png": "model=none, which does",
    "export.serve --name=a/b": "`--name` must fit between the slashes",
    "export.serve --model=none": "--model=none, which is no folder",
    "export.serve --model=mnist --name=a:b": "Received: --name=a:b",
    "export.serve --model=mnist --labels=a=1": "needs a folder of versions",
    "export.weights --run_dir=nowhere": "Received: run_dir=nowhere",
    "export.weights --out=a.keras": "must be one of '.npz'",
    "export.serve --model=export": "--model=export, which has none",
}
COMMANDS = [
    *(f"{program} --{flag}" for program in PROGRAMS
      for flag in ("help", "hepl", "version")),
    "trainers.fit --helpfull",
    "trainers.command", "trainers.command --help", "trainers.command --version",
    *(f"trainers.command {name} --help" for name in NAMES),
    *REFUSED,
]  # fmt: skip
ENDS = ("out", "err")
# Each in a process of its own, which has imported nothing of ours.
FORK = """
import json, os, runpy, sys
import absl.flags, absl.logging, numpy
folder, *commands = json.loads(sys.argv[1])
for number, command in enumerate(commands):
    child = os.fork()
    if not child:
        for descriptor, name in ((1, "out"), (2, "err")):
            path = f"{folder}/{number}.{name}"
            os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), descriptor)
        sys.argv = command.split()
        sys.modules["tf2onnx"] = None  # as where it is not installed
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        sys.exit("It did not end the process.")
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What comes of each command where nothing slow can be imported."""
    poison, folder = (tmp_path_factory.mktemp(n) for n in ("poison", "said"))
    for name in SLOW_TO_START:
        path = poison / f"{name}.py"
        path.write_text(f"raise SystemExit('{name} was imported')")
    paths = os.pathsep.join((str(poison), os.getcwd()))
    codes = subprocess.run(
        [sys.executable, "-c", FORK, json.dumps([str(folder), *COMMANDS])],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    return {
        command: subprocess.CompletedProcess(
            command, int(codes[number]),
            *((folder / f"{number}.{end}").read_text() for end in ENDS),
        )
        for number, command in enumerate(COMMANDS)
    }  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_and_a_misspelt_flag_start_nothing_slow(said, program):
    help_text = said[f"{program} --help"]
    assert (help_text.returncode, help_text.stderr) == (0, "")
    assert f"python -m {program}" in help_text.stdout
    misspelt = said[f"{program} --hepl"]
    assert misspelt.returncode == 2
    assert misspelt.stderr.startswith("error: Unknown command line flag 'hepl'")
    assert misspelt.stderr.count("\n") == 1
    assert said[f"{program} --version"].stdout == f"{__version__}\n"


@pytest.mark.parametrize("command", REFUSED)
def test_a_bad_value_is_refused_before_anything_slow_starts(said, command):
    refused = said[command]
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: ")
    assert REFUSED[command] in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_help_shows_defaults_and_no_flags_of_libraries(said):
    text = " ".join(said["trainers.fit --helpfull"].stdout.split())
    assert "Default: 4 to 60 for small variants, as many as make 1,100" in text
    assert "(default: '300.0')" in text
    assert "--logtostderr" not in text


def test_help_is_short_and_loses_no_flag(said):
    """What --help leaves out stands under --helpfull, in groups."""
    short, full = (
        said[f"trainers.fit --{flag}"].stdout for flag in ("help", "helpfull")
    )
    first, found = (
        set(re.findall(r"^  (?:-h, )?--(?:\[no\])?(\w+):", text, re.M))
        for text in (short, full)
    )
    assert first == set(fit.FIRST)
    recipe = {recipe_field.name for recipe_field in fields(Recipe)}
    assert found == first | recipe | {
        "strategy", "logical_cpus", "checkpoint_seconds", "log", "help",
        "helpfull", "version",
    }  # fmt: skip
    for group in ("fit", "data", "network", "training", "agreement", "test"):
        assert f"\n{group}:\n" in full
    others = len(found) - len(first) - 3
    assert f"{others} more: python -m trainers.fit --helpfull" in short
    assert short.count("\n") < 45


@pytest.mark.parametrize("name", NAMES)
def test_both_ways_say_the_same_under_their_own_names(said, name):
    one = said[f"{NAMES[name]} --help"].stdout
    other = said[f"trainers.command {name} --help"]
    assert (other.returncode, other.stderr) == (0, "")
    assert f"encapnet {name}" in other.stdout
    for each, module in NAMES.items():
        as_module = rf"python -m {re.escape(module)}(?![.\w])"
        one = re.sub(as_module, f"encapnet {each}", one)
    assert other.stdout == one


def test_the_command_names_every_program(said):
    page = said["trainers.command --help"].stdout
    assert said["trainers.command"].stdout == page
    for name in NAMES:
        assert re.search(rf"^  {name} +[A-Z].*\S$", page, re.M), name
    assert said["trainers.command --version"].stdout == f"{__version__}\n"


def test_help_into_a_pipe_that_closes_says_nothing_more():
    command = f"{sys.executable} -m trainers.fit --help | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("Trains a network")
    assert done.stderr == ""
