"""Times a training step with the feedback agreement units and without.

Measured: forward, backward and the Adam update of one batch, margin loss,
float32, in a `tf.function`, for the network with its units and for the same
network without. The two take turns, so that a slow moment of the machine hits
both, and the medians are compared.

Run: python -m benchmarks.agreement_cost [--batch 64] [--repeats 10]
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

import encapnet_tf

VARIANTS = ("encapnet14_authors_master", "encapnet_small")


def training_step(variant, images, labels, **overrides):
    """Returns a traced training step of a new model."""
    model = encapnet_tf.create_model(variant, **overrides)
    loss = encapnet_tf.losses.MarginLoss()
    optimizer = keras.optimizers.Adam(1e-4)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            scores = model(images, training=True)
            total = tf.add_n([loss(labels, scores), *model.losses])
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(total, variables), variables)
        return total

    return step


def interleaved_medians(steps, repeats):
    """Returns the median seconds of each step, taken in turn."""
    for step in steps:
        step().numpy()
    times = [[] for _ in steps]
    for _ in range(repeats):
        for step, taken in zip(steps, times, strict=True):
            start = time.perf_counter()
            step().numpy()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def main():
    """Prints one row per variant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=10)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    images = rng.uniform(size=(arguments.batch, 32, 32, 3))
    images = tf.constant(images, tf.float32)
    labels = tf.constant(rng.integers(0, 10, size=arguments.batch))
    print(f"batch {arguments.batch}; milliseconds per training step")
    print(f"{'variant':28}{'with units':>12}{'without':>12}{'ratio':>8}")
    for variant in VARIANTS:
        steps = [
            training_step(variant, images, labels),
            training_step(variant, images, labels, agreement="none"),
        ]
        units, plain = interleaved_medians(steps, arguments.repeats)
        print(
            f"{variant:28}{1000 * units:12.0f}{1000 * plain:12.0f}"
            f"{units / plain:8.2f}"
        )


if __name__ == "__main__":
    main()
