"""Every layer and every variant, once, as a small model.

The conformance tests run over `CASES`. A layer or a variant that is missing
here fails `test_every_layer_and_variant_is_listed`.
"""

import functools

import keras

from encapnet_tf import create_model, layers
from encapnet_tf.training_only import TRAINING_ONLY

DECODER = {"decoder": "conv", "decoder_weight": 0.001}
UNITS = {"agreement_options": {"num_iterations": 3}}
SMALL = {"num_capsules": 4, "stem": ((8, 2),)} | UNITS
CAPNET = {
    "stem": ((8, 2), (16, 2)),
    "num_capsules": 4,
    "middle_capsules": 2,
    "capsule_dim": 4,
    "input_shape": (32, 32, 3),
}

# What makes a variant small enough for a test, its structure kept.
VARIANT_OVERRIDES = {
    "capnet_dynamic": CAPNET,
    "capnet_em": CAPNET | DECODER,
    "cnn_same_shape": {"stem": ((8, 2), (8, 1), (16, 2))},
    "cnn_similar_param": UNITS
    | {"stem": ((8, 2), (12, 2)), "agreement": "one"},
    "encapnet6_master": {"stem": ((8, 2), (16, 2)), "num_capsules": 4},
    "encapnet6": {"stem": ((8, 2), (16, 2)), "num_capsules": 4} | DECODER,
    "encapnet14_authors_master": SMALL,
    "encapnet14_authors": SMALL | DECODER | {"type2_layers": (1, 1, 1, 1)},
    "encapnet_v1_authors": SMALL | {"type2_layers": (1, 2, 1, 1)},
    "encapnet_v1": SMALL | {"type2_layers": (1, 1, 1, 1), "agreement": "one"},
    "resnet18": UNITS
    | {
        "stem": ((8, 2),),
        "channels": (8, 12),
        "blocks": (2, 1),
        "strides": (1, 2),
        "agreement": "one",
    },
    "encapnet_v2": SMALL
    | {
        "input_shape": (68, 68, 3),
        "type2_layers": (1, 2, 2, 1),
        "agreement": ("two", "two", "one", "none"),
    },
    "encapnet_v3": SMALL
    | DECODER
    | {
        "input_shape": (72, 72, 1),
        "type2_layers": (2, 1, 1, 1),
        "agreement": ("two", "two", "one", "none"),
    },
    "encapnet_small": SMALL,
    "encapnet_tiny": {},
}

