import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import agreement_units, create_model, set_agreement_ramp
from encapnet_tf.layers import FeedbackAgreement
from encapnet_tf.ops import sinkhorn_divergence
from tests import forked, golden_files, reference


def maps(*shape, seed=0, dtype="float32"):
    values = np.random.default_rng(seed).normal(size=shape)
    return tf.constant(np.maximum(values, 0), dtype)


HIGHER, LOWER = maps(4, 4, 4, 8), maps(4, 8, 8, 4, seed=1)


def unit_loss(unit, higher=HIGHER, lower=LOWER):
    unit([higher, lower], training=True)
    (loss,) = unit.losses
    return loss


def from_golden(name, dtype):
    content, meta = golden_files.load(name)
    higher, lower = (
        tf.constant(golden_files.maps(content[f"in/{end}"]), dtype)
        for end in "zy"
    )
    unit = FeedbackAgreement(
        meta["groups"],
        weight=1.0,
        epsilon=meta["epsilon"],
        num_iterations=meta["L"],
        cost=meta["cost"],
        debias=meta["debiased"],
        plan_gradient=not meta["stop_gradient_plan"],
        dtype=dtype,
    )
    unit.build([higher.shape, lower.shape])
    golden_files.set_conv(unit.generator, content, "G_net.0")
    golden_files.set_norm(unit.generator.norm, content, "G_net.1")
    golden_files.set_conv(unit.extractor.first.conv, content, "critic.0")
    golden_files.set_norm(unit.extractor.first.norm, content, "critic.1")
    golden_files.set_conv(unit.extractor.second.conv, content, "critic.3")
    golden_files.set_norm(unit.extractor.second.norm, content, "critic.4")
    return content, unit, higher, lower


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name",
    [
        "ot_cosine_debiased_bpP_same",
        "ot_cosine_debiased_stopP_half",
        "ot_l2_biased_stopP_same",
    ],
)
def test_loss_and_gradients_are_the_authors(name, dtype):
    content, unit, higher, lower = from_golden(name, dtype)
    with tf.GradientTape() as tape:
        tape.watch((higher, lower))
        loss = unit_loss(unit, higher, lower)
    gradients = tape.gradient(loss, (higher, lower))
    # The added loss is float32 under every policy, its gradient float64.
    np.testing.assert_allclose(loss, content["out/loss"], rtol=2e-5)
    for end, gradient in zip("zy", gradients, strict=True):
        expected = golden_files.maps(content[f"grad/{end}"])
        tolerance = (2e-5 if dtype == "float32" else 1e-6) * np.abs(
            expected
        ).max()
        np.testing.assert_allclose(gradient, expected, atol=tolerance)


def test_higher_is_returned_unchanged():
    unit = FeedbackAgreement(4)
    for training in (True, False, None):
        result = unit([HIGHER, LOWER], training=training)
        np.testing.assert_array_equal(result, HIGHER)


def test_loss_is_added_only_in_training():
    unit = FeedbackAgreement(4)
    unit([HIGHER, LOWER])
    assert unit.losses == []
    unit([HIGHER, LOWER], training=False)
    assert unit.losses == []
    assert float(unit.loss_metric.count) == 0
    unit([HIGHER, LOWER], training=True)
    assert len(unit.losses) == 1
    assert float(unit.loss_metric.count) == 1


def test_weight_and_ramp_multiply_the_loss_but_not_the_metric():
    unit = FeedbackAgreement(4, weight=10.0)
    loss = float(unit_loss(unit))
    divergence = float(unit.loss_metric.result())
    assert loss == pytest.approx(10 * divergence)
    unit.ramp.assign(0.25)
    assert float(unit_loss(unit)) == pytest.approx(loss / 4)
    unit.ramp.assign(0.0)
    assert float(unit_loss(unit)) == 0
    assert float(unit.loss_metric.result()) == pytest.approx(divergence)


def test_each_end_has_its_own_batch_statistics():
    """f(u) is the same whatever u' it is compared with."""
    unit = FeedbackAgreement(4)
    unit_loss(unit)
    alone = unit._vectors(LOWER).numpy()
    unit._vectors(100 * LOWER)
    np.testing.assert_array_equal(unit._vectors(LOWER), alone)


