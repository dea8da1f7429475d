import numpy as np
import pytest

from tests.trainers.conftest import size_of
from trainers.evaluate import plots as plots_evaluation
from trainers.evaluate.capsule_plots import capsules
from trainers.evaluate.capsules import CapsuleStatistics
from trainers.evaluate.robustness import Measurement
from trainers.evaluate.robustness_plots import robustness


@pytest.mark.parametrize("num_classes", [10, 25, 200])
def test_confusion_of_few_and_many_classes(tmp_path, num_classes):
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 3, (num_classes, num_classes))
    names = tuple(f"a rather long class {n}" for n in range(num_classes))
    path = tmp_path / "confusion.png"
    plots_evaluation.confusion(matrix, names, path)
    assert size_of(path) == (1495, 858)


def test_confusion_without_errors_or_images(tmp_path):
    path = tmp_path / "confusion.png"
    plots_evaluation.confusion(np.diag([3, 0]), ("a", "b"), path)
    assert size_of(path) == (1495, 858)


@pytest.mark.parametrize(
    ("count", "channels", "height"), [(0, 3, 429), (5, 1, 806), (12, 3, 1183)]
)
def test_mistakes_take_as_many_rows_as_needed(
    tmp_path, count, channels, height
):
    images = np.full((count, 28, 28, channels), 0.3)
    path = tmp_path / "mistakes.png"
    plots_evaluation.mistakes(images, [("cat", 0.1, "dog", 0.9)] * count, path)
    assert size_of(path) == (1196, height)


@pytest.mark.parametrize("num_classes", [3, 100])
def test_capsules_with_a_class_that_never_wins(tmp_path, num_classes):
    rng = np.random.default_rng(0)
    effects = -rng.random((num_classes, 16))
    effects[0] = np.nan
    statistics = CapsuleStatistics(rng.random((num_classes,) * 2), effects)
    path = tmp_path / "capsules.png"
    capsules(statistics, tuple(map(str, range(num_classes))), path)
    assert size_of(path) == (1690, 832)


def test_robustness_of_two_runs(tmp_path):
    rows = [
        Measurement(name, strength, 0.3, 0.2, 0.4)
        for name in ("rotation", "scale", "shift", "FGSM", "PGD")
        for strength in (0.0, 1.0, 4.0)
    ]
    for runs in ({"one": rows}, {"one": rows, "two": rows}):
        path = tmp_path / "robustness.png"
        robustness(runs, path)
        assert size_of(path) == (1235, 910)