# Layer, constructor arguments away from their defaults, shapes of the inputs.
LAYERS = {
    "BatchNorm": (
        layers.BatchNorm,
        {"momentum": 0.8, "epsilon": 1e-4},
        [(4, 4, 6)],
    ),
    "GroupedConv2D": (
        layers.GroupedConv2D,
        {
            "filters": 8,
            "kernel_size": 3,
            "stride": 2,
            "groups": 4,
            "use_bias": False,
        },
        [(5, 6, 4)],
    ),
    "GroupedConv2D_others": (
        layers.GroupedConv2D,
        {
            "filters": 8,
            "kernel_size": 5,
            "skip_own_block": 4,
        },
        [(6, 5, 4)],
    ),
    "ConvNorm": (
        layers.ConvNorm,
        {
            "filters": 5,
            "kernel_size": 3,
            "stride": 2,
            "use_bias": False,
            "relu": False,
        },
        [(5, 6, 4)],
    ),
    "CapConv_master": (
        layers.CapConv,
        {
            "num_capsules": 4,
            "capsule_dim": 2,
            "branches": "master",
            "project_skip": True,
            "stride": 2,
            "initial_length": 1.0,
        },
        [(6, 6, 4)],
    ),
    **{
        f"CapConv_{coefficients}_{scope}": (
            layers.CapConv,
            {
                "num_capsules": 4,
                "capsule_dim": 3,
                "kernel_size": 1,
                "coefficients": coefficients,
                "aide_scope": scope,
            },
            [(4, 4, 8)],
        )
        for coefficients, scope in (
            ("own", "all"),
            ("cross", "others"),
            ("both", "others"),
        )
    },
    **{
        f"CapFC_{mode}": (
            layers.CapFC,
            {"num_capsules": 5, "capsule_dim": 4, "mode": mode},
            [(3, 3, 8)],
        )
        for mode in ("per_dimension", "dense", "shared")
    },
    "CapFC_row": (
        layers.CapFC,
        {"num_capsules": 5, "capsule_dim": 4},
        [(6, 4)],
    ),
    "Lengths": (layers.Lengths, {}, [(5, 4)]),
    **{
        f"RoutedCapsules_{logits}": (
            layers.RoutedCapsules,
            {
                "num_input_capsules": 4,
                "num_capsules": 8,
                "capsule_dim": 3,
                "num_iterations": 2,
                "softmax_over": softmax_over,
                "logits": logits,
                "output_size": output_size,
            },
            [(3, 3, 8)],
        )
        for logits, softmax_over, output_size in (
            ("zero", "lower", None),
            ("random", "higher", (2, 2)),
            ("learnable", "lower", (2, 1)),
        )
    },
    "RoutedCapsules_em": (
        layers.RoutedCapsules,
        {
            "num_input_capsules": 4,
            "num_capsules": 8,
            "capsule_dim": 3,
            "routing": "em",
            "output_size": (2, 2),
        },
        [(3, 3, 8), (3, 3, 4)],
    ),
    "CapsuleDecoder": (
        layers.CapsuleDecoder,
        {"weight": 0.01},
        [(5, 4), (11, 18, 3)],
    ),
    "FeedbackAgreement": (
        layers.FeedbackAgreement,
        {
            "num_capsules": 4,
            "weight": 2.0,
            "epsilon": 0.2,
            "num_iterations": 4,
            "cost": "l2",
            "debias": False,
            "plan_gradient": True,
        },
        [(4, 4, 8), (8, 8, 4)],
    ),
    "FeedbackAgreement_frozen": (
        layers.FeedbackAgreement,
        {
            "num_capsules": 4,
            "extractor": "frozen",
            "divergence": "paired",
            "lower_gradient": False,
            "gradient_share": 0.1,
        },
        [(4, 4, 8), (8, 8, 4)],
    ),
    "FeedbackAgreement_standardized": (
        layers.FeedbackAgreement,
        {
            "num_capsules": 4,
            "extractor": "standardized",
            "gradient_share": 0.5,
        },
        [(4, 4, 8), (8, 8, 4)],
    ),
    "FeedbackAgreement_vanilla": (
        layers.FeedbackAgreement,
        {
            "num_capsules": 1,
            "generator": "vanilla",
            "extractor": "none",
            "divergence": "kl",
            "batch": "global",
        },
        [(4, 4, 6), (7, 7, 5)],
    ),
}


def layer_model(name):
    """Wraps a layer in a functional model."""
    make, arguments, shapes = LAYERS[name]
    inputs = [keras.Input(shape) for shape in shapes]
    layer = make(**arguments)
    if isinstance(layer, TRAINING_ONLY):
        outputs = layer(inputs)
    else:
        outputs = layer(*inputs)
    return keras.Model(inputs, outputs)


def variant_model(name):
    """Builds the small form of a variant."""
    overrides = {"num_classes": 5} | VARIANT_OVERRIDES[name]
    return create_model(name, **overrides)


CASES = {f"layer:{name}": (layer_model, name) for name in LAYERS} | {
    f"variant:{name}": (variant_model, name) for name in VARIANT_OVERRIDES
}


def make(case, policy="float32"):
    """The model of a case, the same weights each time; it is built once."""
    model, weights = _built(case, policy)
    model.set_weights(weights)
    keras.utils.set_random_seed(7)
    return model


@functools.cache
def _built(case, policy):
    keras.utils.set_random_seed(7)
    build, name = CASES[case]
    keras.config.set_dtype_policy(policy)
    try:
        model = build(name)
    finally:
        keras.config.set_dtype_policy("float32")
    return model, model.get_weights()
