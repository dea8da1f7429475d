import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from tests.trainers.conftest import legend, lines, texts, tick_labels
from trainers import pictures
from trainers.evaluate import plots
from trainers.evaluate.calibration import measure_calibration, reliability
from trainers.evaluate.capsule_plots import capsules
from trainers.evaluate.capsules import CapsuleStatistics
from trainers.evaluate.robustness import DisturbedError
from trainers.evaluate.robustness_plots import robustness
from trainers.pictures import BLUE, COLORS, GREY, ORANGE


@pytest.mark.parametrize("num_classes", [10, 25, 200])
def test_confusion_of_few_and_many_classes(drawn, tmp_path, num_classes):
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 3, (num_classes, num_classes))
    matrix[1, 2] = 40
    names = tuple(f"a rather long class {n}" for n in range(num_classes))
    plots.confusion(matrix, names, tmp_path / "confusion.png")
    heat, bars, scale = drawn[0].axes
    percent = 100 * matrix / matrix.sum(axis=1, keepdims=True)
    right, wrong = (image.get_array() for image in heat.images)
    diagonal = np.eye(num_classes, dtype=bool)
    np.testing.assert_array_equal(right.mask, ~diagonal)
    np.testing.assert_array_equal(wrong.mask, diagonal)
    np.testing.assert_allclose(wrong.data, percent)
    np.testing.assert_allclose(right.data, percent)
    assert heat.images[1].get_clim() == (0, percent[~diagonal].max())
    assert scale.get_ylabel() == "errors, % of the true class"
    if num_classes <= 15:
        assert len(texts(heat)) == np.count_nonzero(matrix)
        decimals = {word.partition(".")[2] for word in texts(heat)}
        assert all(len(digits) == 1 for digits in decimals)
        assert f"{percent[1, 2]:.1f}" in texts(heat)
    else:
        assert texts(heat) == []
    if num_classes <= 30:
        wanted = ["a rather long…"] * num_classes
        assert tick_labels(heat.xaxis) == tick_labels(heat.yaxis) == wanted
        assert heat.get_ylabel() == "true class"
    else:
        assert heat.get_ylabel() == "true class (200 in order)"

    lengths = [bar.get_width() for bar in bars.patches]
    assert lengths == sorted(matrix[~diagonal], reverse=True)[:12]
    assert tick_labels(bars.yaxis)[0] == "a rather long c… → a rather long c…"
    assert texts(bars)[0] == f" {percent[1, 2]:.1f}%"


def test_confusion_names_what_is_taken_for_what(drawn, tmp_path):
    matrix = np.array([[5, 2, 0], [0, 7, 1], [4, 0, 4]])
    plots.confusion(matrix, ("cat", "dog", "owl"), tmp_path / "confusion.png")
    bars = drawn[0].axes[1]
    assert [b.get_width() for b in bars.patches] == [4, 2, 1]
    assert tick_labels(bars.yaxis) == ["owl → cat", "cat → dog", "dog → owl"]
    assert texts(bars) == [" 50.0%", " 28.6%", " 12.5%"]


def test_confusion_without_errors_or_images(drawn, tmp_path):
    path = tmp_path / "confusion.png"
    plots.confusion(np.diag([3, 0]), ("a", "b"), path)
    # No scale of errors where there are none.
    heat, bars = drawn[0].axes
    assert texts(heat) == ["100.0"]
    assert texts(bars) == ["none"]
    assert not bars.patches


@pytest.mark.parametrize(
    ("count", "channels", "rows"), [(1, 3, 1), (5, 1, 2), (12, 3, 3)]
)
def test_mistakes_take_as_many_rows_as_needed(
    drawn, tmp_path, count, channels, rows
):
    images = np.random.default_rng(0).random((count, 28, 28, channels))
    captions = [
        plots.Shown(f"test/{n}.png", "cat", 0.1, f"dog{n}", 0.9)
        for n in range(count)
    ]
    plots.mistakes(images, captions, tmp_path / "mistakes.png")
    axes = drawn[0].axes
    assert len(axes) == 4 * rows
    assert drawn[0].get_figheight() == pytest.approx(0.4 + 3.1 * rows)
    assert [len(axis.images) for axis in axes] == [1] * count + [0] * (
        4 * rows - count
    )
    for number, axis in enumerate(axes[:count]):
        shown = axis.images[0].get_array()
        np.testing.assert_array_equal(shown, images[number].squeeze())
        assert texts(axis) == [
            f"dog{number}  0.90", "cat  0.10", f"test/{number}.png",
        ]  # fmt: skip
        assert [t.get_color() for t in axis.texts] == [ORANGE, BLUE, GREY]
    assert drawn[0].get_suptitle().startswith("The worst mistakes")


