"""The flags that are the fields of a recipe."""

import ast
import re
import types
import typing
from dataclasses import fields
from typing import Any

from absl import flags

from trainers.recipe import (
    QUICK,
    QUICK_EPOCHS,
    QUICK_STEPS,
    Recipe,
    make_recipe,
)
from trainers.stored_recipe import read_recipe

_DEFINE = {
    str: flags.DEFINE_string,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_bool,
}


def epochs(count: int) -> str:
    """Writes a number of epochs.

    Example:
        >>> epochs(1), epochs(4)
        ('1 epoch', '4 epochs')
    """
    return f"{count} epoch{'' if count == 1 else 's'}"


def parse_overrides(texts: list[str]) -> dict[str, Any]:
    """Reads `--override`: names and Python values; other words are text.

    Example:
        >>> parse_overrides(["strides=(1,2),agreement=none"])
        {'strides': (1, 2), 'agreement': 'none'}
    """
    overrides = {}
    for item in (i for t in texts for i in re.split(r",(?=\w+=)", t)):
        name, equals, value = item.partition("=")
        if not (equals and name and value):
            raise ValueError(
                f"`--override` takes NAME=VALUE. Received: --override={item}."
            )
        try:
            overrides[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            overrides[name] = value
    return overrides


def define_recipe(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines a flag for every field, and `--config` to start from a file."""
    flags.DEFINE_string(
        "config",
        None,
        "Start from this config.json or best.json.",
        flag_values=values,
    )
    types_of = typing.get_type_hints(Recipe)
    for recipe_field in fields(Recipe):
        help_text = recipe_field.metadata["help"]
        if recipe_field.name == "override":
            flags.DEFINE_multi_string(
                "override", None, help_text, flag_values=values
            )
            continue
        help_text += _default_text(recipe_field)
        kind = _plain_type(types_of[recipe_field.name])
        _DEFINE[kind](recipe_field.name, None, help_text, flag_values=values)


def recipe_from_flags(values: flags.FlagValues) -> Recipe:
    """Returns the recipe: flags first, then `--config`, then defaults."""
    return make_recipe(given_fields(values))


def given_fields(values: flags.FlagValues) -> dict[str, Any]:
    """Returns the fields that flags or `--config` give."""
    given: dict[str, Any] = read_recipe(values.config) if values.config else {}
    for recipe_field in fields(Recipe):
        value = values[recipe_field.name].value
        if value is None:
            continue
        if recipe_field.name == "override":
            value = dict(given.get("override") or {}) | parse_overrides(value)
        given[recipe_field.name] = value
    return given


def _default_text(recipe_field):
    name, default = recipe_field.name, recipe_field.default
    if name == "epochs":
        least, most = QUICK_EPOCHS
        return (
            f" Default: {least} to {most} for small variants, as many as make "
            f"{QUICK_STEPS:,} steps; else {default}."
        )
    if name in QUICK:
        return f" Default: {QUICK[name]} for small variants, else {default}."
    return "" if default is None else f" Default: {default}."


def _plain_type(annotation):
    if isinstance(annotation, types.UnionType):
        return next(t for t in annotation.__args__ if t is not type(None))
    return annotation
