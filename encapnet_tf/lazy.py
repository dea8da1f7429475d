"""Names that are loaded when they are first asked for.

Keras and TensorFlow take seconds to start. A program that only says what its
flags are sets ENCAPNET_TF_LAZY first; then importing a package of this library
starts neither of them.
"""

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

IS_LAZY = bool(os.environ.get("ENCAPNET_TF_LAZY"))


def on_demand(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """Returns a package's `__getattr__` (PEP 562).

    Args:
        package: The package's `__name__`.
        homes: The sub-module of each name, "" where the name is one itself.
    """

    def load(name):
        if name not in homes:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}"
            )
        home = importlib.import_module(f"{package}.{homes[name] or name}")
        value = getattr(home, name) if homes[name] else home
        setattr(sys.modules[package], name, value)
        return value

    return load
