"""How every program is started: its flags, the recipe in them, refusals."""

import ast
import re
import signal
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from absl import app, flags, logging

from trainers.recipe import QUICK, Recipe, make_recipe, read_recipe

_DEFINE = {
    str: flags.DEFINE_string,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_bool,
}


def run(main: Callable[[list[str]], int | None]) -> None:
    """Runs a program: a refusal is one line on stderr and exit code 2.

    Args:
        main: Takes the positional arguments and returns the exit code.
    """

    def parse(arguments):
        try:
            return flags.FLAGS(arguments)
        except flags.Error as refusal:
            sys.exit(refuse(refusal))

    def guarded(arguments):
        logging.set_verbosity(logging.WARNING)
        try:
            return main(arguments[1:])
        except (ValueError, OSError) as refusal:
            return refuse(refusal)

    app.run(guarded, flags_parser=parse)


def interrupt_on_sigterm() -> None:
    """Treats SIGTERM as Ctrl-C, once: saving comes next."""

    def interrupt(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def refuse(reason: Exception) -> int:
    """Says why, in one line, and returns the exit code."""
    print(f"error: {' '.join(str(reason).split())}", file=sys.stderr)
    return 2


def take_no_arguments(arguments: list[str]) -> None:
    """Refuses positional arguments: most likely a flag without dashes."""
    if arguments:
        raise ValueError(
            "This program takes flags only. "
            f"Received: {' '.join(arguments)}. Flags start with --."
        )


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
    if name in QUICK:
        return f" Default: {QUICK[name]} for small variants, else {default}."
    return "" if default is None else f" Default: {default}."


def _plain_type(annotation):
    if isinstance(annotation, types.UnionType):
        return next(t for t in annotation.__args__ if t is not type(None))
    return annotation
