"""The program as a user meets it: flags, files, signals, exit codes."""

import csv
import dataclasses
import json
import pathlib
import random
import re
import signal
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from absl import flags

from encapnet_tf import create_model
from tests import forked
from trainers import cli
from trainers.files import write_json
from trainers.recipe import Recipe, make_recipe
from trainers.runs.finished import start_from
from trainers.runs.folder import RunFolder
from trainers.stored_recipe import differences
from trainers.training.devices import set_policy
from trainers.training.loop import Loop

LEAST = [
    "--variant=encapnet_tiny",
    "--override=stem=((4, 2),)",
    "--override=num_capsules=2",
    "--override=type2_layers=(0,)",
    "--override=strides=(2,)",
    "--override=aide=none",
    "--override=agreement=none",
    "--batch_size=24",
]


def fit(*flags):
    return forked.run("trainers.fit", *flags)


def parse(*arguments):
    """The recipe that a command line gives, without a process."""
    values = flags.FlagValues()
    cli.define_recipe(values)
    values(["fit", *arguments])
    return cli.recipe_from_flags(values)


def rows(run_dir):
    with (run_dir / "metrics.csv").open() as file:
        return [
            {k: v for k, v in row.items() if k != "seconds"}
            for row in csv.DictReader(file)
        ]


def weights(run_dir):
    return keras.models.load_model(run_dir / "model.keras").get_weights()


