"""Lists what was trained, the newest first.

    python -m trainers.runs
    python -m trainers.runs runs/search --sort=validation_error

Takes a folder, runs/ by default, and looks at any depth. The runs of a search
or a reproduction share a line, with their least validation error; --all, or
naming its folder, shows each.
"""

import dataclasses
import json
import pathlib
import sys
import time

from absl import flags

from trainers import cli
from trainers.cli.programs import as_started
from trainers.progress import duration
from trainers.runs.listing import Entry, list_runs
from trainers.tables import aligned

_SORTS = (
    "changed", "folder", "test_error", "validation_error", "seconds",
)  # fmt: skip
_HEADS = (
    "folder", "network", "data", "epochs", "state", "test error",
    "validation", "time", "changed",
)  # fmt: skip
_NOTHING = "–"
ARGUMENTS = None  # files


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags."""
    kwargs = {"flag_values": values}
    flags.DEFINE_enum(
        "sort", "changed", _SORTS, "Order: the newest, or the least, first.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_bool(
        "all", False, "Show the runs of searches and reproductions, too.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_bool(
        "json", False, "Print JSON, one object per line.", **kwargs
    )


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Prints a line per run."""
    if len(arguments) > 1:
        raise ValueError(
            f"At most one folder is expected. Received: {' '.join(arguments)}."
        )
    root = pathlib.Path(*arguments or ["runs"])
    if arguments and not root.is_dir():
        raise ValueError(f"Runs are in a folder. Received: {root}, no folder.")
    entries, problems = [], []
    if root.is_dir():
        entries, problems = list_runs(root, singly=values["all"].value)
    for problem in problems:
        print(f"warning: Passed over: {problem}", file=sys.stderr)
    entries.sort(key=lambda entry: _rank(entry, values.sort))
    if values.json:
        lines = (json.dumps(dataclasses.asdict(e)) for e in entries)
        return cli.say("\n".join(lines)) if entries else 0
    if not entries:
        text = f"No runs in {root}. `python -m trainers.fit` makes one."
        return cli.say(as_started(text))
    return cli.say(aligned([_HEADS, *map(_cells, entries)], "<<<><>>>>"))


def _rank(entry: Entry, name: str):
    value = getattr(entry, name)
    if name == "changed":
        value = -value
    return value is None, value or 0 if name != "folder" else value


def _cells(entry: Entry) -> tuple[str, ...]:
    error = _percent(entry.test_error)
    if entry.test_error_interval:
        low, high = entry.test_error_interval
        error += f" ({low:.2%} to {high:.2%})"
    return (
        entry.folder,
        entry.network,
        entry.data,
        _epochs(entry),
        _state(entry),
        error,
        _percent(entry.validation_error),
        _NOTHING if entry.seconds is None else duration(entry.seconds),
        time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.changed)),
    )


def _epochs(entry):
    if entry.epochs is None:
        return _NOTHING
    if "finished" in entry.states or entry.epochs_wanted is None:
        return str(entry.epochs)
    return f"{entry.epochs}/{entry.epochs_wanted}"


def _state(entry):
    if entry.runs == 1:
        return next(iter(entry.states))
    return ", ".join(f"{n} {state}" for state, n in entry.states.items())


def _percent(error):
    return _NOTHING if error is None else f"{error:.2%}"


if __name__ == "__main__":
    define()
    cli.run(main)
