"""From a trained model to one that others can use."""

from trainers.tensorflow_start import start_tensorflow

start_tensorflow()

from encapnet_tf import strip_agreement as strip  # noqa: E402

__all__ = ["strip"]
