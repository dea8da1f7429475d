"""What the winning capsules of a run hold: measures and draws it."""

import pathlib
from typing import Any

import numpy as np

from encapnet_tf.data import Split, one_view
from trainers.evaluate import winner_plots
from trainers.evaluate.winners import (
    Winners,
    decoder_of,
    draw,
    entries_by_class,
    moved,
    nearest,
    read_winners,
)
from trainers.runs.finished import Run
from trainers.scoring import images_at

FILES = ("neighbours.png", "reconstructions.png", "entries.png")
_SHOWN = 8
_MOST_ROWS = 10
_MOVED_CLASSES = 3


def report_winners(
    run: Run, split: Split, folder: pathlib.Path
) -> dict[str, Any]:
    """Draws FILES, those of the decoder where there is one.

    Args:
        run: A run whose network has class capsules.
        split: The test images.
        folder: Where the pictures go.

    Returns:
        Per class the entries in use, and the error of the reconstructions.
    """
    report = _Report(run, split)
    report.draw_neighbours(folder / "neighbours.png")
    if report.decoder is not None:
        report.draw_reconstructions(folder / "reconstructions.png")
        report.draw_entries(folder / "entries.png")
    return report.summary()


class _Report:
    def __init__(self, run, split):
        self._run, self._split = run, split
        self.decoder = decoder_of(run.model)
        self.winners: Winners = read_winners(
            run.model, split, run.recipe.augmentation
        )

    def summary(self):
        winners, names = self.winners, self._run.class_names
        entries = entries_by_class(winners, len(names))
        report = {"entries_in_use": dict(zip(names, entries, strict=True))}
        if winners.errors is not None:
            report["reconstruction_error"] = float(winners.errors.mean())
        return report

    def draw_neighbours(self, path):
        rows = []
        for label in self._labels(_MOST_ROWS):
            first = np.flatnonzero(self.winners.classes == label)[0]
            found = nearest(self.winners, first, _SHOWN)
            if len(found) == _SHOWN:
                rows.append([first, *found])
        if not rows:
            return
        tiles = np.stack([self._views(row) for row in rows])
        names = [
            self._run.class_names[self.winners.classes[row[0]]] for row in rows
        ]
        winner_plots.neighbours(tiles, names, path)

    def draw_reconstructions(self, path):
        order = np.argsort(self.winners.errors, kind="stable")
        count = min(_SHOWN, len(order))
        middle = (len(order) - count) // 2
        groups = {}
        for name, places in (
            ("Best", order[:count]),
            ("Median", order[middle : middle + count]),
            ("Worst", order[-count:]),
        ):
            error = float(np.median(self.winners.errors[places]))
            title = f"{name}: mean squared error {error:.4f}"
            groups[title] = (self._views(places), self._drawn(places))
        winner_plots.reconstructions(groups, path)

    def draw_entries(self, path):
        grids = {}
        for label in self._labels(_MOVED_CLASSES):
            own = np.flatnonzero(self.winners.classes == label)
            order = np.argsort(self.winners.errors[own], kind="stable")
            place = own[order[len(own) // 2]]
            capsule = self.winners.capsules[place]
            grid = moved(self.decoder, capsule, label)
            grids[self._run.class_names[label]] = grid
        winner_plots.moved_entries(grids, path)

    def _labels(self, most):
        """Some of the classes that win at all, evenly from first to last."""
        labels = np.unique(self.winners.classes)
        places = np.linspace(0, len(labels) - 1, min(most, len(labels)))
        return labels[np.round(places).astype(int)]

    def _views(self, places):
        """The images as the network sees them."""
        images = images_at(self._run.model, self._split, np.array(places))
        return np.asarray(one_view(images, self._run.recipe.augmentation))

    def _drawn(self, places):
        return draw(
            self.decoder,
            self.winners.capsules[places],
            self.winners.classes[places],
        )
