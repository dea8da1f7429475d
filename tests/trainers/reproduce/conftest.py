import csv

import pytest
from absl import flags

from trainers.files import write_json
from trainers.reproduce import __main__ as reproduce
from trainers.reproduce.experiments import EXPERIMENTS
from trainers.reproduce.figures import plots as plots_reproduce


class FakeChild:
    """Answers at once; `errors` are by variant or by row and seed.

    So are the numbers of `more`, by their name.
    """

    def __init__(self, errors=None, dies=(), stops_after=None, more=None):
        self.more = more or {}
        self.errors = errors or {}
        self.dies = dies
        self.stops_after = stops_after
        self.runs, self.measured, self.closed = [], [], 0

    def check(self, recipe):
        self.checked = recipe

    def ask(self, task):
        self.measured.append(task["recipe"]["variant"])
        if task["recipe"]["variant"] in self.dies:
            return None
        return {"seconds_per_step": 0.1, "steps": 400}

    def cause(self):
        return "killed, most likely because memory ran out (SIGKILL)"

    def run(self, recipe, folder):
        if len(self.runs) == self.stops_after:
            raise KeyboardInterrupt
        self.runs.append(recipe)
        row = folder.path.parent.name
        if row in self.dies:
            result = {"failed": "diverged", "reason": "The loss is nan."}
        else:
            error = self.errors.get((row, recipe.seed), self.errors.get(row))
            steps = recipe.epochs * (recipe.steps_per_epoch or 400)
            result = {
                "test_error": 0.5 if error is None else error,
                "test_images": 10_000,
                "validation_error": 0.125,
                "train_images": 400 * recipe.batch_size,
                "parameters": 2000,
                "inference_parameters": 1500,
                "images_seen": steps * recipe.batch_size,
                "seconds_per_step": 0.1,
                "peak_memory_bytes": 700 * 2**20,
                "train_seconds": 0.1 * steps,
                "machine": "2 × Abacus",
                "load_per_core": 0.5,
            }
            for name, numbers in self.more.items():
                if (row, recipe.seed) in numbers:
                    result[name] = numbers[row, recipe.seed]
        write_json(folder.result, result)

    def close(self):
        self.closed += 1


@pytest.fixture
def make(tmp_path):
    """A reproduction from flags."""

    def parse(*arguments):
        values = flags.FlagValues()
        reproduce.define(values)
        base = [f"--out={tmp_path / 'out'}", "--dataset=cifar10"]
        values(["reproduce", *base, *arguments])
        return reproduce.from_flags(values)

    return parse


@pytest.fixture
def no_pictures(monkeypatch):
    """They have tests of their own, and take their time."""
    monkeypatch.setattr(
        plots_reproduce, "errors", lambda _, __, path: path.touch()
    )


def rows_of(reproduction):
    with reproduction.table.open() as file:
        return {row["row"]: row for row in csv.DictReader(file)}


PAPER = {row.name: row.paper["cifar10"] / 100
         for row in EXPERIMENTS["table1"].rows}  # fmt: skip
