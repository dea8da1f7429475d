import os
import subprocess
import sys

import keras
import numpy as np
import pytest

import export
from encapnet_tf import create_model, strip, strip_agreement
from encapnet_tf.agreement import agreement_units
from encapnet_tf.config import VARIANTS, CapsuleConfig
from encapnet_tf.layers import CapsuleDecoder
from encapnet_tf.layers.capsule_decoder import DecodingModel
from encapnet_tf.training_only import training_only_layers
from tests.conformance import VARIANT_OVERRIDES

CAPSULE_VARIANTS = [
    name
    for name, config in VARIANTS.items()
    if isinstance(config, CapsuleConfig)
]
QUICK = "encapnet_tiny"


def images(model):
    shape = (2, *model.input_shape[1:])
    return np.random.default_rng(0).uniform(size=shape).astype("float32")


def decoded(variant=QUICK, **overrides):
    keras.utils.set_random_seed(0)
    overrides = VARIANT_OVERRIDES[variant] | {"decoder": "conv"} | overrides
    model = create_model(variant, num_classes=5, **overrides)
    model(images(model), training=True)
    return model


def names(model):
    return [type(layer) for layer in training_only_layers(model)]


@pytest.mark.parametrize(
    "variant",
    [
        name if name == QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in CAPSULE_VARIANTS
    ],
)
def test_stripped_of_its_decoder_a_variant_is_as_if_it_never_had_one(variant):
    model = decoded(variant)
    stripped, x = strip(model), images(model)
    assert names(stripped) == []
    np.testing.assert_array_equal(stripped(x), model(x))
    plain = create_model(
        variant,
        num_classes=5,
        **VARIANT_OVERRIDES[variant]
        | {"decoder": "none"}
        | ({"agreement": "none"} if hasattr(VARIANTS[variant], "aide") else {}),
    )
    ours, theirs = (
        [(w.path, w.shape) for w in each.weights] for each in (stripped, plain)
    )
    assert ours == theirs
    plain.set_weights(stripped.get_weights())
    np.testing.assert_array_equal(plain(x), model(x))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("variant", [QUICK, "capnet_em"])
def test_mixed_precision_changes_nothing_in_that(variant, policy):
    keras.config.set_dtype_policy(policy)
    try:
        model = decoded(variant)
        x = images(model)
        np.testing.assert_array_equal(strip(model)(x), model(x))
    finally:
        keras.config.set_dtype_policy("float32")


def test_a_stripped_model_is_a_plain_one(tmp_path):
    model = decoded()
    assert type(model) is DecodingModel
    stripped = strip(model)
    assert type(stripped) is type(create_model(QUICK, decoder="none"))
    stripped.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(images(model)), model(images(model)))


def test_strip_agreement_leaves_the_decoder():
    model = decoded()
    assert agreement_units(model)
    kept = strip_agreement(model)
    assert names(kept) == [CapsuleDecoder]
    assert type(kept) is DecodingModel
    np.testing.assert_array_equal(kept(images(model)), model(images(model)))


def test_a_network_without_a_decoder_has_the_class_it_always_had():
    """So that its files need nothing of ours that older versions lack."""
    model = create_model(QUICK, agreement="none")
    assert model.__class__.__module__.startswith("keras.")
    assert strip(model) is model


def test_a_saved_decoder_is_loaded_with_its_model(tmp_path):
    model = decoded(decoder_weight=0.002)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is DecodingModel
    ours, theirs = (m.get_layer("decoder") for m in (model, loaded))
    assert theirs.weight == 0.002
    shape = (3, *ours.input[0].shape[1:])
    capsules = np.random.default_rng(1).normal(size=shape)
    np.testing.assert_array_equal(
        ours.reconstruct(capsules), theirs.reconstruct(capsules)
    )


@pytest.mark.slow
def test_the_layers_alone_can_load_it(tmp_path):
    """As the programs do, which start with nothing else."""
    decoded().save(tmp_path / "model.keras")
    code = (
        "import sys, keras, encapnet_tf.layers\n"
        "keras.models.load_model(sys.argv[1])\n"
        "assert 'encapnet_tf.models' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", code, tmp_path / "model.keras"],
        check=True, env=os.environ | {"ENCAPNET_TF_LAZY": "1"},
    )  # fmt: skip


def test_networks_without_capsules_have_no_decoder():
    with pytest.raises(ValueError, match="CNNConfig has no field decoder"):
        create_model("cnn_same_shape", decoder="conv")


def test_export_strips_by_the_same_function():
    assert export.strip is strip
