"""Where a run stands, kept so that nothing is lost when the machine dies."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

from trainers.runs.folder import RunFolder

_BEST = "best/"


@dataclass
class State:
    """With the variables, all that a checkpoint holds.

    Attributes:
        epoch: Finished epochs.
        step: Finished steps of the epoch under way.
        sums: Sums of the reports of these steps.
        seconds: Time spent in the epoch under way.
        history: One row per finished epoch.
        best_error: Least validation error so far.
        best_epoch: The epoch that had it, from 0.
        best_weights: The weights that had it, by their paths, where somebody
            will ask.
    """

    epoch: int = 0
    step: int = 0
    sums: list[float] = field(default_factory=list)
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    best_error: float = math.inf
    best_epoch: int = -1
    best_weights: dict[str, np.ndarray] | None = None


def save(
    folder: RunFolder,
    state: State,
    step: int,
    model: keras.Model,
    optimizer: keras.Optimizer,
) -> None:
    """Writes a checkpoint, then the metrics of the finished epochs."""
    arrays = {
        name: np.asarray(variable)
        for name, variable in _variables(model, optimizer).items()
    }
    for path, value in (state.best_weights or {}).items():
        arrays[_BEST + path] = value
    fields = dataclasses.asdict(dataclasses.replace(state, best_weights=None))
    folder.save_checkpoint(step, arrays, fields)
    if state.history:
        folder.write_metrics(state.history)


def restore(
    folder: RunFolder, model: keras.Model, optimizer: keras.Optimizer
) -> State:
    """Brings variables and state back; a fresh state if there is nothing."""
    found = folder.load_checkpoint()
    if found is None:
        return State()
    arrays, fields = found
    _refuse_numbered(folder, arrays)
    best = [name for name in arrays if name.startswith(_BEST)]
    fields["best_weights"] = {
        name.removeprefix(_BEST): arrays.pop(name) for name in best
    } or None
    variables = _variables(model, optimizer)
    if arrays.keys() != variables.keys() or any(
        arrays[name].shape != tuple(variable.shape)
        for name, variable in variables.items()
    ):
        raise ValueError(
            "The checkpoint does not fit the network. Received: a checkpoint "
            f"in {folder.path} with {len(arrays)} variables for a network "
            f"with {len(variables)}. Use another --run_dir."
        )
    for name, variable in variables.items():
        variable.assign(arrays[name])
    return State(**fields)


def _variables(model, optimizer):
    """By what they are, not by their place, which may change."""
    return {
        f"{owner}/{variable.path}": variable
        for owner, variables in (
            ("model", model.weights),
            ("optimizer", optimizer.variables),
        )
        for variable in variables
    }


def _refuse_numbered(folder, arrays):
    if "model/0000" in arrays:
        raise ValueError(
            "A checkpoint must name its variables. Received: a checkpoint in "
            f"{folder.path} that numbers them, written by an earlier version. "
            "Finish the run with that version, or use another --run_dir."
        )
