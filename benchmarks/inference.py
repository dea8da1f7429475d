"""Times the ways to ask a network: Keras, SavedModel, LiteRT and ONNX.

Measured: the time from uint8 images in memory to class scores in memory, of
untrained networks (time does not depend on the weights). The ways take turns,
so that a slow moment of the machine hits all of them; medians are compared.

- predict: `model.predict`, Keras' own loop
- traced: the Keras model in a `tf.function`, what a careful user writes
- SavedModel, LiteRT, ONNX: as `python -m export` writes them; ONNX where its
  packages are installed

Run: python -m benchmarks.inference [--seconds 20] [--variants NAME …]
"""

import argparse
import functools
import pathlib
import tempfile

import numpy as np

from export.choices import DEFAULT, ONNX_FILES
from export.graph.inference import inference
from export.graph.servable import Servable
from export.onnx_packages import TO_WRITE, missing
from export.opened import (
    OpenedLite,
    OpenedRun,
    OpenedSavedModel,
)
from export.version.lite import convert, file_name
from trainers.cost.timing import interleaved_seconds
from trainers.recipe import make_recipe
from trainers.runs.finished import Run
from trainers.runs.folder import RunFolder
from trainers.tables import aligned

VARIANTS = ("encapnet_small", "encapnet14_authors_master")
SHAPE = (32, 32, 3)
NAMES = tuple("0123456789")
BATCHES = (1, 64)


def untrained(variant, folder):
    """Returns a run of an untrained network, and what is exported of it."""
    recipe = make_recipe({"variant": variant})
    model = recipe.build(len(NAMES), SHAPE)
    run = Run(RunFolder(folder), recipe, model, {"class_names": list(NAMES)})
    return run, Servable(inference(run), SHAPE, NAMES)


def contestants(variant, folder):
    """Exports an untrained network; returns what to ask, by name."""
    run, servable = untrained(variant, folder)
    servable.save(str(folder / "saved"))
    servable.save_lite(str(folder / "lite"))
    convert(folder / "lite", ["none"], None, folder)
    lite = folder / file_name("none")
    return {
        "predict": lambda images: run.model.predict(images / 255.0, verbose=0),
        "traced": OpenedRun(run),
        "SavedModel": OpenedSavedModel(folder / "saved"),
        "LiteRT, 1 thread": OpenedLite(lite, num_threads=1),
        "LiteRT, 2 threads": OpenedLite(lite, num_threads=2),
        **{
            f"ONNX, {count} thread{'s' * (count > 1)}": ask
            for count, ask in with_onnx(servable, folder, 1, 2).items()
        },
    }


def with_onnx(servable, folder, *threads):
    """Returns ways to ask an ONNX file by their threads, none without ONNX."""
    if missing(TO_WRITE):
        return {}
    from export.opened_onnx import OpenedOnnx
    from export.version import onnx_files

    onnx_files.convert(servable, folder)
    path = folder / ONNX_FILES[DEFAULT]
    return {count: OpenedOnnx(path, count) for count in threads}


def table(asked, seconds):
    """Times every contestant at every batch size."""
    rows = [("", "batch", "ms", "quartiles", "times as fast as traced")]
    for size in BATCHES:
        images = np.random.default_rng(0).integers(
            0, 256, (size, *SHAPE), np.uint8
        )
        calls = {
            name: functools.partial(ask, images) for name, ask in asked.items()
        }
        times = interleaved_seconds(calls, seconds)
        traced = np.median(times["traced"])
        for name, spent in times.items():
            low, middle, high = 1000 * np.quantile(spent, (0.25, 0.5, 0.75))
            rows.append(
                (name, f"{size}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}",
                 f"{1000 * traced / middle:.2f}")
            )  # fmt: skip
    return aligned(rows, "<>>>>")


def main():
    """Prints one table per variant."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--variants", nargs="+", default=VARIANTS)
    arguments = parser.parse_args()
    for variant in arguments.variants:
        with tempfile.TemporaryDirectory() as folder:
            asked = contestants(variant, pathlib.Path(folder))
            print(variant)
            print(table(asked, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
