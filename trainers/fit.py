"""Trains a network: `python -m trainers.fit --help`.

With no flags: `encapnet_small` on the built-in `house_numbers`, in minutes on
two cores. The same command on the same --run_dir goes on where it stopped.
"""

import json
import pathlib
import sys
import time

import tensorflow as tf
from absl import flags

from encapnet_tf.data import load
from trainers import cli, machine
from trainers.cost.step_cost import count_parameters
from trainers.data_report import data_report
from trainers.recipe import Recipe, differences, read_recipe
from trainers.runs.finished import start_from
from trainers.runs.folder import RunFolder
from trainers.tables import error_sentence
from trainers.training.curves import draw_curves
from trainers.training.devices import STRATEGIES, make_strategy, num_processes
from trainers.training.finishing import finish_run
from trainers.training.loop import Diverged, Loop

flags.DEFINE_string(
    "run_dir", None, "The run's folder; default: a new one in runs/."
)
flags.DEFINE_enum(
    "strategy",
    "auto",
    STRATEGIES,
    "Where to compute: auto takes all GPUs of this machine, or the workers "
    "in TF_CONFIG.",
)
flags.DEFINE_integer(
    "logical_cpus", 1, "Split the CPU into so many devices, to try several."
)
flags.DEFINE_float(
    "checkpoint_seconds", 300.0, "Longest time between two checkpoints."
)


def main(arguments: list[str]) -> int:
    """Trains, tests once, and says what was written where."""
    cli.take_no_arguments(arguments)
    values = flags.FLAGS
    recipe = cli.recipe_from_flags(values)
    strategy = make_strategy(values.strategy, values.logical_cpus)
    if num_processes(strategy) > 1 and not values.run_dir:
        raise ValueError(
            "Several workers need one --run_dir that all of them can read. "
            "Received: none."
        )
    folder = RunFolder(values.run_dir or _new_run_dir(recipe))
    if folder.summary.exists():
        _refuse_other_recipe(folder, recipe)
        print(f"This run is finished: {folder.path}")
        _report(folder, json.loads(folder.summary.read_text()))
        return 0
    _refuse_other_recipe(folder, recipe)
    dataset = load(
        recipe.dataset, recipe.data_dir, image_size=recipe.image_size
    )
    loop = Loop(
        recipe,
        dataset,
        folder,
        strategy,
        checkpoint_seconds=values.checkpoint_seconds,
    )
    if recipe.init_from:
        start_from(loop.model, recipe.init_from)
    try:
        if not loop.is_chief:
            loop.run()
            return 0
        with folder.locked():
            return _train(recipe, dataset, folder, loop)
    except Diverged as trouble:
        print(f"error: {trouble}", file=sys.stderr)
        return 1
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as trouble:
        print(
            "error: Another worker is gone, so this one stops. Start all "
            "workers again with the same flags: they go on from the last "
            f"checkpoint. ({trouble.message.splitlines()[0]})",
            file=sys.stderr,
            flush=True,
        )
        return 1


def _train(recipe, dataset, folder, loop):
    recipe.save(folder.config)
    folder.point_latest_here()
    _announce(recipe, dataset, folder, loop)
    finished = loop.run()
    if loop.state.history:
        draw_curves(loop.state.history, folder.curves)
    if not finished:
        print(f"Stopped; the same command goes on. Run folder: {folder.path}")
        return 0
    _report(folder, finish_run(loop, folder))
    return 0


def _announce(recipe, dataset, folder, loop):
    for line in data_report(recipe, dataset):
        print(line)
    if recipe.dtype_policy == "mixed_bfloat16" and machine.bfloat16_is_slow():
        print(
            "This processor does not multiply bfloat16: training is several "
            "times slower than with --dtype_policy=float32."
        )
    print(
        f"{recipe.variant}, {count_parameters(loop.model).trainable:,} "
        "parameters, on "
        f"{dataset.name}: "
        f"{loop.train.num_examples:,} training, "
        f"{loop.validation.num_examples:,} validation and "
        f"{loop.test.num_examples:,} test images, "
        f"{dataset.num_classes} classes.\nRun folder: {folder.path}",
        flush=True,
    )


def _report(folder: RunFolder, summary: dict) -> None:
    sentence = error_sentence(summary)
    minutes = summary["train_seconds"] / 60
    print(
        f"{sentence[0].upper()}{sentence[1:]} after {summary['epochs']} "
        f"epochs, {minutes:.1f} minutes, "
        f"{summary['images_per_second']:,.0f} images/s."
    )
    for path in (folder.model, folder.curves, folder.metrics, folder.summary):
        print(f"  {path}")


def _new_run_dir(recipe: Recipe) -> pathlib.Path:
    data = recipe.dataset.partition(":")[0]
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return pathlib.Path("runs") / f"{stamp}-{recipe.variant}-{data}"


def _refuse_other_recipe(folder: RunFolder, recipe: Recipe) -> None:
    """A run folder belongs to one recipe."""
    if not folder.config.exists():
        return
    changed = differences(read_recipe(folder.config), recipe)
    if changed:
        raise ValueError(
            f"The run in {folder.path} has another recipe: "
            f"{'; '.join(changed)}. Give its own flags to go on, or another "
            "--run_dir."
        )


if __name__ == "__main__":
    cli.define_recipe()
    flags.adopt_module_key_flags(cli)
    cli.run(main)
