"""The ground cost Q of optimal transport: what moving a unit of mass costs."""

import tensorflow as tf

from encapnet_tf.checks import check_choice
from encapnet_tf.choices import COSTS
from encapnet_tf.ops.squash import at_least_float32


def cost_matrix(x, y, cost: str = "cosine") -> tf.Tensor:
    """Pairwise costs of two batches of vectors.

    Values and gradients are finite everywhere. A zero row has cosine 0 with
    everything and passes no gradient; coincident points have distance 0 and,
    under `l2`, gradient 0.

    Args:
        x: Rows `(..., B2, d)`.
        y: Columns `(..., B1, d)`.
        cost: `"cosine"` (1 - cos), `"l2"` (Euclidean norm) or `"sqeuclidean"`.

    Returns:
        `(..., B2, B1)`, float64 if an input is, else float32.

    Example:
        >>> cost_matrix([[3.0, 0.0]], [[0.0, 4.0], [3.0, 0.0]], "l2").numpy()
        array([[5., 0.]], dtype=float32)
    """
    check_choice("cost", cost, COSTS)
    x, y = as_features(x, y)
    return pairwise(embed(x, cost), embed(y, cost), cost)


def embed(vectors: tf.Tensor, cost: str) -> tf.Tensor:
    """Unit rows for the cosine, zero rows staying zero."""
    if cost != "cosine":
        return vectors
    # Dividing by the largest entry first keeps the squares in range.
    largest = tf.reduce_max(tf.abs(vectors), axis=-1, keepdims=True)
    is_zero = tf.equal(largest, 0)
    largest = tf.where(is_zero, tf.ones_like(largest), largest)
    vectors = vectors / tf.stop_gradient(largest)
    squares = tf.reduce_sum(tf.square(vectors), axis=-1, keepdims=True)
    inverse = tf.math.rsqrt(tf.where(is_zero, tf.ones_like(squares), squares))
    return vectors * tf.where(is_zero, tf.zeros_like(inverse), inverse)


def pairwise(x: tf.Tensor, y: tf.Tensor, cost: str) -> tf.Tensor:
    """Costs of what `embed` returned."""
    if cost == "cosine":
        return 1 - tf.matmul(x, y, transpose_b=True)
    squares, apart = _squared_distances(x, y)
    if cost == "sqeuclidean":
        return tf.where(apart, squares, tf.zeros_like(squares))
    # The inner `where` keeps the infinite slope at 0 out of the gradient.
    roots = tf.sqrt(tf.where(apart, squares, tf.ones_like(squares)))
    return tf.where(apart, roots, tf.zeros_like(roots))


def _squared_distances(x: tf.Tensor, y: tf.Tensor):
    """Squared distances, and which of them are not rounding around 0.

    |x|^2 + |y|^2 - 2 x.y loses half the digits of close points, so float32
    points are multiplied in float64, where their products are exact, and
    float64 points are subtracted one by one, at B2 * B1 * d numbers of memory.
    """
    if x.dtype == tf.float64:
        differences = tf.expand_dims(x, -2) - tf.expand_dims(y, -3)
        squares = tf.reduce_sum(tf.square(differences), axis=-1)
        return squares, squares > 0
    x, y = tf.cast(x, tf.float64), tf.cast(y, tf.float64)
    # A common offset would take digits and changes no distance.
    centre = tf.stop_gradient(tf.reduce_mean(y, axis=-2, keepdims=True))
    x, y = x - centre, y - centre
    x_squares = tf.reduce_sum(tf.square(x), axis=-1, keepdims=True)
    y_squares = tf.reduce_sum(tf.square(y), axis=-1, keepdims=True)
    # One product gives the whole sum, without further float64 matrices.
    left = tf.concat([-2 * x, x_squares, tf.ones_like(x_squares)], axis=-1)
    right = tf.concat([y, tf.ones_like(y_squares), y_squares], axis=-1)
    squares = tf.cast(tf.matmul(left, right, transpose_b=True), tf.float32)
    # Points within 1.4e-7 |y| count as one.
    rounding = tf.cast(
        2e-14 * tf.linalg.matrix_transpose(y_squares), tf.float32
    )
    return squares, squares > rounding


def as_features(x, y) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns both batches in one dtype, float32 or float64."""
    x, y = at_least_float32(x), at_least_float32(y)
    check_rank("x", x)
    check_rank("y", y)
    if not x.shape[-1:].is_compatible_with(y.shape[-1:]):
        raise ValueError(
            "`x` and `y` must have vectors of the same length. Received: "
            f"x.shape={x.shape}, y.shape={y.shape}. Only the batch sizes may "
            "differ."
        )
    dtype = tf.float64 if tf.float64 in (x.dtype, y.dtype) else tf.float32
    return tf.cast(x, dtype), tf.cast(y, dtype)


def check_rank(name: str, tensor: tf.Tensor) -> None:
    """Refuses a tensor without a batch axis."""
    if tensor.shape.rank is not None and tensor.shape.rank < 2:
        raise ValueError(
            f"`{name}` must have at least 2 axes. "
            f"Received: {name}.shape={tensor.shape}. Add a batch axis."
        )
