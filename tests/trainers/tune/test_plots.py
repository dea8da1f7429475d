import pytest

from tests.trainers.tune.conftest import BOTH, outcome
from trainers.tune import plots, space
from trainers.tune.trials import Outcome


@pytest.mark.parametrize(
    ("names", "background"),
    [(["cost", "type2_layers", "iterations"], 0), (BOTH, 1)],
)
@pytest.mark.parametrize("points", [7, 12])
def test_what_was_searched_is_drawn(
    names, background, points, recipe, tmp_path, monkeypatch
):
    """A background only where there are points enough."""
    drawn = []
    monkeypatch.setattr(
        plots.plt.Axes, "contourf", lambda *_, **__: drawn.append(1)
    )
    axes = space.parse_axes(names)
    grid = space.grid(axes, 24)
    outcomes = [
        outcome(recipe, str(i), 0.1 + 0.01 * i, **grid[-i])
        for i in range(points)
    ]
    failure = {"failed": "diverged", "reason": "The loss is nan."}
    outcomes.append(Outcome("13", "failed", grid[-13], recipe(), [failure]))
    outcomes.append(Outcome("14", "running", grid[-14], recipe(), []))
    path = tmp_path / "landscape.png"
    plots.draw(axes, outcomes, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(drawn) == (background if points > 7 else 0)


def test_points_on_one_line_are_drawn_without_a_background(recipe, tmp_path):
    axes = space.parse_axes(BOTH)
    outcomes = [
        outcome(
            recipe, str(i), 0.1, agreement_weight=1.0 + i, agreement_epsilon=0.1
        )
        for i in range(9)
    ]
    plots.draw(axes, outcomes, tmp_path / "landscape.png")
    assert (tmp_path / "landscape.png").stat().st_size > 10_000
