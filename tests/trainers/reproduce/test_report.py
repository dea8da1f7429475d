"""What is said of results that were made up."""

import json

import pytest
from scipy import stats

from tests.trainers.reproduce.conftest import PAPER, FakeChild
from trainers.files import write_json
from trainers.reproduce import report as reproduce_report
from trainers.reproduce import running
from trainers.reproduce.order import compare
from trainers.study.outcome import noise

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture
def reported(make):
    """Two rows or more of table 3, their errors made up, and the report."""

    def run(errors, *arguments):
        rows = dict.fromkeys(
            n[0] if isinstance(n, tuple) else n for n in errors
        )
        reproduction = make(
            "--experiment=capconv_design", "--epochs=1",
            f"--rows={','.join(rows)}", *arguments,
        )  # fmt: skip
        running.run(reproduction, FakeChild(errors))
        return reproduction, reproduction.report.read_text()

    return run


def test_times_are_compared_per_image_relative_to_one_row(make):
    reproduction = make(
        "--experiment=table1", "--epochs=1", "--seeds=1", "--rows=a,c",
        "--set=a.batch_size=8",
    )  # fmt: skip
    running.run(reproduction, FakeChild(PAPER))
    report = reproduction.report.read_text()
    # Ours: 0.1 s for 8 and for 128; the paper's: 0.444 s and 0.026 s.
    relative = (0.444 / 8) / (0.026 / 128)
    assert f"| a | 12.50 | 16.00 | {relative:.2f} | 700 (8)" in report
    assert "Row a alone: batch_size 8." in report


def test_steps_slower_than_planned_are_pointed_out(make):
    reproduction = make("--experiment=table1", "--minutes=1", "--rows=c,e")
    running.run(reproduction, FakeChild(PAPER))
    assert "slower or faster" not in reproduction.report.read_text()
    for seed in reproduction.all_seeds:
        folder = reproduction.folder(reproduction.rows[0], seed)
        result = json.loads((folder.result).read_text())
        result |= {"seconds_per_step": 0.2, "load_per_core": 3.0}
        write_json(folder.result, result)
    reproduce_report.write(reproduction)
    report = reproduction.report.read_text()
    assert "Minutes that they took: c 2.0." in report
    assert "3.0 processes wanted each core" in report


def test_differences_within_the_noise_are_called_so(reported):
    errors = {"1": 0.300, "2": 0.301, "3": 0.302, "4": 0.299}
    _, report = reported(errors, "--seeds=1")
    assert "All 6 differences between rows are within the noise" in report
    assert "say nothing about the order" in report
    assert "Only one seed" in report
    assert "Kendall" not in report


def test_the_order_is_compared_pair_by_pair(reported):
    """Row 2 comes out worse than row 1; rows 3 and 4 cannot be told apart."""
    errors = {"1": 0.30, "2": 0.35, "3": 0.20, "4": 0.201}
    reproduction, report = reported(errors, "--seeds=2")
    found = compare(reproduction.outcomes(), "cifar10")
    paper = [9.83, 8.05, 9.11, 7.41]
    tau, p_value = stats.kendalltau(list(errors.values()), paper)
    assert (found.tau, found.p_value) == (tau, p_value)
    names = {
        kind: {(a.name, b.name) for a, b in getattr(found, kind)}
        for kind in ("same", "reversed", "close")
    }
    assert names == {
        "same": {("3", "1"), ("4", "1"), ("4", "2")},
        "reversed": {("1", "2"), ("3", "2")},
        "close": {("3", "4")},
    }
    assert "5 of 6, 3 in the paper's order, 2 the other way round" in report
    assert "(3 before 2, 1 before 2)" in report
    assert "Only one seed" not in report


def test_the_spread_over_seeds_counts_as_noise(reported):
    errors = {("1", 0): 0.30, ("1", 1): 0.20, ("2", 0): 0.28, ("2", 1): 0.24}
    reproduction, report = reported(errors, "--seeds=2")
    one, other = reproduction.outcomes()
    # Standard deviations 0.0707 and 0.0283, over two seeds each.
    assert noise(one, other) == pytest.approx(2 * (0.05**2 + 0.02**2) ** 0.5)
    assert "25.00 ± 7.07" in report


def test_data_without_a_number_are_set_beside_the_paper_s_own(reported):
    reproduction, report = reported(
        {"1": 0.3, "2": 0.1}, "--seeds=1", "--dataset=svhn"
    )
    assert reproduction.paper_data == "cifar10"
    assert "The paper has no numbers for these data; its order on CIFAR" in (
        report
    )


def test_rows_without_a_paper_are_compared_among_themselves(make):
    reproduction = make("--experiment=equal_time", "--minutes=1", "--seeds=1")
    errors = {"encapnet": 0.10, "cnn": 0.101, "resnet": 0.3}
    running.run(reproduction, FakeChild(errors))
    report = reproduction.report.read_text()
    assert (
        "Row encapnet has the least error, 10.00%; within the noise of it: cnn"
        in report
    )


def test_each_number_of_images_is_judged_by_itself(make):
    reproduction = make(
        "--experiment=few_labels", "--epochs=4", "--seeds=2",
        "--rows=encapnet_500,cnn_500,cnn_1000,resnet_1000",
    )  # fmt: skip
    errors = {"encapnet_500": 0.2, "cnn_500": 0.3, "cnn_1000": 0.15}
    running.run(reproduction, FakeChild(errors | {"resnet_1000": 0.151}))
    assert reproduction.figure.exists()
    words = reproduction.report.read_text().partition("## The order\n\n")[2]
    assert words.startswith(
        "500 training images: row encapnet_500, 20.00%, further from all "
        "others than the noise. 1,000 training images: row cnn_1000, 15.00%; "
        "within the noise of it: resnet_1000."
    )


def test_the_validation_error_stands_beside_the_test_error(make):
    reproduction = make(
        "--experiment=affine", "--epochs=4", "--seeds=1", "--rows=cnn"
    )
    running.run(reproduction, FakeChild({"cnn": 0.2}))
    report = reproduction.report.read_text()
    # The paper has no such numbers, so its column is left out.
    assert "| error, % | digits only moved, % | training error" in report
    assert "| 20.00 | 12.50 | " in report


def test_entries_in_use_stand_beside_the_error_with_their_spread(make):
    reproduction = make("--experiment=decoder", "--epochs=4", "--seeds=2")
    extra = {("conv", 0): 3.0, ("conv", 1): 5.0, ("none", 0): 1.25}
    running.run(reproduction, FakeChild(more={"entries_in_use": extra}))
    report = reproduction.report.read_text()
    assert "| error, % | entries in use | training error" in report
    assert "| 50.00 | 1.25 | " in report
    assert "| 50.00 | 4.00 ± 1.41 | " in report
