"""The calls that a benchmark times: each does its work and waits for it."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.data import batches
from encapnet_tf.data.splits import ArraySplit
from encapnet_tf.layers import CapConv, GroupedConv2D
from encapnet_tf.ops import sinkhorn_divergence
from trainers.benchmark.results import PRODUCT_SIDE, Key, Measurement
from trainers.cost.step_trace import outline_model
from trainers.cost.timing import interleaved_seconds
from trainers.recipe import Recipe
from trainers.training import objective
from trainers.training.devices import set_policy
from trainers.training.step import TrainStep

# Learning-rate schedules need an end; no measurement gets there.
_TOTAL_STEPS = 1_000_000
_LEAST_ROUNDS = 5
# They are short: one alone says little about a busy machine.
_PRODUCTS_PER_ROUND = 3

Call = Callable[[], object]


def in_turn(
    contestants: dict[Key, Call],
    seconds: float,
    *,
    images: int | None = None,
    multiply_adds: dict[Key, int] | None = None,
) -> list[Measurement]:
    """Times calls in turn with matrix products.

    Args:
        contestants: What to time.
        seconds: About how long to take for each, five rounds at least.
        images: How many every call takes, if any.
        multiply_adds: Of each call, where they are counted.
    """
    product = matrix_product(PRODUCT_SIDE)
    products = {(number,): product for number in range(_PRODUCTS_PER_ROUND)}
    spent = interleaved_seconds(
        contestants | products,
        seconds * (len(contestants) + 1),
        least_rounds=_LEAST_ROUNDS,
    )
    product_seconds = np.median([spent[n] for n in products], axis=0)
    return [
        Measurement(
            *key,
            spent[key].tolist(),
            product_seconds.tolist(),
            images=images,
            multiply_adds=(multiply_adds or {}).get(key),
        )
        for key in contestants
    ]


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


def aides(
    variant: str,
) -> dict[str, tuple[GroupedConv2D, tuple[int, int, int]]]:
    """Returns the aide convolutions of a network, each shape once.

    Returns:
        Convolutions like them and the shapes of the maps that they read, by
        names like "7×7/2 256→512 on 8×8".
    """
    found = {}
    for layer in outline_model(variant).layers:
        if isinstance(layer, CapConv) and layer.branches == "master_aide":
            maps = keras.tree.flatten(layer.input)[0].shape[1:]
            aide = GroupedConv2D.from_config(layer.aide.get_config())
            size, (height, width, channels) = aide.kernel_size, maps
            stride = f"/{aide.stride}" if aide.stride > 1 else ""
            name = (
                f"{size}×{size}{stride} {channels}→{aide.filters} "
                f"on {height}×{width}"
            )
            found[name] = (aide, tuple(maps))
    return found


def convolution(
    layer: GroupedConv2D, input_shape: tuple[int, ...]
) -> dict[str, Call]:
    """Convolves, and apart from that computes the gradients.

    TensorFlow leaves out a forward pass whose result is not used.

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


def random_split(count: int, image_shape: tuple[int, int, int]) -> ArraySplit:
    """Makes images of noise, in memory."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (count, *image_shape), np.uint8)
    return ArraySplit(images, np.arange(count) % 10)


def divergence(
    batch_size: int, features: int, *, gradient: bool = True, **options: Any
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


def _traced(function):
    return tf.function(function, autograph=False, jit_compile=False)


def _random(*shape):
    return tf.random.stateless_normal(shape, (0, 0))
