import pytest

from tests.trainers.conftest import size_of
from trainers.training.curves import draw_curves


def history(epochs, units=()):
    return [
        {
            "epoch": epoch,
            "loss": 1 / epoch,
            "class_loss": 0.9 / epoch,
            "error": 0.5 / epoch if epoch < epochs else 0.0,
            "val_error": 0.6 / epoch,
            **{f"{unit}_loss": 1e-5 / epoch for unit in units},
            "learning_rate": 1e-3,
            "gradient_norm": 1.0,
        }
        for epoch in range(1, epochs + 1)
    ]


UNITS = tuple(
    f"module{number}_agreement_{end}"
    for number in range(1, 5)
    for end in ("input", "type1")
)


@pytest.mark.parametrize(
    ("epochs", "units"), [(1, UNITS[:1]), (60, ()), (60, UNITS)]
)
def test_curves_of_short_and_long_runs(tmp_path, epochs, units):
    path = tmp_path / "curves.png"
    draw_curves(history(epochs, units), path)
    assert size_of(path) == (1235, 832)


def test_the_same_picture_has_the_same_bytes(tmp_path):
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    draw_curves(history(5), first)
    draw_curves(history(5), second)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "b.png"]