def test_kl_equals_a_loop_over_samples():
    unit = FeedbackAgreement(4, weight=1.0, divergence="kl")
    loss = unit_loss(unit)
    generated = unit.generator([HIGHER, LOWER], training=True)
    p = reference.softmax(unit._vectors(generated).numpy(), -1)
    q = reference.softmax(unit._vectors(LOWER).numpy(), -1)
    expected = 0.0
    for sample in range(len(p)):
        for entry in range(p.shape[1]):
            ratio = q[sample, entry] / p[sample, entry]
            expected += q[sample, entry] * np.log(ratio) / len(p)
    assert expected > 1e-3
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    assert not hasattr(unit, "error_metric")


def test_extractor_none_compares_the_maps_themselves():
    unit = FeedbackAgreement(4, weight=1.0, extractor="none", cost="l2")
    loss = unit_loss(unit)
    assert not any("extractor" in v.path for v in unit.variables)
    generated = unit.generator([HIGHER, LOWER], training=True)
    np.testing.assert_allclose(
        loss,
        sinkhorn_divergence(
            tf.reshape(generated, (4, -1)),
            tf.reshape(LOWER, (4, -1)),
            cost="l2",
        ),
        rtol=1e-5,
    )


def test_capsule_generator_is_grouped_and_squashed():
    unit = FeedbackAgreement(4)
    unit_loss(unit)
    assert unit.generator.kernel.shape == (3, 3, 1, 8)
    generated = unit.generator([HIGHER, LOWER], training=True).numpy()
    assert generated.shape == LOWER.shape
    assert generated.max() < 1


def test_vanilla_generator_is_ungrouped_and_not_squashed():
    unit = FeedbackAgreement(1, generator="vanilla")
    unit_loss(unit)
    assert unit.generator.kernel.shape == (3, 3, 4, 8)
    generated = unit.generator([HIGHER, LOWER], training=True).numpy()
    assert generated.min() == 0
    assert generated.max() > 1


def test_a_stride_of_four_is_covered():
    unit = FeedbackAgreement(4)
    higher = maps(4, 2, 2, 8)
    loss = unit_loss(unit, higher)
    assert unit.generator.kernel.shape[:2] == (7, 7)
    assert np.isfinite(loss)


@pytest.mark.parametrize(
    ("size", "strides", "entries"),
    [
        ((16, 16), (2, 2), 16),
        ((8, 8), (2, 2), 4),
        ((5, 5), (2, 2), 4),
        ((4, 4), (2, 1), 4),
        ((3, 3), (2, 1), 4),
        ((2, 4), (2, 1), 2),
    ],
)
def test_small_maps_get_stride_one_in_the_second_convolution(
    size, strides, entries
):
    unit = FeedbackAgreement(4)
    unit.build([(None, *size, 8), (None, *size, 8)])
    extractor = unit.extractor
    assert (extractor.first.stride, extractor.second.stride) == strides
    assert unit._vectors(maps(3, *size, 8)).shape == (3, entries)
    assert extractor.first.filters == 2
    assert extractor.second.filters == 1


@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        ([(None, 2, 2, 8), (None, 2, 2, 8)], {}),
        ([(None, 1, 1, 8), (None, 1, 1, 8)], {}),
        (
            [(None, 1, 1, 4), (None, 1, 1, 1)],
            {"generator": "vanilla", "extractor": "none"},
        ),
    ],
)
def test_vectors_of_one_entry_are_refused_with_the_reason(shapes, options):
    with pytest.raises(
        ValueError, match="cosine distance.*is constant.*Received: lower maps"
    ):
        FeedbackAgreement(4, **options).build(shapes)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            [(None, 8, 8, 6), (None, 8, 8, 8)],
            r"multiple of `num_capsules`.*Received.*\(6, 8\).*vanilla",
        ),
        (
            [(None, 8, 8, 8), (None, 4, 4, 8)],
            r"as large as the higher.*Received: higher \(8, 8\)",
        ),
        (
            [(None, 3, 3, 8), (None, 4, 4, 8)],
            r"integer stride.*Received: higher \(3, 3\)",
        ),
        (
            [(None, 4, 4, 8), (None, 8, 4, 8)],
            r"integer stride.*Received: higher \(4, 4\)",
        ),
        ([(None, 8, 8), (None, 8, 8, 8)], "two maps.*Received"),
        ([(None, 8, 8, 8)], "two maps.*Received"),
        (
            [(None, None, None, 8), (None, 8, 8, 8)],
            "known height, width.*Received",
        ),
    ],
)
def test_refuses_maps_that_do_not_fit(shapes, message):
    with pytest.raises(ValueError, match=message):
        FeedbackAgreement(4).build(shapes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_capsules": 0}, "`num_capsules` must be.*Received"),
        ({"weight": -1.0}, "`weight` must be ≥ 0.*Received: weight=-1.0"),
        ({"epsilon": 0.0}, "`epsilon` > 0.*Received.*epsilon=0.0"),
        ({"num_iterations": 0}, "`num_iterations` must be.*Received"),
        ({"cost": "l1"}, "`cost` must be one of.*Received"),
        ({"generator": "gan"}, "`generator` must be one of.*Received"),
        ({"extractor": "dense"}, "`extractor` must be one of.*Received"),
        ({"divergence": "js"}, "`divergence` must be one of.*Received"),
        ({"gradient_share": 0.0}, "`gradient_share` must be.*Received"),
        ({"batch": "all"}, "`batch` must be one of.*Received"),
    ],
)
def test_refuses_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        FeedbackAgreement(**{"num_capsules": 4} | options)


