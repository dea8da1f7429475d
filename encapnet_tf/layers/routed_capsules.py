"""The CapNet layer, the paper's baseline: mapping, then agreement routing."""

import math

import keras
import tensorflow as tf

from encapnet_tf import ops
from encapnet_tf.checks import check_choice, check_positive
from encapnet_tf.choices import ROUTING_LOGITS, ROUTINGS, SOFTMAX_OVER


@keras.saving.register_keras_serializable(package="encapnet")
class RoutedCapsules(keras.layers.Layer):
    """Lets every lower capsule vote for every higher one, then routes.

    A 1×1 convolution in groups maps each channel capsule to all higher
    capsules (section 2, figure 1b), sharing its weights over space.

    Args:
        num_input_capsules: Capsule channels C of the input.
        num_capsules: Higher capsules M.
        capsule_dim: Entries of a higher capsule, E.
        routing: "dynamic" or "em".
        num_iterations: R ≥ 1.
        softmax_over: Dynamic: "lower" (the paper) or "higher" capsules.
        logits: Dynamic: the first routing logits (N, M): "zero", "random"
            (drawn once from [0, 1), then fixed) or "learnable" (from zero).
        output_size: None, or `(H', W')`: the higher capsules are laid out as
            maps with M/(H'·W') capsule channels.

    Call arguments:
        inputs: Lower capsules `(B, H, W, C·D)`.
        activations: EM: their activations, `(B, H, W, C)` or `(B, N)`.

    Returns:
        Capsules `(B, M, E)` or, with `output_size`, maps; for EM the pair
        (capsules, activations `(B, M)`).

    Example:
        >>> layer = RoutedCapsules(4, num_capsules=6, capsule_dim=5)
        >>> layer(np.ones((2, 3, 3, 32))).shape
        TensorShape([2, 6, 5])
    """

    def __init__(
        self,
        num_input_capsules,
        num_capsules,
        capsule_dim,
        routing="dynamic",
        num_iterations=3,
        softmax_over="lower",
        logits="zero",
        output_size=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(
            num_input_capsules=num_input_capsules,
            num_capsules=num_capsules,
            capsule_dim=capsule_dim,
            num_iterations=num_iterations,
        )
        check_choice("routing", routing, ROUTINGS)
        check_choice("softmax_over", softmax_over, SOFTMAX_OVER)
        check_choice("logits", logits, ROUTING_LOGITS)
        if output_size and num_capsules % (output_size[0] * output_size[1]):
            raise ValueError(
                "`num_capsules` must be a multiple of the places in "
                f"`output_size`. Received: num_capsules={num_capsules}, "
                f"output_size={tuple(output_size)}."
            )
        self.num_input_capsules = num_input_capsules
        self.num_capsules = num_capsules
        self.capsule_dim = capsule_dim
        self.routing = routing
        self.num_iterations = num_iterations
        self.softmax_over = softmax_over
        self.logits = logits
        self.output_size = output_size and tuple(output_size)

    def build(self, inputs_shape, activations_shape=None):
        """Makes the mapping and what the routing learns."""
        _, height, width, channels = inputs_shape
        capsules = self.num_input_capsules
        if channels % capsules:
            raise ValueError(
                "The input channels must be a multiple of "
                f"`num_input_capsules`. Received: inputs of shape "
                f"{tuple(inputs_shape)}, num_input_capsules={capsules}."
            )
        if (self.routing == "em") != (activations_shape is not None):
            raise ValueError(
                "EM routing, and only EM routing, takes `activations`. "
                f"Received: routing={self.routing!r}, activations of shape "
                f"{activations_shape}."
            )
        dim = channels // capsules
        votes = capsules * self.num_capsules * self.capsule_dim
        # Glorot normal. Dynamic routing takes the fans of the mapping of one
        # capsule to another: by those of the whole kernel the votes of CapNet
        # start so small that two squashes leave no gradient. EM squashes
        # nothing, and starts better from small votes.
        fan_out = self.capsule_dim if self.routing == "dynamic" else votes
        deviation = math.sqrt(2 / (dim + fan_out))
        self.kernel = self.add_weight(
            name="kernel",
            shape=(dim, votes),
            initializer=keras.initializers.RandomNormal(stddev=deviation),
        )
        self.bias = self.add_weight(
            name="bias", shape=(votes,), initializer="zeros"
        )
        if self.routing == "em":
            self.beta_v, self.beta_a = (
                self.add_weight(
                    name=name,
                    shape=(self.num_capsules,),
                    initializer=keras.initializers.RandomUniform(0.0, 1.0),
                )
                for name in ("beta_v", "beta_a")
            )
        elif self.logits != "zero":
            self.first_logits = self.add_weight(
                name="first_logits",
                shape=(height * width * capsules, self.num_capsules),
                initializer=(
                    keras.initializers.RandomUniform(0.0, 1.0)
                    if self.logits == "random"
                    else "zeros"
                ),
                trainable=self.logits == "learnable",
            )

    def call(self, inputs, activations=None):
        """Maps and routes, without making the votes."""
        mapping = (self._lower(inputs), *self._kernel_and_bias())
        if self.routing == "em":
            lower, *mapping = mapping
            capsules, activations = ops.factored_em_routing(
                lower,
                self._in_a_row(activations),
                *mapping,
                self.beta_v,
                self.beta_a,
                num_iterations=self.num_iterations,
            )
            return self._lay_out(capsules), self._cast(activations)
        capsules = ops.factored_dynamic_routing(
            *mapping,
            num_iterations=self.num_iterations,
            softmax_over=self.softmax_over,
            logits=None if self.logits == "zero" else self.first_logits,
        )
        return self._lay_out(capsules)

    def votes(self, inputs):
        """Returns the votes v̂ `(B, N, M, E)` of lower capsules."""
        kernel, bias = self._kernel_and_bias()
        votes = tf.einsum("bcpd,dcme->bcpme", self._lower(inputs), kernel)
        votes += bias[:, None]
        return tf.reshape(votes, (-1, self._num_lower(inputs), *bias.shape[1:]))

    def _lower(self, maps):
        """Lower capsules `(B, C, P, D)`."""
        row = ops.list_capsules(maps, self.num_input_capsules)
        places = maps.shape[1] * maps.shape[2]
        shape = (-1, self.num_input_capsules, places, row.shape[-1])
        return tf.reshape(row, shape)

    def _kernel_and_bias(self):
        """As `(D, C, M, E)` and `(C, M, E)`."""
        sizes = (self.num_input_capsules, self.num_capsules, self.capsule_dim)
        return (
            tf.reshape(self.kernel, (-1, *sizes)),
            tf.reshape(self.bias, sizes),
        )

    def _num_lower(self, maps):
        return maps.shape[1] * maps.shape[2] * self.num_input_capsules

    def _in_a_row(self, activations):
        if len(activations.shape) == 2:
            return activations
        rows = ops.list_capsules(activations, self.num_input_capsules)
        return tf.squeeze(rows, axis=-1)

    def _lay_out(self, capsules):
        capsules = self._cast(capsules)
        if self.output_size is None:
            return capsules
        return ops.arrange_capsules(capsules, *self.output_size)

    def _cast(self, values):
        return tf.cast(values, self.compute_dtype)

    def compute_output_shape(self, inputs_shape, activations_shape=None):
        """Returns the shape of the capsules, and of the activations (EM)."""
        batch = inputs_shape[0]
        shape = (batch, self.num_capsules, self.capsule_dim)
        if self.output_size:
            places = self.output_size[0] * self.output_size[1]
            channels = self.num_capsules // places * self.capsule_dim
            shape = (batch, *self.output_size, channels)
        if self.routing == "em":
            return shape, (batch, self.num_capsules)
        return shape

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_input_capsules": self.num_input_capsules,
            "num_capsules": self.num_capsules,
            "capsule_dim": self.capsule_dim,
            "routing": self.routing,
            "num_iterations": self.num_iterations,
            "softmax_over": self.softmax_over,
            "logits": self.logits,
            "output_size": self.output_size,
        }
