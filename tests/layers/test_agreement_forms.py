"""What the forms of agreement do that the paper's does not."""

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from benchmarks.agreement_forms import FORMS, agree
from encapnet_tf import agreement_units, create_model
from encapnet_tf.layers import FeedbackAgreement
from tests.layers.test_feedback_agreement import HIGHER, LOWER, maps, unit_loss

COLLAPSING = ("the paper", "KL")
FREE = [name for name in FORMS if name not in COLLAPSING]


@pytest.mark.parametrize("name", COLLAPSING)
def test_the_paper_s_f_collapses_and_the_unit_says_so(name):
    found = agree(FORMS[name])[-1]
    assert found["spread"] < 0.1
    assert found["loss"] < 1e-3


@pytest.mark.parametrize("name", FREE)
def test_the_other_forms_do_not_collapse(name):
    found = agree(FORMS[name])[-1]
    assert found["spread"] > 0.5
    assert found["zero_vectors"] < 0.5
    assert found["loss"] > 1e-3


@pytest.mark.parametrize("extractor", ["conv", "frozen", "standardized"])
def test_only_a_frozen_f_is_not_trained(extractor):
    unit = FeedbackAgreement(4, extractor=extractor)
    unit_loss(unit)
    trained = [v.path for v in unit.trainable_variables]
    assert any("generator" in path for path in trained)
    is_trained = any("extractor" in path for path in trained)
    assert is_trained == (extractor != "frozen")


def test_a_frozen_f_still_has_the_statistics_of_its_batch():
    unit = FeedbackAgreement(4, extractor="frozen")
    unit_loss(unit)
    found = unit._vectors(LOWER).numpy()
    np.testing.assert_allclose(unit._vectors(10 * LOWER), found, atol=1e-4)
    assert found.max() > 0.5


def test_standardized_vectors_have_mean_0_and_variance_1_in_the_batch():
    unit = FeedbackAgreement(4, extractor="standardized")
    unit_loss(unit, maps(16, 4, 4, 8), maps(16, 8, 8, 4, seed=1))
    vectors = unit._vectors(maps(16, 8, 8, 4, seed=2)).numpy()
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(vectors.var(axis=0), 1, rtol=1e-2)


def test_paired_maps_are_compared_sample_by_sample():
    unit = FeedbackAgreement(
        4, weight=1.0, divergence="paired", extractor="none"
    )
    loss = float(unit_loss(unit))
    recovered = unit.generator([HIGHER, LOWER], training=True).numpy()
    lower = LOWER.numpy()
    variance = ((lower - lower.mean(axis=0)) ** 2).sum()
    expected = ((recovered - lower) ** 2).sum() / variance
    assert loss == pytest.approx(expected, rel=1e-4)
    assert not hasattr(unit, "error_metric")


@pytest.mark.parametrize("lower_gradient", [True, False])
def test_a_target_gets_no_gradient(lower_gradient):
    unit = FeedbackAgreement(4, lower_gradient=lower_gradient)
    with tf.GradientTape() as tape:
        tape.watch((HIGHER, LOWER))
        loss = unit_loss(unit)
    higher, lower = tape.gradient(
        loss, (HIGHER, LOWER), unconnected_gradients="zero"
    )
    assert np.abs(higher).max() > 0
    assert (np.abs(lower).max() > 0) == lower_gradient


def shares(model, images, labels, scale=1.0):
    """Of each unit: its gradient at its higher maps over the class loss's.

    Found from outside, by probes of zeros before and behind every unit; and
    what the units say themselves.
    """
    before, behind = {}, {}
    units = agreement_units(model)
    for unit in units:
        unit.share_metric.reset_state()
    call = FeedbackAgreement.call

    def probed(self, inputs, training=None):
        higher, lower = inputs
        name = self.name
        before[name], behind[name] = (tf.zeros_like(higher) for _ in range(2))
        tape.watch((before[name], behind[name]))
        output = call(self, [higher + before[name], lower], training)
        return output + behind[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FeedbackAgreement, "call", probed)
        with tf.GradientTape(persistent=True) as tape:
            scores = tf.cast(model(images, training=True), tf.float32)
            picked = tf.gather(scores, labels, batch_dims=1)
            class_loss = scale * tf.reduce_mean(tf.square(1 - picked))
            own = [scale * unit.recent_loss for unit in units]
            total = tf.add_n([class_loss, *own])
    whole, above = tape.gradient(total, [before, behind])
    noted = [float(unit.share_metric.result()) for unit in units]
    pure = tape.gradient(class_loss, before)
    found = [
        norm(whole[unit.name] - above[unit.name]) / norm(pure[unit.name])
        for unit in units
    ]
    return found, noted


