"""Panels of measurements that were made up."""

import numpy as np
import pytest

from tests.trainers.benchmark.conftest import measurement, results
from tests.trainers.conftest import legend, lines, texts, tick_labels
from trainers.benchmark import plots
from trainers.benchmark.results import WITH_UNITS, WITHOUT_UNITS

# Quartiles 1, 2 and 4 seconds, beside a product of 0.5 s in every round.
ROUNDS = (2.0, 1.0, 4.0, 2.0, 1.0, 4.0, 2.0, 1.0, 4.0)
COUNT = 1024**3  # as many multiply-adds as the product has


@pytest.fixture
def draw(drawn, tmp_path):
    def figure(*measurements):
        plots.draw(results(*measurements), tmp_path / "benchmark.png")
        return drawn.pop()

    return figure


def network(name, action, **fields):
    return measurement(name, action, 8, ROUNDS, images=8, **fields)


def bars(axis):
    """Lengths by the label of their colour."""
    return {
        found.get_label(): [bar.get_width() for bar in found.patches]
        for found in axis.containers
        if hasattr(found, "patches")
    }


def test_networks_have_their_throughput_use_and_memory(draw):
    training = {"memory_bytes": 3 * 2**20, "counted_bytes": 2**20}
    figure = draw(
        network("one", "train", multiply_adds=COUNT, **training),
        network("one", "inference", multiply_adds=COUNT // 4),
        network("two", "train", multiply_adds=COUNT // 2, **training),
    )
    rate, share, memory, empty = figure.axes
    assert [a.get_title("left") for a in (rate, share, memory)] == [
        "Networks: images per second, batch 8",
        "Networks: use of the machine, %",
        "Memory of training, MiB",
    ]
    assert not empty.axison
    # Eight images in two seconds.
    assert bars(rate) == {"train": [4, 4], "inference": [4]}
    assert bars(share) == {"train": [25, 12.5], "inference": [6.25]}
    assert bars(memory) == {
        "measured": [3, 3],
        "counted by trainers.summary": [1, 1],
    }
    assert legend(rate) == ["train", "inference"]
    assert tick_labels(rate.yaxis) == ["one", "two"]
    assert texts(rate) == ["4", "4", "4"]
    assert texts(share) == ["25", "12.5", "6.25"]
    # From the lower to the upper quartile: 8 / 4 s to 8 / 1 s.
    spread = rate.collections[0].get_segments()[0]
    np.testing.assert_allclose(spread[:, 0], [2, 8])
    assert "a machine; TensorFlow 2" in figure.get_suptitle()


def test_units_have_the_ratio_of_every_round(draw):
    def step(action, *seconds):
        return measurement("net", action, 8, seconds, part="agreement")

    figure = draw(
        step(WITH_UNITS, 1.5, 2.4, 6.0), step(WITHOUT_UNITS, 1.0, 2.0, 4.0)
    )
    (axis,) = figure.axes
    median, rounds, none = axis.lines
    assert set(median.get_ydata()) == {1.5}
    np.testing.assert_allclose(rounds.get_data(), [[1, 2, 3], [1.5, 1.2, 1.5]])
    assert set(none.get_ydata()) == {1}
    assert legend(axis) == ["net: 1.50 (1.35 to 1.50)"]
    (band,) = axis.patches
    assert (band.get_y(), band.get_height()) == pytest.approx((1.35, 0.15))


def test_convolutions_and_the_pipeline_have_bars(draw):
    figure = draw(
        network("3×3", "forward", part="convolutions", multiply_adds=COUNT),
        network("none", "read", part="pipeline"),
        network("strong", "read", part="pipeline"),
    )
    convolutions, pipeline = figure.axes
    assert bars(convolutions) == {"forward": [25]}
    assert bars(pipeline) == {"read": [4, 4]}
    assert tick_labels(pipeline.yaxis) == ["none", "strong"]
    assert legend(pipeline) == []


def test_the_solver_is_drawn_over_its_batches(draw):
    figure = draw(*(
        measurement("log", action, size, (factor * size / 1000,), part="solver")
        for action, factor in (("value", 1), ("value and gradient", 3))
        for size in (8, 32)
    ))  # fmt: skip
    (axis,) = figure.axes
    found = lines(axis)
    assert list(found) == legend(axis) == [
        "log: value", "log: value and gradient",
    ]  # fmt: skip
    np.testing.assert_allclose(found["log: value"], [[8, 32], [8, 32]])
    gradient = found["log: value and gradient"]
    np.testing.assert_allclose(gradient, [[8, 32], [24, 96]])
    assert [line.is_dashed() for line in axis.lines] == [True, False]
    assert tick_labels(axis.xaxis) == ["8", "32"]


def test_growth_is_drawn_from_the_smallest_on(draw):
    figure = draw(*(
        measurement("batch", "train", size, (0.1 * size**2,), part="growth")
        for size in (2, 4, 8)
    ))  # fmt: skip
    (axis,) = figure.axes
    grown = lines(axis)["batch: exponent 2.00 ± 0.00"]
    np.testing.assert_allclose(grown, [[1, 2, 4], [1, 4, 16]])
    np.testing.assert_allclose(lines(axis)["in proportion"], [[1, 4]] * 2)
    assert tick_labels(axis.xaxis) == ["1", "2", "4"]
    assert axis.get_yscale() == "log"
