"""A reproduction: its rows as recipes, its files, and what they hold."""

import dataclasses
import json
import math
import pathlib
from dataclasses import dataclass, field
from typing import Any

from encapnet_tf.config import NetworkConfig, variant_config
from trainers.files import write_json
from trainers.recipe import Recipe, make_recipe
from trainers.reproduce.experiments import EXPERIMENTS, Experiment
from trainers.reproduce.outcomes import RowOutcome
from trainers.reproduce.rows import Row
from trainers.runs.folder import RunFolder, read_result
from trainers.stored_recipe import changes, differences
from trainers.study.budget import Plan, plan_by_time

_WIDTHS = ("stem", "channels", "num_capsules", "middle_capsules")


def data_name(dataset: str) -> str:
    """Returns a short name of a data set.

    Example:
        >>> data_name("npz:/data/cifar10_20k.npz"), data_name("svhn")
        ('cifar10_20k', 'svhn')
    """
    kind, _, path = dataset.partition(":")
    return pathlib.Path(path).stem if path else kind


def narrowed(network: NetworkConfig, factor: float) -> dict[str, Any]:
    """Returns overrides that divide all widths of a network.

    Example:
        >>> narrowed(variant_config("encapnet_v1"), 4)
        {'stem': ((8, 1),), 'num_capsules': 8}
    """

    def divide(width):
        return max(1, round(width / factor))

    found = {}
    for name in _WIDTHS:
        value = getattr(network, name, None)
        if name == "stem":
            value = tuple((divide(width), stride) for width, stride in value)
        elif isinstance(value, tuple):
            value = tuple(map(divide, value))
        elif value is not None:
            value = divide(value)
        if value is not None:
            found[name] = value
    return found


