"""Runs to export."""

import shutil

import keras
import numpy as np
import pytest

from encapnet_tf.data import load
from export.choices import FORMATS
from export.version.from_run import export_run
from tests.conformance import VARIANT_OVERRIDES
from tests.trainers.conftest import (
    LEAST,
    UNIT,
    npz_path,  # noqa: F401, a fixture
)
from trainers.files import write_json
from trainers.recipe import make_recipe
from trainers.runs.finished import Run
from trainers.runs.folder import RunFolder
from trainers.scoring import measure_test
from trainers.training.loop import Loop

NAMES = ("sky", "street/road", "sea")


def untrained_run(path, variant, num_classes=5, **overrides):
    """A run of a network whose batch norms have something to fold."""
    keras.utils.set_random_seed(3)
    recipe = make_recipe({"variant": variant, "override": overrides})
    model = recipe.build(num_classes, recipe.network().input_shape)
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if any(n in weight.path for n in ("moving", "gamma", "beta", "bias")):
            weight.assign(rng.uniform(0.5, 1.5, weight.shape))
    names = [f"class {label}" for label in range(num_classes)]
    return Run(RunFolder(path), recipe, model, {"class_names": names})


@pytest.fixture(scope="session", params=VARIANT_OVERRIDES)
def variant_run(request, tmp_path_factory):
    """One of each variant, untrained."""
    name = request.param
    path = tmp_path_factory.mktemp("variants") / name
    return untrained_run(path, name, **VARIANT_OVERRIDES[name])


@pytest.fixture(scope="session")
def trained(tmp_path_factory, npz_path):  # noqa: F811
    """A finished run of the least network with an agreement unit."""
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "stripes")
    fields = {
        "variant": "encapnet_tiny",
        "override": LEAST | UNIT | {"aide": "all"},
        "dataset": f"npz:{npz_path}",
        "epochs": 3,
        "batch_size": 24,
        "agreement_ramp": 0.0,
    }
    recipe = make_recipe(fields)
    data = load(recipe.dataset)
    loop = Loop(recipe, data, None, quiet=True)
    loop.run()
    folder.path.mkdir(parents=True)
    recipe.save(folder.config)
    loop.model.save(folder.model)
    _, _, errors = measure_test(
        loop.model, data.test, augmentation=recipe.augmentation, crops=True,
        mirrored=False,
    )  # fmt: skip
    summary = errors | {
        "class_names": list(data.class_names),
        "epochs": 3,
        "train_seconds": 1.0,
        "versions": {"keras": keras.__version__},
    }
    write_json(folder.summary, summary)
    return folder


@pytest.fixture(scope="session")
def exported(tmp_path_factory, trained):
    """That run, exported in every format."""
    out = tmp_path_factory.mktemp("exported") / "stripes"
    quantize = ("none", "float16", "int8")
    return export_run(
        str(trained.path), str(out), formats=FORMATS, quantize=quantize,
        licence="MIT",
    )  # fmt: skip


@pytest.fixture
def run_dir(tmp_path, trained):
    """A copy of that run, to be damaged."""
    shutil.copytree(trained.path, tmp_path / "run")
    return tmp_path / "run"


def tolerance(variant, usual):
    """How far two float32 forms of a network may be apart, relatively.

    In EM the last bit of a kernel moves capsules by 1e-4 of their size.
    """
    return 5e-4 if variant == "capnet_em" else usual
