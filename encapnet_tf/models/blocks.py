"""What the networks share: the way in, agreement units."""

import dataclasses

import keras

from encapnet_tf.config import AgreementConfig
from encapnet_tf.layers import ConvNorm, FeedbackAgreement

# Smaller inputs are zero-padded to this (MNIST's 28 to 32).
SMALLEST_INPUT = 32
# Larger ones enter by a 7×7 convolution and a pool, four times smaller.
LARGEST_DIRECT_INPUT = 64


def enter(input_shape, stem, *, use_bias=True):
    """Makes the input and the stem's convolutions; returns images and maps."""
    images = keras.Input(input_shape, name="images")
    maps = _pad_small(images, input_shape)
    for number, (channels, stride) in enumerate(stem, start=1):
        large = number == 1 and max(input_shape[:2]) > LARGEST_DIRECT_INPUT
        kernel_size, stride = (7, 2) if large else (3, stride)
        maps = ConvNorm(
            channels, kernel_size, stride, use_bias, name=f"stem{number}"
        )(maps)
        if large:
            maps = keras.layers.ZeroPadding2D(1, name="stem_pad")(maps)
            maps = keras.layers.MaxPooling2D(3, 2, name="stem_pool")(maps)
    return images, maps


def _pad_small(images, input_shape):
    rows, columns = (max(0, SMALLEST_INPUT - side) for side in input_shape[:2])
    if not (rows or columns):
        return images
    padding = tuple((side // 2, side - side // 2) for side in (rows, columns))
    return keras.layers.ZeroPadding2D(padding, name="pad")(images)


def agree(
    higher,
    module_input,
    type1_output,
    placement: str,
    options: AgreementConfig,
    num_capsules: int,
    name: str,
):
    """Joins the ends of a module by agreement units; returns `higher`."""
    lower = {
        "none": {},
        "one": {"input": module_input},
        "type1": {"type1": type1_output},
        "two": {"input": module_input, "type1": type1_output},
    }[placement]
    for end, maps in lower.items():
        higher = FeedbackAgreement(
            num_capsules,
            **dataclasses.asdict(options),
            name=f"{name}_agreement_{end}",
        )([higher, maps])
    return higher


def classify(features, num_classes):
    """Average pooling and a dense layer: logits, in float32 always."""
    features = keras.layers.GlobalAveragePooling2D(name="pool")(features)
    return keras.layers.Dense(
        num_classes,
        kernel_initializer="glorot_normal",
        dtype="float32",
        name="logits",
    )(features)
