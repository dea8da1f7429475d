"""Searches for the best recipe: `python -m trainers.tune --help`.

With no flags: `encapnet_small` on the built-in `house_numbers`, 12 trials over
the agreement units' λ and ε. Each trial is trained as `trainers.fit` does and
judged on the part of the training data that is set aside; the test data are
never read. The same command on the same --tune_dir goes on where it stopped.
"""

import pathlib
import sys
import time

import grpc
import tensorflow as tf
from absl import flags

from trainers import cli
from trainers.runs.child import Child
from trainers.tune import space
from trainers.tune.oracles import TUNERS
from trainers.tune.search import role, run, work
from trainers.tune.trials import Search

flags.DEFINE_string(
    "tune_dir", None, "The search's folder; default: a new one in runs/."
)
flags.DEFINE_enum(
    "tuner",
    "bayesian",
    TUNERS,
    "How to choose values. bayesian: where a model of the trials so far "
    "expects most; random; grid: evenly, from end to end; hyperband: many "
    "short runs, then longer ones of the best, each trained anew.",
)
flags.DEFINE_list(
    "search",
    "agreement_weight,agreement_epsilon",
    f"What to search, of {'; '.join(map(str, space.AXES.values()))}. "
    "NAME:LOW:HIGH gives another range. The first trial has the recipe's own "
    "values.",
)
flags.DEFINE_integer(
    "max_trials",
    None,
    "Trials at most; a larger number, given later, adds to the search. "
    "Default: 12, or all that hyperband's brackets hold.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "executions_per_trial",
    1,
    "Runs of each trial, with the seeds --seed, --seed + 1, …; their mean "
    "error counts.",
    lower_bound=1,
)
flags.DEFINE_bool("overwrite", False, "Start the search in --tune_dir anew.")


def main(arguments: list[str]) -> int:
    """Searches, and says what was found and written where."""
    cli.take_no_arguments(arguments)
    # The processes that train need them.
    tf.config.set_visible_devices([], "GPU")
    cli.interrupt_on_sigterm()
    search = _search_from_flags(flags.FLAGS)
    child = Child()
    try:
        if role() == "worker":
            return work(search, child)
        return run(search, child, overwrite=flags.FLAGS.overwrite)
    except KeyboardInterrupt:
        print(
            f"Stopped; the same command goes on, with --tune_dir={search.path}",
            flush=True,
        )
        return 0
    except grpc.RpcError as trouble:
        print(
            "error: The chief of the search is gone, so this worker stops. "
            "Start both again with the same flags: they go on. "
            f"({trouble.code().name})",
            file=sys.stderr,
        )
        return 1
    finally:
        child.close()


def _search_from_flags(values) -> Search:
    recipe = cli.recipe_from_flags(values)
    return Search(
        pathlib.Path(values.tune_dir or _new_tune_dir(recipe)),
        recipe,
        space.parse_axes(values.search),
        values.tuner,
        values.max_trials,
        values.executions_per_trial,
    )


def _new_tune_dir(recipe):
    data = recipe.dataset.partition(":")[0]
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return pathlib.Path("runs") / f"{stamp}-tune-{recipe.variant}-{data}"


if __name__ == "__main__":
    cli.define_recipe()
    flags.adopt_module_key_flags(cli)
    cli.run(main)
