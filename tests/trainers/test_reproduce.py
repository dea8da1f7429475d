"""A reproduction without training: a child that makes its results up."""

import csv
import dataclasses
import json
import re
import types

import pytest
from absl import flags
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from encapnet_tf.models import variant_config
from trainers.reproduce import __main__ as reproduce
from trainers.reproduce import plots as plots_reproduce
from trainers.reproduce import report as reproduce_report
from trainers.reproduce.experiments import EXPERIMENTS
from trainers.reproduce.reproduction import narrowed
from trainers.runs.child import RESULT
from trainers.study.budget import plan_by_time
from trainers.study.outcomes import compare, noise


class FakeChild:
    """Answers at once; `errors` are by variant or by row and seed."""

    def __init__(self, errors=None, dies=(), stops_after=None):
        self.errors = errors or {}
        self.dies = dies
        self.stops_after = stops_after
        self.runs, self.measured, self.closed = [], [], 0

    def check(self, recipe):
        self.checked = recipe

    def ask(self, task):
        self.measured.append(task["recipe"]["variant"])
        if task["recipe"]["variant"] in self.dies:
            return None
        return {"seconds_per_step": 0.1, "steps": 400}

    def cause(self):
        return "killed, most likely because memory ran out (SIGKILL)"

    def run(self, recipe, folder):
        if len(self.runs) == self.stops_after:
            raise KeyboardInterrupt
        self.runs.append(recipe)
        row = folder.path.parent.name
        if row in self.dies:
            result = {"failed": "diverged", "reason": "The loss is nan."}
        else:
            error = self.errors.get((row, recipe.seed), self.errors.get(row))
            steps = recipe.epochs * (recipe.steps_per_epoch or 400)
            result = {
                "test_error": 0.5 if error is None else error,
                "test_images": 10_000,
                "train_images": 400 * recipe.batch_size,
                "parameters": 2000,
                "inference_parameters": 1500,
                "images_seen": steps * recipe.batch_size,
                "seconds_per_step": 0.1,
                "peak_memory_bytes": 700 * 2**20,
                "train_seconds": 0.1 * steps,
                "machine": "2 × Abacus",
                "load_per_core": 0.5,
            }
        folder.write_json(folder.path / RESULT, result)

    def close(self):
        self.closed += 1


@pytest.fixture
def make(tmp_path):
    """A reproduction from flags."""

    def parse(*arguments):
        values = flags.FlagValues()
        reproduce.define(values)
        base = [f"--out={tmp_path / 'out'}", "--dataset=cifar10"]
        values(["reproduce", *base, *arguments])
        return reproduce.from_flags(values)

    return parse


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch):
    """They have tests of their own, and take their time."""
    monkeypatch.setattr(
        plots_reproduce, "errors", lambda _, __, path: path.touch()
    )


def rows_of(reproduction):
    with reproduction.table.open() as file:
        return {row["row"]: row for row in csv.DictReader(file)}


PAPER = {row.name: row.paper["cifar10"] / 100
         for row in EXPERIMENTS["table1"].rows}  # fmt: skip


def test_the_rows_are_run_seed_by_seed_and_reported(make, capsys):
    reproduction = make("--experiment=table1", "--epochs=3", "--seeds=2")
    child = FakeChild(PAPER)
    assert reproduce.run(reproduction, child) == 0
    assert [r.seed for r in child.runs] == [0] * 6 + [1] * 6
    assert {r.epochs for r in child.runs} == {3}
    assert child.measured == []
    assert child.closed >= 12
    table = rows_of(reproduction)
    assert float(table["c"]["error"]) == pytest.approx(0.1443)
    assert float(table["c"]["paper_error"]) == pytest.approx(0.1443)
    assert table["c"]["images_seen"] == str(3 * 400 * 128.0)
    report = reproduction.report.read_text()
    assert "Kendall's tau between our order and the paper's is 1.00" in report
    assert "0 the other way round" in report
    assert "2 × Abacus" in report
    assert "3 epochs a run; seeds 0, 1. The paper's numbers: 600" in report
    output = capsys.readouterr().out
    assert "[12/12] row f, EncapNet, master/aide, seed 1: test error" in output
    assert str(reproduction.report) in output


def test_times_are_compared_per_image_relative_to_one_row(make):
    reproduction = make(
        "--experiment=table1", "--epochs=1", "--seeds=1", "--rows=a,c",
        "--set=a.batch_size=8",
    )  # fmt: skip
    reproduce.run(reproduction, FakeChild(PAPER))
    report = reproduction.report.read_text()
    # Ours: 0.1 s for 8 and for 128; the paper's: 0.444 s and 0.026 s.
    relative = (0.444 / 8) / (0.026 / 128)
    assert f"| a | 12.50 | 16.00 | {relative:.2f} | 700 (8)" in report
    assert "Row a alone: batch_size 8." in report


