import keras
import numpy as np
import pytest

import export
from encapnet_tf import agreement_units, attach_agreement, set_agreement_ramp


def layers():
    return [
        keras.Input((16, 16, 3), name="images"),
        keras.layers.Conv2D(8, 3, padding="same", name="low"),
        keras.layers.BatchNormalization(name="norm"),
        keras.layers.Conv2D(12, 3, 2, padding="same", name="middle"),
        keras.layers.Conv2D(8, 3, 2, padding="same", name="high"),
        keras.layers.GlobalAveragePooling2D(name="pool"),
        keras.layers.Dense(3, name="logits"),
    ]


def sequential():
    keras.utils.set_random_seed(0)
    return keras.Sequential(layers(), name="plain")


def functional():
    """Two outputs, and a layer on both sides of a sum."""
    keras.utils.set_random_seed(0)
    images = keras.Input((16, 16, 3), name="images")
    low = keras.layers.Conv2D(8, 3, padding="same", name="low")(images)
    shared = keras.layers.Conv2D(8, 3, padding="same", name="shared")
    total = keras.layers.Add(name="high")([low, shared(low)])
    middle = keras.layers.Conv2D(4, 3, 2, padding="same", name="middle")(total)
    pooled = keras.layers.GlobalAveragePooling2D(name="pool")(middle)
    return keras.Model(images, {"maps": middle, "pooled": pooled})


def images(size=16, batch=4):
    rng = np.random.default_rng(0)
    return rng.uniform(size=(batch, size, size, 3)).astype("float32")


def assert_same_outputs(ours, theirs, x):
    ours, theirs = ours(x), theirs(x)
    assert keras.tree.is_nested(ours) == keras.tree.is_nested(theirs)
    for mine, other in zip(
        keras.tree.flatten(ours), keras.tree.flatten(theirs), strict=True
    ):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("make", "pairs"),
    [
        (sequential, [("high", "low"), ("middle", "low")]),
        (sequential, [("high", "middle"), ("high", "low")]),
        (functional, [("high", "low"), ("middle", "high")]),
        (functional, [("middle", "images")]),
    ],
)
def test_attached_model_is_the_same_but_for_its_losses(make, pairs):
    model = make()
    attached = attach_agreement(model, pairs, weight=2.0)
    assert_same_outputs(attached, model, images())
    for layer in model.layers:
        if layer.weights:
            assert attached.get_layer(layer.name) is layer
    attached(images(), training=True)
    assert len(agreement_units(attached)) == len(pairs)
    assert len(attached.losses) == len(pairs)
    assert all(np.isfinite(loss) for loss in attached.losses)
    assert attached.count_params() > model.count_params()

    stripped = export.strip(attached)
    assert stripped.count_params() == model.count_params()
    assert_same_outputs(stripped, model, images())


def test_options_reach_every_unit():
    attached = attach_agreement(
        sequential(),
        [("high", "low")],
        num_capsules=4,
        weight=3.0,
        divergence="kl",
    )
    (unit,) = agreement_units(attached)
    assert unit.num_capsules == 4
    assert unit.generator.num_capsules == 4
    assert unit.options.weight == 3.0
    assert unit.options.divergence == "kl"


FORMS = [
    {"extractor": "frozen", "lower_gradient": False},
    {"extractor": "standardized", "gradient_share": 0.1},
    {"extractor": "none", "divergence": "paired"},
]


@pytest.mark.parametrize("options", FORMS)
def test_every_form_is_attached_trained_and_taken_out(options):
    model = sequential()
    attached = attach_agreement(model, [("high", "low")], **options)
    (unit,) = agreement_units(attached)
    assert options.items() <= vars(unit.options).items()
    assert_same_outputs(attached, model, images())
    attached.compile("sgd", "mse")
    logs = attached.fit(images(), np.zeros((4, 3)), verbose=0).history
    assert logs["high_agreement_low_loss"][0] > 0
    assert logs["high_agreement_low_spread"][0] == pytest.approx(1)
    assert logs["high_agreement_low_zero_vectors"][0] == 0
    if share := options.get("gradient_share"):
        found = logs["high_agreement_low_gradient_share"][0]
        assert found == pytest.approx(share, rel=1e-4)
    stripped = export.strip(attached)
    assert stripped.count_params() == model.count_params()
    assert_same_outputs(stripped, model, images())


