"""The logs that `--log` asks for, each in a package of its own."""

import contextlib
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence

from absl import logging

from trainers.files import write_json
from trainers.recipe import Recipe
from trainers.runs.folder import RunFolder
from trainers.training.logs.tracker import Row, Tracker


def _make(name: str) -> Callable[[Recipe, RunFolder, str | None], Tracker]:
    if name == "mlflow":
        from trainers.training.logs.mlflow_log import MlflowLog

        return MlflowLog
    from trainers.training.logs.wandb_log import WandbLog

    return WandbLog


class Trackers:
    """Several as one; what fails is left behind, and the run goes on.

    Args:
        names: Which, of `trainers.choices.LOGS`.
        recipe: The run's recipe.
        folder: Its folder, which keeps their ids, so that a run that goes on
            is the same run there.

    Raises:
        ValueError: One of them cannot start.
    """

    def __init__(self, names: Sequence[str], recipe: Recipe, folder: RunFolder):
        known = {}
        if names and folder.logs.exists():
            known = json.loads(folder.logs.read_text())
        self._trackers: dict[str, Tracker] = {}
        for name in names:
            try:
                tracker = _make(name)(recipe, folder, known.get(name))
            except Exception as trouble:  # whatever the package raises
                raise ValueError(
                    f"`--log={name}` must be able to start. Received: "
                    f"{_first_line(trouble)}"
                ) from trouble
            self._trackers[name] = tracker
            known[name] = tracker.id
        if names:
            write_json(folder.logs, known)
        self._ended = False

    def write(self, row: Row) -> None:
        """Hands on the row of an epoch."""
        self._each(lambda tracker: tracker.write(row))

    def end(
        self, summary: Row | None = None, files: Sequence[pathlib.Path] = ()
    ) -> None:
        """Hands on what came out, once."""
        if not self._ended:
            self._ended = True
            self._each(lambda tracker: tracker.end(summary, files))

    def _each(self, tell):
        for name, tracker in list(self._trackers.items()):
            try:
                tell(tracker)
            except Exception as trouble:  # of a server or a disk, perhaps
                del self._trackers[name]
                logging.warning(
                    "The run goes on without --log=%s: %s",
                    name,
                    _first_line(trouble),
                )


@contextlib.contextmanager
def opened(
    names: Sequence[str], recipe: Recipe, folder: RunFolder
) -> Iterator[Trackers]:
    """Gives the trackers of a run; they end with it, however it ends."""
    trackers = Trackers(names, recipe, folder)
    try:
        yield trackers
    finally:
        trackers.end()


def _first_line(trouble):
    kind = type(trouble).__name__
    return f"{kind}: {(str(trouble).strip().splitlines() or ['no message'])[0]}"
