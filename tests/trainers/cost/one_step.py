"""By how many bytes a training step makes its process grow.

python -m tests.trainers.cost.one_step VARIANT BATCH_SIZE
"""

import pathlib
import sys

import keras
import tensorflow as tf

from encapnet_tf import create_model
from encapnet_tf.losses import MarginLoss


def status(name):
    text = pathlib.Path("/proc/self/status").read_text()
    return int(text.split(name + ":")[1].split()[0]) * 1024


def growth(variant, batch_size):
    model = create_model(variant)
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    images = tf.random.uniform((batch_size, *model.input_shape[1:]))
    labels = tf.zeros(len(images), tf.int32)
    loss = MarginLoss()

    @tf.function(jit_compile=False)
    def step():
        with tf.GradientTape() as tape:
            scores = model(images, training=True)
            total = tf.add_n([loss(labels, scores), *model.losses])
        variables = model.trainable_variables
        gradients = tape.gradient(total, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    step.get_concrete_function()
    before = status("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    step()
    return status("VmHWM") - before


if __name__ == "__main__":
    print(growth(sys.argv[1], int(sys.argv[2])))
