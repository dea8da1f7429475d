"""Where a training-only loss branches off: whose gradient is whose there."""

from collections.abc import Callable

import tensorflow as tf

# A share larger than this is one without bound: nothing else pulls there.
LARGEST_SHARE = 1000.0


def branch_off(
    higher: tf.Tensor,
    lower: tf.Tensor,
    *,
    share: tf.Tensor | float | None = None,
    note: Callable[[tf.Tensor], None] | None = None,
    total: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Gives two maps to a branch, and weighs what the branch sends back.

    Nothing changes on the way forward. On the way back the gradient of what
    stands above meets the branch's own at `higher`, so one backward pass is
    enough to compare them, and to hold one to a share of the other.

    Args:
        higher: Maps whose gradient tells how hard the network itself pulls.
        lower: Other maps that the branch reads.
        share: What the norm of the branch's gradient at `higher` is made, of
            the norm of the other gradient there; the gradient at `lower` gets
            the same factor. None leaves both as they are.
        note: Called on the way back, with the share that comes out.
        total: Sums the two squared norms over devices.

    Returns:
        `higher` for the network, `higher` and `lower` for the branch.

    Example:
        >>> maps = tf.constant([3.0, 4.0])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(maps)
        ...     network, branch, _ = branch_off(maps, maps, share=0.1)
        ...     loss = tf.reduce_sum(network) + 50 * tf.reduce_sum(branch)
        >>> tape.gradient(loss, maps).numpy()
        array([1.1, 1.1], dtype=float32)
    """

    @tf.custom_gradient
    def forward(higher, lower):
        def gradient(network, branch_higher, branch_lower):
            norms = tf.sqrt(
                total(tf.stack([_square(network), _square(branch_higher)]))
            )
            if share is None:
                sent = branch_higher, branch_lower
            else:
                factor = share * tf.math.divide_no_nan(norms[0], norms[1])
                norms *= [1.0, factor]
                sent = (
                    tf.cast(factor * tf.cast(g, tf.float32), g.dtype)
                    for g in (branch_higher, branch_lower)
                )
            if note is not None:
                note(_share(*tf.unstack(norms)))
            from_higher, from_lower = sent
            return network + from_higher, from_lower

        outputs = (tf.identity(higher), tf.identity(higher), tf.identity(lower))
        return outputs, gradient

    return forward(higher, lower)


def _square(gradient):
    return 2 * tf.nn.l2_loss(tf.cast(gradient, tf.float32))


def _share(network, branch):
    least = branch / LARGEST_SHARE
    share = tf.math.divide_no_nan(branch, tf.maximum(network, least))
    # An overflow of float16, whose step is skipped, says nothing.
    return tf.where(tf.math.is_finite(share), share, tf.zeros_like(share))