def test_what_is_finished_is_not_run_again_and_more_may_be_added(make):
    flags_given = ("--experiment=capconv_design", "--epochs=1")
    first = FakeChild()
    reproduce.run(make(*flags_given, "--rows=1,2", "--seeds=1"), first)
    more = FakeChild()
    reproduction = make(*flags_given, "--rows=1,2,4", "--seeds=2")
    reproduce.run(reproduction, more)
    assert len(first.runs) == 2
    assert [r.seed for r in more.runs] == [0, 1, 1, 1]
    assert set(rows_of(reproduction)) == {"1", "2", "4"}
    # Fewer rows do not forget the others' settings.
    reproduce.run(make(*flags_given, "--rows=4", "--seeds=1"), FakeChild())
    assert set(json.loads(reproduction.settings.read_text())["recipes"]) == {
        "1", "2", "4",
    }  # fmt: skip


def test_a_stop_leaves_a_report_and_the_same_command_goes_on(make):
    command = ("--experiment=table1", "--epochs=1", "--seeds=1")
    reproduction = make(*command)
    with pytest.raises(KeyboardInterrupt):
        reproduce.run(reproduction, FakeChild(PAPER, stops_after=2))
    assert "Not run yet: c, d, e, f." in reproduction.report.read_text()
    child = FakeChild(PAPER)
    assert reproduce.run(make(*command), child) == 0
    assert len(child.runs) == 4
    assert "Not run yet" not in reproduction.report.read_text()


def test_a_row_that_fails_has_its_reason_and_the_rest_go_on(make, capsys):
    reproduction = make("--experiment=table1", "--epochs=1", "--seeds=1")
    assert reproduce.run(reproduction, FakeChild(PAPER, dies=("b",))) == 0
    row = rows_of(reproduction)["b"]
    assert (row["status"], row["reason"]) == ("failed", "The loss is nan.")
    assert rows_of(reproduction)["f"]["status"] == "completed"
    assert "Row b failed: The loss is nan." in reproduction.report.read_text()
    assert "row b, CapNet, EM, seed 0: failed" in capsys.readouterr().out
    child = FakeChild(PAPER)
    reproduce.run(reproduction, child)
    assert child.runs == []


def test_a_row_that_dies_while_it_is_timed_fails_alone(make):
    reproduction = make("--experiment=table1", "--minutes=1", "--seeds=1")
    child = FakeChild(PAPER, dies=("capnet_em",))
    assert reproduce.run(reproduction, child) == 0
    assert "memory ran out" in rows_of(reproduction)["b"]["reason"]
    assert len(child.runs) == 5


def test_all_rows_failing_is_a_failure(make, capsys):
    reproduction = make(
        "--experiment=table1", "--epochs=1", "--seeds=1", "--rows=a"
    )
    assert reproduce.run(reproduction, FakeChild(dies=("a",))) == 1
    assert "No run came to an end" in capsys.readouterr().err


def test_time_is_divided_alike_and_every_seed_gets_the_same_plan(make):
    command = ("--experiment=state_of_the_art", "--minutes=2", "--seeds=2")
    reproduction = make(*command)
    child = FakeChild()
    reproduce.run(reproduction, child)
    assert len(child.measured) == 3
    lengths = [(r.epochs, r.steps_per_epoch) for r in child.runs]
    # 120 s of 0.1 s are 1200 steps; strong augmentation gets half as many more.
    assert lengths == [(3, 400), (3, 400), (5, 360)] * 2
    report = reproduction.report.read_text()
    assert "2 minutes of training steps a run" in report
    assert "1.5 times that for row strong" in report
    assert "GoodInit | 5.84" in report


def test_steps_slower_than_planned_are_pointed_out(make):
    reproduction = make("--experiment=table1", "--minutes=1", "--rows=c,e")
    reproduce.run(reproduction, FakeChild(PAPER))
    assert "slower or faster" not in reproduction.report.read_text()
    for seed in reproduction.all_seeds:
        folder = reproduction.folder(reproduction.rows[0], seed)
        result = json.loads((folder.path / RESULT).read_text())
        result |= {"seconds_per_step": 0.2, "load_per_core": 3.0}
        folder.write_json(folder.path / RESULT, result)
    reproduce_report.write(reproduction)
    report = reproduction.report.read_text()
    assert "Minutes that they took: c 2.0." in report
    assert "3.0 processes wanted each core" in report


