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

from trainers.files import locked, written_atomically

CHECKPOINTS_KEPT = 2


def agreement_losses(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the losses of the agreement units in a row of `metrics.csv`.

    Example:
        >>> agreement_losses({"loss": 1.5, "module1_agreement_input_loss": 0.5})
        {'module1_agreement_input_loss': 0.5}
    """
    return {
        name: value
        for name, value in row.items()
        if "_agreement_" in name and name.endswith("_loss")
    }


def read_metrics(folder: "RunFolder") -> list[dict[str, float]]:
    """Returns the rows of `metrics.csv`, one per epoch."""
    with folder.metrics.open(newline="") as file:
        return [
            {name: float(value) for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


class RunFolder:
    """One run's files.

    Args:
        path: The folder; made when something is first written.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)
        self.config = self.path / "config.json"
        self.model = self.path / "model.keras"
        self.metrics = self.path / "metrics.csv"
        self.summary = self.path / "summary.json"
        self.curves = self.path / "curves.png"
        self.checkpoints = self.path / "checkpoints"
        self.tensorboard = self.path / "tensorboard"

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

    def write_json(self, path: pathlib.Path, content: Any) -> None:
        """Writes JSON."""
        with written_atomically(path) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n")

    def save_checkpoint(
        self, step: int, arrays: dict[str, np.ndarray], state: dict[str, Any]
    ) -> None:
        """Writes a checkpoint and lets go of the oldest."""
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
