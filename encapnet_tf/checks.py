"""Argument checks that say what was expected and what was received."""

import difflib
import numbers
from collections.abc import Collection
from typing import Any


def check_choice(name: str, value: Any, choices: Collection) -> None:
    """Raises a ValueError unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {name}={value!r}.{did_you_mean(value, choices)}"
        )


def did_you_mean(value: Any, choices: Collection) -> str:
    """Returns a question that names the choice that was most likely meant.

    Example:
        >>> did_you_mean("adm", ("adam", "sgd")), did_you_mean("x", ("adam",))
        (" Did you mean 'adam'?", '')
    """
    names = [choice for choice in choices if isinstance(choice, str)]
    close = difflib.get_close_matches(str(value), names, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def check_positive(**values: Any) -> None:
    """Raises a ValueError unless every value is a positive integer."""
    for name, value in values.items():
        is_integer = isinstance(value, numbers.Integral)
        if not is_integer or isinstance(value, bool) or value < 1:
            raise ValueError(
                f"`{name}` must be a positive integer. "
                f"Received: {name}={value!r}."
            )


def check_above_zero(**values: Any) -> None:
    """Raises a ValueError unless every value is a number > 0 or None."""
    for name, value in values.items():
        is_number = isinstance(value, numbers.Real)
        if value is not None and not (is_number and value > 0):
            raise ValueError(
                f"`{name}` must be a number > 0, or None. "
                f"Received: {name}={value!r}."
            )
