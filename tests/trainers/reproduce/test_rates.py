"""Learning rates that are chosen row by row, on validation data."""

import json

import pytest

from tests.trainers.reproduce.conftest import FakeChild, rows_of
from trainers.files import owned, write_json
from trainers.reproduce import running

pytestmark = pytest.mark.usefixtures("no_pictures")
FLAGS = ("--experiment=table1", "--rows=c,e", "--seeds=2")
# The validation error of a row at a learning rate.
FOUND = {
    ("c", 3e-4): 0.3, ("c", 1e-3): 0.1, ("c", 3e-3): 0.2,
    ("e", 3e-4): 0.4, ("e", 1e-3): 0.3, ("e", 3e-3): 0.2,
}  # fmt: skip


class RateChild(FakeChild):
    """Has the validation errors of `FOUND`; a rate may fail."""

    def __init__(self, fails=(), **options):
        super().__init__(**options)
        self.fails = fails

    def run(self, recipe, folder):
        super().run(recipe, folder)
        row, rate = folder.path.parent.name, recipe.learning_rate
        result = json.loads(folder.result.read_text())
        result["validation_error"] = FOUND[row, rate]
        if (row, rate) in self.fails:
            result = {"failed": "diverged", "reason": "The loss is nan."}
        write_json(folder.result, result)
        return result


def test_a_protocol_chooses_rates_and_fixes_the_images(make):
    reproduction = make(*FLAGS, "--protocol=converged")
    child = RateChild()
    assert running.run(reproduction, child) == 0
    # Three rates for each row; the first seed's best run is not run again.
    tried = [(r.seed, r.learning_rate) for r in child.runs]
    rates = [(0, 3e-4), (0, 1e-3), (0, 3e-3)]
    assert tried == [*rates, *rates, (1, 1e-3), (1, 3e-3)]
    for recipe in child.runs:
        assert (recipe.limit_train, recipe.epochs) == (4_000, 60)
        assert recipe.seed_of_subsets == 0
    table = rows_of(reproduction)
    assert float(table["c"]["learning_rate"]) == 1e-3
    assert float(table["e"]["learning_rate"]) == 3e-3
    report = reproduction.report.read_text()
    assert "from 0.0003, 0.001, 0.003" in report
    assert "first seed: c 0.001, e 0.003." in report
    again = RateChild()
    assert running.run(reproduction, again) == 0
    assert again.runs == []


def test_a_rate_that_fails_is_not_chosen(make):
    reproduction = make(*FLAGS, "--protocol=converged", "--rows=c")
    child = RateChild(fails=[("c", 1e-3)])
    assert running.run(reproduction, child) == 0
    assert reproduction.rate(reproduction.rows[0]) == 3e-3


def test_a_choice_that_was_interrupted_goes_on(make):
    reproduction = make(*FLAGS, "--protocol=converged", "--rows=c")
    with pytest.raises(KeyboardInterrupt):
        running.run(reproduction, RateChild(stops_after=2))
    child = RateChild()
    running.run(reproduction, child)
    assert reproduction.rate(reproduction.rows[0]) == 1e-3
    assert len(reproduction.outcomes()[0].errors) == 2


def test_flags_come_before_the_protocol(make):
    reproduction = make(
        *FLAGS, "--protocol=converged", "--learning_rate=1e-3", "--epochs=7",
        "--limit_train=900",
    )  # fmt: skip
    recipe = reproduction.recipe(reproduction.rows[0])
    assert (recipe.learning_rate, recipe.limit_train) == (1e-3, 900)
    assert reproduction.rates == ()
    assert reproduction.given["epochs"] == 7


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--learning_rates=1,2", "--learning_rate=1"], "given or chosen.*Rec"),
        (["--learning_rates=0"], "> 0. Received: --learning_rates=0"),
        (["--learning_rates=a,1"], "> 0. Received: --learning_rates=a,1"),
    ],
)
def test_bad_rates_are_refused(make, flags, message):
    with pytest.raises(ValueError, match=message):
        make(*FLAGS, "--epochs=1", *flags)


def test_rows_that_another_process_runs_are_left_to_it(make, capsys):
    reproduction = make(*FLAGS, "--epochs=1")
    child = FakeChild()
    with owned(reproduction.path / "c") as is_free:
        assert is_free
        assert running.run(reproduction, child) == 0
    assert {recipe.variant for recipe in child.runs} == {"encapnet6_master"}
    assert "Left to other processes in this folder: 2 runs" in (
        capsys.readouterr().out
    )
    assert running.run(reproduction, child) == 0
    assert len(child.runs) == 4
