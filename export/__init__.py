"""From a trained model to one that others can use."""

import trainers  # noqa: F401, starts TensorFlow quietly
from export.strip import strip

__all__ = ["strip"]