@pytest.mark.parametrize("options", [{}, {"divergence": "kl"}, {"cost": "l2"}])
def test_mixed_bfloat16_is_close_to_float32_on_the_same_features(options):
    losses = []
    for policy in ("float32", "mixed_bfloat16"):
        keras.utils.set_random_seed(0)
        unit = FeedbackAgreement(4, weight=1.0, dtype=policy, **options)
        loss = unit_loss(unit, maps(16, 8, 8, 8), maps(16, 16, 16, 4, seed=1))
        assert loss.dtype == "float32"
        losses.append(float(loss))
    assert losses[1] == pytest.approx(losses[0], abs=1e-2)


ONE_MODULE = {"type2_layers": (1,), "strides": (2,), "num_classes": 3}


def tiny():
    """A network of one module with two units."""
    keras.utils.set_random_seed(0)
    model = create_model("encapnet_tiny", **ONE_MODULE)
    model.compile("sgd", "sparse_categorical_crossentropy")
    x = np.random.default_rng(0).uniform(size=(8, 32, 32, 3))
    return model, x.astype("float32"), np.arange(8) % 3


@pytest.mark.slow
def test_fit_logs_the_loss_and_the_marginal_error_of_every_unit():
    model, x, y = tiny()
    logs = model.fit(x, y, verbose=0).history
    units = agreement_units(model)
    assert len(units) == 2
    for unit in units:
        assert logs[f"{unit.name}_loss"][0] > 0
        assert logs[f"{unit.name}_marginal_error"][0] > 0


def test_evaluate_and_predict_never_run_the_units():
    model, x, y = tiny()
    model.evaluate(x, y, verbose=0)
    model.predict(x, verbose=0)
    for unit in agreement_units(model):
        assert float(unit.loss_metric.count) == 0


@pytest.mark.slow
def test_units_leave_no_operation_in_the_inference_graph():
    def operations(model, training):
        traced = tf.function(lambda x: model(x, training=training))
        graph = traced.get_concrete_function(
            tf.TensorSpec((None, 32, 32, 3))
        ).graph
        return sorted(op.type for op in graph.get_operations())

    model = tiny()[0]
    without = create_model("encapnet_tiny", agreement="none", **ONE_MODULE)
    assert operations(model, False) == operations(without, False)
    assert operations(model, True) != operations(without, True)


def test_ramp_scales_every_unit_and_survives_saving(tmp_path):
    model, x, _ = tiny()
    model(x, training=True)
    full = [float(loss) for loss in model.losses]
    assert len(full) == 2
    set_agreement_ramp(model, 0.125)
    model(x, training=True)
    ramped = [float(loss) for loss in model.losses]
    np.testing.assert_allclose(ramped, np.array(full) / 8, rtol=1e-5)

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [u.name for u in agreement_units(loaded)] == [
        u.name for u in agreement_units(model)
    ]
    assert {float(u.ramp) for u in agreement_units(loaded)} == {0.125}
    loaded(x, training=True)
    np.testing.assert_allclose(
        [float(loss) for loss in loaded.losses], ramped, rtol=1e-5
    )


@pytest.mark.slow
def test_two_replicas_compare_globally_or_each_its_own():
    done = forked.run("tests.layers.two_replicas")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    for ours, theirs in (("global", "single"), ("replica", "by_hand")):
        ours, theirs = results[ours], results[theirs]
        assert ours["divergence"] == pytest.approx(
            theirs["divergence"], rel=1e-4
        )
        for mine, other in zip(
            ours["weights"], theirs["weights"], strict=False
        ):
            np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-5)
    assert results["replica"]["divergence"] != pytest.approx(
        results["global"]["divergence"], rel=1e-2
    )
