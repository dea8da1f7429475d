"""The named variants, one frozen config each, and how to change a field."""

import difflib
from dataclasses import fields, replace
from typing import Any

from encapnet_tf.config.agreement import AgreementConfig
from encapnet_tf.config.networks import (
    CapNetConfig,
    CNNConfig,
    EncapNetConfig,
    NetworkConfig,
    ResNetConfig,
)

# The six layers of table 1, rows e and f: the stem of CapNet, one module.
_ENCAPNET6 = EncapNetConfig(
    stem=((32, 1), (64, 1), (128, 2), (256, 2)),
    type2_layers=(0,),
    strides=(2,),
    aide_scope="all",
    coefficients="cross",
    skip="type1",
    agreement="none",
)
# The authors' 14-layer runs (their released code).
_ENCAPNET14 = EncapNetConfig(
    type2_layers=(2, 2, 2, 2),
    aide=("none", "none", "all", "all"),
    aide_scope="all",
    coefficients="cross",
    agreement=("none", "none", "type1", "one"),
)
_V1 = EncapNetConfig()
_V2 = EncapNetConfig(
    num_classes=200,
    input_shape=(128, 128, 3),
    type2_layers=(8, 11, 68, 8),  # ours: ResNet-101's proportions, 101 layers
    aide=("none", "none", "type1", "all"),  # section 5.2: master when shallow
    skip_type2="layerwise",  # ours: 68 layers do not train without
)

VARIANTS: dict[str, NetworkConfig] = {
    "capnet_dynamic": CapNetConfig(),
    "capnet_em": CapNetConfig(routing="em"),
    "cnn_same_shape": CNNConfig(),
    "cnn_similar_param": CNNConfig(
        stem=((32, 1), (256, 1), (512, 2), (512, 2), (1300, 1))
    ),
    "encapnet6_master": replace(_ENCAPNET6, aide="none"),
    "encapnet6": _ENCAPNET6,
    "encapnet14_authors_master": replace(_ENCAPNET14, aide="none"),
    "encapnet14_authors": _ENCAPNET14,
    "encapnet_v1_authors": EncapNetConfig(
        aide_scope="all",
        coefficients=("own", "own", "cross", "cross"),
        skip_type2=("layerwise", "last", "layerwise", "layerwise"),
        agreement=("type1", "one", "type1", "one"),
    ),
    "encapnet_v1": _V1,
    "resnet18": ResNetConfig(),
    "encapnet_v2": _V2,
    "encapnet_v3": replace(_V2, input_shape=(224, 224, 3)),
    # Ours: what a laptop CPU trains in minutes. Every value was searched for:
    # docs/encapnet_small.md.
    "encapnet_small": EncapNetConfig(
        stem=((32, 2),),
        num_capsules=16,
        type2_layers=(0,) * 6,
        strides=(1, 1, 2, 1, 2, 1),
        capsule_dims=(4, 4, 8, 8, 16, 16),
        initial_length=1.0,
        aide="none",
        agreement="none",
        # Where a user asks for units: short runs do not bear the paper's 10.
        agreement_options=AgreementConfig(weight=1.0),
    ),
    # Ours: every mechanism at the least cost, for tests.
    "encapnet_tiny": EncapNetConfig(
        stem=((8, 2),),
        num_capsules=4,
        type2_layers=(1, 1),
        strides=(2, 2),
    ),
}


def variant_config(variant: str, **overrides: Any) -> NetworkConfig:
    """Returns the config of a variant, with some fields replaced."""
    if variant not in VARIANTS:
        close = difflib.get_close_matches(variant, VARIANTS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"`variant` must be one of {', '.join(VARIANTS)}. "
            f"Received: variant={variant!r}.{hint}"
        )
    return override(VARIANTS[variant], **overrides)


def override(config: NetworkConfig, **overrides: Any) -> NetworkConfig:
    """Returns the config with some fields replaced.

    `agreement_options` may be a dictionary with only the options to change. A
    per-module field that was spread over the modules may change together with
    the number of modules.
    """
    names = {f.name: f for f in fields(config)}
    unknown = sorted(set(overrides) - set(names))
    if unknown:
        raise ValueError(
            f"{type(config).__name__} has no field {', '.join(unknown)}. "
            f"Received: {overrides}. Its fields: {', '.join(sorted(names))}."
        )
    options = overrides.get("agreement_options")
    if isinstance(options, dict):
        known = {f.name for f in fields(AgreementConfig)}
        if set(options) - known:
            raise ValueError(
                f"`agreement_options` may have {', '.join(sorted(known))}. "
                f"Received: agreement_options={options}."
            )
        overrides["agreement_options"] = replace(
            config.agreement_options, **options
        )
    # Uniform per-module fields follow a new number of modules.
    uniform = {
        name: getattr(config, name)[0]
        for name in config.PER_MODULE
        if len(set(getattr(config, name))) == 1
    }
    return replace(config, **(uniform | overrides))
