"""Trains a few steps under a strategy and stores what came out.

python -m tests.trainers.train_once NPZ OUT STRATEGY LOGICAL_CPUS FIELDS_JSON
"""

import json
import sys

import numpy as np

from trainers.devices import is_chief, make_strategy
from trainers.loop import Loop
from trainers.recipe import make_recipe


def main(npz, out, strategy_name, logical_cpus, fields):
    strategy = make_strategy(strategy_name, int(logical_cpus))
    from encapnet_tf.data import load

    recipe = make_recipe(
        {
            "variant": "encapnet_tiny",
            "override": {
                "stem": ((4, 2),),
                "num_capsules": 2,
                "type2_layers": (0,),
                "strides": (2,),
                "agreement": "one",
            },
            "dataset": f"npz:{npz}",
            "epochs": 1,
            "batch_size": 20,
            "weight_decay": 1e-2,
            "agreement_ramp": 0.0,
        }
        | json.loads(fields)
    )
    dataset = load(recipe.dataset)
    loop = Loop(recipe, dataset, None, strategy, quiet=True)
    loop.run()
    if not is_chief(strategy):
        return
    model = loop.single_model()
    images = np.random.default_rng(0).uniform(size=(8, 32, 32, 3))
    np.savez(
        out,
        outputs=model(images.astype("float32")).numpy(),
        row=json.dumps(loop.state.history[-1]),
        **{f"weight{i:03d}": w for i, w in enumerate(model.get_weights())},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
