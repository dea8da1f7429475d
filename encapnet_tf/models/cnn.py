"""The plain CNN (table 1, rows c and d)."""

import keras

from encapnet_tf.config import CNNConfig
from encapnet_tf.layers import ConvNorm
from encapnet_tf.models.blocks import agree, classify, enter


def build_cnn(config: CNNConfig, name: str) -> keras.Model:
    """Builds the network: images in, logits out."""
    images, maps = enter(config.input_shape, config.stem[:1])
    for number, (channels, stride) in enumerate(config.stem[1:], start=2):
        lower = maps
        maps = ConvNorm(channels, 3, stride, name=f"stem{number}")(lower)
        maps = agree(
            maps,
            lower,
            lower,
            config.agreement,
            config.agreement_options,
            num_capsules=1,
            name=f"stem{number}",
        )
    return keras.Model(images, classify(maps, config.num_classes), name=name)
