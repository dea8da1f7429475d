"""Neural Network Encapsulation (EncapNet, ECCV 2018) in TensorFlow and Keras.

>>> import encapnet_tf
>>> model = encapnet_tf.create_model("encapnet_tiny", num_classes=10)
>>> model(np.zeros((1, 32, 32, 3))).shape
TensorShape([1, 10])

With ENCAPNET_TF_LAZY=1 in the environment, TensorFlow starts when a name that
needs it is first used; until then `encapnet_tf.config` and the like are quick.
"""

from typing import TYPE_CHECKING

from encapnet_tf.lazy import IS_LAZY, on_demand
from encapnet_tf.version import __version__

if TYPE_CHECKING or not IS_LAZY:
    from encapnet_tf import layers, losses, ops
    from encapnet_tf.agreement import (
        agreement_units,
        attach_agreement,
        set_agreement_ramp,
        strip_agreement,
    )
    from encapnet_tf.layers.capsule_decoder import true_classes
    from encapnet_tf.models import create_model, list_variants
    from encapnet_tf.training_only import strip
else:
    __getattr__ = on_demand(
        __name__,
        {
            "agreement_units": "agreement",
            "attach_agreement": "agreement",
            "create_model": "models",
            "layers": "",
            "list_variants": "models",
            "losses": "",
            "ops": "",
            "set_agreement_ramp": "agreement",
            "strip": "training_only",
            "strip_agreement": "agreement",
            "true_classes": "layers.capsule_decoder",
        },
    )

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
    "strip",
    "strip_agreement",
    "true_classes",
]
