"""Trains a few steps under a strategy and stores what came out, NAME.npz.

python -m tests.trainers.training.train_each NPZ FOLDER STRATEGY CPUS TRAININGS

CPUS is the number of logical ones; TRAININGS, as JSON, has the fields of
recipes by name.
"""

import json
import pathlib
import sys

import numpy as np

from encapnet_tf.data import load
from tests.trainers.conftest import LEAST
from trainers.recipe import make_recipe
from trainers.training.devices import is_chief, make_strategy
from trainers.training.loop import Loop


def main(npz, folder, strategy_name, logical_cpus, trainings):
    strategy = make_strategy(strategy_name, int(logical_cpus))
    for name, fields in json.loads(trainings).items():
        content = train(npz, strategy, fields)
        if content:
            np.savez(pathlib.Path(folder) / f"{name}.npz", **content)


def train(npz, strategy, fields):
    least = LEAST | {"aide": "all", "agreement": "one", "decoder": "conv"}
    recipe = make_recipe(
        {
            "variant": "encapnet_tiny",
            "dataset": f"npz:{npz}",
            "epochs": 1,
            "batch_size": 20,
            "weight_decay": 1e-2,
            "agreement_ramp": 0.0,
        }
        | fields
        | {"override": least | fields.get("override", {})}
    )
    loop = Loop(recipe, load(recipe.dataset), None, strategy, quiet=True)
    loop.run()
    if not is_chief(strategy):
        return None
    model = loop.single_model()
    images = np.random.default_rng(0).uniform(size=(8, 32, 32, 3))
    return {
        "outputs": model(images.astype("float32")).numpy(),
        "row": json.dumps(loop.state.history[-1]),
    } | {f"weight{i:03d}": w for i, w in enumerate(model.get_weights())}


if __name__ == "__main__":
    main(*sys.argv[1:])
