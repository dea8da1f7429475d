"""Our side of the race: the bare networks, in a `tf.function`.

What is timed has the weights of a short training: the maps of fresh ones hold
denormal numbers, which one framework flushes to zero and the other does not.
"""

import keras
import numpy as np
import tensorflow as tf

import encapnet_tf
from encapnet_tf.data.house_numbers.rendering import render
from trainers.training.keras_optimizer import Adam

LEARNING_RATE = 1e-4
_TRAINING_STEPS = 30
_TRAINING_BATCH = 32
_TRAINING_RATE = 1e-3


def bare_model(variant):
    """Returns our network without agreement units."""
    keras.utils.set_random_seed(0)
    bare = {} if variant.startswith("capnet") else {"agreement": "none"}
    return encapnet_tf.create_model(variant, **bare)


def trained_weights(variant, batch):
    """Returns the weights after some steps on house numbers, by their paths."""
    model = bare_model(variant)
    size = min(batch, _TRAINING_BATCH)
    images, labels = photographs(size * _TRAINING_STEPS)
    step = training_step(model, _TRAINING_RATE)
    for place in range(0, len(images), size):
        chosen = slice(place, place + size)
        step(tf.constant(images[chosen]), tf.constant(labels[chosen]))
    return by_path(model)


def by_path(model):
    """Returns the weights of a model as arrays, by their paths."""
    return {weight.path: weight.numpy() for weight in model.weights}


def photographs(count):
    """Returns images in [0, 1] and labels."""
    images, labels = render(np.random.default_rng(0), count)
    return images.astype("float32") / 255.0, labels.astype("int64")


def training_step(model, learning_rate):
    """Returns a traced step: forward, backward, margin loss, Adam."""
    loss = encapnet_tf.losses.MarginLoss()
    optimizer = Adam(learning_rate)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=False, reduce_retracing=True)
    def train(images, labels):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(value, variables), variables)
        return value

    return train


def make_runs(threads, variant, weights, images, labels, policy):
    """Returns calls of a training step and of inference."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    keras.config.set_dtype_policy(policy)
    model = bare_model(variant)
    for weight in model.weights:
        weight.assign(weights[weight.path])
    images, labels = tf.constant(images), tf.constant(labels)
    train = training_step(model, LEARNING_RATE)
    infer = tf.function(
        lambda images: model(images, training=False), jit_compile=False
    )
    return {
        "train": lambda: train(images, labels).numpy(),
        "infer": lambda: infer(images).numpy(),
    }
