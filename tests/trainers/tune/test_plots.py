import numpy as np
import pytest

from tests.trainers.conftest import legend, texts, tick_labels
from tests.trainers.tune.conftest import BOTH, outcome
from trainers.tune import plots, space
from trainers.tune.axes import parse_axes
from trainers.tune.trials import TrialOutcome

FAILURE = {"failed": "diverged", "reason": "The loss is nan."}


@pytest.fixture
def draw(recipe, drawn, tmp_path):
    """Draws trials of 10%, 11%, … and one failed, one under way."""

    def figure(names, points):
        axes = parse_axes(names)
        grid = space.grid(axes, 24)[::-1]
        outcomes = [
            outcome(recipe, str(i), 0.1 + 0.01 * i, **grid[i])
            for i in range(points)
        ]
        failed = TrialOutcome(
            trial="13", status="failed", values=grid[-2], recipe=recipe(),
            results={0: FAILURE},
        )  # fmt: skip
        running = TrialOutcome(
            trial="14", status="running", values=grid[-1], recipe=recipe(),
            results={},
        )  # fmt: skip
        plots.draw(axes, [*outcomes, failed, running], tmp_path / "l.png")
        return drawn.pop(), grid

    return figure


@pytest.mark.parametrize("points", [7, 18])
def test_trials_lie_at_their_weight_and_epsilon(draw, points):
    """A background only where there are points enough."""
    figure, grid = draw(BOTH, points)
    axis, bar = figure.axes
    places = [tuple(point[name] for name in BOTH) for point in grid]
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert axis.get_xlabel().startswith("λ, weight")
    assert axis.get_ylabel().startswith("ε of")
    assert bar.get_ylabel() == "validation error, %"
    background, *others = axis.collections
    if points == 7:
        others = axis.collections
    else:
        (low, *_, high) = background.levels
        assert (low, high) == pytest.approx((10, 27))
    dots, failed, paper, best = others
    np.testing.assert_allclose(dots.get_offsets(), places[:points])
    np.testing.assert_allclose(dots.get_array(), 10 + np.arange(points))
    np.testing.assert_allclose(failed.get_offsets(), [places[-2]])
    np.testing.assert_allclose(paper.get_offsets(), [(10, 0.1)])
    np.testing.assert_allclose(best.get_offsets(), [places[0]])
    weight, epsilon = places[0]
    assert legend(axis) == [
        "failed", "the paper's λ = 10, ε = 0.1",
        f"best: 10.00%, λ = {weight:.3g}, ε = {epsilon:.3g}",
    ]  # fmt: skip
    # Numbers only where they do not hide one another.
    wanted = [f"{10 + n:.1f}" for n in range(points)]
    assert texts(axis) == (wanted if points == 7 else [])


def test_other_axes_have_a_panel_each(draw):
    names = ["cost", "type2_layers", "num_iterations"]
    figure, grid = draw(names, 7)
    panels = figure.axes
    assert [panel.get_xlabel() for panel in panels] == [
        "cost", "N, type II layers of a module", "L, Sinkhorn iterations",
    ]  # fmt: skip
    for name, panel in zip(names, panels, strict=True):
        *_, done, best, failed = panel.lines
        values = [point[name] for point in grid]
        assert list(done.get_xdata()) == values[:7]
        np.testing.assert_allclose(done.get_ydata(), range(10, 17))
        assert list(best.get_xdata()) == values[:1]
        assert list(failed.get_xdata()) == values[-2:-1]
        # A failure has no error: it lies above all that have one.
        assert failed.get_ydata() == pytest.approx([1.05 * 16])
    assert legend(panels[0]) == ["best: 10.00%", "failed"]
    assert panels[0].get_ylabel() == "validation error, %"
    (cost,) = parse_axes(["cost"])
    assert tick_labels(panels[0].xaxis) == list(cost.choices)


def test_of_the_same_values_the_longest_run_counts(recipe, drawn, tmp_path):
    values = {"agreement_weight": 3.0, "agreement_epsilon": 0.1}
    first, longer = (
        outcome(recipe, str(epochs), error, epochs=epochs, **values)
        for epochs, error in ((1, 0.1), (4, 0.2))
    )
    for order in ([first, longer], [longer, first]):
        plots.draw(parse_axes(BOTH), order, tmp_path / "l.png")
        assert texts(drawn.pop().axes[0]) == ["20.0"]


def test_points_on_one_line_are_drawn_without_a_background(
    recipe, drawn, tmp_path
):
    outcomes = [
        outcome(
            recipe, str(i), 0.1, agreement_weight=1.0 + i, agreement_epsilon=0.1
        )
        for i in range(9)
    ]
    plots.draw(parse_axes(BOTH), outcomes, tmp_path / "landscape.png")
    dots, *_ = drawn[0].axes[0].collections
    np.testing.assert_allclose(dots.get_offsets()[:, 0], np.arange(1, 10))
