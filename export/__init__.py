"""From a trained model to one that others can use."""

from typing import TYPE_CHECKING

# Before the library: its names load when they are first used.
import trainers  # noqa: F401

if TYPE_CHECKING:
    from encapnet_tf import strip

__all__ = ["strip"]


def __getattr__(name):
    if name != "strip":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trainers.tensorflow_start import start_tensorflow

    start_tensorflow()
    from encapnet_tf import strip

    return strip
