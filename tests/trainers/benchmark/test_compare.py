import re

import pytest

from tests.trainers.benchmark.conftest import measurement, results
from trainers.benchmark.compare import compare, comparison_text

STEADY = (1.0, 1.01, 0.99, 1.0, 1.0)
NOISY = (0.6, 0.8, 1.0, 1.3, 1.9)


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        (STEADY, 1.2, "slower"),
        (STEADY, 1 / 1.2, "faster"),
        # Outside of the spread, but not by much.
        (STEADY, 1.05, "same"),
        (STEADY, 1 / 1.05, "same"),
        # By much, but within the spread.
        (NOISY, 1.2, "same"),
        (NOISY, 1 / 1.2, "same"),
        (NOISY, 2.0, "slower"),
        (NOISY, 1 / 2.0, "faster"),
    ],
)
def test_a_change_counts_beyond_the_spread_and_a_tenth(before, now, verdict):
    base = results(measurement(seconds=before))
    later = results(measurement(seconds=tuple(now * s for s in before)))
    (change,) = compare(base, later).changes
    assert change.ratio == pytest.approx(now)
    assert change.verdict == verdict


def test_a_slower_machine_is_no_slower_software():
    base = results(measurement(seconds=STEADY, product_seconds=STEADY))
    twice = tuple(2 * s for s in STEADY)
    later = results(measurement(seconds=twice, product_seconds=twice))
    (change,) = compare(base, later).changes
    assert change.verdict == "same"
    assert change.ratio == pytest.approx(1)


def test_what_only_one_run_measured_is_named():
    base = results(measurement("kept"), measurement("gone", seconds=(9.0,)))
    later = results(measurement("kept", seconds=(2.0,)), measurement("added"))
    comparison = compare(base, later)
    assert [c.key.name for c in comparison.changes] == ["kept"]
    text = comparison_text(base, later, comparison)
    assert re.search(r"slower +variants: kept, train, 8 +2\.00", text)
    assert "0 of 1 the same" in text
    assert "Not measured now: variants: gone, train, 8." in text
    assert "Not in the stored run: variants: added, train, 8." in text


def test_a_busy_round_is_no_slower_software():
    """The last three rounds take four times as long, everything in them."""
    base = results(measurement(seconds=STEADY, product_seconds=STEADY))
    busy = tuple(s * f for s, f in zip(STEADY, (1, 1, 4, 4, 4), strict=True))
    later = results(measurement(seconds=busy, product_seconds=busy))
    (change,) = compare(base, later).changes
    assert change.ratio == pytest.approx(1)


def test_few_of_many_are_named():
    base = results(*(measurement(f"net{n}") for n in range(9)))
    later = results(measurement("net0"))
    text = comparison_text(base, later, compare(base, later))
    assert "net5, train, 8; 3 more." in text
    assert "net6" not in text


def test_runs_with_nothing_in_common_are_refused():
    base = results(measurement("one"))
    with pytest.raises(ValueError, match="Received: 1 other measurements"):
        compare(base, results(measurement("other")))
