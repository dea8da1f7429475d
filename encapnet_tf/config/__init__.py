"""Every hyper-parameter of every network, with its source.

A variant is one frozen config; `VARIANTS` names them all.
"""

from encapnet_tf.config.agreement import VANILLA_AGREEMENT, AgreementConfig
from encapnet_tf.config.networks import (
    CapNetConfig,
    CapsuleConfig,
    CNNConfig,
    EncapNetConfig,
    NetworkConfig,
    ResNetConfig,
    per_module,
)
from encapnet_tf.config.variants import VARIANTS, override, variant_config

__all__ = [
    "VANILLA_AGREEMENT",
    "VARIANTS",
    "AgreementConfig",
    "CNNConfig",
    "CapNetConfig",
    "CapsuleConfig",
    "EncapNetConfig",
    "NetworkConfig",
    "ResNetConfig",
    "override",
    "per_module",
    "variant_config",
]
