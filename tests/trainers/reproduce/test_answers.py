"""Rows against one another, seed by seed."""

import numpy as np
import pytest
from scipy import stats

from tests.trainers.reproduce.conftest import FakeChild
from tests.trainers.reproduce.figures.test_plots import outcome
from trainers.reproduce import running
from trainers.reproduce.answers import answer, tau_interval
from trainers.reproduce.experiments import EXPERIMENTS

ROWS = EXPERIMENTS["table1"].rows


@pytest.mark.parametrize(
    ("errors", "others", "verdict"),
    [
        ((0.10, 0.12, 0.11), (0.15, 0.18, 0.16), "Yes"),
        ((0.15, 0.18, 0.16), (0.10, 0.12, 0.11), "No, the other way round"),
        ((0.10, 0.18, 0.11), (0.15, 0.12, 0.16), "Cannot be told"),
        ((0.25, 0.5), (0.5, 0.75), "Yes"),  # the same gain to the last bit
        ((0.25, 0.5), (0.25, 0.5), "Cannot be told"),
    ],
)
def test_two_rows_are_compared_seed_by_seed(errors, others, verdict):
    found = answer(outcome(ROWS[0], *errors), outcome(ROWS[1], *others))
    assert found.verdict == verdict
    assert found.gain == pytest.approx(np.mean(others) - np.mean(errors))
    if found.spread:
        p_value = stats.ttest_rel(others, errors).pvalue
        assert found.p_value == pytest.approx(p_value)


def test_only_seeds_that_both_rows_have_are_compared():
    one, other = outcome(ROWS[0], 0.1, 0.2), outcome(ROWS[1], 0.3)
    found = answer(one, other)
    assert (found.gain, found.seeds) == (pytest.approx(0.2), 1)
    assert (found.spread, found.verdict) == (None, "Cannot be told")
    assert answer(one, outcome(ROWS[1], failed=True)) is None


def test_tau_lies_within_what_the_seeds_allow():
    paper = [1.0, 2.0, 3.0]
    clear = [outcome(row, n, n + 0.1) for n, row in enumerate(ROWS[:3])]
    assert tau_interval(clear, paper) == (1, 1)
    # The first seed has the paper's order, the second the opposite one.
    torn = [outcome(row, n, 2.5 * (2 - n)) for n, row in enumerate(ROWS[:3])]
    assert tau_interval(torn, paper) == (-1, 1)
    single = [outcome(row, n) for n, row in enumerate(ROWS[:3])]
    assert tau_interval(single, paper) is None


@pytest.mark.usefixtures("no_pictures")
def test_a_report_answers_before_it_shows(make, capsys):
    reproduction = make(
        "--experiment=equal_time", "--epochs=1", "--seeds=2",
        "--rows=encapnet,cnn",
    )  # fmt: skip
    errors = {("encapnet", 0): 0.1, ("encapnet", 1): 0.12, "cnn": 0.3}
    running.run(reproduction, FakeChild(errors))
    words = (
        "**Is encapnet_small better than the CNN?** Yes: encapnet 11.00%, cnn "
        "30.00%, 19.00 ± 1.41 points less (paired t-test over 2 seeds, p = "
        "0.033)."
    )
    report = reproduction.report.read_text()
    assert report.index(words) < report.index("| row | network |")
    assert words in capsys.readouterr().out
    assert "ResNet?" not in report


def test_questions_name_rows_of_their_experiment():
    for experiment in EXPERIMENTS.values():
        names = {row.name for row in experiment.rows}
        for question in experiment.questions:
            assert {question.row, question.other} <= names
            assert question.text.endswith("?")
