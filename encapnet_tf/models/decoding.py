"""The end of a capsule network: its scores and, if wanted, a decoder."""

import keras

from encapnet_tf.config import CapsuleConfig
from encapnet_tf.layers import CapsuleDecoder, Lengths
from encapnet_tf.layers.capsule_decoder import DecodingModel


def end(images, capsules, config: CapsuleConfig, name: str) -> keras.Model:
    """Makes the model whose scores are the lengths of the class capsules."""
    make = keras.Model
    if config.decoder == "conv":
        make = DecodingModel
        decoder = CapsuleDecoder(config.decoder_weight, name="decoder")
        capsules = decoder([capsules, images])
    return make(images, Lengths(name="scores")(capsules), name=name)
