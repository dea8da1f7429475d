"""Ctrl-C and SIGTERM: what is under way is saved, and the exit code says so."""

import contextlib
import signal
from collections.abc import Callable, Iterator


class Stop(KeyboardInterrupt):
    """A signal asked the program to end.

    Args:
        number: Which.
    """

    def __init__(self, number: int = signal.SIGINT):
        self.number = number
        super().__init__()


def exit_code(stop: KeyboardInterrupt) -> int:
    """Returns what a shell takes for a program that a signal ended.

    Example:
        >>> exit_code(KeyboardInterrupt()), exit_code(Stop(signal.SIGTERM))
        (130, 143)
    """
    return 128 + getattr(stop, "number", signal.SIGINT)


STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)


def raise_on_sigterm() -> None:
    """Treats SIGTERM as Ctrl-C, once: saving comes next."""

    def stop(number, _):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Stop(number)

    signal.signal(signal.SIGTERM, stop)


@contextlib.contextmanager
def asked_first(ask: Callable[[int], None]) -> Iterator[None]:
    """Inside, a signal asks; a second Ctrl-C raises `Stop`.

    Args:
        ask: Gets the signal's number, and lets the work end in good order.
    """
    asked = []

    def stop(number, _):
        if asked and number == signal.SIGINT:
            raise Stop(number)
        asked.append(number)
        ask(number)

    try:
        old = {
            number: signal.signal(number, stop)
            for number in (signal.SIGTERM, signal.SIGINT)
        }
    except ValueError:  # not the main thread, as under a tuner
        old = {}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
