import csv
import pathlib
import sys

import pytest

from tests.trainers.conftest import UNITS
from trainers.runs.child import Child
from trainers.tune import plots
from trainers.tune import search as tune_search
from trainers.tune.axes import parse_axes
from trainers.tune.trials import Search, TrialOutcome

BOTH = ("agreement_weight", "agreement_epsilon")
FAKE = pathlib.Path(__file__).with_name("fake_child.py")


@pytest.fixture
def searching(recipe, tmp_path, monkeypatch):
    """Runs a search with the stand-in; returns its exit code."""
    # Most of the time would go into the picture.
    monkeypatch.setattr(plots, "draw", lambda *_: None)

    def run(mode="", names=BOTH, overwrite=False, **settings):
        fields = {"tuner": "random", "max_trials": 6, "executions": 1}
        given = {n: settings.pop(n, v) for n, v in fields.items()}
        search = Search(
            tmp_path / "tune",
            recipe(**UNITS | settings),
            parse_axes(names),
            **given,
        )
        log = str(tmp_path / "log")
        child = Child((sys.executable, str(FAKE), log, mode))
        try:
            return tune_search.run(search, child, overwrite=overwrite)
        finally:
            child.close()

    return run


def rows(folder):
    with (folder / "tune" / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def runs(folder):
    return (folder / "log").read_text().splitlines()


def values(folder):
    return [tuple(row[name] for name in BOTH) for row in rows(folder)]


def outcome(recipe, trial, error, images=1000, epochs=1, **values):
    result = {"validation_error": error, "validation_images": images}
    return TrialOutcome(
        trial=trial, status="completed", values=values,
        recipe=recipe(epochs=epochs), results={0: result},
    )  # fmt: skip