def test_without_mistakes_the_least_certain_answers_are_shown(drawn, tmp_path):
    captions = [plots.Shown("17", "cat", 0.51, "cat", 0.51)]
    plots.mistakes(np.zeros((1, 8, 8, 3)), captions, tmp_path / "mistakes.png")
    assert drawn[0].get_suptitle().startswith("No mistakes; the least certain")
    assert texts(drawn[0].axes[0]) == ["cat  0.51", "17"]


def test_names_in_any_script_are_drawn_without_warnings(drawn, tmp_path):
    names = ("кошка", "日本語", "\U0001f431", "$a$")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.confusion(np.eye(4, dtype=int), names, tmp_path / "c.png")
    shown = tick_labels(drawn[0].axes[0].xaxis)
    assert shown[0] == "кошка"
    assert shown[3] == r"\$a\$"


def test_a_font_that_is_broken_or_of_bitmaps_is_passed_over(monkeypatch):
    monkeypatch.setattr(pictures, "_other_fonts", lambda: ["Bitmaps", "Gone"])
    monkeypatch.setattr(
        pictures.font_manager, "findfont", lambda name, **_: name
    )
    fonts = {
        pictures.FONT: {"scalable": True, "letters": "abc"},
        "Bitmaps": {"scalable": False, "letters": "日"},
    }

    def get_font(name):
        if name not in fonts:
            raise RuntimeError("Cannot open")
        return SimpleNamespace(
            scalable=fonts[name]["scalable"],
            get_charmap=lambda: dict.fromkeys(map(ord, fonts[name]["letters"])),
        )

    monkeypatch.setattr(pictures.font_manager, "get_font", get_font)
    pictures._characters.cache_clear()
    style = pictures.style_for(["a日本"])
    shown = pictures.readable("a日")
    pictures._characters.cache_clear()
    assert style["font.family"] == [pictures.FONT]
    assert shown == r"a\u65e5"


def test_characters_that_no_font_has_become_their_numbers(monkeypatch):
    monkeypatch.setattr(pictures, "_other_fonts", list)
    assert pictures.readable("a日") == r"a\u65e5"
    assert pictures.readable("кошка 5 $") == r"кошка 5 \$"


def test_calibration_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    scores, labels = rng.random((400, 4)), rng.integers(0, 4, 400)
    found = measure_calibration(scores, labels)
    distance = 0.0
    for each in found.bins:
        rows = [
            (row.max(), row.argmax() == label)
            for row, label in zip(scores, labels, strict=True)
            if each.low <= row.max() < each.high
        ]
        assert each.images == len(rows)
        if rows:
            score, right = np.mean(rows, axis=0)
            assert (each.score, each.right) == pytest.approx((score, right))
            distance += abs(score - right) * len(rows)
    assert found.expected_error == pytest.approx(distance / 400)
    assert sum(each.images for each in found.bins) == 400


def test_scores_that_keep_their_word_are_calibrated():
    scores = np.eye(3)[[0, 1, 2]]
    assert measure_calibration(scores, np.arange(3)).expected_error == 0
    assert measure_calibration(scores, np.array([1, 2, 0])).expected_error == 1


def test_reliability_has_a_point_for_every_range_with_images(drawn, tmp_path):
    scores = np.array([[0.9, 0.1], [0.92, 0.1], [0.3, 0.2]])
    found = measure_calibration(scores, np.array([0, 1, 0]))
    reliability(found, "probability", tmp_path / "reliability.png")
    upper, lower = drawn[0].axes
    _, points = upper.lines
    np.testing.assert_allclose(points.get_data(), [[30, 91], [100, 50]])
    assert [bar.get_height() for bar in lower.patches].count(0) == 8
    assert lower.get_xlabel() == "probability, %"


