"""The runs below a folder: what each is, how far it is, what came out."""

import collections
import json
import os
import pathlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trainers.files import is_owned
from trainers.runs.folder import RunFolder, read_metrics
from trainers.stored_recipe import read_recipe

# Of a search and of a reproduction, whose folders hold runs.
_STUDIES = ("search.json", "experiment.json")
STATES = ("finished", "running", "stopped", "failed")


@dataclass(frozen=True)
class Entry:
    """A run, or the runs of a search or a reproduction.

    Attributes:
        folder: Where it lies.
        network: The variant.
        data: The data set.
        states: How many runs are in which of `STATES`.
        epochs: Finished ones.
        epochs_wanted: How many it shall have; None where steps decide.
        test_error: Of a finished run.
        test_error_interval: Its 95% interval.
        validation_error: The least of several runs.
        seconds: Time spent in training.
        changed: When something was last written, in seconds since 1970.
    """

    folder: str
    network: str
    data: str
    states: dict[str, int]
    epochs: int | None = None
    epochs_wanted: int | None = None
    test_error: float | None = None
    test_error_interval: tuple[float, float] | None = None
    validation_error: float | None = None
    seconds: float | None = None
    changed: float = 0.0

    @property
    def runs(self) -> int:
        """How many runs it stands for."""
        return sum(self.states.values())


def list_runs(
    root: pathlib.Path, *, singly: bool = False
) -> tuple[list[Entry], list[str]]:
    """Finds the runs below a folder, at any depth.

    Args:
        root: The folder.
        singly: Whether runs of searches and reproductions stand alone, too.

    Returns:
        The entries, and what is damaged, in words.
    """
    found, problems = [], []
    studies: dict[pathlib.Path, list[Entry]] = collections.defaultdict(list)
    for path, study in _run_folders(root, None):
        try:
            entry = read_run(RunFolder(path))
        except (ValueError, TypeError, KeyError, AttributeError,
                OSError) as problem:  # fmt: skip
            problems.append(f"{path} is damaged, or no run's ({problem}).")
            continue
        if singly or study is None:
            found.append(entry)
        else:
            studies[study].append(entry)
    found += [_together(path, runs) for path, runs in studies.items()]
    return found, problems


def _run_folders(
    folder: pathlib.Path, study: pathlib.Path | None
) -> Iterator[tuple[pathlib.Path, pathlib.Path | None]]:
    """Yields run folders, each with the study below the root that it is of."""
    if (folder / "config.json").exists():
        yield folder, study
        return
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError:
        return
    for entry in entries:
        # `latest` is a link to a run that is there, too.
        if entry.is_dir(follow_symlinks=False):
            path = folder / entry.name
            is_study = any((path / name).exists() for name in _STUDIES)
            yield from _run_folders(path, path if is_study else study)


def read_run(folder: RunFolder) -> Entry:
    """Reads what a run has left so far.

    Raises:
        ValueError: A file is damaged; KeyError, TypeError: it is another's.
    """
    recipe = read_recipe(folder.config)
    result, summary = map(_object, (folder.result, folder.summary))
    over = summary or result
    numbers = _final(over) if "epochs" in over else _so_far(folder)
    return Entry(
        folder=str(folder.path),
        network=recipe["variant"],
        data=recipe["dataset"],
        states={_state(folder, result): 1},
        epochs_wanted=recipe["epochs"],
        changed=_changed(folder),
        **numbers,
    )


def _object(path: pathlib.Path) -> dict[str, Any]:
    """Reads a JSON object; an empty one where there is no file."""
    content = json.loads(path.read_text()) if path.exists() else {}
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} holds no JSON object")
    return content


def _final(over):
    found = {
        "epochs": over["epochs"],
        "validation_error": float(over["validation_error"]),
        "seconds": float(over.get("train_seconds", over.get("seconds"))),
    }
    if "test_error" in over:
        low, high = map(float, over["test_error_interval"])
        found["test_error"] = float(over["test_error"])
        found["test_error_interval"] = low, high
    return found


def _so_far(folder):
    if not folder.metrics.exists():
        return {"epochs": 0}
    rows = read_metrics(folder)
    return {
        "epochs": len(rows),
        "validation_error": rows[-1]["val_error"] if rows else None,
        "seconds": sum(row["seconds"] for row in rows),
    }


def _state(folder, result):
    if is_owned(folder.path):
        return "running"
    if "failed" in result:
        return "failed"
    is_over = result or folder.summary.exists()
    return "finished" if is_over else "stopped"


def _changed(folder):
    files = (folder.config, folder.metrics, folder.summary, folder.result)
    return max(file.stat().st_mtime for file in files if file.exists())


def _together(path: pathlib.Path, runs: list[Entry]) -> Entry:
    states = collections.Counter()
    for run in runs:
        states.update(run.states)
    known = [r.validation_error for r in runs]
    return Entry(
        folder=str(path),
        network=_common(run.network for run in runs),
        data=_common(run.data for run in runs),
        states={state: states[state] for state in STATES if states[state]},
        validation_error=min((e for e in known if e is not None), default=None),
        seconds=sum(run.seconds or 0 for run in runs),
        changed=max(run.changed for run in runs),
    )


def _common(values: Iterable[str]) -> str:
    values = set(values)
    return values.pop() if len(values) == 1 else f"{len(values)} different"
