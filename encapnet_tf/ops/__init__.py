"""The mathematics of the paper as pure TensorFlow functions."""

from encapnet_tf.ops.branch import branch_off
from encapnet_tf.ops.capsule_maps import (
    activate_capsules,
    arrange_capsules,
    list_capsules,
    merge_capsules,
    split_capsules,
)
from encapnet_tf.ops.divergence import (
    SinkhornDivergence,
    kl_divergence,
    paired_error,
    sinkhorn_divergence,
    sinkhorn_divergence_with_error,
)
from encapnet_tf.ops.factored_routing import (
    factored_dynamic_routing,
    factored_em_routing,
)
from encapnet_tf.ops.forms import plain_forms
from encapnet_tf.ops.ground_cost import cost_matrix
from encapnet_tf.ops.grouped_conv import (
    grouped_conv2d,
    grouped_conv2d_transpose,
)
from encapnet_tf.ops.grouped_kernel import merge_groups
from encapnet_tf.ops.routing import (
    DynamicRouting,
    EMRouting,
    dynamic_routing,
    em_routing,
)
from encapnet_tf.ops.sinkhorn import SinkhornResult, sinkhorn
from encapnet_tf.ops.spread import spread, standardize, zero_share
from encapnet_tf.ops.squash import at_least_float32, length, squash

__all__ = [
    "DynamicRouting",
    "EMRouting",
    "SinkhornDivergence",
    "SinkhornResult",
    "activate_capsules",
    "arrange_capsules",
    "at_least_float32",
    "branch_off",
    "cost_matrix",
    "dynamic_routing",
    "em_routing",
    "factored_dynamic_routing",
    "factored_em_routing",
    "grouped_conv2d",
    "grouped_conv2d_transpose",
    "kl_divergence",
    "length",
    "list_capsules",
    "merge_capsules",
    "merge_groups",
    "paired_error",
    "plain_forms",
    "sinkhorn",
    "sinkhorn_divergence",
    "sinkhorn_divergence_with_error",
    "split_capsules",
    "spread",
    "squash",
    "standardize",
    "zero_share",
]
