"""From a trained model to one that others can use."""

import trainers  # noqa: F401, starts TensorFlow quietly
from encapnet_tf import strip_agreement as strip

__all__ = ["strip"]
