"""Times a grouped convolution against Keras' own.

Measured: a training step (value, gradients of input, kernel and bias) of one
3×3 convolution from 128 to 256 channels in 32 groups on 16×16 maps, batch 16,
float32, in a `tf.function`, as a CapConv layer has it. Ours is `GroupedConv2D`,
the other `keras.layers.Conv2D(groups=32)`, both with the same weights and in
one process. The two must agree before they are timed.

Run: python -m benchmarks.grouped_conv [--repeats 30]
"""

import argparse
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.layers import GroupedConv2D

BATCH, SIDE, INPUTS, OUTPUTS, GROUPS = 16, 16, 128, 256, 32


def training_step(layer, maps):
    """Returns a traced call of value and gradients."""
    layer.build(maps.shape)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(maps)
            loss = tf.reduce_sum(tf.square(layer(maps)))
        weights = [v.value for v in layer.trainable_variables]
        return loss, *tape.gradient(loss, [maps, *weights])

    return step


def median_seconds(step, repeats):
    """Returns the median time of a call, the first one left out."""
    step()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()[0].numpy()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    """Prints both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    maps = np.random.default_rng(0).normal(size=(BATCH, SIDE, SIDE, INPUTS))
    maps = tf.constant(maps, tf.float32)
    ours = GroupedConv2D(OUTPUTS, 3, groups=GROUPS)
    theirs = keras.layers.Conv2D(OUTPUTS, 3, padding="same", groups=GROUPS)
    steps = [training_step(layer, maps) for layer in (ours, theirs)]
    theirs.set_weights(ours.get_weights())
    for mine, other in zip(steps[0](), steps[1](), strict=True):
        scale = np.abs(other).max()
        np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4 * scale)
    # Few repeats of the slow one: a single call takes most of a second.
    seconds = [
        median_seconds(steps[0], repeats),
        median_seconds(steps[1], max(3, repeats // 10)),
    ]
    print(f"{SIDE}×{SIDE}×{INPUTS} → {OUTPUTS}, {GROUPS} groups, batch {BATCH}")
    for name, value in zip(
        ("encapnet_tf GroupedConv2D", "keras Conv2D"), seconds, strict=True
    ):
        print(f"{name:26} {1000 * value:10.2f} ms")
    print(f"ratio {seconds[1] / seconds[0]:.0f}")


if __name__ == "__main__":
    main()
