import numpy as np
import pytest
from matplotlib.figure import Figure

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
# An agreement unit, traced in a moment.
UNIT = {"agreement": "one", "agreement_options": {"num_iterations": 2}}
UNITS = {"override": LEAST | UNIT}


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


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, laid out, in place of their files."""
    figures = []

    def keep(figure, path, **_):
        figure.draw_without_rendering()
        figures.append(figure)
        path.touch()

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures


def lines(axis):
    """What is drawn as lines: by label, or in order, x and y."""
    return {line.get_label(): line.get_data() for line in axis.lines}


def texts(axis):
    """What is written inside, empty texts aside."""
    return [text.get_text() for text in axis.texts if text.get_text()]


def tick_labels(side):
    """What stands at the ticks of an x- or y-axis."""
    return [label.get_text() for label in side.get_ticklabels()]


def legend(owner):
    """The words of the legend of an axis or a figure."""
    if isinstance(owner, Figure):
        (found,) = owner.legends
    else:
        found = owner.get_legend()
    return [] if found is None else [t.get_text() for t in found.get_texts()]
