"""The start of a program: flags are read, refusals are one line."""

import logging as python_logging
import os
import sys
import warnings
from collections.abc import Callable

from absl import flags, logging

from encapnet_tf.version import __version__
from trainers import stopping
from trainers.cli import help as texts
from trainers.cli.programs import as_started

# What is said in place of running, by flag.
_ANSWERS = {
    "help": texts.short,
    "helpfull": texts.full,
    "version": lambda *_: __version__,
}


def run(main: Callable[[list[str]], int | None]) -> None:
    """Runs a program: a refusal is one line on stderr and exit code 2.

    Args:
        main: Takes the positional arguments and returns the exit code.
    """
    values = flags.FLAGS
    texts.define(values)
    try:
        arguments = values(sys.argv)
    except flags.Error as refusal:
        sys.exit(refuse(refusal))
    program = sys.modules[main.__module__]
    for name, show in _ANSWERS.items():
        if values[name].value:
            sys.exit(say(show(program, values)))
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


def say(text: str) -> int:
    """Prints a text that is longer than a screen; returns the exit code."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Whoever reads it, `head` perhaps, has seen enough. Python would
        # write the rest when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def refuse(reason: Exception) -> int:
    """Says why, in one line, and returns the exit code."""
    text = as_started(" ".join(str(reason).split()))
    print(f"error: {text}", file=sys.stderr)
    return 2


def take_no_arguments(arguments: list[str]) -> None:
    """Refuses positional arguments: most likely a flag without dashes."""
    if arguments:
        raise ValueError(
            "This program takes flags only. "
            f"Received: {' '.join(arguments)}. Flags start with --."
        )
