import pytest
from matplotlib import pyplot as plt

from tests.trainers.conftest import size_of
from tests.trainers.training.test_curves import history
from trainers.recipe import Recipe
from trainers.reproduce import plots as plots_reproduce
from trainers.reproduce.experiments import EXPERIMENTS
from trainers.study.budget import Plan
from trainers.study.outcomes import Outcome


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
