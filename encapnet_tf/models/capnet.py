"""CapNet (table 1, rows a and b): the baseline with agreement routing."""

import keras

from encapnet_tf.config import CapNetConfig
from encapnet_tf.layers import ConvNorm, RoutedCapsules
from encapnet_tf.models.blocks import enter
from encapnet_tf.models.decoding import end


def build_capnet(config: CapNetConfig, name: str) -> keras.Model:
    """Builds the network: images in, lengths of the class capsules out."""
    images, maps = enter(config.input_shape, config.stem)
    _, height, width, _ = maps.shape
    middle = _routed(
        config,
        config.num_capsules,
        config.middle_capsules * height * width,
        output_size=(height, width),
        name="middle_capsules",
    )
    classes = _routed(
        config,
        config.middle_capsules,
        config.num_classes,
        name="class_capsules",
    )
    if config.routing == "em":
        activations = ConvNorm(config.num_capsules, 3, name="activations")(maps)
        capsules, _ = classes(*middle(maps, activations))
    else:
        capsules = classes(middle(maps))
    return end(images, capsules, config, name)


def _routed(config, num_input_capsules, num_capsules, **kwargs):
    return RoutedCapsules(
        num_input_capsules,
        num_capsules,
        config.capsule_dim,
        routing=config.routing,
        num_iterations=config.num_iterations,
        softmax_over=config.softmax_over,
        logits=config.logits,
        **kwargs,
    )
