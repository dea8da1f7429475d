"""capConv: the paper's layer of capsules (section 3.1, figure 1c)."""

import keras
import tensorflow as tf

from encapnet_tf import ops
from encapnet_tf.checks import (
    check_above_zero,
    check_choice,
    check_positive,
)
from encapnet_tf.choices import AIDE_SCOPES, BRANCHES, COEFFICIENTS
from encapnet_tf.layers.batch_norm import BatchNorm
from encapnet_tf.layers.conv_norm import convolve_and_normalize
from encapnet_tf.layers.grouped_conv import GroupedConv2D

# The aide sees a wider window than the master: 7 for type I, 5 for type II
# (the authors' values).
_AIDE_EXTRA = 4
_COEFFICIENT_KERNEL = 3
_SKIP_KERNEL = 3


@keras.saving.register_keras_serializable(package="encapnet")
class CapConv(keras.layers.Layer):
    """One layer of capsules: routing replaced by two branches in one pass.

    The master branch carries each capsule channel on from itself; the aide
    branch brings in the other channels; coefficients m¹, m² weigh the two:
    s = m¹ v̂¹ + m² v̂² (+ skip) → BN → ReLU → squash.

    Args:
        num_capsules: Number of capsule channels C, in and out.
        capsule_dim: Entries of an output capsule, D.
        kernel_size: Kernel of the master branch: 3 for type I, 1 for type II.
        stride: Stride in both directions.
        branches: "master" or "master_aide".
        coefficients: Where m comes from: "own" (m¹ from v̂¹, m² from v̂²; the
            paper's v1), "cross" (from the other; v2) or "both" (v3).
        aide_scope: What the aide reads: the "others" (the paper) or "all"
            capsule channels (the authors' code).
        project_skip: Whether to add a 3×3 convolution of the input before
            the last batch normalisation (type I skip).
        initial_length: How long a capsule is before squash at the start of
            training: every γ before a squash starts at initial_length·√(2/D).
            None is the paper's start, γ = 1, about √(D/2): with D = 16 every
            squashed capsule then has a length near 0.89, and squash passes
            on 7% of what would change that length. 1 suits every D.

    Call arguments:
        inputs: Lower capsules `(B, H, W, C·D_in)`; capsule c owns the channels
            c·D_in … c·D_in+D_in−1.
        skip: Optional `(B, H', W', C·D)`, added before the last batch
            normalisation (type II skip).

    Returns:
        Higher capsules `(B, H', W', C·D)`, H' = ⌈H/stride⌉.

    Example:
        >>> CapConv(num_capsules=4, capsule_dim=2)(np.ones((1, 6, 6, 4))).shape
        TensorShape([1, 6, 6, 8])
    """

    def __init__(
        self,
        num_capsules,
        capsule_dim,
        kernel_size=3,
        stride=1,
        branches="master_aide",
        coefficients="both",
        aide_scope="others",
        project_skip=False,
        initial_length=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(num_capsules=num_capsules, capsule_dim=capsule_dim)
        check_choice("branches", branches, BRANCHES)
        check_choice("coefficients", coefficients, COEFFICIENTS)
        check_choice("aide_scope", aide_scope, AIDE_SCOPES)
        check_above_zero(initial_length=initial_length)
        self.num_capsules = num_capsules
        self.capsule_dim = capsule_dim
        self.kernel_size = kernel_size
        self.stride = stride
        self.branches = branches
        self.coefficients = coefficients
        self.aide_scope = aide_scope
        self.project_skip = project_skip
        self.initial_length = initial_length

        channels = num_capsules * capsule_dim
        self.master = self._convolution(
            "master", channels, kernel_size, stride, groups=num_capsules
        )
        if project_skip:
            self.skip_projection = self._convolution(
                "skip", channels, _SKIP_KERNEL, stride
            )
        if branches == "master_aide":
            self._make_aide(channels)
        self.norm = self._norm("norm")

    def _make_aide(self, channels):
        others = self.aide_scope == "others"
        self.aide = self._convolution(
            "aide",
            channels,
            self.kernel_size + _AIDE_EXTRA,
            self.stride,
            skip_own_block=self.num_capsules if others else None,
        )
        self.master_norm = self._norm("master_norm")
        self.aide_norm = self._norm("aide_norm")
        # Two coefficients per capsule. "both": one group per capsule reads
        # [v̂¹, v̂²]; else one group per capsule and branch reads that branch.
        both = self.coefficients == "both"
        self.coefficient_conv = self._convolution(
            "coefficients",
            2 * self.num_capsules,
            _COEFFICIENT_KERNEL,
            groups=self.num_capsules * (1 if both else 2),
        )

    def _convolution(self, name, filters, kernel_size, stride=1, **kwargs):
        return GroupedConv2D(
            filters,
            kernel_size,
            stride,
            name=name,
            dtype=self.dtype_policy,
            **kwargs,
        )

    def _norm(self, name):
        gamma = 1.0
        if self.initial_length is not None:
            # Of D normalised entries ReLU leaves |s|² ≈ γ²·D/2.
            gamma = self.initial_length * (2 / self.capsule_dim) ** 0.5
        return BatchNorm(
            gamma_initializer=keras.initializers.Constant(gamma),
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, inputs_shape, skip_shape=None):
        """Builds both branches."""
        if inputs_shape[-1] % self.num_capsules:
            raise ValueError(
                "The input channels must be a multiple of `num_capsules`. "
                f"Received: inputs of shape {tuple(inputs_shape)}, "
                f"num_capsules={self.num_capsules}."
            )
        output_shape = self.compute_output_shape(inputs_shape)
        if skip_shape is not None and tuple(skip_shape[1:]) != output_shape[1:]:
            raise ValueError(
                f"`skip` must have the output's shape {output_shape}. "
                f"Received: skip of shape {tuple(skip_shape)}."
            )
        self.master.build(inputs_shape)
        if self.project_skip:
            self.skip_projection.build(inputs_shape)
        if self.branches == "master_aide":
            self.aide.build(inputs_shape)
            self.master_norm.build(output_shape)
            self.aide_norm.build(output_shape)
            *space, channels = output_shape
            self.coefficient_conv.build((*space, 2 * channels))
        self.norm.build(output_shape)

    def call(self, inputs, skip=None, training=None):
        """Maps lower capsules to higher ones."""
        projection = [self.skip_projection] if self.project_skip else []
        if self.branches == "master":
            # Both read the same window: one convolution.
            return self._activate(
                [self.master, *projection], self.norm, inputs, skip, training
            )
        master, aide = (
            self._activate([conv], norm, inputs, None, training)
            for conv, norm in (
                (self.master, self.master_norm),
                (self.aide, self.aide_norm),
            )
        )
        capsules = self._interact(master, aide)
        if skip is not None:
            capsules += skip
        return self._activate(projection, self.norm, inputs, capsules, training)

    def _activate(self, convolutions, norm, inputs, plus, training):
        """Convolutions of the inputs (+ plus) → BN → ReLU → squash."""
        if convolutions:
            maps = convolve_and_normalize(
                convolutions, norm, inputs, plus=plus, training=training
            )
        else:
            maps = norm(plus, training=training)
        return ops.activate_capsules(maps, self.num_capsules)

    def _interact(self, master, aide):
        """Equation 6: s = m¹ v̂¹ + m² v̂², m broadcast over a capsule."""
        master = ops.split_capsules(master, self.num_capsules)
        aide = ops.split_capsules(aide, self.num_capsules)
        # "both": [v̂¹, v̂²] of one capsule side by side; else all v̂¹, all v̂².
        axis = 4 if self.coefficients == "both" else 3
        sources = ops.merge_capsules(tf.concat((master, aide), axis))
        weights = self.coefficient_conv(sources)
        weights = ops.split_capsules(weights, weights.shape[-1] // (axis - 2))
        first, second = tf.split(weights, 2, axis)
        if self.coefficients == "cross":
            first, second = second, first
        return ops.merge_capsules(first * master + second * aide)

    def compute_output_shape(self, inputs_shape, skip_shape=None):
        """Returns the shape of the higher capsules."""
        return self.master.compute_output_shape(inputs_shape)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_capsules": self.num_capsules,
            "capsule_dim": self.capsule_dim,
            "kernel_size": self.kernel_size,
            "stride": self.stride,
            "branches": self.branches,
            "coefficients": self.coefficients,
            "aide_scope": self.aide_scope,
            "project_skip": self.project_skip,
            "initial_length": self.initial_length,
        }