@pytest.mark.slow
def test_trains_tests_and_says_where_everything_is(npz_path, tmp_path):
    run_dir = tmp_path / "runs" / "first"
    command = [
        *LEAST, f"--dataset=npz:{npz_path}", "--epochs=6",
        "--learning_rate=0.01", f"--run_dir={run_dir}",
    ]  # fmt: skip
    done = fit(*command)
    assert done.returncode == 0, done.stderr
    assert "Test error 0.00%" in done.stdout
    assert done.stderr == ""
    summary = json.loads((run_dir / "summary.json").read_text())
    assert summary["test_error"] == 0
    assert summary["versions"]["keras"] == keras.__version__
    assert len(rows(run_dir)) == 6
    assert (run_dir / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((run_dir / "tensorboard").iterdir())
    assert not list((run_dir / "checkpoints").iterdir())
    latest = tmp_path / "runs" / "latest"
    assert latest.resolve() == run_dir

    again = fit(*command)
    assert again.returncode == 0
    assert "is finished" in again.stdout
    other = fit(*command, "--learning_rate=0.1")
    assert other.returncode == 2
    assert "learning_rate was 0.01, now 0.1" in other.stderr
    assert f"--init_from={run_dir}" in other.stderr

    tuned = fit(
        *LEAST, f"--dataset=npz:{npz_path}", "--epochs=1",
        f"--init_from={run_dir}", f"--run_dir={tmp_path / 'tuned'}",
        "--learning_rate=1e-9",
    )  # fmt: skip
    assert tuned.returncode == 0, tuned.stderr
    assert "Test error 0.00%" in tuned.stdout


def test_another_number_of_classes_keeps_all_but_the_last_layer(
    recipe, stripes, tmp_path, capsys
):
    folder = RunFolder(tmp_path)
    loop = Loop(recipe(epochs=1), stripes, folder, quiet=True)
    loop.model.save(folder.model)
    loop.recipe.save(folder.config)
    write_json(folder.summary, {"class_names": ["a", "b", "c"]})
    five = create_model("encapnet_tiny", num_classes=5, **loop.recipe.override)
    start_from(five, tmp_path)
    assert "class_capsules/kernel" in capsys.readouterr().out
    for ours, theirs in zip(
        five.weights[:-1], loop.model.weights[:-1], strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    start_from(five, folder.model)
    assert "class_capsules/kernel" in capsys.readouterr().out
    with pytest.raises(ValueError, match="`init_from` must be.*Received"):
        start_from(five, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="none does"):
        start_from(
            create_model(
                "resnet18",
                channels=(4,),
                blocks=(1,),
                strides=(1,),
                stem=((3, 1),),
            ),
            tmp_path,
        )


@pytest.mark.slow
def test_kill_nine_at_random_moments_changes_nothing(npz_path, tmp_path):
    """First before an epoch has ended, then each time two epochs further."""
    command = [
        *LEAST, "--agreement=one", f"--dataset=npz:{npz_path}", "--epochs=10",
        "--override=agreement_options={'num_iterations': 2}",
        "--checkpoint_seconds=0.1", "--augmentation=strong",
    ]  # fmt: skip
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert fit(*command, f"--run_dir={whole}").returncode == 0
    seconds = random.Random(0)
    for epoch in (0, 2, 4, 6):
        process = forked.Program(
            "trainers.fit", *command, f"--run_dir={killed}"
        )
        for line in process.stdout:
            ended = re.match(r"Run folder|epoch +(\d+)/", line)
            if ended and int(ended[1] or 0) >= epoch:
                break
        time.sleep(seconds.uniform(0, 3 if epoch == 0 else 0.3))
        assert process.poll() is None, "finished before it was killed"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert fit(*command, f"--run_dir={killed}").returncode == 0
    assert rows(killed) == rows(whole)
    for ours, theirs in zip(weights(killed), weights(whole), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_exits_within_ten_seconds(
    npz_path, tmp_path, number
):
    process = forked.Program(
        "trainers.fit", *LEAST, "--epochs=2000",
        f"--dataset=npz:{npz_path}", f"--run_dir={tmp_path / 'run'}",
    )  # fmt: skip
    for line in process.stdout:
        if line.startswith("epoch"):
            break
    process.send_signal(number)
    began = time.monotonic()
    done = process.finish(timeout=20)
    assert time.monotonic() - began < 10
    assert done.returncode == 128 + number
    assert "the same command goes on" in done.stdout
    assert list((tmp_path / "run" / "checkpoints").glob("*.npz"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--variant=encapnet_smal"], "Did you mean 'encapnet_small'"),
        (["--dataset=cifar"], "Did you mean 'cifar10'"),
        (["--dataset=npz:"], "`dataset` must be one of.*Received"),
        (["--optimizer=adm"], "Did you mean 'adam'"),
        (["--epochs=0"], "`epochs` must be >= 1. Received: epochs=0"),
        (["--batch_size=0"], "`batch_size` must be >= 1. Received"),
        (["--seed=-1"], "`seed` must be >= 0. Received"),
        (["--steps_per_epoch=0"], "`steps_per_epoch` must be >= 1. Received"),
        (["--learning_rate=0"], "`learning_rate` must be > 0. Received"),
        (["--validation_fraction=1"], "`validation_fraction`.*Received"),
        (["--agreement_ramp=2"], "`agreement_ramp` must be >= 0 and <= 1. Rec"),
        (["--ema=1"], "`ema` must be > 0 and < 1. Received"),
        (["--schedule=linear"], "`schedule` must be one of.*Received"),
        (["--augmentation=wild"], "`augmentation` must be.*Received"),
        (["--dtype_policy=int8"], "`dtype_policy` must be.*Received"),
        (["--agreement=three"], "`agreement` must be one of.*Received"),
        (["--agreement_epsilon=0"], "`epsilon` > 0.*Received"),
        (["--override=colour=red"], "has no field colour.*Received"),
        (["--override=colour"], "takes NAME=VALUE.*Received"),
        (["--config=missing.json"], "A recipe is a JSON.*missing.json"),
        (["--variant=capnet_em", "--agreement=one"], "has no field agreement"),
    ],
)
def test_bad_flags_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        parse(*arguments)


def test_small_variants_get_quick_defaults_and_flags_come_first():
    quick = parse()
    assert (quick.variant, quick.schedule) == ("encapnet_small", "cosine")
    assert parse("--epochs=3").epochs == 3
    paper = parse("--variant=encapnet_v1")
    assert paper == make_recipe({"variant": "encapnet_v1"})
    assert (paper.epochs, paper.batch_size) == (600, 128)
    assert (paper.learning_rate, paper.weight_decay) == (1e-4, 5e-4)
    assert paper.schedule == "steps"


def test_a_recipe_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    Recipe(epochs=7).save(path)
    before = path.read_text()

    def cut(self, text):
        with self.open("w") as file:
            file.write(text[:10])
        raise OSError("No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_text", cut)
    with pytest.raises(OSError, match="No space"):
        Recipe(epochs=9).save(path)
    assert path.read_text() == before


def test_a_recipe_from_before_a_field_is_the_same_recipe():
    stored = dataclasses.asdict(Recipe(deterministic=False))
    for name in ("deterministic", "decoder", "decoder_weight"):
        del stored[name]
    assert differences(stored, Recipe()) == []
    assert differences(stored, Recipe(deterministic=True)) == [
        "deterministic was False, now True"
    ]


@pytest.mark.parametrize("wanted", [True, False])
def test_determinism_is_switched_on_where_it_is_asked_for(wanted, monkeypatch):
    calls = []
    monkeypatch.setattr(
        tf.config.experimental, "enable_op_determinism", lambda: calls.append(1)
    )
    set_policy(Recipe(deterministic=wanted))
    assert len(calls) == wanted


def test_a_config_file_is_where_flags_start_from(tmp_path):
    path = tmp_path / "config.json"
    given = Recipe(epochs=7, agreement_weight=3.0, override={"cap_fc": "dense"})
    given.save(path)
    assert parse(f"--config={path}") == given
    changed = parse(
        f"--config={path}", "--epochs=9", "--override=num_capsules=8"
    )
    assert changed.epochs == 9
    assert changed.override == {"cap_fc": "dense", "num_capsules": 8}
    assert changed.network().agreement_options.weight == 3.0


@pytest.mark.parametrize(
    ("text", "size"), [("96", 96), ("96x96", 96), ("96x64", "96x64")]
)
def test_an_image_size_is_a_side_or_height_and_width(text, size):
    assert parse(f"--image_size={text}").image_size == size


def test_a_bad_image_size_is_refused():
    with pytest.raises(ValueError, match="Received: image_size='96x'"):
        parse("--image_size=96x")