def norm(gradient):
    return np.linalg.norm(np.asarray(gradient, np.float64))


@pytest.fixture
def policy(request):
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy("float32")


@pytest.mark.parametrize(
    ("policy", "scale"),
    [("float32", 1.0), ("mixed_bfloat16", 1.0), ("mixed_float16", 1024.0)],
    indirect=["policy"],
)
def test_units_of_a_network_have_the_share_that_was_asked_for(policy, scale):
    """Four units, two on each map, the upper ones' gradients on the lower."""
    keras.utils.set_random_seed(0)
    options = {"gradient_share": 0.1, "lower_gradient": False}
    model = create_model("encapnet_tiny", agreement_options=options)
    images = np.random.default_rng(0).uniform(size=(8, 32, 32, 3))
    found, noted = shares(model, images.astype("float32"), np.arange(8), scale)
    assert found == [pytest.approx(0.1, rel=0.2)] * 4
    assert noted == [pytest.approx(0.1, rel=0.01)] * 4


def test_the_ramp_raises_the_share_and_lambda_does_not():
    keras.utils.set_random_seed(0)
    options = {"gradient_share": 0.2, "weight": 1000.0}
    model = create_model(
        "encapnet_tiny",
        type2_layers=(1,),
        strides=(2,),
        agreement="one",
        agreement_options=options,
    )
    images = np.random.default_rng(0).uniform(size=(4, 32, 32, 3))
    (unit,) = agreement_units(model)
    for ramp, share in ((1.0, 0.2), (0.25, 0.05), (0.0, 0.0)):
        unit.ramp.assign(ramp)
        (found,), _ = shares(model, images.astype("float32"), np.arange(4))
        assert found == pytest.approx(share, rel=1e-3, abs=1e-6)


def test_lambda_s_own_share_is_reported():
    keras.utils.set_random_seed(0)
    model = create_model("encapnet_tiny", type2_layers=(0,), strides=(2,),
                         agreement="one")  # fmt: skip
    images = np.random.default_rng(0).uniform(size=(4, 32, 32, 3))
    (share,), (noted,) = shares(model, images.astype("float32"), np.arange(4))
    assert share > 0
    assert noted == pytest.approx(share, rel=1e-3)


def test_the_spread_is_relative_to_the_first_batch_even_of_a_loaded_unit(
    tmp_path,
):
    higher, lower = keras.Input((4, 4, 8)), keras.Input((8, 8, 4))
    unit = FeedbackAgreement(4, extractor="none", cost="l2", name="unit")
    model = keras.Model([higher, lower], unit([higher, lower]))
    model([HIGHER, LOWER], training=True)
    assert float(unit.spread_metric.result()) == pytest.approx(1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    loaded([HIGHER, 0.25 * LOWER], training=True)
    spread = loaded.get_layer("unit").spread_metric.result()
    assert float(spread) == pytest.approx(0.25, rel=1e-5)


def test_weights_of_before_there_was_a_spread_are_loaded(tmp_path):
    unit = FeedbackAgreement(4, name="unit")
    higher, lower = keras.Input((4, 4, 8)), keras.Input((8, 8, 4))
    model = keras.Model([higher, lower], unit([higher, lower]))
    model([HIGHER, LOWER], training=True)
    unit.ramp.assign(0.5)
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    with h5py.File(path, "a") as file:
        (name,) = (n for n in file["layers"] if "agreement" in n)
        assert sorted(file["layers"][name]["vars"]) == ["0", "1"]
        del file["layers"][name]["vars"]["1"]
    unit.ramp.assign(1.0)
    unit.first_spread.assign(0.0)
    model.load_weights(path)
    assert float(unit.ramp) == 0.5
    assert float(unit.first_spread) == 0
    model([HIGHER, LOWER], training=True)
    assert float(unit.first_spread) > 0
