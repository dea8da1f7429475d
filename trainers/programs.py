"""How every program starts and how it says no."""

import ast
import re
import signal
import sys
from collections.abc import Callable
from typing import Any

from absl import app, flags, logging


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
