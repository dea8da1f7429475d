"""The run folder: everything a run leaves, never half-written."""

import contextlib
import csv
import json
import os
import pathlib
import zipfile
from typing import Any

import numpy as np
from absl import logging

from encapnet_tf.weights import MODEL_FILE
from trainers.files import locked, written_atomically
from trainers.tables import error_sentence

CHECKPOINTS_KEPT = 2


def read_metrics(folder: "RunFolder") -> list[dict[str, float]]:
    """Returns the rows of `metrics.csv`, one per epoch."""
    with folder.metrics.open(newline="") as file:
        return [
            {name: float(value) for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


def summary_lines(folder: "RunFolder", summary: dict[str, Any]) -> list[str]:
    """Says what `summary.json` says, and which files there are."""
    sentence = error_sentence(summary)
    minutes = summary["train_seconds"] / 60
    count = f"{summary['epochs']} epoch{'s' if summary['epochs'] > 1 else ''}"
    return [
        f"{sentence[0].upper()}{sentence[1:]} after {count}, {minutes:.1f} "
        f"minutes, {summary['images_per_second']:,.0f} images/s.",
        *(f"  {path}" for path in folder.files()),
    ]


def read_result(folder: "RunFolder") -> dict[str, Any] | None:
    """Returns what a run of a study left, or None where it is not over."""
    if not folder.result.exists():
        return None
    return json.loads(folder.result.read_text())


class RunFolder:
    """One run's files.

    Args:
        path: The folder; made when something is first written.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)
        self.config = self.path / "config.json"
        self.model = self.path / MODEL_FILE
        self.metrics = self.path / "metrics.csv"
        self.summary = self.path / "summary.json"
        self.result = self.path / "result.json"
        self.logs = self.path / "logs.json"
        self.curves = self.path / "curves.png"
        self.checkpoints = self.path / "checkpoints"
        self.tensorboard = self.path / "tensorboard"

    def files(self) -> tuple[pathlib.Path, ...]:
        """Returns the files of a finished run that people look at."""
        return self.model, self.curves, self.metrics, self.summary

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Keeps a second process from training in the same folder."""
        return locked(
            self.path,
            "Another process is training in this run folder. "
            f"Received: run_dir={self.path}.",
        )

    def point_latest_here(self) -> None:
        """Makes `latest`, beside the folder, point to it."""
        link = self.path.parent / "latest"
        if self.path.name == "latest" or (
            link.exists() and not link.is_symlink()
        ):
            return
        temporary = link.with_name(f".{os.getpid()}.latest")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(self.path.name)
        temporary.replace(link)

    def write_metrics(self, rows: list[dict[str, Any]]) -> None:
        """Writes one row per epoch."""
        with (
            written_atomically(self.metrics) as path,
            path.open("w", newline="") as file,
        ):
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def save_checkpoint(
        self, step: int, arrays: dict[str, np.ndarray], state: dict[str, Any]
    ) -> None:
        """Writes a checkpoint and removes the oldest."""
        text = np.frombuffer(json.dumps(state).encode(), np.uint8)
        path = self.checkpoints / f"step-{step:09d}.npz"
        with (
            written_atomically(path) as temporary,
            temporary.open("wb") as file,
        ):
            np.savez(file, state=text, **arrays)
        for old in self._checkpoint_files()[CHECKPOINTS_KEPT:]:
            old.unlink()

    def load_checkpoint(
        self,
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """Returns the newest checkpoint that is whole, or None."""
        for path in self._checkpoint_files():
            try:
                with np.load(path, allow_pickle=False) as archive:
                    arrays = {name: archive[name] for name in archive.files}
                state = json.loads(arrays.pop("state").tobytes())
            except (OSError, ValueError, KeyError, EOFError,
                    zipfile.BadZipFile) as problem:  # fmt: skip
                logging.warning(
                    "Checkpoint %s is damaged (%s); trying the one before it.",
                    path,
                    problem,
                )
                continue
            return arrays, state
        return None

    def clean_checkpoints(self) -> None:
        """Removes the checkpoints of a finished run."""
        for path in self._checkpoint_files():
            path.unlink()

    def _checkpoint_files(self):
        """Newest first."""
        return sorted(self.checkpoints.glob("step-*.npz"), reverse=True)


def check_finished(name: str, run_dir: str | os.PathLike) -> RunFolder:
    """Returns the folder of a finished run, or refuses any other.

    Args:
        name: The argument or flag that names it.
        run_dir: The folder.
    """
    folder = RunFolder(run_dir)
    for file in (folder.config, folder.model, folder.summary):
        if file.exists():
            continue
        kind, way = "run", ""
        if file != folder.config:
            kind = "finished run"
            way = (
                " `python -m trainers.fit` with its own flags goes on with it."
            )
        raise ValueError(
            f"`{name}` must be the folder of a {kind}. Received: "
            f"{name}={run_dir}, which has no {file.name}.{way}"
        )
    return folder


def model_to_start_from(path: str | os.PathLike) -> pathlib.Path:
    """Returns the file of the weights that `init_from` names, or refuses it.

    Args:
        path: The folder of a finished run, or a `.keras` file.
    """
    path = pathlib.Path(path)
    if path.suffix != ".keras":
        return check_finished("init_from", path).model
    if not path.is_file():
        raise ValueError(
            "`init_from` must be a finished run or a .keras file. "
            f"Received: init_from={path}, which is not there."
        )
    return path
