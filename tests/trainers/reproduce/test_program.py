"""Every experiment, trained: tiny networks, easy images."""

import dataclasses
import json

import pytest
from absl import flags
from PIL import Image

from tests import forked
from trainers.reproduce import __main__ as reproduce
from trainers.reproduce import running
from trainers.reproduce.experiments import EXPERIMENTS
from trainers.reproduce.reproducer import Reproducer
from trainers.runs.child import Child
from trainers.runs.finished import load_run
from trainers.training.loop import Loop

STEM = "--override=stem=((4,2),(8,2)),num_capsules=2"
MODULES = (
    "--override=stem=((4,2),),num_capsules=2,type2_layers=(0,1),strides=(2,2)"
)
STAGES = "--override=stem=((4,2),),channels=(4,8),blocks=(1,1),strides=(2,2)"
# Rows that between them have every kind of network, and flags for tiny ones.
TINY = {
    "table1": ["--rows=a,f", STEM, "--override=middle_capsules=2"],
    "capconv_design": ["--rows=4", MODULES],
    "regularization": ["--rows=d5", MODULES],
    "capnet_ablation": [
        "--rows=spread_sgd", STEM, "--override=middle_capsules=2",
    ],
    "state_of_the_art": [
        "--rows=strong", MODULES, "--override=agreement=none",
    ],
    "figure2": ["--rows=b", STEM, "--override=middle_capsules=2"],
    "figure4": ["--rows=resnet_a,resnet_c", STAGES],
    "h_imagenet": ["--rows=resnet18", STAGES, "--image_size=32"],
    "equal_time": ["--rows=cnn", "--narrow=8"],
    "few_labels": [
        "--rows=cnn_500", "--narrow=8", "--set=cnn_500.limit_train=240",
    ],
    "affine": ["--rows=resnet", "--narrow=8"],
    "decoder": [MODULES, "--override=capsule_dims=None"],
    "authors_log": ["--rows=ot", MODULES, "--override=agreement=one"],
    "agreement_forms": [
        "--rows=paired", MODULES, "--override=capsule_dims=None",
    ],
}  # fmt: skip


class HereChild(Child):
    """The process that trains, without a process."""

    def __init__(self):
        super().__init__(())
        self._trainer = Reproducer()

    def ask(self, task):
        return self._trainer.answer(json.loads(json.dumps(task)))


def make(name, npz_path, out, *arguments):
    values = flags.FlagValues()
    reproduce.define(values)
    values([
        "reproduce", f"--experiment={name}", f"--dataset=npz:{npz_path}",
        "--batch_size=24", "--seeds=1", f"--out={out}", *arguments,
    ])  # fmt: skip
    return reproduce.from_flags(values)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_to_its_report(name, npz_path, tmp_path):
    reproduction = make(name, npz_path, tmp_path, "--epochs=1", *TINY[name])
    assert running.run(reproduction, HereChild()) == 0
    report = reproduction.report.read_text()
    for outcome in reproduction.outcomes():
        assert not outcome.failure
        assert f"| {outcome.row.name} | {outcome.row.label} | " in report
        run = load_run(reproduction.folder(outcome.row, 0).path)
        crops = run.recipe.tests_crops()
        name = "multi_crop_error" if crops else "test_error"
        assert run.summary[name] == outcome.error
        epochs = round(outcome.row.budget)
        assert run.summary["images_seen"] == 216 * epochs
    pictures = [reproduction.errors]
    if reproduction.experiment.figure:
        pictures.append(reproduction.figure)
    for path in pictures:
        assert f"({path.name})" in report
        with Image.open(path) as picture:
            picture.verify()


@pytest.mark.slow
def test_a_run_by_time_has_the_steps_that_fit(npz_path, tmp_path):
    reproduction = make(
        "equal_time", npz_path, tmp_path, "--minutes=0.02", "--narrow=8",
        "--rows=cnn",
    )  # fmt: skip
    assert running.run(reproduction, HereChild()) == 0
    (outcome,) = reproduction.outcomes()
    plan = outcome.plan
    steps = 1.2 / plan.seconds_per_step
    assert 0 <= int(steps) - plan.epochs * plan.steps_per_epoch < plan.epochs
    result = outcome.results[0]
    assert result["images_seen"] == 24 * plan.epochs * plan.steps_per_epoch
    folder = reproduction.folder(outcome.row, 0)
    *_, last = folder.metrics.read_text().splitlines()
    heads = folder.metrics.read_text().splitlines()[0].split(",")
    row = dict(zip(heads, last.split(","), strict=True))
    # The schedule was made for these steps: its end is reached.
    assert float(row["learning_rate"]) == pytest.approx(0, abs=1e-8)


def test_a_signal_while_steps_are_timed_stops_the_program(
    npz_path, tmp_path, monkeypatch
):
    reproduction = make("equal_time", npz_path, tmp_path, "--minutes=1")

    def stopped(loop):
        return False

    monkeypatch.setattr(Loop, "run", stopped)
    recipe = reproduction.recipe(reproduction.rows[1])
    task = {"recipe": dataclasses.asdict(recipe), "measure_seconds": 1.0}
    assert HereChild().ask(task) == {"stopped": True}


def test_a_row_that_cannot_be_built_has_its_reason(npz_path, tmp_path):
    reproduction = make(
        "equal_time", npz_path, tmp_path, "--epochs=1", "--rows=cnn",
        "--set=cnn.batch_size=500",
    )  # fmt: skip
    recipe = reproduction.recipe(reproduction.rows[0])
    child = HereChild()
    with pytest.raises(ValueError, match="`batch_size` must not exceed"):
        child.check(recipe)
    task = {"recipe": dataclasses.asdict(recipe), "measure_seconds": 1.0}
    assert "`batch_size` must not exceed" in child.ask(task)["reason"]


@pytest.mark.slow
def test_the_program_trains_each_run_in_a_process_of_its_own(
    npz_path, tmp_path
):
    command = [
        "--experiment=table1", "--rows=c", "--narrow=16", "--batch_size=24",
        f"--dataset=npz:{npz_path}", "--epochs=1", "--seeds=1",
        f"--out={tmp_path}",
    ]  # fmt: skip
    done = forked.run("trainers.reproduce", *command)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "[1/1] row c, CNN, same shape, seed 0: test error" in done.stdout
    report = (tmp_path / "report.md").read_text()
    assert "python -m trainers.reproduce --experiment=table1" in report
    result = json.loads((tmp_path / "c" / "seed0" / "result.json").read_text())
    # TensorFlow alone takes some 300 MiB.
    assert 100 * 2**20 < result["peak_memory_bytes"] < 2 * 2**30
    assert result["machine"] in report
