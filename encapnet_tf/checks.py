"""Argument checks that say what was expected and what was received."""

import numbers
from collections.abc import Collection
from typing import Any


def check_choice(name: str, value: Any, choices: Collection) -> None:
    """Raises a ValueError unless `value` is one of `choices`."""
    if value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {name}={value!r}."
        )


def check_positive(**values: Any) -> None:
    """Raises a ValueError unless every value is a positive integer."""
    for name, value in values.items():
        is_integer = isinstance(value, numbers.Integral)
        if not is_integer or isinstance(value, bool) or value < 1:
            raise ValueError(
                f"`{name}` must be a positive integer. "
                f"Received: {name}={value!r}."
            )
