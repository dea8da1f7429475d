"""Trains a network.

    python -m trainers.fit
    python -m trainers.fit --dataset=folder:photos --image_size=96x64

With no flags: `encapnet_small` on the built-in `house_numbers`, in minutes on
two cores. The same command on the same --run_dir goes on where it stopped.
"""

import json

from absl import flags

from trainers import cli
from trainers.choices import LOGS, STRATEGIES
from trainers.files import check_writable, new_folder
from trainers.recipe import Recipe, has_units
from trainers.runs.folder import (
    RunFolder,
    model_to_start_from,
    summary_lines,
)
from trainers.stored_recipe import differences, read_recipe
from trainers.tensorflow_start import start_tensorflow

# Shown by --help; the others by --helpfull.
FIRST = (
    "variant", "dataset", "image_size", "augmentation", "epochs",
    "learning_rate", "agreement", "seed", "run_dir", "config", "init_from",
)  # fmt: skip
CHOICES = {"log": LOGS}


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags, those of a recipe included."""
    kwargs = {"flag_values": values}
    cli.define_recipe(values)
    flags.DEFINE_string(
        "run_dir", None, "The run's folder; default: a new one in runs/.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_enum(
        "strategy", "auto", STRATEGIES, "Where to compute: auto takes all GPUs "
        "of this machine, or the workers in TF_CONFIG.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "logical_cpus", 1, "Split the CPU into this many devices, to try "
        "several.", lower_bound=1, **kwargs,
    )  # fmt: skip
    flags.DEFINE_float(
        "checkpoint_seconds", 300.0, "Longest time between two checkpoints.",
        lower_bound=0.0, **kwargs,
    )  # fmt: skip
    cli.define_log(values)


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Trains, tests once, and says what was written where."""
    cli.take_no_arguments(arguments)
    recipe = cli.recipe_from_flags(values)
    _refuse_idle_flags(recipe)
    folder = RunFolder(values.run_dir or new_folder(recipe.label))
    _refuse_other_recipe(folder, recipe)
    if folder.summary.exists():
        print(f"This run is finished: {folder.path}")
        summary = json.loads(folder.summary.read_text())
        print("\n".join(summary_lines(folder, summary)))
        return 0
    if recipe.init_from:
        model_to_start_from(recipe.init_from)
    log = cli.log_from_flags(values)
    check_writable(folder.path)
    start_tensorflow()
    from trainers.training.train import train

    return train(
        recipe,
        folder,
        strategy=values.strategy,
        logical_cpus=values.logical_cpus,
        checkpoint_seconds=values.checkpoint_seconds,
        is_new=values.run_dir is None,
        log=log,
    )


def _refuse_idle_flags(recipe: Recipe) -> None:
    """λ and ε of no units would be a misunderstanding."""
    for name in ("agreement_weight", "agreement_epsilon"):
        given = getattr(recipe, name)
        if given is not None and not has_units(recipe.network()):
            raise ValueError(
                f"`{name}` needs a network with agreement units. Received: "
                f"{name}={given}, variant={recipe.variant}, which has none: "
                "add --agreement=one."
            )


def _refuse_other_recipe(folder: RunFolder, recipe: Recipe) -> None:
    """A run folder belongs to one recipe."""
    if not folder.config.exists():
        return
    changed = differences(read_recipe(folder.config), recipe)
    if not changed:
        return
    way = "Give its own flags to go on, or another --run_dir."
    if folder.summary.exists():
        way = (
            "It is finished, its schedule too. To train on from its weights, "
            f"with a new schedule: --init_from={folder.path} and another "
            "--run_dir."
        )
    raise ValueError(
        f"The run in {folder.path} has another recipe: "
        f"{'; '.join(changed)}. {way}"
    )


if __name__ == "__main__":
    define()
    cli.run(main)
