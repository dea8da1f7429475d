"""A run from its data to its summary, in one process."""

import sys
from collections.abc import Sequence

import tensorflow as tf

from encapnet_tf.data import Dataset, load
from trainers import machine, stopping
from trainers.cost.step_cost import count_parameters
from trainers.data_report import data_report
from trainers.files import write_json
from trainers.recipe import Recipe
from trainers.runs.finished import start_from
from trainers.runs.folder import RunFolder, summary_lines
from trainers.training.curves import draw_curves
from trainers.training.devices import make_strategy, num_processes
from trainers.training.divergence import Diverged
from trainers.training.finishing import finish_run, generalization_note
from trainers.training.logs.trackers import opened
from trainers.training.loop import Loop


def train(
    recipe: Recipe,
    folder: RunFolder,
    *,
    strategy: str = "auto",
    logical_cpus: int = 1,
    checkpoint_seconds: float = 300.0,
    is_new: bool = False,
    log: Sequence[str] = (),
) -> int:
    """Trains, tests once, and says what was written where.

    Args:
        recipe: What to train and how.
        folder: Where; a run that was begun there goes on.
        strategy: Where to compute, see `make_strategy`.
        logical_cpus: Likewise.
        checkpoint_seconds: Longest time between two checkpoints.
        is_new: Whether the folder is one that only this process knows.
        log: Where its numbers go besides, of `trainers.choices.LOGS`.

    Returns:
        The exit code.
    """
    devices = make_strategy(strategy, logical_cpus)
    if num_processes(devices) > 1 and is_new:
        raise ValueError(
            "Several workers need one --run_dir that all of them can read. "
            "Received: none."
        )
    dataset = load(
        recipe.dataset, recipe.data_dir, image_size=recipe.image_size
    )
    loop = Loop(
        recipe, dataset, folder, devices, checkpoint_seconds=checkpoint_seconds
    )
    if recipe.init_from:
        start_from(loop.model, recipe.init_from)
    try:
        if loop.is_chief:
            with folder.locked():
                return _train_as_chief(recipe, dataset, folder, loop, log)
        return 0 if loop.run() else _stopped(loop)
    except Diverged as trouble:
        print(f"error: {trouble}", file=sys.stderr)
        if loop.is_chief:
            failure = {"failed": "diverged", "reason": trouble.finding}
            write_json(folder.result, failure)
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as trouble:
        print(
            "error: Another worker is gone, so this one stops. Start all "
            "workers again with the same flags: they go on from the last "
            f"checkpoint. ({trouble.message.splitlines()[0]})",
            file=sys.stderr,
            flush=True,
        )
    return 1


def _train_as_chief(recipe, dataset, folder, loop, log):
    recipe.save(folder.config)
    folder.result.unlink(missing_ok=True)
    folder.point_latest_here()
    _announce(recipe, dataset, folder, loop)
    with opened(log, recipe, folder) as trackers:
        loop.logs.append(trackers)
        finished = loop.run()
        if loop.state.history:
            draw_curves(loop.state.history, folder.curves)
        if not finished:
            print(
                f"Stopped; the same command goes on. Run folder: {folder.path}"
            )
            return _stopped(loop)
        summary = finish_run(loop, folder)
        trackers.end(summary, folder.files())
    print("\n".join(summary_lines(folder, summary)))
    note = generalization_note(
        loop.state.history[-1], loop.validation.num_examples
    )
    if note:
        print(note)
    return 0


def _stopped(loop):
    return stopping.exit_code(stopping.Stop(loop.stop_signal))


def _announce(recipe: Recipe, dataset: Dataset, folder: RunFolder, loop: Loop):
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
