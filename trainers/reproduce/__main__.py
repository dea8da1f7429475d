"""Runs the paper's tables and figures.

    python -m trainers.reproduce --experiment=table1 --dataset=mnist --minutes=7

trains every row of table 1 for seven minutes, with three seeds, and sets our
errors beside the paper's. Every run is an ordinary run folder. The same
command goes on where it stopped; rows and seeds may be added later.
"""

import dataclasses
import math
import pathlib
import shlex
import sys

from absl import flags

from trainers import cli, stopping
from trainers.choices import LOGS
from trainers.files import check_writable
from trainers.recipe import Recipe
from trainers.reproduce.experiments import EXPERIMENTS, PAPER_BUDGET
from trainers.reproduce.folder import Reproduction, data_name
from trainers.reproduce.protocols import PROTOCOLS, protocol_text
from trainers.tensorflow_start import start_tensorflow

# Shown by --help; the others by --helpfull.
FIRST = (
    "experiment", "rows", "minutes", "epochs", "seeds", "learning_rates",
    "protocol", "dataset", "data_dir", "narrow", "out",
)  # fmt: skip

CHOICES = {"experiment": EXPERIMENTS, "log": LOGS}


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags, those of a recipe included."""
    kwargs = {"flag_values": values}
    cli.define_recipe(values)
    flags.DEFINE_string(
        "experiment", None,
        "; ".join(f"{n}: {e.title}" for n, e in EXPERIMENTS.items()), **kwargs,
    )  # fmt: skip
    flags.DEFINE_list("rows", None, "Some rows only, by name.", **kwargs)
    flags.DEFINE_float(
        "minutes", None, "Time for the training steps of each run; or give "
        "--epochs.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "seeds", 3, "Runs of each row, with the seeds --seed, --seed + 1, ….",
        lower_bound=1, **kwargs,
    )  # fmt: skip
    flags.DEFINE_list(
        "learning_rates", None, "Choose each row's learning rate of these, by "
        "the validation error of the first seed.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_enum(
        "protocol", None, list(PROTOCOLS), "Defaults that go together. "
        "converged: few images, the same for every run, and many epochs, so "
        f"that training errors end near zero: {protocol_text('converged')}.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_float(
        "narrow", 1.0, "Divide all widths of all networks by this.",
        lower_bound=1.0, **kwargs,
    )  # fmt: skip
    flags.DEFINE_multi_string(
        "set", [], "A recipe field of one row, ROW.FIELD=VALUE, repeatable: "
        "--set=a.batch_size=8.", **kwargs,
    )  # fmt: skip
    cli.define_log(values)
    flags.DEFINE_string(
        "out", None, "Folder of the experiment; default: "
        "runs/reproduce/EXPERIMENT-DATA.", **kwargs,
    )  # fmt: skip


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Runs an experiment, and says what came out and was written where."""
    cli.take_no_arguments(arguments)
    reproduction = from_flags(values)
    log = cli.log_from_flags(values)
    check_writable(reproduction.path)
    stopping.raise_on_sigterm()
    # The processes that train need the GPUs.
    start_tensorflow(gpus=False)
    from trainers.reproduce.running import reproduce

    return reproduce(reproduction, log)


def from_flags(values: flags.FlagValues) -> Reproduction:
    """Returns what the flags ask for."""
    if values.experiment not in EXPERIMENTS:
        raise ValueError(
            f"--experiment must be one of {', '.join(EXPERIMENTS)}. "
            f"Received: --experiment={values.experiment}."
        )
    preset = PROTOCOLS.get(values.protocol, {})
    rates = _rates(values, preset)
    given = preset | cli.given_fields(values)
    given.pop("learning_rates", None)
    fields = EXPERIMENTS[values.experiment].fields
    given.setdefault("dataset", fields.get("dataset", Recipe.dataset))
    _check_budget(values, given)
    name = f"{values.experiment}-{data_name(given['dataset'])}"
    out = values.out or pathlib.Path("runs") / "reproduce" / name
    rows = _chosen_rows(values)
    return Reproduction(
        pathlib.Path(out),
        values.experiment,
        rows,
        given,
        _row_fields(values["set"].value, [row.name for row in rows]),
        values.narrow,
        values.minutes,
        values.seeds,
        rates,
        shlex.join(["python", "-m", "trainers.reproduce", *sys.argv[1:]]),
    )


def _rates(values, preset):
    """The learning rates to choose from: a flag's, else the protocol's."""
    if values.learning_rate is not None:
        if values.learning_rates:
            raise ValueError(
                "The learning rate is either given or chosen. Received: "
                "--learning_rate and --learning_rates."
            )
        return ()
    texts = values.learning_rates or preset.get("learning_rates", ())
    try:
        rates = tuple(float(text) for text in texts)
    except ValueError:
        rates = (math.nan,)
    if not all(0 < rate < math.inf for rate in rates):
        raise ValueError(
            "--learning_rates takes numbers > 0. Received: "
            f"--learning_rates={','.join(map(str, texts))}."
        )
    return rates


def _check_budget(values, given):
    if values.minutes is None and "epochs" not in given:
        raise ValueError(
            "A budget for each run is needed, --epochs or --minutes. "
            f"Received: neither. The paper has {PAPER_BUDGET}; a few minutes "
            "compare orders, not numbers."
        )
    if values.minutes is None:
        return
    if values.minutes <= 0:
        raise ValueError(
            f"--minutes must be > 0. Received: --minutes={values.minutes}."
        )
    if "epochs" in given or "steps_per_epoch" in given:
        raise ValueError(
            "The budget is either time or steps. Received: --minutes and "
            "--epochs or --steps_per_epoch."
        )


def _chosen_rows(values):
    rows = {row.name: row for row in EXPERIMENTS[values.experiment].rows}
    chosen = values.rows or list(rows)
    unknown = [name for name in chosen if name not in rows]
    if unknown:
        raise ValueError(
            f"--rows must be some of {', '.join(rows)}. "
            f"Received: {', '.join(unknown)}."
        )
    return tuple(row for name, row in rows.items() if name in chosen)


def _row_fields(texts, names):
    """Reads `--set`."""
    known = {f.name for f in dataclasses.fields(Recipe)}
    known -= {"variant", "override", "epochs", "steps_per_epoch", "seed"}
    found = {}
    for text in texts:
        row, dot, rest = text.partition(".")
        fields = cli.parse_overrides([rest]) if dot and rest else {}
        if row not in names or not fields or set(fields) - known:
            raise ValueError(
                "--set takes ROW.FIELD=VALUE, a row that is run and a field "
                f"of its recipe. Received: --set={text}. Rows: "
                f"{', '.join(names)}; fields: {', '.join(sorted(known))}."
            )
        found.setdefault(row, {}).update(fields)
    return found


if __name__ == "__main__":
    define()
    cli.run(main)
