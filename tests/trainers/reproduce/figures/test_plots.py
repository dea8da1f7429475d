import numpy as np
import pytest
from matplotlib import pyplot as plt

from tests.trainers.conftest import legend, lines, tick_labels
from tests.trainers.training.test_curves import history
from trainers.recipe import Recipe
from trainers.reproduce.experiments import EXPERIMENTS
from trainers.reproduce.figures import plots
from trainers.reproduce.outcomes import RowOutcome
from trainers.study.budget import Plan


def outcome(row, *errors, failed=False):
    results = {
        seed: {"test_error": error, "test_images": 100}
        for seed, error in enumerate(errors)
    }
    if failed:
        results = {0: {"failed": "diverged", "reason": "The loss is nan."}}
    return RowOutcome(row=row, recipe=Recipe(), plan=Plan(1), results=results)


@pytest.mark.parametrize("experiment", ["table1", "equal_time"])
def test_errors_of_rows_that_ran_failed_or_wait(drawn, tmp_path, experiment):
    first, second, *others, last = rows = EXPERIMENTS[experiment].rows
    outcomes = [outcome(first, failed=True), outcome(second, 0.2, 0.3)]
    outcomes += [outcome(row, 0.04) for row in others] + [outcome(last)]
    plots.errors(outcomes, "cifar10", tmp_path / "errors.png")
    (figure,) = drawn
    (axis,) = figure.axes
    assert tick_labels(axis.yaxis) == [f"{r.label}  ({r.name})" for r in rows]
    paper = [(row.paper["cifar10"], n) for n, row in enumerate(rows)
             if row.paper]  # fmt: skip
    places = range(len(rows))
    found = {style: [] for style in "Do|"}
    for line in axis.lines:
        if line.get_marker() in found:
            found[line.get_marker()] += zip(*line.get_data(), strict=True)
    assert found["D"] == paper
    means = [25] + [4] * len(others)
    np.testing.assert_allclose(
        found["o"], list(zip(means, places[1:-1], strict=True))
    )
    seeds = [(20, 1), (30, 1)] + [(4, n) for n in places[2:-1]]
    np.testing.assert_allclose(found["|"], seeds)
    # One standard deviation, 7.07, to either side of the mean.
    (bar,) = axis.collections
    np.testing.assert_allclose(
        bar.get_segments(), [[[25 - 50**0.5, 1], [25 + 50**0.5, 1]]]
    )
    assert [(t.get_text(), t.get_position()[1]) for t in axis.texts] == [
        ("failed", 0), ("not run", places[-1]),
    ]  # fmt: skip
    assert axis.get_ylim() == (len(rows) - 0.4, -0.6)
    theirs = ["the paper, CIFAR-10, 600 epochs"] if paper else []
    assert legend(figure) == [*theirs, "ours"]


@pytest.mark.parametrize(("largest", "scale"), [(0.1, "linear"), (0.9, "log")])
def test_small_errors_are_not_crushed_by_large_ones(largest, scale):
    rows = EXPERIMENTS["table1"].rows
    _, axis = plt.subplots()
    plots._scale(axis, [outcome(rows[0], 0.01), outcome(rows[1], largest)])
    assert axis.get_xscale() == scale


def test_curves_have_a_line_for_each_network(drawn, tmp_path):
    rows = EXPERIMENTS["few_labels"].rows
    outcomes = [
        outcome(row, 0.01 * n, 0.01 * n + 0.02)
        for n, row in enumerate(rows, start=1)
    ]
    plots.curve(outcomes, "training images", tmp_path / "curve.png")
    (figure,) = drawn
    (axis,) = figure.axes
    names = list(dict.fromkeys(row.point[0] for row in rows))
    assert legend(axis) == names
    for place, container in enumerate(axis.containers):
        line, _, (bars,) = container.lines
        means = np.arange(place + 1, 16, len(names)) + 1.0
        np.testing.assert_allclose(line.get_ydata(orig=False), means)
        assert list(line.get_xdata()) == [500, 1000, 2000, 4000, 8000]
        low = [segment[0][1] for segment in bars.get_segments()]
        np.testing.assert_allclose(low, means - 2**0.5)
    assert tick_labels(axis.xaxis) == ["500", "1,000", "2,000", "4,000",
                                       "8,000"]  # fmt: skip


def snapshot(epoch):
    percent = [0.0, 100 - epoch, *[0.0] * 18, epoch]
    lengths = [None, 0.01, *[None] * 18, 0.02]
    return {"epoch": epoch, "percent": percent, "lengths": lengths}


def test_votes_of_networks_with_unlike_numbers_of_snapshots(drawn, tmp_path):
    found = {"dynamic": [snapshot(1), snapshot(8)], "EM": [snapshot(2)]}
    plots.routing(found | {"not run": []}, tmp_path / "figure2.png")
    (figure,) = drawn
    *grid, first_twin, last_twin, em_twin = figure.axes
    assert [axis.get_visible() for axis in grid] == [True, True, True, False]
    centres = np.linspace(-1, 1, 43)[1::2]
    for axis, twin, label, epoch in (
        (grid[0], first_twin, "dynamic", 1),
        (grid[1], last_twin, "dynamic", 8),
        (grid[2], em_twin, "EM", 2),
    ):
        assert axis.get_title("left") == f"{label}, epoch {epoch}"
        bars = axis.patches
        middles = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        np.testing.assert_allclose(middles, centres, atol=1e-12)
        heights = [bar.get_height() for bar in bars]
        assert heights == snapshot(epoch)["percent"]
        (line,) = twin.lines
        lengths = np.array(snapshot(epoch)["lengths"], float)
        np.testing.assert_array_equal(line.get_ydata(), lengths)
    # A row shares its scales; labels stand at its ends only.
    assert grid[0].get_ylim() == grid[1].get_ylim() == (0, 1.08 * 99)
    assert [a.get_ylabel() for a in grid[:3]] == ["votes, %", "", "votes, %"]
    length = "mean length of a vote"
    twins = (first_twin, last_twin, em_twin)
    assert [t.get_ylabel() for t in twins] == ["", length, length]


def test_no_votes_make_no_picture(drawn, tmp_path):
    plots.routing({"not run": []}, tmp_path / "none.png")
    assert drawn == []


@pytest.mark.parametrize("epochs", [1, 12])
def test_losses_of_two_networks_and_several_seeds(drawn, tmp_path, epochs):
    def seed(factor):
        return [
            {"epoch": row["epoch"], "loss": factor * row["loss"],
             "class_loss": factor * row["class_loss"]}
            for row in history(epochs)
        ]  # fmt: skip

    rows = EXPERIMENTS["figure4"].rows
    histories = [(row, [seed(1), seed(2)]) for row in rows]
    plots.losses(histories, tmp_path / "figure4.png")
    titles = [axis.get_title("left") for axis in drawn[0].axes]
    assert titles == list(dict.fromkeys(r.fields["variant"] for r in rows))
    epoch = np.arange(1, epochs + 1)
    for axis in drawn[0].axes:
        found = lines(axis)
        labels = ["without agreement", "with OT", "with OT, class loss alone"]
        assert list(found) == legend(axis) == labels
        for label, first in zip(labels, (1, 1, 0.9), strict=True):
            np.testing.assert_array_equal(found[label][0], epoch)
            np.testing.assert_allclose(found[label][1], 1.5 * first / epoch)
    plots.losses(histories[:1], tmp_path / "figure4.png")
    (axis,) = drawn[1].axes
    assert list(lines(axis)) == ["without agreement"]
