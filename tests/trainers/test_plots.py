import numpy as np
import pytest
from matplotlib import pyplot as plt
from PIL import Image

from trainers.evaluate import plots as plots_evaluation
from trainers.evaluate.capsule_plots import capsules
from trainers.evaluate.capsules import CapsuleStatistics
from trainers.evaluate.robustness import Measurement
from trainers.evaluate.robustness_plots import robustness
from trainers.recipe import Recipe
from trainers.reproduce import plots as plots_reproduce
from trainers.reproduce.experiments import EXPERIMENTS
from trainers.study.budget import Plan
from trainers.study.outcomes import Outcome
from trainers.training.curves import draw_curves


def size_of(path):
    """Decodes the whole picture; returns its size and its share of white."""
    with Image.open(path) as picture:
        picture.load()
        assert picture.format == "PNG"
        pixels = np.asarray(picture.convert("RGB"))
        white = (pixels == 255).all(axis=-1).mean()
        assert 0.05 < white < 0.999
        return picture.size


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


def outcome(row, *errors, failed=False):
    results = {
        seed: {"test_error": error, "test_images": 100}
        for seed, error in enumerate(errors)
    }
    if failed:
        results = {0: {"failed": "diverged", "reason": "The loss is nan."}}
    return Outcome(row, Recipe(), Plan(1), results)


@pytest.mark.parametrize("experiment", ["table1", "equal_time"])
def test_errors_of_rows_that_ran_failed_or_wait(tmp_path, experiment):
    first, *others = EXPERIMENTS[experiment].rows
    outcomes = [outcome(first, failed=True), outcome(others[0], 0.2, 0.3)]
    outcomes += [outcome(row, 0.004) for row in others[1:-1]]
    outcomes.append(outcome(others[-1]))
    path = tmp_path / "errors.png"
    plots_reproduce.errors(outcomes, "cifar10", path)
    width, height = size_of(path)
    assert width == 1066
    assert height == pytest.approx(130 * (1.4 + 0.42 * len(outcomes)), abs=1)


@pytest.mark.parametrize(("largest", "scale"), [(0.1, "linear"), (0.9, "log")])
def test_small_errors_are_not_crushed_by_large_ones(largest, scale):
    rows = EXPERIMENTS["table1"].rows
    _, axis = plt.subplots()
    plots_reproduce._scale(
        axis, [outcome(rows[0], 0.01), outcome(rows[1], largest)]
    )
    assert axis.get_xscale() == scale


def test_votes_of_networks_with_unlike_numbers_of_snapshots(tmp_path):
    def snapshot(epoch):
        percent = [0.0, 100 - epoch, *[0.0] * 18, epoch]
        lengths = [None, 0.01, *[None] * 18, 0.02]
        return {"epoch": epoch, "percent": percent, "lengths": lengths}

    path = tmp_path / "figure2.png"
    found = {"dynamic": [snapshot(1), snapshot(8)], "EM": [snapshot(1)]}
    plots_reproduce.routing(found | {"not run": []}, path)
    assert size_of(path) == (884, 754)
    plots_reproduce.routing({"not run": []}, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


@pytest.mark.parametrize("epochs", [1, 12])
def test_losses_of_two_networks_and_several_seeds(tmp_path, epochs):
    path = tmp_path / "figure4.png"
    rows = EXPERIMENTS["figure4"].rows
    histories = [(row, [history(epochs)] * 2) for row in rows]
    plots_reproduce.losses(histories, path)
    assert size_of(path) == (1274, 507)
    plots_reproduce.losses(histories[:1], path)
    assert size_of(path) == (637, 507)


def test_the_same_picture_has_the_same_bytes(tmp_path):
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    draw_curves(history(5), first)
    draw_curves(history(5), second)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "b.png"]