@dataclass(frozen=True)
class Reproduction:
    """An experiment, as it is run, and the folder that holds everything.

    Attributes:
        path: The folder.
        name: The experiment.
        rows: Which of its rows are run.
        given: Recipe fields for all rows.
        given_rows: Recipe fields for single rows, by their names.
        narrow: What all widths are divided by.
        minutes: Time for the training steps of a run; None: by epochs.
        seeds: Runs of each row, with consecutive seeds.
        rates: Learning rates to choose each row's from; none: the recipe's.
        command: What it was started with, for its report.
    """

    path: pathlib.Path
    name: str
    rows: tuple[Row, ...]
    given: dict[str, Any]
    given_rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    narrow: float = 1.0
    minutes: float | None = None
    seeds: int = 1
    rates: tuple[float, ...] = ()
    command: str = ""

    def __post_init__(self):
        """Names the files, and refuses what cannot be run."""
        for name, file in (
            ("settings", "experiment.json"),
            ("table", "results.csv"),
            ("report", "report.md"),
            ("errors", "errors.png"),
            ("figure", f"{self.name}.png"),
        ):
            object.__setattr__(self, name, self.path / file)
        self._refuse_what_rows_vary()
        self._refuse_unknown_overrides()
        for row in self.rows:
            self.recipe(row)

    @property
    def experiment(self) -> Experiment:
        """The experiment."""
        return EXPERIMENTS[self.name]

    @property
    def paper_data(self) -> str:
        """Which of the paper's data sets ours is compared with."""
        return self._own_data() or self.experiment.data

    @property
    def paper_has_data(self) -> bool:
        """Whether the paper has numbers for our data."""
        return self._own_data() is not None

    def _own_data(self):
        """The data set that the name of ours begins with: cifar10_20k.npz."""
        name = data_name(self.given["dataset"])
        known = {data for row in self.rows for data in row.paper}
        found = (n for n in sorted(known, reverse=True) if name.startswith(n))
        return next(found, None)

    def _refuse_what_rows_vary(self):
        varied = {name for row in self.rows for name in row.fields}
        clash = sorted(varied & set(self.given) - {"override"})
        clash += sorted(
            name
            for name in self.given.get("override", {})
            if any(name in r.fields.get("override", {}) for r in self.rows)
        )
        if clash:
            raise ValueError(
                f"The rows of {self.name} themselves say what is theirs: "
                f"{', '.join(sorted(varied))}. Received: {', '.join(clash)} "
                "for all of them. Leave it out, or choose --rows."
            )

    def _refuse_unknown_overrides(self):
        known = {
            f.name
            for row in self.rows
            for f in dataclasses.fields(variant_config(row.fields["variant"]))
        }
        unknown = sorted(set(self.given.get("override", {})) - known)
        if unknown:
            raise ValueError(
                "--override must name fields of the rows' networks. "
                f"Received: {', '.join(unknown)}. Known: "
                f"{', '.join(sorted(known))}."
            )

    def recipe(self, row: Row, seed: int | None = None) -> Recipe:
        """Returns how a row is trained, its length aside."""
        own = self.given_rows.get(row.name, {})
        fields = self.experiment.fields | self.given | row.fields | own
        if seed is not None:
            fields["seed"] = seed
        try:
            return make_recipe(fields | {"override": self._override(row)})
        except (ValueError, TypeError) as refusal:
            raise ValueError(f"Row {row.name}: {refusal}") from refusal

    def _override(self, row):
        """Fields of the network: those for all where it has them."""
        own = row.fields.get("override", {})
        network = variant_config(row.fields["variant"], **own)
        known = {f.name for f in dataclasses.fields(network)}
        widths = narrowed(network, self.narrow) if self.narrow != 1 else {}
        common = self.given.get("override", {})
        return own | widths | {n: v for n, v in common.items() if n in known}

    @property
    def all_seeds(self) -> list[int]:
        """The seeds of each row's runs."""
        first = self.given.get("seed", 0)
        return list(range(first, first + self.seeds))

    def folder(self, row: Row, seed: int) -> RunFolder:
        """Returns where a run of a row is."""
        return RunFolder(self.path / row.name / f"seed{seed}")

    def plan(self, row: Row) -> Plan | None:
        """Returns how long the runs of a row are; None: not planned yet."""
        if self.minutes is None:
            epochs = max(1, round(row.budget * self.given["epochs"]))
            return Plan(epochs, self.given.get("steps_per_epoch"))
        path = self._plan_file(row)
        if not path.exists():
            return None
        return Plan(**json.loads(path.read_text())["plan"])

    def save_plan(self, row: Row, seconds_per_step: float, steps: int) -> Plan:
        """Plans the runs of a row by how long a step takes."""
        plan = plan_by_time(
            60 * self.minutes * row.budget,
            seconds_per_step,
            steps,
            self.experiment.least_epochs,
        )
        content = {"plan": dataclasses.asdict(plan)}
        write_json(self._plan_file(row), content)
        return plan

    def _plan_file(self, row):
        return self.path / row.name / "plan.json"

    def planned_recipe(
        self, row: Row, seed: int, rate: float | None = None
    ) -> Recipe:
        """Returns the recipe of a run, its length included.

        Args:
            row: The row.
            seed: The run's seed.
            rate: A learning rate to try; default: the row's.
        """
        plan, recipe = self.plan(row), self.recipe(row, seed)
        return dataclasses.replace(
            recipe,
            epochs=plan.epochs,
            steps_per_epoch=plan.steps_per_epoch,
            learning_rate=rate or self.rate(row) or recipe.learning_rate,
        )

    def tried(self, row: Row, rate: float) -> RunFolder:
        """Returns where a learning rate of a row is tried."""
        return RunFolder(self.path / row.name / f"rate{rate:g}")

    def rate(self, row: Row) -> float | None:
        """Returns the learning rate that was chosen for a row, if any."""
        found = self._rates_file(row)
        if not found.exists():
            return None
        return json.loads(found.read_text())["learning_rate"]

    def choose_rate(self, row: Row, errors: dict[float, float]) -> float:
        """Notes and returns the learning rate of the least validation error.

        Args:
            row: The row.
            errors: The validation error of each rate; infinite if it failed.
        """
        best = min(errors, key=errors.get)
        known = {f"{r:g}": e for r, e in errors.items() if math.isfinite(e)}
        content = {"learning_rate": best, "validation_errors": known}
        write_json(self._rates_file(row), content)
        return best

    def _rates_file(self, row):
        return self.path / row.name / "rates.json"

    def save_settings(self) -> None:
        """Records what is asked for."""
        write_json(self.settings, self._settings())

    def refuse_other_settings(self) -> None:
        """A folder belongs to one experiment; rows and seeds may be added."""
        if not self.settings.exists():
            return
        stored = json.loads(self.settings.read_text())
        wanted = self._settings()
        del wanted["recipes"]
        changed = changes(stored, wanted)
        for row, fields in stored["recipes"].items():
            known = {r.name: r for r in self.rows}
            if row in known and (self.path / row).exists():
                changed += [
                    f"row {row}: {difference}"
                    for difference in differences(
                        fields, self.recipe(known[row])
                    )
                ]
        if changed:
            raise ValueError(
                f"{self.path} holds something else: {'; '.join(changed)}. "
                "Give its own flags to go on, or another --out; to run a row "
                "anew, remove its folder."
            )

    def _settings(self):
        stored = {}
        if self.settings.exists():
            stored = json.loads(self.settings.read_text())["recipes"]
        recipes = {
            r.name: dataclasses.asdict(self.recipe(r)) for r in self.rows
        }
        return {
            "experiment": self.name,
            "minutes": self.minutes,
            "epochs": None if self.minutes else self.given["epochs"],
            "learning_rates": list(self.rates) or None,
            "recipes": stored | recipes,
        }

    def outcome(self, row: Row) -> RowOutcome:
        """Returns what a row has given so far."""
        results = {
            seed: read_result(self.folder(row, seed)) for seed in self.all_seeds
        }
        found = {seed: r for seed, r in results.items() if r is not None}
        recipe, rate = self.recipe(row), self.rate(row)
        if rate is not None:
            recipe = dataclasses.replace(recipe, learning_rate=rate)
        return RowOutcome(
            row=row,
            recipe=recipe,
            plan=self.plan(row),
            results=found,
        )

    def outcomes(self) -> list[RowOutcome]:
        """Returns what the rows have given so far, in their order."""
        return [self.outcome(row) for row in self.rows]
