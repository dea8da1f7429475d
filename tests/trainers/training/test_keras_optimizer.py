import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainers.training import keras_optimizer

SHAPES = {"kernel": (3, 3, 4, 8), "bias": (8,), "gain": ()}


def starts():
    generator = np.random.default_rng(0)
    return [generator.normal(size=shape) for shape in SHAPES.values()]


def gradients(steps=50):
    """Those of each step, of all sizes."""
    generator = np.random.default_rng(1)
    for _ in range(steps):
        size = 10 ** generator.uniform(-6, 3)
        yield [generator.normal(size=s) * size for s in SHAPES.values()]


def train(optimizer, dtype):
    variables = [
        keras.Variable(value, dtype=dtype, name=name)
        for value, name in zip(starts(), SHAPES, strict=True)
    ]
    optimizer.build(variables)

    @tf.function
    def step(*values):
        optimizer.apply(list(values), variables)

    for values in gradients():
        step(*(tf.constant(value, dtype) for value in values))
    return [np.array(v) for v in (*variables, *optimizer.variables)]


def adam(rate, beta_1, beta_2, epsilon):
    """Kingma and Ba's algorithm 1, its epsilon as Keras has it."""
    values = starts()
    moments = [(np.zeros_like(v), np.zeros_like(v)) for v in values]
    for t, step in enumerate(gradients(), 1):
        corrected = rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        for i, g in enumerate(step):
            m = beta_1 * moments[i][0] + (1 - beta_1) * g
            v = beta_2 * moments[i][1] + (1 - beta_2) * g**2
            moments[i] = m, v
            values[i] = values[i] - corrected * m / (np.sqrt(v) + epsilon)
    return values


def test_computes_adam():
    options = {"beta_1": 0.8, "beta_2": 0.999, "epsilon": 1e-8}
    found = train(keras_optimizer.Adam(2**-6, **options), "float64")
    for ours, exact in zip(found, adam(2**-6, **options), strict=False):
        np.testing.assert_allclose(ours, exact, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Adam", {"epsilon": 1e-8}),
        ("Adam", {"clipnorm": 0.5, "use_ema": True}),
        ("AdamW", {"weight_decay": 0.1}),
    ],
)
def test_keeps_what_else_keras_does(name, options):
    """Keras rounds beta_2 in one of two places: 1e-5 of each update."""
    rate = keras.optimizers.schedules.CosineDecay(0.01, 60)
    ours = train(getattr(keras_optimizer, name)(rate, **options), "float32")
    theirs = train(getattr(keras.optimizers, name)(rate, **options), "float32")
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        (
            "_backend_update_step",
            "self grads trainable_variables learning_rate",
        ),
        ("_all_reduce_sum_gradients", "self grads_and_vars"),
        ("_get_variable_index", "self variable"),
        ("update_step", "self gradient variable learning_rate"),
    ],
)
def test_keras_still_has_what_is_borrowed(name, parameters):
    found = getattr(keras.optimizers.Adam, name, None)
    assert found is not None, f"Adam.{name} is gone; see keras_optimizer.py"
    assert [*inspect.signature(found).parameters] == parameters.split()


def test_keras_takes_its_sum_from_where_it_is_replaced():
    """Or gradients would be summed over the replicas twice."""
    optimizer = keras.optimizers.SGD(1.0)
    seen = []
    optimizer._all_reduce_sum_gradients = lambda pairs: (
        seen.extend(pairs) or seen
    )
    variable = keras.Variable([0.0])
    optimizer.build([variable])
    optimizer.apply([tf.ones(1)], [variable])
    assert len(seen) == 1


def test_keras_keeps_the_moments_where_they_are_taken():
    adam = keras_optimizer.Adam(name="adam")
    variable = keras.Variable([0.0], name="kernel")
    adam.build([variable])
    assert [m.path for m in adam._momentums] == ["adam/kernel_momentum"]
    assert [v.path for v in adam._velocities] == ["adam/kernel_velocity"]
