import pytest

from tests.trainers.benchmark.conftest import measurement, results
from trainers.benchmark.report import csv_rows, tables
from trainers.benchmark.results import (
    WITH_UNITS,
    WITHOUT_UNITS,
)


def test_figures_of_known_times():
    m = measurement(
        seconds=(4.0, 1.0, 2.0, 3.0, 5.0),
        product_seconds=(0.5, 0.25, 0.5, 0.5, 0.5),
        images=12, multiply_adds=3 * 10**9,
    )  # fmt: skip
    assert m.time == (2.0, 3.0, 4.0)
    assert m.images_per_second == (3.0, 4.0, 6.0)
    assert m.gflops == (1.5, 2.0, 3.0)
    # Round by round: 8, 4, 4, 6, 10.
    assert m.cost == (4.0, 6.0, 8.0)
    # The best product: 2·1000³ operations in 0.1 s, or 2·1024³ in 0.25 s.
    run = results(m)
    assert run.peak_gflops == pytest.approx(20.0)
    assert run.share_of_peak(m) == pytest.approx(0.1)
    assert m.share_in_turn == pytest.approx(
        [3 * 10**9 / 1024**3 / cost for cost in (8, 6, 4)]
    )
    (row,) = csv_rows(run)
    assert row["ms"] == 3000.0
    assert row["share_of_peak"] == pytest.approx(0.1)
    text = tables(run)
    assert "10%" in text
    assert "of peak: over 20 GFLOP/s" in text
    alone = measurement()
    assert alone.gflops is alone.images_per_second is None
    assert alone.share_in_turn is None
    assert run.share_of_peak(alone) is None
    assert run.agreement_ratios == {}


def test_the_cost_of_units_is_a_ratio_within_rounds():
    def step(name, action, *seconds):
        return measurement(
            name=name, action=action, seconds=seconds, part="agreement"
        )

    found = results(
        step("one", WITH_UNITS, 1.2, 24.0, 3.9),
        step("one", WITHOUT_UNITS, 1.0, 20.0, 3.0),
        step("other", WITH_UNITS, 2.0, 2.0, 2.0),
        step("other", WITHOUT_UNITS, 1.0, 1.0, 1.0),
    )
    assert found.agreement_ratios == {
        "one": pytest.approx([1.2, 1.2, 1.3]),
        "other": [2.0, 2.0, 2.0],
    }
    text = tables(found)
    assert "one: ratio, round by round: 1.20, quartiles 1.20 to 1.25)" in text
    assert "other: ratio, round by round: 2.00" in text
