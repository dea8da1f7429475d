import keras
import numpy as np
import pytest

from encapnet_tf import create_model, list_variants
from encapnet_tf.config import VARIANTS
from encapnet_tf.layers import CapConv
from encapnet_tf.losses import MarginLoss
from encapnet_tf.models import variant_config
from tests.models.test_variants import outline


def images(shape, batch=2):
    rng = np.random.default_rng(0)
    return rng.uniform(size=(batch, *shape)).astype("float32")


SHAPES = [(28, 28, 1), (32, 32, 3), (64, 64, 3), (128, 128, 3), (224, 224, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "variant",
    # encapnet_v3 is encapnet_v2 with another input.
    [v for v in VARIANTS if v[:6] != "capnet" and v != "encapnet_v3"],
)
def test_every_variant_takes_every_input(variant, shape):
    # Its modules meet the input, how deep they are does not.
    few = {"type2_layers": (1, 1, 1, 1)} if variant == "encapnet_v2" else {}
    model = outline(variant, num_classes=100, input_shape=shape, **few)
    assert model.input_shape == (None, *shape)
    assert model.output_shape == (None, 100)


@pytest.mark.parametrize("shape", SHAPES[:2])
@pytest.mark.parametrize("variant", ["capnet_dynamic", "capnet_em"])
def test_routed_variants_take_small_inputs(variant, shape):
    model = outline(variant, num_classes=100, input_shape=shape)
    assert model.output_shape == (None, 100)


@pytest.mark.parametrize(
    ("side", "last"), [(28, 4), (32, 4), (64, 8), (128, 4), (224, 7)]
)
def test_last_module_ends_at(side, last):
    model = outline("encapnet_v1", input_shape=(side, side, 3))
    layer = model.get_layer("module4_type2_3")
    assert layer.output.shape == (None, last, last, 512)


@pytest.mark.parametrize(
    ("shape", "num_classes"),
    [((28, 28, 1), 10), ((32, 32, 3), 100), ((64, 64, 3), 5), ((72, 96, 3), 2)],
)
def test_one_training_step(shape, num_classes):
    model = create_model(
        "encapnet_tiny",
        num_classes=num_classes,
        input_shape=shape,
        type2_layers=(1,),
        strides=(2,),
        agreement="one",
    )
    model.compile("sgd", MarginLoss(), run_eagerly=True)
    before = model.get_weights()
    loss = model.train_on_batch(images(shape), np.array([0, num_classes - 1]))
    assert np.isfinite(loss).all()
    assert any(
        (w != b).any() for w, b in zip(model.get_weights(), before, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["encapnet_tiny", "encapnet_small"])
@pytest.mark.parametrize("shape", SHAPES[2:])
def test_one_training_step_of_the_small_variants(variant, shape):
    model = create_model(variant, num_classes=100, input_shape=shape)
    # One step: tracing it takes longer.
    model.compile("sgd", MarginLoss(), run_eagerly=True)
    assert np.isfinite(
        model.train_on_batch(images(shape), np.array([0, 99]))
    ).all()


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["encapnet_v2", "encapnet_v3"])
def test_the_deep_networks_run(variant):
    model = create_model(variant)
    x = images(model.input_shape[1:], batch=1)
    # An untrained network has no moving averages yet, and squash after squash
    # leaves nothing: only the statistics of the batch show a signal.
    for training in (False, True):
        scores = model(x, training=training).numpy()
        assert scores.shape == (1, 200)
        assert (scores >= 0).all()
        assert (scores < 1).all()
    assert scores.std() > 1e-3
    assert len(model.losses) == 8
    assert np.isfinite(model.losses).all()


def test_small_images_are_zero_padded_in_the_middle():
    keras.utils.set_random_seed(0)
    small = create_model("encapnet_tiny", input_shape=(28, 27, 1))
    full = create_model("encapnet_tiny", input_shape=(32, 32, 1))
    full.set_weights(small.get_weights())
    x = images((28, 27, 1))
    padded = np.pad(x, ((0, 0), (2, 2), (2, 3), (0, 0)))
    np.testing.assert_allclose(small(x), full(padded), atol=1e-6)


@pytest.mark.parametrize("skip_type2", ["last", "layerwise"])
@pytest.mark.parametrize("skip", ["none", "type1", "type2", "both"])
def test_module_is_wired_as_by_hand(skip, skip_type2):
    keras.utils.set_random_seed(0)
    model = create_model(
        "encapnet_tiny",
        type2_layers=(3,),
        strides=(2,),
        skip=skip,
        skip_type2=skip_type2,
        agreement="none",
    )
    names = [layer.name for layer in model.layers]
    assert names == [
        "images",
        "stem1",
        "module1_type1",
        "module1_type2_1",
        "module1_type2_2",
        "module1_type2_3",
        "class_capsules",
        "scores",
    ]
    assert {
        layer.name
        for layer in model.layers
        if getattr(layer, "project_skip", 0)
    } == ({"module1_type1"} if skip in ("type1", "both") else set())

    x = images((32, 32, 3))
    x = model.get_layer("stem1")(x)
    type1 = capsules = model.get_layer("module1_type1")(x)
    with_skip = skip in ("type2", "both")
    for number in (1, 2, 3):
        layer = model.get_layer(f"module1_type2_{number}")
        assert isinstance(layer, CapConv)
        if with_skip and skip_type2 == "layerwise":
            capsules = layer(capsules, skip=capsules)
        elif with_skip and number == 3:
            capsules = layer(capsules, skip=type1)
        else:
            capsules = layer(capsules)
    scores = model.get_layer("scores")(
        model.get_layer("class_capsules")(capsules)
    )
    np.testing.assert_array_equal(model(images((32, 32, 3))), scores)


def test_per_module_values_follow_a_new_number_of_modules():
    config = variant_config(
        "encapnet_v1", type2_layers=(1, 2), strides=(1, 2), agreement="one"
    )
    assert config.agreement == ("one", "one")
    assert config.coefficients == ("both", "both")


def test_agreement_options_change_only_what_they_name():
    config = variant_config("encapnet_small", agreement_options={"cost": "l2"})
    expected = VARIANTS["encapnet_small"].agreement_options
    assert config.agreement_options.cost == "l2"
    assert config.agreement_options.weight == expected.weight


def test_variants_are_listed_in_order():
    assert list_variants() == list(VARIANTS)


@pytest.mark.parametrize(
    ("variant", "hint"),
    [
        ("encapnet_smal", "Did you mean 'encapnet_small'"),
        ("resnet-18", "Did you mean 'resnet18'"),
        ("vgg", "Received: variant='vgg'.$"),
    ],
)
def test_unknown_variants_get_a_hint(variant, hint):
    with pytest.raises(ValueError, match=f"Received: variant=.*{hint}|{hint}"):
        create_model(variant)


@pytest.mark.parametrize(
    ("variant", "overrides", "message"),
    [
        ("encapnet_tiny", {"depth": 3}, "no field depth.*Received.*Its fields"),
        ("capnet_em", {"agreement": "one"}, "no field agreement.*Received"),
        ("encapnet_tiny", {"num_classes": 0}, "`num_classes` must.*Received"),
        ("encapnet_tiny", {"num_capsules": 0}, "`num_capsules` must.*Receiv"),
        ("encapnet_tiny", {"input_shape": (32, 32)}, "`input_shape`.*Received"),
        (
            "encapnet_tiny",
            {"input_shape": (32, 0, 3)},
            "`input_shape`.*Received",
        ),
        (
            "encapnet_tiny",
            {"input_shape": (None, None, 3)},
            "`input_shape`.*Received",
        ),
        ("encapnet_tiny", {"cap_fc": "fc"}, "`cap_fc` must be.*Received"),
        ("encapnet_tiny", {"skip": "all"}, "`skip` must be one.*Received"),
        ("encapnet_tiny", {"aide": "some"}, "`aide` must be one.*Received"),
        (
            "encapnet_tiny",
            {"coefficients": ("own", "v2")},
            "`coefficients` must be one.*Received",
        ),
        ("encapnet_tiny", {"aide_scope": "x"}, "`aide_scope` must.*Received"),
        ("encapnet_tiny", {"skip_type2": "x"}, "`skip_type2` must.*Received"),
        (
            "encapnet_tiny",
            {"agreement": ("one", "one", "one")},
            "one for each of the 2 modules.*Received: agreement=",
        ),
        (
            "encapnet_tiny",
            {"strides": (2,)},
            r"one entry per module.*Received: strides=\(2,\)",
        ),
        (
            "encapnet_tiny",
            {"type2_layers": (1, -1)},
            "N ≥ 0.*Received: strides=",
        ),
        (
            "encapnet_tiny",
            {"type2_layers": 3},
            "`type2_layers` must be a sequence.*Received: type2_layers=3",
        ),
        ("encapnet_tiny", {"stem": ()}, "`stem` must be a sequence.*Received"),
        (
            "encapnet_tiny",
            {"stem": ((6, 2),)},
            "multiple of `num_capsules`.*Received: stem=",
        ),
        (
            "encapnet_tiny",
            {"agreement_options": {"lambda": 3}},
            "`agreement_options` may have.*Received",
        ),
        (
            "encapnet_tiny",
            {"agreement_options": {"weight": -3}},
            "`weight` must be.*Received",
        ),
        ("capnet_em", {"routing": "x"}, "`routing` must be one.*Received"),
        ("capnet_em", {"num_iterations": 0}, "`num_iterations`.*Received"),
        ("capnet_em", {"capsule_dim": 0}, "`capsule_dim` must.*Received"),
        ("capnet_em", {"logits": "x"}, "`logits` must be one.*Received"),
        ("capnet_em", {"softmax_over": "x"}, "`softmax_over`.*Received"),
        ("cnn_same_shape", {"agreement": "two"}, "`agreement`.*Received"),
        ("resnet18", {"agreement": "all"}, "`agreement`.*Received"),
        (
            "resnet18",
            {"blocks": (2, 2)},
            "one entry per stage.*Received: channels=",
        ),
    ],
)
def test_refuses_bad_overrides(variant, overrides, message):
    with pytest.raises(ValueError, match=message):
        create_model(variant, **overrides)
