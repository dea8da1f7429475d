"""squash, the non-linearity of a capsule, and the length of a capsule."""

import numpy as np
import tensorflow as tf

# Squares of float32 entries up to 1e20 must not overflow. Being a power of
# two, the factor costs no accuracy; vectors shorter than 1e-16 count as 0.
_SCALE = 2.0**-10
_SHORTEST = 2.0**-100
# Numbers that a CPU multiplies at once.
_REGISTER = 16


def at_least_float32(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the tensor in float32, or in float64 where it came in float64."""
    tensor = tf.convert_to_tensor(tensor)
    return tensor if tensor.dtype == tf.float64 else tf.cast(tensor, tf.float32)


def length(vectors: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Returns the Euclidean length of each vector; its gradient at 0 is 0.

    Args:
        vectors: A tensor of any shape.
        axis: The axis that holds the entries of a vector.

    Example:
        >>> length(tf.constant([[3.0, 4.0], [0.0, 0.0]])).numpy().tolist()
        [5.0, 0.0]
    """
    vectors = tf.convert_to_tensor(vectors)
    lengths = _length(at_least_float32(vectors), axis)
    return tf.cast(tf.squeeze(lengths, axis), vectors.dtype)


def squash(vectors: tf.Tensor, axis: int = -1) -> tf.Tensor:
    """Shrinks each vector to a length below 1: |s|²/(1+|s|²) · s/|s|.

    Computed in float32 (float64 for float64) whatever comes in. Value and
    gradient are finite for every finite input; the gradient at 0 is 0.

    Args:
        vectors: A tensor of any shape.
        axis: The axis that holds the entries of a vector.

    Returns:
        A tensor like `vectors`.

    Example:
        >>> squash(tf.constant([3.0, 4.0])).numpy().round(4)
        array([0.5769, 0.7692], dtype=float32)
    """
    vectors = tf.convert_to_tensor(vectors)
    return tf.cast(_squash(at_least_float32(vectors), axis), vectors.dtype)


def _sum_of_squares(vectors, axis):
    return tf.reduce_sum(tf.square(vectors * _SCALE), axis, keepdims=True)


def _length(vectors, axis):
    """Length with the axis kept and a gradient of 0 at 0."""

    @tf.custom_gradient
    def forward(values):
        lengths = tf.sqrt(_sum_of_squares(values, axis)) / _SCALE

        def backward(upstream):
            return upstream * tf.math.divide_no_nan(values, lengths)

        return lengths, backward

    return forward(vectors)


def _squash(vectors, axis):
    """Squashes with the gradient written out."""

    def total(values):
        return tf.reduce_sum(values, axis, keepdims=True)

    return _squash_with(vectors, total, lambda totals: totals)


def squash_maps(maps: tf.Tensor, num_capsules: int) -> tf.Tensor:
    """Squashes the capsules of maps `(B, H, W, C·D)`, capsule by capsule.

    As `squash` with an axis for the capsules. On a CPU a sum over a few
    entries, and a product with something broadcast over them, take several
    times as long as these small matrix products.

    Args:
        maps: Maps `(…, C·D)`.
        num_capsules: C.

    Returns:
        A tensor like `maps`.

    Example:
        >>> squash_maps(tf.constant([[3.0, 4.0, 0.0, 1.0]]), 2).numpy().round(4)
        array([[0.5769, 0.7692, 0.    , 0.5   ]], dtype=float32)
    """
    maps = tf.convert_to_tensor(maps)
    values = at_least_float32(maps)
    dim = maps.shape[-1] // num_capsules
    together = _together(num_capsules, dim)
    members = tf.constant(
        np.repeat(np.eye(together), dim, axis=0), values.dtype
    )

    def total(values):
        return tf.matmul(tf.reshape(values, (-1, together * dim)), members)

    def spread(totals):
        spread = tf.matmul(totals, members, transpose_b=True)
        return tf.reshape(spread, tf.shape(values))

    return tf.cast(_squash_with(values, total, spread), maps.dtype)


def _together(num_capsules, dim):
    """How many neighbouring capsules a matrix product takes together.

    The product of all at once mostly multiplies zeros; the fewest that fill a
    vector register take two thirds of its time.
    """
    fewest = -(-_REGISTER // dim)
    counts = range(min(fewest, num_capsules), num_capsules + 1)
    return next(count for count in counts if num_capsules % count == 0)


def _squash_with(vectors, total, spread):
    """Squashes with the gradient written out.

    With n = |s|, n/(1+n²) = 1/(n + 1/n): nothing overflows for a long vector.
    _SHORTEST keeps 1/n finite for a zero one, and taken off makes its factor 0.

    Args:
        vectors: s.
        total: Sums over the entries of each vector.
        spread: Gives each entry what its vector has.
    """

    @tf.custom_gradient
    def forward(values):
        lengths = tf.sqrt(total(tf.square(values * _SCALE))) / _SCALE
        inverse = 1 / tf.maximum(lengths, _SHORTEST)
        factor = 1 / (lengths + inverse) - _SHORTEST
        factors = spread(factor)

        def backward(upstream):
            # d(s·f(n)) = f·g + û (û·g) n f'(n), where û = s/n and
            # n f'(n) = f²·(1/n − n).
            slope = factor * factor * (inverse - lengths)
            along = total(values * upstream) * inverse
            return factors * upstream + values * spread(inverse * slope * along)

        return values * factors, backward

    return forward(vectors)
