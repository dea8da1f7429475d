import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import strip
from trainers.choices import OPTIMIZERS
from trainers.training import objective
from trainers.training.loop import Loop


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_of_keras_goes_by_name(recipe, name):
    optimizer = objective.make_optimizer(recipe(optimizer=name), 10)
    assert type(optimizer).__name__.lower() == name


def test_an_unknown_optimizer_is_refused_with_the_list(recipe):
    message = "'adam', .*Received: optimizer='adm'. Did you mean 'adam'"
    with pytest.raises(ValueError, match=message):
        recipe(optimizer="adm")


def test_adam_and_sgd_have_the_paper_s_constants(recipe):
    adam = objective.make_optimizer(recipe(optimizer="adam"), 10)
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.9, 0.999, 1e-8)
    sgd = objective.make_optimizer(recipe(optimizer="sgd"), 10)
    assert sgd.momentum == 0.9


def test_steps_are_kept_as_fractions_of_the_run(recipe):
    paper = recipe(schedule="steps", learning_rate=1e-4)
    schedule = objective.make_schedule(paper, 600)
    rates = [float(schedule(step)) for step in (0, 199, 201, 299, 301, 401)]
    np.testing.assert_allclose(
        rates, [1e-4, 1e-4, 1e-5, 1e-5, 1e-6, 1e-7], rtol=1e-5
    )


def test_cosine_rises_and_ends_at_zero(recipe):
    schedule = objective.make_schedule(
        recipe(schedule="cosine", learning_rate=1e-2), 100
    )
    rates = [float(schedule(step)) for step in range(101)]
    assert rates[0] == pytest.approx(1e-3)
    assert max(rates) == pytest.approx(1e-2)
    assert rates[100] == pytest.approx(0, abs=1e-8)


def test_weight_decay_is_l2_in_the_gradient_of_kernels_only(recipe, stripes):
    """One step of plain SGD: v − lr (g + wd·v) for kernels, v − lr g else."""
    fields = {"optimizer": "sgd", "learning_rate": 0.1, "schedule": "constant"}
    results = {}
    for decay in (0.0, 0.5):
        loop = Loop(
            recipe(weight_decay=decay, **fields), stripes, None, quiet=True
        )
        before = [v.numpy() for v in loop.model.trainable_variables]
        images, labels = next(iter(loop._train_batches(0, loop.steps)))
        loop._train_step(images, labels, False)
        results[decay] = [v.numpy() for v in loop.model.trainable_variables]
    names = [v.name for v in loop.model.trainable_variables]
    assert "kernel" in names
    for name, start, plain, decayed in zip(
        names, before, results[0.0], results[0.5], strict=True
    ):
        expected = plain - 0.1 * 0.5 * start if name == "kernel" else plain
        np.testing.assert_allclose(decayed, expected, atol=2e-6)


def test_the_kernels_of_a_decoder_are_not_decayed(recipe):
    settings = recipe(decoder="conv", weight_decay=0.5)
    model = settings.build(3, (32, 32, 3))
    flags = objective.decayed_variables(settings, model)
    decayed = [
        variable.path
        for variable, flag in zip(model.trainable_variables, flags, strict=True)
        if flag
    ]
    assert decayed
    assert not any("decoder" in path for path in decayed)
    plain = objective.decayed_variables(settings, strip(model))
    assert sum(plain) == len(decayed)


@pytest.mark.parametrize(
    "name",
    ["margin", "spread", "spread_fixed", "cross_entropy",
     "categorical_hinge", "sparse_categorical_crossentropy",
     "mean_squared_error"],
)  # fmt: skip
def test_every_loss_gives_one_finite_value_per_sample(recipe, name):
    loss = objective.make_loss(recipe(loss=name))
    labels = tf.constant([0, 2, 1])
    scores = tf.constant([[0.9, 0.1, 0.2], [0.3, 0.3, 0.4], [0.1, 0.8, 0.1]])
    wanted = objective.labels_for(loss, labels, 3)
    values = np.asarray(loss(wanted, scores))
    assert values.shape == (3,)
    assert np.isfinite(values).all()


def test_an_unknown_loss_is_refused(recipe):
    with pytest.raises(ValueError, match="`loss` must be.*Received"):
        objective.make_loss(recipe(loss="marginal"))


def test_capsules_get_the_margin_loss_and_plain_networks_cross_entropy(recipe):
    assert recipe().loss_name() == "margin"
    plain = recipe(variant="resnet18", override={})
    assert plain.loss_name() == "cross_entropy"


def test_balanced_weights_count_every_class_alike(recipe):
    labels = np.array([0] * 6 + [1] * 3 + [2])
    weights = objective.make_class_weights(
        recipe(class_weights="balanced"), labels, 3
    )
    totals = [weights[c] * (labels == c).sum() for c in range(3)]
    np.testing.assert_allclose(totals, [10 / 3] * 3, rtol=1e-6)
    assert weights[labels].mean() == pytest.approx(1)


def test_decoupled_decay_leaves_biases_alone(recipe):
    optimizer = objective.make_optimizer(
        recipe(optimizer="adamw", weight_decay=0.1), 10
    )
    bias = keras.Variable(np.ones(3), name="bias")
    kernel = keras.Variable(np.ones(3), name="kernel")
    optimizer.build([bias, kernel])
    assert optimizer._use_weight_decay(kernel)
    assert not optimizer._use_weight_decay(bias)


def test_the_optimisers_that_flags_take_are_those_of_keras():
    known = {
        name.lower()
        for name, kind in vars(keras.optimizers).items()
        if inspect.isclass(kind) and issubclass(kind, keras.Optimizer)
    }
    apart = {"optimizer", "lossscaleoptimizer", "multioptimizer"}
    assert set(OPTIMIZERS) == known - apart
