"""A search's values: those a recipe has, how others reach it, and grids."""

import ast
import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

from encapnet_tf.config import AgreementConfig
from trainers.recipe import Recipe, has_units
from trainers.tune.axes import Axis

# Fields of the recipe that stand for options of the agreement units.
_UNIT_OPTIONS = {"agreement_weight": "weight", "agreement_epsilon": "epsilon"}


def defaults(axes: Sequence[Axis], recipe: Recipe) -> dict[str, Any]:
    """Returns the values that the recipe itself has, as far as axes hold them.

    Raises:
        ValueError: The recipe's network has no such hyper-parameter.
    """
    return {axis.name: _default(axis, recipe) for axis in axes}


def _default(axis, recipe):
    name = _UNIT_OPTIONS.get(axis.name, axis.name)
    own = getattr(_owner(axis, recipe), name)
    # Several modules may differ; a search treats them alike.
    alike = own[-1] if isinstance(own, tuple) and own else own
    if axis.choices:
        for text in axis.choices:  # refuses what the network cannot have
            apply(recipe, [axis], {axis.name: text})
        texts = {value(text): text for text in axis.choices}
        return texts.get(own, texts.get(alike, axis.choices[0]))
    return axis.low if alike is None else alike


def _owner(axis, recipe):
    """What has the hyper-parameter: the recipe, its network or its units."""
    network = recipe.network()
    if axis.name not in _UNIT_OPTIONS:
        for owner in (recipe, network):
            if hasattr(owner, axis.name):
                return owner
        if not hasattr(AgreementConfig, axis.name):
            raise _not_there(axis, recipe, f"it has no {axis.name}")
    if not has_units(network):
        raise _not_there(
            axis, recipe, "it has no agreement units (see --agreement)"
        )
    return network.agreement_options


def _not_there(axis, recipe, reason):
    return ValueError(
        f"`--search={axis.name}` needs a network that has it. Received: "
        f"variant={recipe.variant}; {reason}."
    )


def value(text: Any) -> Any:
    """Returns what a choice stands for: a Python value, or its text.

    Example:
        >>> value("8"), value("(1,2)"), value("margin")
        (8, (1, 2), 'margin')
    """
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def apply(
    recipe: Recipe, axes: Sequence[Axis], values: dict[str, Any]
) -> Recipe:
    """Returns the recipe with the values of a trial."""
    changes: dict[str, Any] = {}
    override = dict(recipe.override)
    options = dict(override.get("agreement_options", {}))
    network = recipe.network()
    for axis in axes:
        name, chosen = axis.name, values[axis.name]
        chosen = value(chosen) if axis.choices else chosen
        if hasattr(recipe, name):
            changes[name] = chosen
        elif hasattr(network, name):
            own = getattr(network, name)
            spread = isinstance(own, tuple) and not isinstance(chosen, tuple)
            override[name] = (chosen,) * len(own) if spread else chosen
        else:
            options[name] = chosen
    if options:
        override["agreement_options"] = options
    return dataclasses.replace(recipe, override=override, **changes)


def grid(axes: Sequence[Axis], max_trials: int) -> list[dict[str, Any]]:
    """Returns the finest even grid of at most `max_trials` points.

    Example:
        >>> points = grid([Axis("agreement_weight", 0.1, 100.0)], 4)
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
