"""Searches for the best recipe.

    python -m trainers.tune
    python -m trainers.tune --agreement=one --tune_dir=runs/search

With no flags: `encapnet_small` on the built-in `house_numbers`, 12 trials over
learning rate and weight decay; with --agreement=one, over the units' λ and ε.
Each trial is trained as `trainers.fit` does and judged on the part of the
training data that is set aside; the test data are never read. A trial of a
small variant has 4 epochs unless --epochs is given. The same command on the
same --tune_dir goes on where it stopped.
"""

import dataclasses
import pathlib

from absl import flags

from trainers import cli, stopping
from trainers.choices import LOGS, TUNERS
from trainers.files import check_writable, new_folder
from trainers.recipe import has_units
from trainers.runs.folder import model_to_start_from
from trainers.tensorflow_start import start_tensorflow
from trainers.tune import space
from trainers.tune.axes import AXES, parse_axes, split_texts
from trainers.tune.trials import Search

# Unless --epochs says otherwise: enough to tell good values from bad ones.
_TRIAL_EPOCHS = 4

# Shown by --help; the others by --helpfull.
FIRST = (
    "search", "tuner", "max_trials", "executions_per_trial", "tune_dir",
    "variant", "dataset", "epochs", "agreement", "config",
)  # fmt: skip

CHOICES = {"search": AXES, "log": LOGS}


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags, those of a recipe included."""
    kwargs = {"flag_values": values}
    cli.define_recipe(values)
    flags.DEFINE_string(
        "tune_dir", None, "The search's folder; default: a new one in runs/.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_enum(
        "tuner", "bayesian", TUNERS, "How to choose values. bayesian: where a "
        "model of the trials so far expects most; random; grid: evenly, from "
        "end to end; hyperband: many short runs, then longer ones of the "
        "best, each trained anew.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "search", None,
        f"What to search, of {'; '.join(map(str, AXES.values()))}. Or any "
        "field of the recipe, the network's config or its units, with a range "
        "or choices: NAME:LOW:HIGH, NAME=A/B/C. The first trial has the "
        "recipe's own values, where these hold them. Default: lambda and "
        "epsilon of the agreement units; in a network without units, "
        "learning_rate and weight_decay.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "max_trials", None, "Trials at most; a larger number, given later, "
        "adds to the search. Default: 12, or all that hyperband's brackets "
        "hold.", lower_bound=1, **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "executions_per_trial", 1, "Runs of each trial, with the seeds --seed, "
        "--seed + 1, …; their mean error counts.", lower_bound=1, **kwargs,
    )  # fmt: skip
    cli.define_log(values)
    flags.DEFINE_bool(
        "overwrite", False, "Start the search in --tune_dir anew.", **kwargs
    )


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Searches, and says what was found and written where."""
    cli.take_no_arguments(arguments)
    search = _search_from_flags(values)
    if search.recipe.init_from:
        model_to_start_from(search.recipe.init_from)
    log = cli.log_from_flags(values)
    check_writable(search.path)
    stopping.raise_on_sigterm()
    # The processes that train need the GPUs.
    start_tensorflow(gpus=False)
    from trainers.tune.search import search_in_child

    return search_in_child(search, overwrite=values.overwrite, log=log)


def _search_from_flags(values) -> Search:
    recipe = cli.recipe_from_flags(values)
    if recipe.epochs is None:
        recipe = dataclasses.replace(recipe, epochs=_TRIAL_EPOCHS)
    axes = parse_axes(split_texts(values.search or _default_search(recipe)))
    space.defaults(axes, recipe)
    return Search(
        pathlib.Path(values.tune_dir or new_folder("tune", recipe.label)),
        recipe,
        axes,
        values.tuner,
        values.max_trials,
        values.executions_per_trial,
    )


def _default_search(recipe):
    if has_units(recipe.network()):
        return "agreement_weight,agreement_epsilon"
    return "learning_rate,weight_decay"


if __name__ == "__main__":
    define()
    cli.run(main)
