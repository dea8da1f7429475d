"""The golden files in our layout: NHWC maps, HWIO kernels."""

import json
import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "golden"


def load(name):
    """Returns the arrays of a file and its parsed meta."""
    with np.load(FOLDER / f"{name}.npz") as arrays:
        content = {key: arrays[key] for key in arrays.files}
    return content, json.loads(str(content.pop("meta")))


def maps(array):
    """NCHW to NHWC."""
    return np.transpose(array, (0, 2, 3, 1))


def kernel(array):
    """OIHW (or IOHW of a transposed convolution) to HWIO (HWOI)."""
    return np.transpose(array, (2, 3, 1, 0))


def weight_of_outputs(y):
    """The golden gradients are of sum(y · sin(0, 1, 2, …)) in NCHW order."""
    batch, height, width, channels = y.shape
    waves = np.sin(np.arange(y.size)).reshape(batch, channels, height, width)
    return maps(waves)


def set_conv(layer, content, name):
    layer.kernel.assign(kernel(content[f"w/{name}.weight"]))
    layer.bias.assign(content[f"w/{name}.bias"])


def set_norm(layer, content, name):
    layer.gamma.assign(content[f"w/{name}.weight"])
    layer.beta.assign(content[f"w/{name}.bias"])
    layer.moving_mean.assign(content[f"w/{name}.running_mean"])
    layer.moving_variance.assign(content[f"w/{name}.running_var"])
