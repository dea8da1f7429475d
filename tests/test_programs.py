"""What every program has in common: help, refusals, how soon they come."""

import os
import subprocess
import sys

import pytest

from encapnet_tf.version import __version__

PROGRAMS = (
    "trainers.fit", "trainers.tune", "trainers.reproduce", "trainers.evaluate",
    "trainers.summary", "trainers.benchmark", "trainers.h_imagenet",
    "trainers.launch", "export", "export.predict", "export.serve",
)  # fmt: skip
SLOW_TO_START = (
    "tensorflow", "keras", "matplotlib", "scipy", "keras_tuner", "uvicorn",
    "fastapi",
)  # fmt: skip


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
    ("command", "message"),
    [
        ("trainers.fit --variant=encapnet_v", "Did you mean 'encapnet_v"),
        ("trainers.fit --dataset=cifar", "Did you mean 'cifar10'?"),
        ("trainers.fit --optimizer=adm", "Did you mean 'adam'?"),
        (
            "trainers.fit --epochs=0",
            "`epochs` must be >= 1. Received: epochs=0.",
        ),
        ("trainers.fit --init_from=nowhere", "Received: init_from=nowhere"),
        ("trainers.fit --init_from=a.keras", "Received: init_from=a.keras"),
        ("trainers.fit --run_dir=README.md/run", "Received: README.md/run;"),
        ("trainers.tune --search=cots", "Did you mean 'cost'?"),
        ("trainers.fit --agreement_weight=1", "add --agreement=one"),
        (
            "trainers.tune --variant=resnet18 --search=cost",
            "has no agreement units",
        ),
        ("trainers.reproduce --experiment=table1", "A budget for each run"),
        ("trainers.evaluate --run_dir=nowhere", "Received: run_dir=nowhere"),
        ("trainers.benchmark --parts=solvr", "Did you mean 'solver'?"),
        ("trainers.summary encapnet_smal", "Did you mean 'encapnet_small'?"),
        (
            "trainers.summary --dtype_policy=int8",
            "`dtype_policy` must be one of",
        ),
        ("trainers.h_imagenet", "--imagenet must be ImageNet's folder"),
        ("trainers.launch", "The workers need one --run_dir"),
        ("export --run_dir=nowhere", "Received: run_dir=nowhere"),
        ("export --quantize=int4", "`quantize` must be one of"),
        ("export --formats=onnx", "`formats` must be one of"),
        ("export runs/latest", "takes flags only. Received: runs/latest"),
        ("export.predict", "Name image files or folders of them."),
        ("export.predict --model=none x.png", "model=none, which does"),
        ("export.serve", "`--model` must name a folder"),
        ("export.serve --model=none", "--model=none, which is no folder"),
        ("export.serve --model=export", "--model=export, which has none"),
    ],
)
def test_a_bad_value_is_refused_before_anything_slow_starts(
    say, command, message
):
    refused = say(*command.split())
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: ")
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_help_shows_defaults_and_no_flags_of_libraries(say):
    text = " ".join(say("trainers.fit", "--help").stdout.split())
    assert "Default: 4 to 60 for small variants, as many as make 1,100" in text
    assert "(default: '300.0')" in text
    assert "--logtostderr" not in text


def test_help_into_a_pipe_that_closes_says_nothing_more():
    command = f"{sys.executable} -m trainers.fit --help | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("Trains a network")
    assert done.stderr == ""
