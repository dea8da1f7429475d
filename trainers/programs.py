"""How every program starts and how it says no."""

import sys
from collections.abc import Callable

from absl import app, logging


def run(main: Callable[[list[str]], int | None]) -> None:
    """Runs a program: a refusal is one line on stderr and exit code 2.

    Args:
        main: Takes the positional arguments and returns the exit code.
    """

    def guarded(arguments):
        logging.set_verbosity(logging.WARNING)
        try:
            return main(arguments[1:])
        except (ValueError, OSError) as refusal:
            message = " ".join(str(refusal).split())
            print(f"error: {message}", file=sys.stderr)
            return 2

    app.run(guarded)


def take_no_arguments(arguments: list[str]) -> None:
    """Refuses positional arguments: most likely a flag without dashes."""
    if arguments:
        raise ValueError(
            "This program takes flags only. "
            f"Received: {' '.join(arguments)}. Flags start with --."
        )
