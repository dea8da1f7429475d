"""Which runs are made, with a child that makes its results up."""

import json
import re
import types

import pytest

from tests.trainers.reproduce.conftest import PAPER, FakeChild, rows_of
from trainers.reproduce import running

pytestmark = pytest.mark.usefixtures("no_pictures")


def test_the_rows_are_run_seed_by_seed_and_reported(make, capsys):
    reproduction = make("--experiment=table1", "--epochs=3", "--seeds=2")
    child = FakeChild(PAPER)
    assert running.run(reproduction, child) == 0
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


def test_what_is_finished_is_not_run_again_and_more_may_be_added(make):
    flags_given = ("--experiment=capconv_design", "--epochs=1")
    first = FakeChild()
    running.run(make(*flags_given, "--rows=1,2", "--seeds=1"), first)
    more = FakeChild()
    reproduction = make(*flags_given, "--rows=1,2,4", "--seeds=2")
    running.run(reproduction, more)
    assert len(first.runs) == 2
    assert [r.seed for r in more.runs] == [0, 1, 1, 1]
    assert set(rows_of(reproduction)) == {"1", "2", "4"}
    # Fewer rows do not forget the others' settings.
    running.run(make(*flags_given, "--rows=4", "--seeds=1"), FakeChild())
    assert set(json.loads(reproduction.settings.read_text())["recipes"]) == {
        "1", "2", "4",
    }  # fmt: skip


def test_a_stop_leaves_a_report_and_the_same_command_goes_on(make):
    command = ("--experiment=table1", "--epochs=1", "--seeds=1")
    reproduction = make(*command)
    with pytest.raises(KeyboardInterrupt):
        running.run(reproduction, FakeChild(PAPER, stops_after=2))
    assert "Not run yet: c, d, e, f." in reproduction.report.read_text()
    child = FakeChild(PAPER)
    assert running.run(make(*command), child) == 0
    assert len(child.runs) == 4
    assert "Not run yet" not in reproduction.report.read_text()


def test_a_row_that_fails_has_its_reason_and_the_rest_go_on(make, capsys):
    reproduction = make("--experiment=table1", "--epochs=1", "--seeds=1")
    assert running.run(reproduction, FakeChild(PAPER, dies=("b",))) == 0
    row = rows_of(reproduction)["b"]
    assert (row["status"], row["reason"]) == ("failed", "The loss is nan.")
    assert rows_of(reproduction)["f"]["status"] == "completed"
    assert "Row b failed: The loss is nan." in reproduction.report.read_text()
    assert "row b, CapNet, EM, seed 0: failed" in capsys.readouterr().out
    child = FakeChild(PAPER)
    running.run(reproduction, child)
    assert child.runs == []


def test_a_row_that_dies_while_it_is_timed_fails_alone(make):
    reproduction = make("--experiment=table1", "--minutes=1", "--seeds=1")
    child = FakeChild(PAPER, dies=("capnet_em",))
    assert running.run(reproduction, child) == 0
    assert "memory ran out" in rows_of(reproduction)["b"]["reason"]
    assert len(child.runs) == 5


def test_all_rows_failing_is_a_failure(make, capsys):
    reproduction = make(
        "--experiment=table1", "--epochs=1", "--seeds=1", "--rows=a"
    )
    assert running.run(reproduction, FakeChild(dies=("a",))) == 1
    assert "No run came to an end" in capsys.readouterr().err


def test_time_is_divided_alike_and_every_seed_gets_the_same_plan(make):
    command = ("--experiment=state_of_the_art", "--minutes=2", "--seeds=2")
    reproduction = make(*command)
    child = FakeChild()
    running.run(reproduction, child)
    assert len(child.measured) == 3
    lengths = [(r.epochs, r.steps_per_epoch) for r in child.runs]
    # 120 s of 0.1 s are 1200 steps; strong augmentation gets half as many more.
    assert lengths == [(3, 400), (3, 400), (5, 360)] * 2
    report = reproduction.report.read_text()
    assert "2 minutes of training steps a run" in report
    assert "1.5 times that for row strong" in report
    assert "GoodInit | 5.84" in report


def test_a_folder_belongs_to_one_experiment(make, tmp_path):
    command = ("--experiment=table1", "--rows=c", "--seeds=1")
    running.run(make(*command, "--epochs=1"), FakeChild())
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
            running.run(other, FakeChild())
    # A row that was removed may be run in another way.
    for path in sorted((tmp_path / "out" / "c").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (tmp_path / "out" / "c").rmdir()
    child = FakeChild()
    other = make(*command, "--epochs=1", "--set=c.learning_rate=0.5")
    assert running.run(other, child) == 0
    assert [r.learning_rate for r in child.runs] == [0.5]


def test_what_cannot_be_trained_is_refused_before_anything_is_written(make):
    def refuse(recipe):
        raise ValueError("No such data. Received: none.")

    reproduction = make("--experiment=table1", "--epochs=1")
    child = types.SimpleNamespace(check=refuse)
    with pytest.raises(ValueError, match="No such data"):
        running.run(reproduction, child)
    assert not reproduction.path.exists()


def test_no_run_is_run_by_two_processes(make):
    flags = ("--experiment=table1", "--epochs=1", "--seeds=2", "--rows=c,e")
    reproduction = make(*flags)
    other = FakeChild(PAPER)

    class Curious(FakeChild):
        def run(self, recipe, folder):
            if not self.runs:
                # Another process starts in the midst of the first run.
                assert running.run(reproduction, other) == 0
            super().run(recipe, folder)

    child = Curious(PAPER)
    assert running.run(reproduction, child) == 0
    runs = [(r.variant, r.seed) for r in child.runs + other.runs]
    assert len(runs) == len(set(runs)) == 4
    assert {r.variant for r in other.runs} == {"encapnet6_master"}
