import keras
import numpy as np
import pytest

from encapnet_tf import (
    agreement_units,
    attach_agreement,
    create_model,
    strip_agreement,
)
from encapnet_tf.layers import FeedbackAgreement

X = np.random.default_rng(0).uniform(size=(2, 32, 32, 3)).astype("float32")


def tiny():
    keras.utils.set_random_seed(0)
    model = create_model("encapnet_tiny")
    model(X, training=True)
    return model


def assert_stripped(stripped, model):
    assert agreement_units(stripped) == []
    assert not any("agreement" in v.path for v in stripped.variables)
    np.testing.assert_array_equal(stripped(X), model(X))


def test_outputs_are_bit_equal_and_the_variables_gone():
    model = tiny()
    stripped = strip_agreement(model)
    assert_stripped(stripped, model)
    of_units = sum(u.count_params() for u in agreement_units(model))
    assert stripped.count_params() == model.count_params() - of_units
    stripped(X, training=True)
    assert stripped.losses == []


def test_layers_are_shared_with_the_model():
    model = tiny()
    stripped = strip_agreement(model)
    for layer in stripped.layers[1:]:
        assert layer is model.get_layer(layer.name)
    assert [u.name for u in agreement_units(model)]


def test_stripped_model_is_saved_without_our_training_branch(tmp_path):
    stripped = strip_agreement(tiny())
    stripped.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_stripped(loaded, stripped)


def test_units_within_sub_models_are_taken_out():
    inner = tiny()
    images = keras.Input((32, 32, 3))
    middle = keras.Sequential(
        [keras.Input((32, 32, 3)), keras.layers.Rescaling(0.5), inner]
    )
    total = keras.layers.Add()([middle(images), inner(images)])
    outer = keras.Model(images, total)
    stripped = strip_agreement(outer)
    assert_stripped(stripped, outer)
    assert stripped.count_params() == strip_agreement(inner).count_params()


def test_a_model_without_units_is_unchanged():
    model = create_model("encapnet_tiny", agreement="none")
    assert strip_agreement(model) is model
    subclassed = Subclassed()
    assert strip_agreement(subclassed) is subclassed


class Subclassed(keras.Model):
    def __init__(self, unit=None):
        super().__init__()
        self.unit = unit

    def call(self, inputs):
        return 2 * inputs


def test_sub_models_without_units_may_be_of_any_kind():
    images = keras.Input((32, 32, 3))
    model = keras.Model(images, tiny()(Subclassed()(images)))
    assert_stripped(strip_agreement(model), model)


def test_refuses_a_subclassed_model_with_units():
    with pytest.raises(ValueError, match="functional or.*Received: Subclassed"):
        strip_agreement(Subclassed(FeedbackAgreement(4)))


def test_a_unit_at_the_output_is_replaced_by_its_higher_end():
    low = keras.Input((8, 8, 4), name="low")
    high = keras.Input((4, 4, 8), name="high")
    model = keras.Model([high, low], FeedbackAgreement(4)([high, low]))
    stripped = strip_agreement(model)
    inputs = [np.ones((1, 4, 4, 8)), np.ones((1, 8, 8, 4))]
    np.testing.assert_array_equal(stripped(inputs), inputs[0])


def test_names_of_the_stripped_layers_stay():
    model = tiny()
    kept = [
        layer.name
        for layer in model.layers
        if not isinstance(layer, FeedbackAgreement)
    ]
    stripped = strip_agreement(model)
    assert stripped.name == model.name
    assert [layer.name for layer in stripped.layers] == kept


def test_an_attached_unit_is_taken_out_again():
    plain = create_model("encapnet_tiny", agreement="none")
    attached = attach_agreement(plain, [("module2_type2_1", "module1_type1")])
    assert_stripped(strip_agreement(attached), plain)
