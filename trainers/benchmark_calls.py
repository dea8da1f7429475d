"""The calls that a benchmark times: each does its work and waits for it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from encapnet_tf.data import batches
from encapnet_tf.data.splits import ArraySplit
from encapnet_tf.layers import GroupedConv2D
from encapnet_tf.ops import sinkhorn_divergence
from trainers import objective
from trainers.benchmark_results import PRODUCT_SIDE
from trainers.recipe import Recipe, set_policy
from trainers.step import TrainStep
from trainers.timing import interleaved_seconds

_LEAST_ROUNDS = 5
_PRODUCT = "matrix product"
# They are short: one alone says little about a busy machine.
_PRODUCTS_PER_ROUND = 3
# Learning-rate schedules want an end; no measurement gets there.
_TOTAL_STEPS = 1_000_000

Call = Callable[[], object]


def in_turn(
    calls: dict[Any, Call], seconds: float
) -> tuple[dict[Any, np.ndarray], np.ndarray]:
    """Times calls in turn with matrix products.

    Args:
        calls: What to time, by name.
        seconds: About how long to take for each, five rounds at least.

    Returns:
        The times of each, and those of the products.
    """
    product = matrix_product(PRODUCT_SIDE)
    products = {(_PRODUCT, n): product for n in range(_PRODUCTS_PER_ROUND)}
    times = interleaved_seconds(
        calls | products,
        seconds * (len(calls) + 1),
        least_rounds=_LEAST_ROUNDS,
    )
    spent = np.concatenate([times.pop(name) for name in products])
    return times, spent


def matrix_product(side: int) -> Call:
    """Multiplies two square float32 matrices."""
    left, right = _random(2, side, side)
    multiply = _traced(lambda: tf.matmul(left, right)[-1, -1])
    return lambda: multiply().numpy()


def network(recipe: Recipe) -> dict[str, Call]:
    """Trains a new network step by step, as the loop does, or asks it.

    It is asked in a traced call of a fixed batch size.
    """
    set_policy(recipe)
    config = recipe.network()
    model = recipe.build(config.num_classes, config.input_shape)
    optimizer = objective.make_optimizer(recipe, _TOTAL_STEPS)
    optimizer.build(model.trainable_variables)
    weights = np.ones(config.num_classes, np.float32)
    step = TrainStep(
        model, optimizer, recipe, weights, tf.distribute.get_strategy()
    )
    score = _traced(lambda images: model(images, training=False))
    shape = (recipe.batch_size, *config.input_shape)
    images = tf.random.stateless_uniform(shape, (0, 0))
    labels = tf.range(recipe.batch_size) % config.num_classes
    stop = tf.constant(False)
    return {
        "train": lambda: step(images, labels, stop).numpy(),
        "inference": lambda: score(images).numpy(),
    }


def convolution(
    layer: GroupedConv2D, input_shape: tuple[int, ...]
) -> dict[str, Call]:
    """Convolves, and apart from that computes the gradients.

    TensorFlow leaves a forward pass out whose result nothing needs.

    Args:
        layer: The convolution.
        input_shape: With the batch axis.
    """
    layer.build(input_shape)
    maps = _random(*input_shape)
    (upstream,) = _random(1, *layer.compute_output_shape(input_shape))

    @_traced
    def forward(maps):
        return layer(maps)[-1, -1, -1, -1]

    @_traced
    def backward(maps, upstream):
        with tf.GradientTape() as tape:
            tape.watch(maps)
            outputs = layer(maps)
        gradients = tape.gradient(
            outputs, [maps, *layer.trainable_variables], upstream
        )
        return tf.add_n([tf.reshape(g, [-1])[-1] for g in gradients])

    return {
        "forward": lambda: forward(maps).numpy(),
        "backward": lambda: backward(maps, upstream).numpy(),
    }


def read_epoch(split: ArraySplit, batch_size: int, augmentation: str) -> Call:
    """Takes all batches of an epoch from memory."""

    def read():
        found = batches(
            split,
            batch_size,
            training=True,
            image_shape=split.image_shape,
            augmentation=augmentation,
            flip=True,
            drop_remainder=True,
        )
        return sum(1 for _ in found)

    return read


def divergence(
    batch_size: int, features: int, *, gradient: bool, **options: Any
) -> Call:
    """Computes a Sinkhorn divergence, and its gradient if wanted."""
    vectors = _random(2, batch_size, features)

    @_traced
    def value(vectors):
        return sinkhorn_divergence(vectors[0], vectors[1], **options)

    @_traced
    def value_and_gradient(vectors):
        with tf.GradientTape() as tape:
            tape.watch(vectors)
            found = sinkhorn_divergence(vectors[0], vectors[1], **options)
        return found + tape.gradient(found, vectors)[-1, -1, -1]

    call = value_and_gradient if gradient else value
    return lambda: call(vectors).numpy()


def random_split(count: int, image_shape: tuple[int, int, int]) -> ArraySplit:
    """Makes images of noise, in memory."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (count, *image_shape), np.uint8)
    return ArraySplit(images, np.arange(count) % 10)


def _traced(function):
    return tf.function(function, jit_compile=False)


def _random(*shape):
    return tf.random.stateless_normal(shape, (0, 0))
