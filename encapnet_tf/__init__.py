"""Neural Network Encapsulation (EncapNet, ECCV 2018) in TensorFlow and Keras.

>>> import encapnet_tf
>>> model = encapnet_tf.create_model("encapnet_tiny", num_classes=10)
>>> model(np.zeros((1, 32, 32, 3))).shape
TensorShape([1, 10])
"""

import keras

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        "encapnet_tf needs Keras on TensorFlow. Received: Keras on "
        f"{keras.backend.backend()}. Set KERAS_BACKEND=tensorflow."
    )

from encapnet_tf import layers, losses, ops  # noqa: E402
from encapnet_tf.agreement import (  # noqa: E402
    agreement_units,
    attach_agreement,
    set_agreement_ramp,
)
from encapnet_tf.models import create_model, list_variants  # noqa: E402
from encapnet_tf.version import __version__  # noqa: E402

__all__ = [
    "__version__",
    "agreement_units",
    "attach_agreement",
    "create_model",
    "layers",
    "list_variants",
    "losses",
    "ops",
    "set_agreement_ramp",
]
