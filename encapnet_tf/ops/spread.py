"""How far a batch of vectors tells its samples apart."""

import tensorflow as tf

from encapnet_tf.ops.ground_cost import embed
from encapnet_tf.ops.squash import at_least_float32

_EPSILON = 1e-5


def spread(vectors: tf.Tensor, cost: str = "cosine") -> tf.Tensor:
    """Root mean square distance of vectors `(B, d)` from their mean.

    Args:
        vectors: One vector per sample.
        cost: "cosine" compares directions, from 0 to 1, where vectors of zeros
            have none; other costs take the vectors as they are.

    Example:
        >>> spread([[2.0, 0.0], [0.0, 5.0]]).numpy().round(3)
        np.float32(0.707)
        >>> spread([[1.0, 2.0], [2.0, 4.0]]).numpy()
        np.float32(0.0)
    """
    points = embed(at_least_float32(vectors), cost)
    return tf.sqrt(
        tf.reduce_sum(tf.math.reduce_variance(points, axis=0), axis=-1)
    )


def zero_share(vectors: tf.Tensor) -> tf.Tensor:
    """Share of the vectors `(B, d)` that are all zeros.

    Example:
        >>> zero_share([[0.0, 0.0], [0.0, 1.0]]).numpy()
        np.float32(0.5)
    """
    return tf.reduce_mean(
        tf.cast(tf.reduce_all(tf.equal(vectors, 0), axis=-1), tf.float32)
    )


def standardize(vectors: tf.Tensor) -> tf.Tensor:
    """Gives every entry of vectors `(B, d)` mean 0 and variance 1 in the batch.

    Example:
        >>> standardize([[1.0, 7.0], [3.0, 7.0]]).numpy().round(3)
        array([[-1.,  0.],
               [ 1.,  0.]], dtype=float32)
    """
    vectors = at_least_float32(vectors)
    mean, variance = tf.nn.moments(vectors, axes=[0], keepdims=True)
    return (vectors - mean) * tf.math.rsqrt(variance + _EPSILON)
