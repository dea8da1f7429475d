"""Trains a network with an agreement unit on two devices, and on one by hand.

python -m tests.layers.two_replicas
"""

import json

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.layers import FeedbackAgreement
from encapnet_tf.ops import sinkhorn_divergence

X = np.random.default_rng(0).normal(size=(8, 16, 16, 4)).astype("float32")


def network(batch):
    keras.utils.set_random_seed(0)
    images = keras.Input((16, 16, 4))
    low = keras.layers.Conv2D(8, 3, padding="same", name="low")(images)
    high = keras.layers.Conv2D(8, 3, 2, padding="same", name="high")(low)
    high = FeedbackAgreement(4, batch=batch, name="unit")([high, low])
    result = keras.Model(images, high)
    result.compile(keras.optimizers.SGD(0.01))
    return result


def step(model):
    images = tf.data.Dataset.from_tensors(X)
    logs = model.fit(images.unbatch().batch(8), verbose=0).history
    return {
        "divergence": logs["unit_loss"][0],
        "weights": [w.tolist() for w in model.get_weights()],
    }


def by_hand():
    """The statistics of the whole batch, the divergence of each half."""
    model = network("global")
    unit, kernel = model.get_layer("unit"), model.get_layer("low").kernel
    with tf.GradientTape() as tape:
        low = model.get_layer("low")(X)
        high = model.get_layer("high")(low)
        recovered = unit._vectors(unit.generator([high, low], training=True))
        lower = unit._vectors(low)
        halves = [
            sinkhorn_divergence(recovered[half], lower[half])
            for half in (slice(0, 4), slice(4, 8))
        ]
        mean = tf.reduce_mean(halves)
    stepped = kernel - 0.01 * 10 * tape.gradient(mean, kernel.value)
    return {"divergence": float(mean), "weights": [stepped.numpy().tolist()]}


def main():
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    results = {"by_hand": by_hand(), "single": step(network("global"))}
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for batch in ("global", "replica"):
        with strategy.scope():
            distributed = network(batch)
        results[batch] = step(distributed)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