def test_plain_maps_get_the_vanilla_generator():
    (unit,) = agreement_units(attach_agreement(sequential(), [("high", "low")]))
    assert unit.options.generator == "vanilla"


def test_fit_trains_the_shared_layers():
    model = sequential()
    before = model.get_layer("low").get_weights()[0]
    attached = attach_agreement(model, [("high", "low")])
    attached.compile("sgd", "mse")
    logs = attached.fit(images(), np.zeros((4, 3)), verbose=0).history
    assert logs["high_agreement_low_loss"][0] > 0
    assert (model.get_layer("low").get_weights()[0] != before).any()


def test_attached_model_is_saved_and_loaded(tmp_path):
    attached = attach_agreement(sequential(), [("high", "low")])
    set_agreement_ramp(attached, 0.5)
    attached.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_same_outputs(loaded, attached, images())
    assert [float(u.ramp) for u in agreement_units(loaded)] == [0.5]


def test_units_of_sub_models_are_found_and_ramped():
    attached = attach_agreement(functional(), [("high", "low")])
    outer = keras.Sequential([keras.Input((16, 16, 3)), attached])
    assert agreement_units(outer) == agreement_units(attached)
    set_agreement_ramp(outer, 0.0)
    assert float(agreement_units(attached)[0].ramp) == 0


def test_no_pairs_add_nothing():
    model = sequential()
    attached = attach_agreement(model, [])
    assert attached.count_params() == model.count_params()


@pytest.mark.parametrize("pair", [("top", "low"), ("high", "bottom")])
def test_refuses_unknown_names(pair):
    with pytest.raises(ValueError, match="must name two layers.*Received: '"):
        attach_agreement(sequential(), [pair])


@pytest.mark.parametrize(
    "pairs", [("high", "low"), [("high", "low", "low")], ["ab"]]
)
def test_refuses_names_that_are_no_pairs(pairs):
    with pytest.raises(ValueError, match="list of pairs of names.*Received: "):
        attach_agreement(sequential(), pairs)


def test_refuses_a_pair_in_the_wrong_order():
    with pytest.raises(
        ValueError, match="must come before.*Received: higher='low'"
    ):
        attach_agreement(sequential(), [("low", "high")])


def test_refuses_layers_that_are_no_maps():
    with pytest.raises(ValueError, match="two maps.*Received"):
        attach_agreement(sequential(), [("pool", "low")])


def test_refuses_a_subclassed_model():
    class Subclassed(keras.Model):
        def call(self, inputs):
            return inputs

    with pytest.raises(ValueError, match="functional or.*Received: Subclassed"):
        attach_agreement(Subclassed(), [("high", "low")])


def test_refuses_a_sequential_model_that_is_not_built():
    model = keras.Sequential([keras.layers.Dense(3, name="logits")])
    with pytest.raises(ValueError, match="built sequential.*Received: Sequent"):
        attach_agreement(model, [])


@pytest.mark.slow
def test_resnet50_keeps_outputs_and_weights():
    keras.utils.set_random_seed(0)
    model = keras.applications.ResNet50(
        weights=None, input_shape=(64, 64, 3), classes=5
    )
    pairs = [
        ("conv3_block4_out", "conv2_block3_out"),
        ("conv4_block6_out", "conv3_block4_out"),
    ]
    attached = attach_agreement(model, pairs, weight=1.0)
    assert_same_outputs(attached, model, images(64, 2))
    own = {id(v) for v in attached.variables}
    assert all(id(v) in own for v in model.variables)
    attached.compile("sgd", "sparse_categorical_crossentropy")
    logs = attached.fit(images(64, 2), np.array([0, 1]), verbose=0).history
    for higher, lower in pairs:
        assert logs[f"{higher}_agreement_{lower}_loss"][0] > 0
    stripped = export.strip(attached)
    assert stripped.count_params() == model.count_params()
    assert_same_outputs(stripped, model, images(64, 2))