@given(
    seconds=st.floats(0.1, 1e5),
    step=st.floats(1e-3, 100),
    steps=st.integers(1, 5000),
    least=st.integers(1, 20),
)
def test_a_plan_by_time_fills_the_time_and_no_more(seconds, step, steps, least):
    plan = plan_by_time(seconds, step, steps, least)
    total = plan.epochs * plan.steps_per_epoch
    wanted = max(1, int(seconds / step))
    assert total <= wanted
    # What is left over is less than a step of every epoch.
    assert wanted - total < plan.epochs
    assert plan.steps_per_epoch <= steps
    assert plan.epochs >= min(least, wanted // 10)
    assert plan.steps_per_epoch >= min(10, steps // 2, wanted)


def test_differences_within_the_noise_are_called_so(make):
    errors = {"1": 0.300, "2": 0.301, "3": 0.302, "4": 0.299}
    reproduction = make(
        "--experiment=capconv_design", "--epochs=1", "--rows=1,2,3,4",
        "--seeds=1",
    )  # fmt: skip
    reproduce.run(reproduction, FakeChild(errors))
    report = reproduction.report.read_text()
    assert "All 6 differences between rows are within the noise" in report
    assert "say nothing about the order" in report
    assert "Only one seed" in report
    assert "Kendall" not in report


def test_the_order_is_compared_pair_by_pair(make):
    """Row 2 comes out worse than row 1; rows 3 and 4 cannot be told apart."""
    errors = {"1": 0.30, "2": 0.35, "3": 0.20, "4": 0.201}
    reproduction = make(
        "--experiment=capconv_design", "--epochs=1", "--rows=1,2,3,4",
        "--seeds=2",
    )  # fmt: skip
    reproduce.run(reproduction, FakeChild(errors))
    found = compare(reproduction.outcomes(), "cifar10")
    paper = [9.83, 8.05, 9.11, 7.41]
    tau, p_value = stats.kendalltau(list(errors.values()), paper)
    assert (found.tau, found.p_value) == (tau, p_value)
    names = {
        kind: {(a.name, b.name) for a, b in getattr(found, kind)}
        for kind in ("same", "reversed", "close")
    }
    assert names == {
        "same": {("3", "1"), ("4", "1"), ("4", "2")},
        "reversed": {("1", "2"), ("3", "2")},
        "close": {("3", "4")},
    }
    report = reproduction.report.read_text()
    assert "5 of 6, 3 in the paper's order, 2 the other way round" in report
    assert "(3 before 2, 1 before 2)" in report
    assert "Only one seed" not in report


def test_the_spread_over_seeds_counts_as_noise(make):
    errors = {("1", 0): 0.30, ("1", 1): 0.20, ("2", 0): 0.28, ("2", 1): 0.24}
    reproduction = make(
        "--experiment=capconv_design", "--epochs=1", "--rows=1,2", "--seeds=2"
    )
    reproduce.run(reproduction, FakeChild(errors))
    one, other = reproduction.outcomes()
    # Standard deviations 0.0707 and 0.0283, over two seeds each.
    assert noise(one, other) == pytest.approx(2 * (0.05**2 + 0.02**2) ** 0.5)
    assert "25.00 ± 7.07" in reproduction.report.read_text()


def test_data_without_a_number_are_set_beside_the_paper_s_own(make):
    reproduction = make(
        "--experiment=capconv_design", "--epochs=1", "--rows=1,2",
        "--seeds=1", "--dataset=svhn",
    )  # fmt: skip
    reproduce.run(reproduction, FakeChild({"1": 0.3, "2": 0.1}))
    assert reproduction.paper_data == "cifar10"
    report = reproduction.report.read_text()
    assert "The paper has no numbers for these data; its order on CIFAR" in (
        report
    )


@pytest.mark.parametrize(
    ("dataset", "data"),
    [
        ("npz:/data/cifar10_20k.npz", "cifar10"),
        ("cifar100", "cifar100"),
        ("folder:svhn", "svhn"),
        ("house_numbers", "cifar10"),
    ],
)
def test_the_name_of_the_data_tells_which_numbers_to_take(make, dataset, data):
    reproduction = make(
        "--experiment=state_of_the_art", "--epochs=1", f"--dataset={dataset}"
    )
    assert reproduction.paper_data == data
    assert reproduction.paper_has_data == (dataset != "house_numbers")


def test_rows_without_a_paper_are_compared_among_themselves(make):
    reproduction = make("--experiment=equal_time", "--minutes=1", "--seeds=1")
    errors = {"encapnet": 0.10, "cnn": 0.101, "resnet": 0.3}
    reproduce.run(reproduction, FakeChild(errors))
    report = reproduction.report.read_text()
    assert (
        "Row encapnet has the least error, 10.00%; within the noise of it: cnn"
        in report
    )


def test_narrow_networks_keep_their_form(make):
    assert narrowed(variant_config("capnet_em"), 4) == {
        "stem": ((8, 1), (16, 1), (32, 2), (64, 2)),
        "num_capsules": 8,
        "middle_capsules": 8,
    }
    assert narrowed(variant_config("resnet18"), 8) == {
        "stem": ((4, 1),),
        "channels": (8, 16, 32, 64),
    }
    reproduction = make(
        "--experiment=regularization", "--epochs=1", "--narrow=4",
        "--override=type2_layers=(1,1,1,1)",
    )  # fmt: skip
    networks = {
        row.name: reproduction.recipe(row).network()
        for row in reproduction.rows
    }
    assert networks["c"].num_capsules == 8
    assert networks["c"].type2_layers == (1, 1, 1, 1)
    assert networks["c"].agreement[0] == "one"
    assert networks["resnet_c"].channels == (16, 32, 64, 128)


def test_flags_of_a_recipe_hold_for_all_rows(make):
    reproduction = make(
        "--experiment=table1", "--epochs=1", "--learning_rate=0.01",
        "--schedule=cosine", "--set=b.batch_size=4", "--batch_size=32",
    )  # fmt: skip
    recipes = {r.name: reproduction.recipe(r) for r in reproduction.rows}
    assert {r.learning_rate for r in recipes.values()} == {0.01}
    assert (recipes["a"].batch_size, recipes["b"].batch_size) == (32, 4)
    assert recipes["a"].weight_decay == 5e-4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--experiment=table9"], "--experiment must be one of table1.*Rec"),
        ([], "--experiment must be one of.*Received: --experiment=None"),
        (["--experiment=table1"], "--epochs or --minutes. Received: neither"),
        (
            ["--experiment=table1", "--minutes=1", "--epochs=2"],
            "either time or steps. Received",
        ),
        (["--experiment=table1", "--minutes=0"], "must be > 0. Received"),
        (
            ["--experiment=table1", "--epochs=1", "--rows=a,z"],
            "--rows must be some of a, b, c.*Received: z",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--variant=resnet18"],
            "say what is theirs: variant. Received: variant",
        ),
        (
            ["--experiment=capconv_design", "--epochs=1",
             "--override=skip=none"],
            "Received: skip for all of them",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--override=colour=red"],
            "fields of the rows' networks. Received: colour",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--set=z.batch_size=1"],
            "--set takes ROW.FIELD=VALUE.*Received: --set=z.batch_size=1",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--set=a.colour=1"],
            "--set takes.*Received: --set=a.colour=1",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--set=a.batch_size=0"],
            "Row a: `batch_size` is out of its range. Received",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--narrow=3"],
            "Row e: The last channels of `stem`.*Received",
        ),
    ],
)  # fmt: skip
def test_bad_flags_are_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(*arguments)


