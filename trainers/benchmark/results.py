"""What a benchmark measured: raw times, and the figures made of them."""

import dataclasses
import json
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trainers.files import written_atomically

# The side of the square matrices whose product is timed in turn with
# everything else.
PRODUCT_SIDE = 1024
# The two training steps whose ratio is the cost of agreement units.
WITH_UNITS, WITHOUT_UNITS = "train with units", "train without"


class Quartiles(NamedTuple):
    """The median of many times, and the middle half around it."""

    low: float
    median: float
    high: float


class Key(NamedTuple):
    """What names a measurement, in this run and in others."""

    part: str
    name: str
    action: str
    size: int

    def __str__(self):
        """Writes it as the tables name it."""
        return f"{self.part}: {self.name}, {self.action}, {self.size}"


def quartiles(values: Sequence[float]) -> Quartiles:
    """Returns the quartiles of some numbers."""
    return Quartiles(*map(float, np.quantile(values, (0.25, 0.5, 0.75))))


@dataclass(frozen=True)
class Measurement:
    """One call that was timed, in turn with others and a matrix product.

    Attributes:
        part: Of the benchmark.
        name: What was timed: a network, a convolution, an augmentation, …
        action: What it did: train, inference, forward, …
        size: Images in a batch, or whatever grows.
        seconds: Of the call, round by round.
        product_seconds: Of a matrix product in the same rounds.
        images: Images that one call takes, where it takes any.
        multiply_adds: Of one call, where they are counted.
        memory_bytes: What it took at most, where that was measured.
        counted_bytes: What `trainers.summary` counts for it.
    """

    part: str
    name: str
    action: str
    size: int
    seconds: tuple[float, ...]
    product_seconds: tuple[float, ...]
    images: int | None = None
    multiply_adds: int | None = None
    memory_bytes: int | None = None
    counted_bytes: int | None = None

    @property
    def key(self) -> Key:
        """What to look for in another run."""
        return Key(self.part, self.name, self.action, self.size)

    @property
    def time(self) -> Quartiles:
        """Seconds of a call."""
        return quartiles(self.seconds)

    @property
    def cost(self) -> Quartiles:
        """The time in units of a matrix product's, round by round.

        It changes little when the whole machine is slower or busy.
        """
        return quartiles(np.divide(self.seconds, self.product_seconds))

    @property
    def images_per_second(self) -> Quartiles | None:
        """Throughput, where images are taken."""
        return self._per_second(self.images)

    @property
    def gflops(self) -> Quartiles | None:
        """Multiply-adds, two operations each, in 10⁹ per second."""
        count = self.multiply_adds
        return self._per_second(None if count is None else 2e-9 * count)

    @property
    def share_in_turn(self) -> Quartiles | None:
        """The rate over that of a matrix product, round by round."""
        if self.multiply_adds is None:
            return None
        count = self.multiply_adds / PRODUCT_SIDE**3
        return Quartiles(*(count / cost for cost in self.cost[::-1]))

    def _per_second(self, count):
        if count is None:
            return None
        return Quartiles(*(count / seconds for seconds in self.time[::-1]))


@dataclass(frozen=True)
class Results:
    """A whole benchmark.

    Attributes:
        machine: What computed.
        versions: Of the software.
        settings: The flags.
        load_per_core: How busy the machine was before.
        products: Seconds of square matrix products, by their side.
        measurements: Everything else.
    """

    machine: str
    versions: dict[str, str]
    settings: dict[str, Any]
    load_per_core: float
    products: dict[int, tuple[float, ...]]
    measurements: tuple[Measurement, ...] = ()

    @property
    def peak_gflops(self) -> float:
        """The best rate of any float32 matrix product of the run."""
        best = [
            product_gflops(side, min(seconds))
            for side, seconds in self.products.items()
        ]
        best += [
            product_gflops(PRODUCT_SIDE, min(m.product_seconds))
            for m in self.measurements
        ]
        return max(best)

    def of_part(self, part: str) -> list[Measurement]:
        """Returns the measurements of one part."""
        return [m for m in self.measurements if m.part == part]

    def share_of_peak(self, measurement: Measurement) -> float | None:
        """Median rate of a measurement over the best of a matrix product."""
        rate = measurement.gflops
        return rate and rate.median / self.peak_gflops

    @property
    def agreement_ratios(self) -> dict[str, list[float]]:
        """Per network and round, a step with units over one without."""
        steps: dict[str, dict[str, tuple[float, ...]]] = {}
        for m in self.of_part("agreement"):
            steps.setdefault(m.name, {})[m.action] = m.seconds
        return {
            name: [
                whole / without
                for whole, without in zip(
                    found[WITH_UNITS], found[WITHOUT_UNITS], strict=True
                )
            ]
            for name, found in steps.items()
        }


def product_gflops(side: int, seconds: float) -> float:
    """Returns the rate of a product of square matrices."""
    return 2e-9 * side**3 / seconds


def write_results(results: Results, path: pathlib.Path, **derived: Any) -> None:
    """Writes all numbers, and what was made of them, as JSON."""
    content = dataclasses.asdict(results)
    content |= {
        "peak_gflops": results.peak_gflops,
        "agreement_ratios": results.agreement_ratios,
        **derived,
    }
    with written_atomically(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")


def read_results(path: str | pathlib.Path) -> Results:
    """Reads what `write_results` wrote.

    Raises:
        ValueError: It is something else, or damaged.
    """
    try:
        content = json.loads(pathlib.Path(path).read_text())
        return Results(
            machine=content["machine"],
            versions=dict(content["versions"]),
            settings=dict(content["settings"]),
            load_per_core=float(content["load_per_core"]),
            products={
                int(side): _seconds(times)
                for side, times in content["products"].items()
            },
            measurements=tuple(map(as_measurement, content["measurements"])),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as bad:
        raise ValueError(
            "A stored benchmark is the benchmark.json of an earlier run. "
            f"Received: {path} ({type(bad).__name__}: {bad})."
        ) from None


def as_measurement(fields: dict[str, Any]) -> Measurement:
    """Makes a measurement of what JSON holds of it."""
    times = {
        name: _seconds(fields[name]) for name in ("seconds", "product_seconds")
    }
    if len(times["seconds"]) != len(times["product_seconds"]):
        raise ValueError("every round must have a matrix product")
    return Measurement(**(fields | times))


def _seconds(times):
    times = tuple(map(float, times))
    if not times or min(times) <= 0:
        raise ValueError("times must be positive numbers")
    return times
