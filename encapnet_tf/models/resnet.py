"""The ResNet that the paper sets beside EncapNet (table 2, right column)."""

import functools

import keras

from encapnet_tf.config import ResNetConfig
from encapnet_tf.layers import ConvNorm
from encapnet_tf.models.blocks import agree, classify, enter


def build_resnet(config: ResNetConfig, name: str) -> keras.Model:
    """Builds the network: images in, logits out."""
    images, maps = enter(config.input_shape, config.stem, use_bias=False)
    stages = zip(config.channels, config.blocks, config.strides, strict=True)
    for number, (channels, blocks, stride) in enumerate(stages, start=1):
        stage, lower = f"stage{number}", maps
        maps = first = _block(maps, channels, stride, f"{stage}_block1")
        for block in range(2, blocks + 1):
            maps = _block(maps, channels, 1, f"{stage}_block{block}")
        maps = agree(
            maps,
            lower,
            first,
            config.agreement[number - 1],
            config.agreement_options,
            num_capsules=1,
            name=stage,
        )
    return keras.Model(images, classify(maps, config.num_classes), name=name)


def _block(inputs, channels, stride, name):
    """A basic block: two 3×3 convolutions and a shortcut."""
    conv = functools.partial(ConvNorm, channels, use_bias=False)
    maps = conv(3, stride, name=f"{name}_1")(inputs)
    maps = conv(3, relu=False, name=f"{name}_2")(maps)
    shortcut = inputs
    if stride != 1 or inputs.shape[-1] != channels:
        shortcut = conv(1, stride, relu=False, name=f"{name}_shortcut")(inputs)
    maps = keras.layers.Add(name=f"{name}_add")([maps, shortcut])
    return keras.layers.ReLU(name=f"{name}_relu")(maps)
