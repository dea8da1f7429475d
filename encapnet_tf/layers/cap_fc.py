"""capFC: from the last capsules to one capsule per class."""

import keras
import tensorflow as tf

from encapnet_tf import ops
from encapnet_tf.checks import check_choice, check_positive
from encapnet_tf.choices import CAP_FC_MODES


@keras.saving.register_keras_serializable(package="encapnet")
class CapFC(keras.layers.Layer):
    """A fully connected layer of capsules (section 3.1), then squash.

    Args:
        num_capsules: Number of output capsules M, one per class.
        capsule_dim: Entries of a capsule, D, in and out.
        mode: "per_dimension", the paper's: out[j, d] = Σ_i W[d, i, j] v[i, d].
            "dense": one dense layer over everything, with bias.
            "shared": votes by one D×(D·M) matrix for all lower capsules, then
            a learned sum over them per class.

    Call arguments:
        inputs: Lower capsules as maps `(B, H, W, C·D)` or in a row
            `(B, N, D)`.

    Returns:
        Class capsules `(B, M, D)`.

    Example:
        >>> CapFC(num_capsules=10, capsule_dim=4)(np.ones((2, 3, 3, 8))).shape
        TensorShape([2, 10, 4])
    """

    def __init__(
        self, num_capsules, capsule_dim, mode="per_dimension", **kwargs
    ):
        super().__init__(**kwargs)
        check_positive(num_capsules=num_capsules, capsule_dim=capsule_dim)
        check_choice("mode", mode, CAP_FC_MODES)
        self.num_capsules = num_capsules
        self.capsule_dim = capsule_dim
        self.mode = mode

    def build(self, input_shape):
        """Makes the weights of the chosen mode."""
        count, dim, out = self._num_lower(input_shape), *self._sizes()
        uniform = keras.initializers.RandomUniform(-(count**-0.5), count**-0.5)
        if self.mode == "per_dimension":
            self.kernel = self._weight("kernel", (dim, count, out), uniform)
        elif self.mode == "dense":
            shape = (count * dim, out * dim)
            self.kernel = self._weight("kernel", shape, "glorot_normal")
            self.bias = self._weight("bias", (out * dim,), "zeros")
        else:
            shape = (dim, out * dim)
            self.kernel = self._weight("kernel", shape, "glorot_normal")
            self.sum_weights = self._weight("sum", (count, out), uniform)

    def _weight(self, name, shape, initializer):
        return self.add_weight(name=name, shape=shape, initializer=initializer)

    def _sizes(self):
        return self.capsule_dim, self.num_capsules

    def _num_lower(self, shape):
        entries = 1
        for side in shape[1:]:
            entries *= side or 0
        if (
            len(shape) not in (3, 4)
            or not entries
            or (
                shape[-1] % self.capsule_dim
                if len(shape) == 4
                else shape[-1] != self.capsule_dim
            )
        ):
            raise ValueError(
                "The inputs must be maps (B, H, W, C·D) or a row (B, N, D) "
                f"of capsules with D={self.capsule_dim} entries and known "
                f"sizes. Received: inputs of shape {tuple(shape)}."
            )
        return entries // self.capsule_dim

    def call(self, inputs):
        """Maps lower capsules to class capsules."""
        if len(inputs.shape) == 4:
            lower = inputs.shape[-1] // self.capsule_dim
            inputs = ops.list_capsules(inputs, lower)
        dim, out = self._sizes()
        if self.mode == "per_dimension":
            capsules = tf.einsum("bnd,dnm->bmd", inputs, self.kernel)
        elif self.mode == "dense":
            flat = tf.reshape(inputs, (-1, self.kernel.shape[0]))
            capsules = tf.matmul(flat, self.kernel) + self.bias
            capsules = tf.reshape(capsules, (-1, out, dim))
        else:
            # Σ_i a_im (u_i W_m) = (Σ_i a_im u_i) W_m: sum first, map once.
            sums = tf.einsum("bnd,nm->bmd", inputs, self.sum_weights)
            kernel = tf.reshape(self.kernel, (dim, out, dim))
            capsules = tf.einsum("bmd,dme->bme", sums, kernel)
        return ops.squash(capsules)

    def compute_output_shape(self, input_shape):
        """Returns `(B, M, D)`."""
        return (input_shape[0], self.num_capsules, self.capsule_dim)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_capsules": self.num_capsules,
            "capsule_dim": self.capsule_dim,
            "mode": self.mode,
        }
