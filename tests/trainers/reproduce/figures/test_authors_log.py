import numpy as np
import pytest

from tests.trainers.conftest import legend, lines
from trainers.recipe import make_recipe
from trainers.reproduce.experiments import EXPERIMENTS
from trainers.reproduce.figures import authors_log

EXPERIMENT = EXPERIMENTS["authors_log"]
OFF, OT = EXPERIMENT.rows


def run(*errors):
    """The lines of one seed's metrics.csv."""
    return [{"epoch": n, "error": e} for n, e in enumerate(errors, start=1)]


# Two seeds of the first row, one of the second, which is an epoch behind.
HISTORIES = [
    (OFF, [run(0.60, 0.48, 0.44), run(0.62, 0.50, 0.42)]),
    (OT, [run(0.74, 0.65)]),
]


def test_the_rows_are_the_authors_runs():
    """Of 600 epochs without and with OT; see PAPER.md's recipe."""
    off, ot = (
        make_recipe(EXPERIMENT.fields | row.fields | {"dataset": "cifar10"})
        for row in EXPERIMENT.rows
    )
    assert set(off.network().agreement) == {"none"}
    assert ot.network().agreement == ("none", "none", "type1", "one")
    options = ot.network().agreement_options
    assert (options.weight, options.epsilon) == (20, 1)
    assert options.cost == "cosine"
    for recipe in (off, ot):
        assert (recipe.optimizer, recipe.learning_rate) == ("adam", 1e-4)
        assert (recipe.batch_size, recipe.schedule) == (128, "constant")
        assert recipe.augmentation == "mirrored"
        assert recipe.mirrors(is_safe=False)
        assert recipe.loss_name() == "margin"
    assert (OFF.log[0], OFF.log[1], OT.log[0]) == (60.34, 48.20, 75.48)
    for row, late in ((OFF, 26), (OT, 47)):
        assert list(row.log) == sorted(row.log, reverse=True)
        assert round(row.log[9]) == late


def test_the_table_sets_each_epoch_beside_the_log():
    text = authors_log.about_log(HISTORIES)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[0].count("theirs") == 2
    assert rows[1:] == [
        "| 1 | 61.00 | 60.34 | +0.66 | 74.00 | 75.48 | -1.48 |",
        "| 2 | 49.00 | 48.20 | +0.80 | 65.00 | 64.56 | +0.44 |",
        "| 3 | 43.00 | 43.01 | -0.01 | – | – | – |",
    ]
    assert "the largest difference is 1.5 points" in text


def test_what_was_not_run_makes_no_table():
    assert authors_log.about_log([]) == ""


@pytest.mark.parametrize("epochs", [2, 14])
def test_the_picture_has_our_lines_and_their_points(drawn, tmp_path, epochs):
    errors = np.linspace(0.6, 0.2, epochs)
    histories = [(row, [run(*errors)]) for row in EXPERIMENT.rows]
    authors_log.draw(histories, tmp_path / "log.png")
    (axis,) = drawn[0].axes
    ours = [lines(axis)[f"ours, {row.label}"] for row in (OFF, OT)]
    for epoch, percent in ours:
        np.testing.assert_array_equal(epoch, np.arange(1, epochs + 1))
        np.testing.assert_allclose(percent, 100 * errors)
    theirs = [line for line in axis.lines if line.get_marker() == "D"]
    for line, row in zip(theirs, (OFF, OT), strict=True):
        shown = min(epochs, len(row.log))
        np.testing.assert_allclose(line.get_ydata(), row.log[:shown])
    assert legend(axis).count("the authors' logs") == 1
