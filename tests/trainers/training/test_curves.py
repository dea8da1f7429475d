import itertools

import numpy as np
import pytest
from matplotlib.colors import to_hex

from tests.trainers.conftest import legend, lines
from trainers.training.curves import draw_curves


def watched(units, epoch):
    """The first unit collapses slowly, in epoch 5; the others do not."""
    found = {}
    for number, unit in enumerate(units):
        found[f"{unit}_spread"] = 0.45 / epoch if number == 0 else 1.1
        found[f"{unit}_zero_vectors"] = 0.25
        found[f"{unit}_gradient_share"] = 0.1 * (number + 1)
    return found


def history(epochs, units=(), spread=False):
    return [
        {
            "epoch": epoch,
            "loss": 1 / epoch,
            "class_loss": 0.9 / epoch,
            "error": 0.5 / epoch if epoch < epochs else 0.0,
            "val_error": 0.6 / epoch,
            **{
                f"{unit}_loss": 1e-5 / (epoch + number)
                for number, unit in enumerate(units)
            },
            **(watched(units, epoch) if spread else {}),
            "learning_rate": 1e-3 / epoch,
            "gradient_norm": 2.0 + epoch,
        }
        for epoch in range(1, epochs + 1)
    ]


UNITS = tuple(
    f"module{number}_agreement_{end}"
    for number in range(1, 5)
    for end in ("input", "type1")
)


@pytest.fixture
def draw(drawn, tmp_path):
    def panels(rows):
        draw_curves(rows, tmp_path / "curves.png")
        return drawn.pop().axes

    return panels


@pytest.mark.parametrize("units", [(), UNITS[:1], UNITS])
@pytest.mark.parametrize("epochs", [1, 60])
def test_every_panel_has_its_numbers(draw, epochs, units):
    loss, error, agreement, rate = draw(history(epochs, units))
    epoch = np.arange(1, epochs + 1)
    for axis in (loss, error, agreement, rate):
        assert axis.get_xlabel() == "epoch"
        for x, _ in list(lines(axis).values())[:2]:
            np.testing.assert_array_equal(x, epoch)
    label = "with agreement" if units else "loss"
    np.testing.assert_allclose(lines(loss)[label][1], 1 / epoch)
    assert ("class loss alone" in lines(loss)) == bool(units)
    assert legend(loss) == ["with agreement", "class loss alone"] * bool(units)
    if units:
        np.testing.assert_allclose(
            lines(loss)["class loss alone"][1], 0.9 / epoch
        )
    training = np.where(epoch < epochs, 50 / epoch, 0)
    np.testing.assert_allclose(lines(error)["training"][1], training)
    np.testing.assert_allclose(lines(error)["validation"][1], 60 / epoch)
    np.testing.assert_allclose(lines(rate)["learning rate"][1], 1e-3 / epoch)
    best = f"lowest: {'60.00%' if epochs == 1 else '1.00%'}, epoch {epochs}"
    np.testing.assert_allclose(lines(error)[best], [[epochs], [60 / epochs]])
    assert legend(error) == ["training", "validation", best]


def test_every_agreement_unit_has_a_line_that_looks_unlike_the_others(draw):
    axis = draw(history(60, UNITS))[2]
    assert axis.get_title("left") == "Agreement loss, before λ"
    assert legend(axis) == [
        f"module{number} – its {end}"
        for number in range(1, 5)
        for end in ("input", "type I")
    ]
    for number, line in enumerate(axis.lines):
        wanted = 1e-5 / (np.arange(1, 61) + number)
        np.testing.assert_allclose(line.get_ydata(), wanted)
    for one, other in itertools.combinations(axis.lines, 2):
        assert look(one) != look(other)


def test_units_that_are_watched_show_spread_collapse_and_share(draw):
    loss, error, agreement, spread, share, rate = draw(
        history(8, UNITS[:2], spread=True)
    )
    assert rate.get_title("left") == "Learning rate after the epoch"
    assert agreement.get_title("left") == "Agreement loss, before λ"
    assert spread.get_title("left") == "Spread of f(u), % of its start"
    first, second, cross, *_ = spread.lines
    np.testing.assert_allclose(first.get_ydata(), 45 / np.arange(1, 9))
    np.testing.assert_allclose(second.get_ydata(), 110)
    np.testing.assert_allclose(cross.get_data(), [[5], [9]])
    assert legend(spread) == ["collapsed"]
    for line, percent in zip(share.lines, (10, 20), strict=True):
        np.testing.assert_allclose(line.get_ydata(), percent)
    healthy = draw(history(3, UNITS[1:3], spread=True))[3]
    assert healthy.get_legend() is None


def look(line):
    return to_hex(line.get_color()), line.is_dashed()


def test_a_network_without_units_shows_its_gradient(draw):
    axis = draw(history(3))[2]
    assert axis.get_title("left") == "Gradient norm (no agreement units)"
    np.testing.assert_allclose(lines(axis)["gradient norm"][1], [3, 4, 5])


def test_decades_are_shown_by_decades_and_a_zero_from_zero_on(draw):
    loss, error, _, rate = draw(history(60))
    assert loss.get_yscale() == "log"
    assert [axis.get_yscale() for axis in (error, rate)] == ["linear"] * 2
    assert error.get_ylim()[0] == rate.get_ylim()[0] == 0
    assert {axis.get_yscale() for axis in draw(history(2))} == {"linear"}


def test_the_same_picture_has_the_same_bytes(tmp_path):
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    draw_curves(history(5), first)
    draw_curves(history(5), second)
    assert first.read_bytes().startswith(b"\x89PNG")
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "b.png"]


@pytest.mark.parametrize("epochs", [1, 2, 4, 7, 12, 75, 600])
def test_ticks_are_whole_epochs_from_the_first_to_the_last(draw, epochs):
    for axis in draw(history(epochs)):
        ticks = axis.get_xticks()
        assert ticks[0] == 1
        assert ticks[-1] == epochs
        assert 1 <= len(ticks) <= 9
        assert all(tick == int(tick) for tick in ticks)
        assert axis.get_xlim()[0] < 1 <= epochs < axis.get_xlim()[1]
