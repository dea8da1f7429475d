import contextlib
import dataclasses
import math

import keras
import numpy as np
import pytest
from keras.src.backend.common import global_state

from encapnet_tf import agreement_units, create_model, list_variants
from encapnet_tf.config import VARIANTS, EncapNetConfig
from encapnet_tf.layers import CapConv, CapFC, GroupedConv2D, RoutedCapsules
from export import strip

# Trainable parameters of every variant: with the agreement units, and without.
PARAMETERS = {
    # Checked against the authors' own logs.
    "capnet_dynamic": (9_913_600, 9_913_600),
    "capnet_em": (9_991_540, 9_991_540),
    "cnn_same_shape": (1_575_690, 1_575_690),
    "cnn_similar_param": (9_624_782, 9_624_782),
    "encapnet6_master": (1_689_856, 1_689_856),
    "encapnet6": (8_124_224, 8_124_224),
    "encapnet14_authors_master": (2_083_206, 1_729_920),
    "encapnet14_authors": (26_548_742, 26_195_456),
    "encapnet_v1_authors": (36_850_892, 36_474_944),
    # Counted by us.
    "encapnet_v1": (37_678_808, 36_544_064),
    "resnet18": (11_156_778, 11_156_778),
    "encapnet_v2": (65_336_216, 64_201_472),
    "encapnet_v3": (68_715_416, 67_580_672),
    "encapnet_small": (1_279_296, 1_279_296),
    "encapnet_tiny": (88_908, 80_544),
}


def count(model):
    return sum(math.prod(v.shape) for v in model.trainable_variables)


@contextlib.contextmanager
def shapes_alone():
    """Variables made here get no values, now or later."""
    name = "uninitialized_variables"
    pending = list(global_state.get_global_attribute(name) or ())
    with keras.StatelessScope(initialize_variables=False):
        yield
    # Or the next model that is built would fill them.
    global_state.set_global_attribute(name, pending)


def outline(variant, **overrides):
    """The model without its memory: it can be counted, not called."""
    with shapes_alone():
        return create_model(variant, **overrides)


def test_no_variant_is_missing_from_the_table():
    assert set(list_variants()) == set(PARAMETERS)


@pytest.mark.parametrize("variant", PARAMETERS)
def test_trainable_parameters_with_and_without_agreement(variant):
    with_units, without = PARAMETERS[variant]
    assert count(outline(variant)) == with_units
    if hasattr(VARIANTS[variant], "agreement"):
        assert count(outline(variant, agreement="none")) == without
    else:
        assert with_units == without


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant",
    ["encapnet14_authors_master", "encapnet14_authors", "encapnet_v1_authors"],
)
def test_stripping_the_built_model_leaves_the_published_count(variant):
    model = create_model(variant)
    assert count(model) == PARAMETERS[variant][0]
    stripped = strip(model)
    assert count(stripped) == PARAMETERS[variant][1]
    x = np.random.default_rng(0).uniform(size=(1, 32, 32, 3))
    np.testing.assert_array_equal(stripped(x), model(x))


@pytest.mark.parametrize(
    ("variant", "placements"),
    [
        (
            "encapnet14_authors_master",
            ["module3_agreement_type1", "module4_agreement_input"],
        ),
        (
            "encapnet_v1_authors",
            [
                "module1_agreement_type1",
                "module2_agreement_input",
                "module3_agreement_type1",
                "module4_agreement_input",
            ],
        ),
        (
            "encapnet_tiny",
            [
                "module1_agreement_input",
                "module1_agreement_type1",
                "module2_agreement_input",
                "module2_agreement_type1",
            ],
        ),
    ],
)
def test_agreement_units_stand_where_the_paper_puts_them(variant, placements):
    units = agreement_units(outline(variant))
    assert [unit.name for unit in units] == placements


@pytest.mark.parametrize(
    ("variant", "depth"),
    [
        ("encapnet6", 6),
        ("encapnet14_authors", 14),
        ("encapnet_v1", 18),
        ("encapnet_v1_authors", 18),
        ("encapnet_v2", 101),
        ("encapnet_v3", 101),
    ],
)
def test_depth_counts_stem_capsule_layers_and_cap_fc(variant, depth):
    config = VARIANTS[variant]
    layers = sum(1 + n for n in config.type2_layers)
    assert len(config.stem) + layers + 1 == depth


def test_layer_sizes_of_the_first_network_are_those_of_table_2():
    model = outline("encapnet_v1")
    sides, dims = (32, 16, 8, 4), (2, 4, 8, 16)
    for module, (side, dim) in enumerate(zip(sides, dims, strict=True)):
        for name in ("type1", "type2_1", "type2_2", "type2_3"):
            layer = model.get_layer(f"module{module + 1}_{name}")
            assert isinstance(layer, CapConv)
            assert layer.capsule_dim == dim
            assert layer.kernel_size == (3 if name == "type1" else 1)
            assert layer.output.shape == (None, side, side, 32 * dim)
    classes = model.get_layer("class_capsules")
    assert isinstance(classes, CapFC)
    assert classes.kernel.shape == (16, 512, 10)


def test_two_mappings_have_1024_and_256_times_fewer_parameters():
    """Section 3.1: two grouped 1×1 maps against mapping and routing."""

    def weights(layer, channels):
        layer.build((None, 8, 8, channels))
        return math.prod(layer.kernel.shape)

    with shapes_alone():
        routed = RoutedCapsules(32, 2048, 16, logits="learnable")
        mapping = weights(routed, 32 * 8)
        routing = math.prod(routed.first_logits.shape)
        map_8_to_16 = weights(
            GroupedConv2D(32 * 16, 1, groups=32, use_bias=False), 32 * 8
        )
        map_16_to_16 = weights(
            GroupedConv2D(32 * 16, 1, groups=32, use_bias=False), 32 * 16
        )
    assert mapping == 8_388_608
    assert routing == 4_194_304
    assert mapping == 1024 * 2 * map_8_to_16
    assert routing == 256 * 2 * map_16_to_16


@pytest.mark.parametrize("variant", PARAMETERS)
def test_a_config_builds_itself_again(variant):
    config = VARIANTS[variant]
    assert type(config)(**vars(config)) == config
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.num_classes = 3


def test_base_config_is_the_first_network_of_the_paper():
    assert VARIANTS["encapnet_v1"] == EncapNetConfig()
