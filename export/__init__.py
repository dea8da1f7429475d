"""From a trained model to one that others can use."""

from export.strip import strip

__all__ = ["strip"]
