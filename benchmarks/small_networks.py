"""Times `encapnet_small` beside its predecessor and its opponents.

Measured: a training step at batch 64, and the exported SavedModel, LiteRT and
ONNX files (two threads; ONNX where its packages are installed) at batch 1 and
64, of untrained networks. All of one column take turns; medians, and how many
times as long as `encapnet_small` each takes.

- former: `encapnet_small` as it was (three modules with type II layers, an
  aide, an agreement unit)
- decoder: `encapnet_small` with a decoder, which is gone once it is exported
- cnn, resnet: as large as `encapnet_small`, the rows of
  `trainers.reproduce --experiment=equal_time`

Run: python -m benchmarks.small_networks [--seconds 20]
"""

import argparse
import functools
import pathlib
import tempfile
from dataclasses import replace

import numpy as np

from benchmarks.inference import NAMES, SHAPE, with_onnx
from export.graph.inference import inference
from export.graph.servable import Servable
from export.opened import OpenedLite, OpenedSavedModel
from export.version.lite import convert, file_name
from trainers.benchmark.calls import network
from trainers.cost.timing import interleaved_seconds
from trainers.progress import ShareProgress
from trainers.recipe import make_recipe
from trainers.reproduce.opponents import EQUAL_TIME
from trainers.runs.finished import Run
from trainers.runs.folder import RunFolder
from trainers.tables import aligned

BATCH = 64
FORMER = {
    "variant": "encapnet_small",
    "override": {
        "type2_layers": (1, 1, 1),
        "strides": (1, 2, 2),
        "capsule_dims": (4, 8, 16),
        "initial_length": None,
        "aide": ("none", "none", "type1"),
        "agreement": ("none", "none", "one"),
    },
}


def recipes():
    """Returns the recipes, by name."""
    fields = {row.name: row.fields for row in EQUAL_TIME}
    fields = {"encapnet": fields.pop("encapnet"), "former": FORMER} | fields
    return {
        name: make_recipe(own | {"batch_size": BATCH})
        for name, own in fields.items()
    }


def exported(recipe, folder):
    """Exports an untrained network; returns what to ask, by kind."""
    model = recipe.build(len(NAMES), SHAPE)
    run = Run(RunFolder(folder), recipe, model, {"class_names": list(NAMES)})
    servable = Servable(inference(run), SHAPE, NAMES)
    servable.save(str(folder / "saved"))
    servable.save_lite(str(folder / "lite"))
    convert(folder / "lite", ["none"], None, folder)
    asked = {
        "SavedModel": OpenedSavedModel(folder / "saved"),
        "LiteRT": OpenedLite(folder / file_name("none"), num_threads=2),
        "ONNX": with_onnx(servable, folder, 2).get(2),
    }
    return {name: ask for name, ask in asked.items() if ask}


def columns(folder):
    """Yields the head of each column and what to call, by network."""
    found = recipes()
    trained = found | {"decoder": replace(found["encapnet"], decoder="conv")}
    yield (
        f"training, batch {BATCH}",
        {name: network(recipe)["train"] for name, recipe in trained.items()},
    )
    asked = {}
    for name, recipe in found.items():
        (folder / name).mkdir()
        asked[name] = exported(recipe, folder / name)
    for kind in asked["encapnet"]:
        for size in (1, BATCH):
            images = np.random.default_rng(0).integers(
                0, 256, (size, *SHAPE), np.uint8
            )
            yield (
                f"{kind}, batch {size}",
                {
                    name: functools.partial(own[kind], images)
                    for name, own in asked.items()
                },
            )


def main():
    """Prints the table, column after column."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    rows = [("", "network", "ms", "quartiles", "times as long")]
    with tempfile.TemporaryDirectory() as folder:
        for head, calls in columns(pathlib.Path(folder)):
            progress = ShareProgress(head)
            times = interleaved_seconds(calls, seconds, show=progress)
            ours = np.median(times["encapnet"])
            for name, spent in times.items():
                low, middle, high = 1000 * np.quantile(spent, (0.25, 0.5, 0.75))
                rows.append(
                    (head, name, f"{middle:.2f}", f"{low:.2f} to {high:.2f}",
                     f"{middle / ours / 1000:.2f}")
                )  # fmt: skip
    print(aligned(rows, "<<>>>"))


if __name__ == "__main__":
    main()
