"""What every program has in common: help, refusals, and how soon they come."""

import os
import signal
import subprocess
import sys

import pytest

from encapnet_tf.version import __version__
from trainers import stopping
from trainers.files import check_writable, written_atomically

PROGRAMS = (
    "fit", "tune", "reproduce", "evaluate", "summary", "benchmark",
    "h_imagenet", "launch",
)  # fmt: skip
SLOW_TO_START = ("tensorflow", "keras", "matplotlib", "scipy", "keras_tuner")


@pytest.fixture(scope="module")
def say(tmp_path_factory):
    """Runs a program that fails where it starts something slow."""
    poison = tmp_path_factory.mktemp("poison")
    for name in SLOW_TO_START:
        path = poison / f"{name}.py"
        path.write_text(f"raise SystemExit('{name} was imported')")
    paths = os.pathsep.join((str(poison), os.getcwd()))

    def run(program, *arguments, **options):
        return subprocess.run(
            [sys.executable, "-m", f"trainers.{program}", *arguments],
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            **options,
        )

    return run


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_and_a_misspelt_flag_start_nothing_slow(say, program):
    help_text = say(program, "--help")
    assert (help_text.returncode, help_text.stderr) == (0, "")
    assert f"python -m trainers.{program}" in help_text.stdout
    misspelt = say(program, "--hepl")
    assert misspelt.returncode == 2
    assert misspelt.stderr.startswith("error: Unknown command line flag 'hepl'")
    assert misspelt.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        ("fit", ["--variant=encapnet_v"], "Did you mean 'encapnet_v"),
        ("fit", ["--dataset=cifar"], "Did you mean 'cifar10'?"),
        ("fit", ["--optimizer=adm"], "Did you mean 'adam'?"),
        ("fit", ["--epochs=0"], "`epochs` must be >= 1. Received: epochs=0."),
        ("fit", ["--init_from=nowhere"], "Received: init_from=nowhere"),
        ("fit", ["--init_from=a.keras"], "Received: init_from=a.keras"),
        ("fit", [f"--run_dir={__file__}/run"], "Received: /"),
        ("tune", ["--search=cots"], "Did you mean 'cost'?"),
        ("tune", ["--variant=resnet18"], "has no agreement units"),
        ("reproduce", ["--experiment=table1"], "A budget for each run"),
        ("evaluate", ["--run_dir=nowhere"], "Received: run_dir=nowhere"),
        ("benchmark", ["--parts=solvr"], "Did you mean 'solver'?"),
        ("summary", ["encapnet_smal"], "Did you mean 'encapnet_small'?"),
        ("summary", ["--dtype_policy=int8"], "`dtype_policy` must be one of"),
        ("h_imagenet", [], "--imagenet must be ImageNet's folder"),
        ("launch", [], "The workers need one --run_dir"),
    ],
)
def test_a_bad_value_is_refused_before_anything_slow_starts(
    say, program, arguments, message
):
    refused = say(program, *arguments)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: ")
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_help_shows_defaults_and_no_flags_of_libraries(say):
    text = " ".join(say("fit", "--help").stdout.split())
    assert "Default: 4 for small variants, else 600." in text
    assert "(default: '300.0')" in text
    assert "--logtostderr" not in text


def test_version_is_that_of_the_library(say):
    assert say("fit", "--version").stdout == f"{__version__}\n"


def test_help_into_a_pipe_that_closes_says_nothing_more():
    command = f"{sys.executable} -m trainers.fit --help | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("Trains a network")
    assert done.stderr == ""


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path, monkeypatch):
    check_writable(tmp_path / "new" / "run")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "access", lambda *_: False)
    message = f"Received: {tmp_path}/run; {tmp_path} may not be written to"
    with pytest.raises(ValueError, match=message):
        check_writable(tmp_path / "run")


def test_a_full_disk_is_told_before_and_with_the_path(tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.files._LEAST_FREE", 1 << 80)
    with pytest.raises(ValueError, match="MiB left on its disk"):
        check_writable(tmp_path)
    with (
        pytest.raises(OSError, match=f"No space.*{tmp_path}/a.json"),
        written_atomically(tmp_path / "a.json"),
    ):
        raise OSError(28, "No space left on device")


def test_the_first_signal_asks_and_a_second_ctrl_c_ends():
    asked = []
    with stopping.asked_first(asked.append):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert asked == [signal.SIGINT, signal.SIGTERM]
        with pytest.raises(KeyboardInterrupt) as stop:
            signal.raise_signal(signal.SIGINT)
    assert stopping.exit_code(stop.value) == 130
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
