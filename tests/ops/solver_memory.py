"""By how many MiB a divergence of batches of 1024 makes its process grow.

python -m tests.ops.solver_memory
"""

import tensorflow as tf

from encapnet_tf.ops import sinkhorn_divergence


@tf.function(input_signature=[tf.TensorSpec((None, 64))] * 2)
def step(x, y):
    with tf.GradientTape() as tape:
        tape.watch((x, y))
        value = sinkhorn_divergence(x, y)
    return value, tape.gradient(value, (x, y))


def peak():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1])


def batch(size, seed):
    return tf.random.stateless_normal((size, 64), (0, seed))


if __name__ == "__main__":
    step(batch(64, 0), batch(64, 1))
    x, y = batch(1024, 0), batch(1024, 1)
    before = peak()
    step(x, y)
    print((peak() - before) / 1024)
