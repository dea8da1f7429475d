"""Every part, measured once on the least network."""

import csv
import json
import re

import pytest

from tests.trainers.benchmark.conftest import (
    SMALL,
)
from trainers.benchmark import plots
from trainers.benchmark.compare import compare
from trainers.benchmark.results import (
    read_results,
)
from trainers.cost.step_cost import step_cost
from trainers.cost.step_trace import outline_model


def test_every_part_is_measured_with_its_spread(measured):
    found = read_results(measured[0] / "benchmark.json").measurements
    conv = "7×7/2 4→8 on 16×16"
    assert [tuple(m.key) for m in found] == [
        ("variants", "encapnet_least", "train", 4),
        ("variants", "encapnet_least", "inference", 4),
        ("agreement", "encapnet_least", "train with units", 4),
        ("agreement", "encapnet_least", "train without", 4),
        ("convolutions", "encapnet_least", "train", 2),
        ("convolutions", conv, "forward", 2),
        ("convolutions", conv, "backward", 2),
        ("pipeline", "none", "read", 4),
        ("pipeline", "mild", "read", 4),
        ("pipeline", "mirrored", "read", 4),
        ("pipeline", "strong", "read", 4),
        *(
            ("solver", domain, action, 8)
            for domain in ("scaling", "log")
            for action in ("value", "value and gradient")
        ),
        ("growth", "batch", "train", 1),
        ("growth", "batch", "train", 2),
        ("growth", "batch", "train", 4),
        *(
            ("growth", "iterations", "value and gradient", size)
            for size in (1, 2, 3)
        ),
    ]
    for m in found:
        assert len(m.seconds) >= 5
        assert len(m.product_seconds) == len(m.seconds)
        assert m.time.low <= m.time.median <= m.time.high


def test_the_file_says_what_computed_and_keeps_every_number(measured):
    content = json.loads((measured[0] / "benchmark.json").read_text())
    assert set(content["versions"]) >= {"tensorflow", "keras", "encapnet_tf"}
    assert content["machine"]
    assert content["settings"]["batch"] == 4
    assert set(content["growth"]) == {"batch", "iterations"}
    stored = read_results(measured[0] / "benchmark.json")
    assert content["agreement_ratios"] == stored.agreement_ratios != {}
    assert content["peak_gflops"] == stored.peak_gflops
    assert stored.products.keys() == {64, 128}
    train, inference, *_ = stored.measurements
    assert train.memory_bytes > 0
    assert train.counted_bytes > 0
    assert inference.memory_bytes is None


def test_multiply_adds_are_those_of_the_summary(measured):
    stored = read_results(measured[0] / "benchmark.json")
    train, inference = stored.of_part("variants")
    step, forward, backward = stored.of_part("convolutions")
    cost = step_cost(outline_model("encapnet_tiny", **SMALL), 4)
    assert train.multiply_adds == 4 * cost.step_multiply_adds
    assert inference.multiply_adds == 4 * cost.inference_multiply_adds
    assert step.multiply_adds == train.multiply_adds // 2
    # Batch 2, 8·8 places of 8 channels, 7·7 places of 4 channels each.
    assert forward.multiply_adds == 2 * 64 * 8 * 49 * 4
    assert backward.multiply_adds == 2 * forward.multiply_adds


def test_tables_show_every_part(measured):
    folder, text = measured
    for pattern in (
        r"Matrix product, float32, best of several: [\d.,]+ at 64, ",
        r"\[1/7\] variants, encapnet_least: \d+ s\n",
        r"encapnet_least +train +4 +[\d,]+ +[\d,]+ to [\d,]+ +[\d,]+ +"
        r"[\d.]+ +\d+% +\d+% +[\d.]+ +[\d.]+\n",
        r"encapnet_least +train without +4 +[\d.,]+ +[\d.,]+ to [\d.,]+\n",
        r"ratio, round by round: [\d.]+, quartiles [\d.]+ to [\d.]+\)\n",
        r"7×7/2 4→8 on 16×16 +backward +2 ",
        r"strong +4 +[\d,]+ +[\d,]+ to [\d,]+\n",
        r"log +value and gradient +8 +[\d.]+ +[\d.]+ to [\d.]+\n",
        r"batch: images +-?[\d.]+ +[\d.]+ +1: [\d.,]+ \([\d.,]+ to ",
    ):
        assert re.search(pattern, text), pattern
    for file in ("benchmark.json", "benchmark.csv", "benchmark.png"):
        assert f"{folder / file}" in text


def test_the_csv_file_has_a_row_for_every_measurement(measured):
    with (measured[0] / "benchmark.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = read_results(measured[0] / "benchmark.json").measurements
    assert len(rows) == len(found)
    for row, m in zip(rows, found, strict=True):
        assert float(row["ms"]) == pytest.approx(1000 * m.time.median)
        assert int(row["rounds"]) == len(m.seconds)


def test_the_picture_has_a_panel_for_every_part(measured, drawn, tmp_path):
    picture = (measured[0] / "benchmark.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    stored = read_results(measured[0] / "benchmark.json")
    plots.draw(stored, tmp_path / "again.png")
    titles = [axis.get_title("left") for axis in drawn[0].axes]
    assert [title.partition(":")[0] for title in titles] == [
        "Networks", "Networks", "Memory of training, MiB",
        "Aide convolutions, batch 2", "Agreement units", "Augmentation",
        "Sinkhorn divergence, ms", "Time over size, each from its smallest",
    ]  # fmt: skip


def test_a_run_compared_with_itself_is_the_same(measured):
    stored = read_results(measured[0] / "benchmark.json")
    comparison = compare(stored, stored)
    assert {c.verdict for c in comparison.changes} == {"same"}
    assert len(comparison.changes) == len(stored.measurements)