def test_a_folder_belongs_to_one_experiment(make, tmp_path):
    command = ("--experiment=table1", "--rows=c", "--seeds=1")
    reproduce.run(make(*command, "--epochs=1"), FakeChild())
    for other, message in (
        (make(*command, "--epochs=2"), "epochs was 1, now 2"),
        (make(*command, "--minutes=2"), "minutes was None, now 2.0"),
        (
            make(*command, "--epochs=1", "--learning_rate=0.5"),
            "row c: learning_rate was 0.0001, now 0.5",
        ),
        (
            make("--experiment=figure2", "--epochs=1"),
            "experiment was 'table1', now 'figure2'",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            reproduce.run(other, FakeChild())
    # A row that was removed may be run in another way.
    for path in sorted((tmp_path / "out" / "c").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (tmp_path / "out" / "c").rmdir()
    child = FakeChild()
    other = make(*command, "--epochs=1", "--set=c.learning_rate=0.5")
    assert reproduce.run(other, child) == 0
    assert [r.learning_rate for r in child.runs] == [0.5]


def test_what_cannot_be_trained_is_refused_before_anything_is_written(make):
    def refuse(recipe):
        raise ValueError("No such data. Received: none.")

    reproduction = make("--experiment=table1", "--epochs=1")
    child = types.SimpleNamespace(check=refuse)
    with pytest.raises(ValueError, match="No such data"):
        reproduce.run(reproduction, child)
    assert not reproduction.path.exists()


def test_a_second_process_is_kept_out(make):
    reproduction = make("--experiment=table1", "--epochs=1", "--seeds=1")

    class Curious(FakeChild):
        def run(self, recipe, folder):
            with pytest.raises(ValueError, match="Another process.*Received"):
                reproduce.run(reproduction, FakeChild())
            super().run(recipe, folder)

    assert reproduce.run(reproduction, Curious(PAPER)) == 0


def test_the_plan_is_part_of_what_is_trained(make):
    reproduction = make("--experiment=table1", "--minutes=1", "--rows=c")
    row = reproduction.rows[0]
    assert reproduction.plan(row) is None
    plan = reproduction.save_plan(row, seconds_per_step=0.5, steps=50)
    assert plan == reproduction.plan(row)
    recipe = reproduction.planned_recipe(row, seed=4)
    assert recipe == dataclasses.replace(
        reproduction.recipe(row), epochs=3, steps_per_epoch=40, seed=4
    )
