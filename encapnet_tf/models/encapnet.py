"""EncapNet (table 2, left column)."""

import keras

from encapnet_tf.config import EncapNetConfig
from encapnet_tf.layers import CapConv, CapFC
from encapnet_tf.models.blocks import agree, enter
from encapnet_tf.models.decoding import end


def build_encapnet(config: EncapNetConfig, name: str) -> keras.Model:
    """Builds the network: images in, lengths of the class capsules out."""
    images, maps = enter(config.input_shape, config.stem)
    for module in range(len(config.type2_layers)):
        maps = _module(maps, config, module)
    dim = maps.shape[-1] // config.num_capsules
    classes = CapFC(
        config.num_classes, dim, config.cap_fc, name="class_capsules"
    )(maps)
    return end(images, classes, config, name)


def _module(inputs, config: EncapNetConfig, module: int):
    """One type I layer, N type II layers, their skips and agreement units."""
    name = f"module{module + 1}"
    aide, skip = config.aide[module], config.skip[module]
    dim = 2 * (inputs.shape[-1] // config.num_capsules)
    if config.capsule_dims is not None:
        dim = config.capsule_dims[module]

    def cap_conv(layer, kernel_size, with_aide, **kwargs):
        return CapConv(
            config.num_capsules,
            dim,
            kernel_size,
            branches="master_aide" if with_aide else "master",
            coefficients=config.coefficients[module],
            aide_scope=config.aide_scope[module],
            initial_length=config.initial_length,
            name=f"{name}_{layer}",
            **kwargs,
        )

    type1 = cap_conv(
        "type1",
        3,
        aide in ("type1", "all"),
        stride=config.strides[module],
        project_skip=skip in ("type1", "both"),
    )(inputs)
    capsules = type1
    count = config.type2_layers[module]
    for number in range(1, count + 1):
        layer = cap_conv(f"type2_{number}", 1, aide == "all")
        source = None
        if skip in ("type2", "both"):
            if config.skip_type2[module] == "layerwise":
                source = capsules
            elif number == count:
                source = type1
        capsules = (
            layer(capsules) if source is None else layer(capsules, skip=source)
        )
    return agree(
        capsules,
        inputs,
        type1,
        config.agreement[module],
        config.agreement_options,
        config.num_capsules,
        name,
    )
