"""How every program is started: its flags, the recipe in them, refusals.

A program is a module with `define`, which defines its flags, and `main`, which
reads them, refuses what is wrong, starts TensorFlow only then, and hands over
to a function that knows no flags.
"""

import ast
import logging as python_logging
import os
import re
import sys
import types
import typing
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from absl import flags, logging

from encapnet_tf.version import __version__
from trainers import stopping
from trainers.recipe import (
    QUICK,
    QUICK_EPOCHS,
    QUICK_STEPS,
    Recipe,
    make_recipe,
    read_recipe,
)

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
    values = flags.FLAGS
    flags.DEFINE_bool("help", False, "Show this text.", short_name="h")
    flags.DEFINE_bool("version", False, "Show the version.")
    try:
        arguments = values(sys.argv)
    except flags.Error as refusal:
        sys.exit(refuse(refusal))
    if values.help or values.version:
        sys.exit(_say(_help(values) if values.help else __version__))
    _warn_plainly()
    try:
        sys.exit(main(arguments[1:]))
    except (ValueError, OSError) as refusal:
        sys.exit(refuse(refusal))
    except KeyboardInterrupt as stop:
        print("Stopped.", file=sys.stderr)
        sys.exit(stopping.exit_code(stop))


def _warn_plainly() -> None:
    """Warnings are for who runs the program: no lines of its source."""
    logging.use_absl_handler()
    logging.set_verbosity(logging.WARNING)
    plain = python_logging.Formatter("warning: %(message)s")
    logging.get_absl_handler().setFormatter(plain)
    warnings.formatwarning = lambda message, *_, **__: (
        f"warning: {' '.join(str(message).split())}\n"
    )


def _help(values: flags.FlagValues) -> str:
    """Says what the program is, then its flags; not those of libraries."""
    own = [
        module
        for module in values.flags_by_module_dict()
        if not module.startswith("absl.")
    ]
    program = sys.modules["__main__"]
    return f"{program.__doc__}{''.join(map(values.module_help, own))}"


def _say(text: str) -> int:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Whoever reads it, `head` perhaps, has seen enough. Python would
        # write the rest when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


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