@pytest.mark.parametrize("num_classes", [3, 100])
def test_capsules_with_a_class_that_never_wins(drawn, tmp_path, num_classes):
    rng = np.random.default_rng(0)
    effects = -rng.random((num_classes, 16))
    effects[0] = np.nan
    effects[1, 5] = 0.3
    lengths = rng.random((num_classes,) * 2)
    names = tuple(map(str, range(num_classes)))
    capsules(CapsuleStatistics(lengths, effects), names, tmp_path / "c.png")
    left, right, *scales = drawn[0].axes
    shown, falls = (axis.images[0].get_array() for axis in (left, right))
    np.testing.assert_array_equal(shown, lengths)
    np.testing.assert_array_equal(falls.mask[0], True)
    np.testing.assert_array_equal(falls[2], -effects[2])
    assert falls[1, 5] == 0
    assert left.images[0].get_clim() == (0, lengths.max())
    assert right.images[0].get_clim() == (0, -np.nanmin(effects))
    wanted = [f"{value:.2f}" for value in lengths.flat]
    assert texts(left) == (wanted if num_classes == 3 else [])
    assert tick_labels(right.xaxis) == [str(entry) for entry in range(16)]
    assert [axis.get_ylabel() for axis in scales] == [
        "mean length", "mean fall of the score",
    ]  # fmt: skip


def disturbed(offset):
    """Errors that tell disturbance, strength and run."""
    kinds = ("rotation", "scale", "shift", "FGSM", "PGD")
    return [
        DisturbedError(name, strength, error, error - 0.05, error + 0.1)
        for kind, name in enumerate(kinds)
        for strength in (0.0, 1.0, 4.0)
        for error in [offset + 0.1 * kind + 0.02 * strength]
    ]


def test_robustness_has_a_line_for_every_disturbance_and_run(drawn, tmp_path):
    runs = {"one": disturbed(0.1), "two": disturbed(0.2)}
    robustness(runs, tmp_path / "robustness.png")
    (figure,) = drawn
    titles = [axis.get_title("left") for axis in figure.axes]
    assert titles == ["Rotation", "Scale", "Shift", "Adversary"]
    errors = {
        title: [line.get_ydata().tolist() for line in axis.lines]
        for title, axis in zip(titles, figure.axes, strict=True)
    }
    assert errors["Rotation"] == [
        pytest.approx([10, 12, 18]), pytest.approx([20, 22, 28])
    ]  # fmt: skip
    # FGSM and PGD of one run, then of the other.
    assert [row[0] for row in errors["Adversary"]] == pytest.approx(
        [40, 50, 50, 60]
    )
    for axis in figure.axes:
        assert tick_labels(axis.xaxis) == ["0", "1", "4"]
        assert axis.get_ylim() == (0, 100)
    rotation, *_, adversary = figure.axes
    np.testing.assert_allclose(
        [rotation.collections[0].get_datalim(rotation.transData).intervaly],
        [[5, 28]], atol=1e-6,
    )  # fmt: skip
    assert [line.get_color() for line in rotation.lines] == list(COLORS[:2])
    dashed = [line.is_dashed() for line in adversary.lines]
    assert dashed == [True, False] * 2
    assert legend(rotation) == ["one", "two"]
    assert legend(adversary) == ["FGSM", "PGD, 10 steps"]
    assert "Error under disturbance" in figure.get_suptitle()


def test_robustness_of_one_run_has_its_name_in_the_title(drawn, tmp_path):
    robustness({"one": disturbed(0.1)}, tmp_path / "robustness.png")
    (figure,) = drawn
    assert legend(figure.axes[0]) == []
    assert len(lines(figure.axes[3])) == 2
    assert figure.get_suptitle().startswith("Error of one under disturbance")


def test_a_long_name_of_a_run_is_not_cut_off(drawn, tmp_path):
    name = "20261118-" + "a-rather-long-name-" * 8
    robustness({name: disturbed(0.1)}, tmp_path / "robustness.png")
    (figure,) = drawn
    title = figure._suptitle.get_window_extent()
    assert 0 <= title.x0 < title.x1 <= figure.bbox.width
    assert (
        figure.get_suptitle().replace("\n", "").startswith(f"Error of {name}")
    )
