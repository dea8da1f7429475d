"""What a search varies: the axes, their ranges, and how values reach a recipe.

Ranges hold the paper's own value of each hyper-parameter.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from encapnet_tf.checks import check_choice
from encapnet_tf.choices import COEFFICIENTS, COSTS
from trainers.recipe import Recipe

# More make no difference, and files stay readable.
_DIGITS = 4


@dataclass(frozen=True)
class Axis:
    """One hyper-parameter: a range, or choices.

    Attributes:
        name: As in `--search`.
        low: Least value.
        high: Greatest value.
        log: Whether equal ratios count alike, rather than differences.
        integer: Whether only whole numbers do.
        choices: The values, for an axis that is no range.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = True
    integer: bool = False
    choices: tuple[str, ...] = ()

    def values(self, count: int) -> list[Any]:
        """Returns the choices, or `count` values from end to end."""
        if self.choices:
            return list(self.choices)
        shares = [i / (count - 1) if count > 1 else 0.5 for i in range(count)]
        if self.log:
            ratio = self.high / self.low
            values = [self.low * ratio**share for share in shares]
        else:
            values = [
                self.low + share * (self.high - self.low) for share in shares
            ]
        return list(dict.fromkeys(self.rounded(value) for value in values))

    def rounded(self, value: Any) -> Any:
        """Returns the value as a recipe and a table hold it."""
        if self.choices:
            return value
        if self.integer:
            return round(value)
        return float(f"{value:.{_DIGITS}g}")

    @property
    def width(self) -> float:
        """How wide the range is: in decades, or in its own steps."""
        if self.log:
            return math.log10(self.high / self.low)
        return self.high - self.low

    def __str__(self) -> str:
        """Says what is searched, as for a person."""
        if self.choices:
            return f"{self.name} {', '.join(self.choices)}"
        return f"{self.name} {self.low:g} … {self.high:g}"


AXES = {
    axis.name: axis
    for axis in (
        Axis("agreement_weight", 0.1, 100.0),  # λ: 10, section 3.2
        Axis("agreement_epsilon", 0.01, 1.0),  # ε: 0.1, appendix B
        Axis("learning_rate", 1e-5, 1e-2),  # 1e-4, section 5
        Axis("iterations", 1, 100, integer=True),  # L: 10, appendix B
        Axis("type2_layers", 0, 4, log=False, integer=True),  # N: 3, sec. 5.1
        Axis("cost", choices=COSTS),
        Axis("coefficients", choices=COEFFICIENTS),
    )
}
# Axes that are options of the agreement units, by the options' own names.
_UNIT_OPTIONS = {
    "agreement_weight": "weight",
    "agreement_epsilon": "epsilon",
    "iterations": "num_iterations",
    "cost": "cost",
}


def parse_axes(texts: Sequence[str]) -> list[Axis]:
    """Reads `--search`: names, each perhaps with a range of its own.

    Example:
        >>> [str(axis) for axis in parse_axes(["cost", "learning_rate:0.1:1"])]
        ['cost cosine, l2, sqeuclidean', 'learning_rate 0.1 … 1']
    """
    axes = []
    for text in texts:
        name, *ends = text.strip().split(":")
        check_choice("search", name, AXES)
        axes.append(_with_range(AXES[name], ends, text) if ends else AXES[name])
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names) or not names:
        raise ValueError(
            "`--search` takes one or more different names. Received: "
            f"--search={','.join(texts)}."
        )
    return axes


def _with_range(axis, ends, text):
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        low = high = math.nan
    lowest = 0 if not axis.log else 1 if axis.integer else math.ulp(0.0)
    if axis.choices or not lowest <= low < high < math.inf:
        raise ValueError(
            "`--search` takes NAME or NAME:LOW:HIGH, a range within what the "
            f"name can be. Received: --search={text}."
        )
    if axis.integer:
        low, high = int(low), int(high)
    return dataclasses.replace(axis, low=low, high=high)


def defaults(axes: Sequence[Axis], recipe: Recipe) -> dict[str, Any]:
    """Returns the values that the recipe itself has.

    Raises:
        ValueError: The recipe's network has no such hyper-parameter.
    """
    network = recipe.network()
    values = {}
    for axis in axes:
        if axis.name in _UNIT_OPTIONS:
            options = _unit_options(axis, recipe, network)
            value = getattr(options, _UNIT_OPTIONS[axis.name])
        elif axis.name == "learning_rate":
            value = recipe.learning_rate
        elif hasattr(network, axis.name):
            # Several modules may differ; a search treats them alike.
            value = getattr(network, axis.name)[-1]
        else:
            raise _not_there(axis, recipe, f"it has no {axis.name}")
        values[axis.name] = value
    return values


def _unit_options(axis, recipe, network):
    placement = getattr(network, "agreement", "none")
    modules = [placement] if isinstance(placement, str) else placement
    if set(modules) == {"none"}:
        raise _not_there(
            axis, recipe, "it has no agreement units (see --agreement)"
        )
    return network.agreement_options


def _not_there(axis, recipe, reason):
    return ValueError(
        f"`--search={axis.name}` needs a network that has it. Received: "
        f"variant={recipe.variant}; {reason}."
    )


def apply(
    recipe: Recipe, axes: Sequence[Axis], values: dict[str, Any]
) -> Recipe:
    """Returns the recipe with the values of a trial."""
    changes: dict[str, Any] = {}
    override = dict(recipe.override)
    options = dict(override.get("agreement_options", {}))
    for axis in axes:
        value = values[axis.name]
        if axis.name in ("iterations", "cost"):
            options[_UNIT_OPTIONS[axis.name]] = value
        elif axis.name == "type2_layers":
            modules = len(recipe.network().type2_layers)
            override["type2_layers"] = (value,) * modules
        elif axis.name == "coefficients":
            override["coefficients"] = value
        else:
            changes[axis.name] = value
    if options:
        override["agreement_options"] = options
    return dataclasses.replace(recipe, override=override, **changes)


def grid(axes: Sequence[Axis], max_trials: int) -> list[dict[str, Any]]:
    """Returns the finest even grid of at most `max_trials` points.

    Example:
        >>> points = grid(parse_axes(["agreement_weight"]), 4)
        >>> [point["agreement_weight"] for point in points]
        [0.1, 1.0, 10.0, 100.0]
    """
    counts = {axis.name: len(axis.choices) or 1 for axis in axes}
    if math.prod(counts.values()) > max_trials:
        raise ValueError(
            f"A grid over {', '.join(counts)} needs at least "
            f"{math.prod(counts.values())} trials. Received: "
            f"--max_trials={max_trials}."
        )
    while finer := _refined(axes, counts, max_trials):
        counts = finer
    columns = [axis.values(counts[axis.name]) for axis in axes]
    return [
        dict(zip(counts, point, strict=True))
        for point in itertools.product(*columns)
    ]


def _refined(axes, counts, max_trials):
    """One more value on the axis whose values lie farthest apart, if any."""
    ranges = [axis for axis in axes if not axis.choices]
    ranges.sort(key=lambda axis: -axis.width / counts[axis.name])
    for axis in ranges:
        finer = counts | {axis.name: counts[axis.name] + 1}
        whole = axis.integer and finer[axis.name] > axis.high - axis.low + 1
        if math.prod(finer.values()) <= max_trials and not whole:
            return finer
    return None
