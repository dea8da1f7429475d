import numpy as np
import pytest
from PIL import Image

from encapnet_tf.data import load
from trainers.recipe import make_recipe

# The least network that still has a capsule layer.
LEAST = {
    "stem": ((4, 2),),
    "num_capsules": 2,
    "type2_layers": (0,),
    "strides": (2,),
    "aide": "none",
    "agreement": "none",
}
UNITS = {"override": LEAST | {"agreement": "one"}}


@pytest.fixture(scope="session")
def npz_path(tmp_path_factory):
    """240 training and 60 test images of three easy classes."""
    rng = np.random.default_rng(0)
    arrays = {}
    for part, count in (("train", 240), ("test", 60)):
        labels = np.arange(count) % 3
        images = rng.integers(0, 80, (count, 32, 32, 3))
        for image, label in zip(images, labels, strict=True):
            image[10 * label : 10 * label + 10] += 120
        arrays[f"x_{part}"] = images.astype(np.uint8)
        arrays[f"y_{part}"] = labels.astype(np.uint8)
    path = tmp_path_factory.mktemp("data") / "stripes.npz"
    np.savez(path, **arrays)
    return path


@pytest.fixture(scope="session")
def stripes(npz_path):
    return load(f"npz:{npz_path}")


@pytest.fixture
def recipe(npz_path):
    """Makes small recipes."""

    def make(**fields):
        return make_recipe(
            {
                "variant": "encapnet_tiny",
                "override": LEAST,
                "dataset": f"npz:{npz_path}",
                "epochs": 2,
                "batch_size": 24,
                "agreement_ramp": 0.0,
            }
            | fields
        )

    return make


def size_of(path):
    """Decodes the whole picture; returns its size and its share of white."""
    with Image.open(path) as picture:
        picture.load()
        assert picture.format == "PNG"
        pixels = np.asarray(picture.convert("RGB"))
        white = (pixels == 255).all(axis=-1).mean()
        assert 0.05 < white < 0.999
        return picture.size
