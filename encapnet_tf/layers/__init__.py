"""Keras layers, one idea of the paper each."""

from encapnet_tf import backend  # noqa: F401, refuses other backends
from encapnet_tf.layers.batch_norm import BatchNorm
from encapnet_tf.layers.cap_conv import CapConv
from encapnet_tf.layers.cap_fc import CapFC
from encapnet_tf.layers.capsule_decoder import CapsuleDecoder
from encapnet_tf.layers.conv_norm import ConvNorm
from encapnet_tf.layers.feedback_agreement import FeedbackAgreement
from encapnet_tf.layers.grouped_conv import GroupedConv2D
from encapnet_tf.layers.lengths import Lengths
from encapnet_tf.layers.routed_capsules import RoutedCapsules

__all__ = [
    "BatchNorm",
    "CapConv",
    "CapFC",
    "CapsuleDecoder",
    "ConvNorm",
    "FeedbackAgreement",
    "GroupedConv2D",
    "Lengths",
    "RoutedCapsules",
]
