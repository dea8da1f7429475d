"""The card that lies beside an archive of weights."""

import dataclasses
import pathlib
import shlex
from datetime import UTC, datetime
from typing import Any, NamedTuple

from encapnet_tf.weights import SHIPPED
from encapnet_tf.weights.archive import shipped_path
from export.version.model_card import intended_use, view
from trainers.cli import epochs
from trainers.cost.step_cost import count_parameters
from trainers.recipe import Recipe, make_recipe
from trainers.runs.finished import Run
from trainers.tables import error_sentence

# Of a recipe: where things lay says nothing to others.
PLACES = ("data_dir", "init_from")


class Facts(NamedTuple):
    """What a card says beyond what the run knows.

    Attributes:
        before: The test errors of the run's float32 weights.
        after: Those of the archive.
        whole: The archive's test error on images seen whole.
        megabytes: The size of the archive.
        licence: Of the weights, None where it is not stated.
        data_note: Of the data, likewise.
    """

    before: dict[str, Any]
    after: dict[str, Any]
    whole: float
    megabytes: float
    licence: str | None
    data_note: str | None


def card(run: Run, path: pathlib.Path, facts: Facts) -> str:
    """Returns the card in Markdown.

    Args:
        run: The run as the archive has it.
        path: The archive.
        facts: What else is to be said.
    """
    recipe = run.recipe
    return "\n\n".join(
        (
            f"# {recipe.variant} on {recipe.dataset}: trained weights",
            _use(run, path),
            _summary(run, facts),
            "## Data",
            facts.data_note or f"`{recipe.dataset}`; no more is stated.",
            "## Intended use",
            intended_use(run),
            "## How it was made",
            _making(run, path, facts),
        )
    ) + "\n"  # fmt: skip


def sentence(facts: Facts) -> str:
    """Says how good the weights are, and what rounding did."""
    text = error_sentence(facts.after)
    return (
        f"{text[0].upper()}{text[1:]}; with the run's float32 weights "
        f"{facts.before['test_error']:.2%}."
    )


def _use(run, path):
    name = _name(path)
    return (
        "```python\nimport encapnet_tf\n\nmodel = encapnet_tf.create_model("
        f'"{run.recipe.variant}", weights="{name}")\n```\n\n'
        "```bash\npython -m export.predict "
        f"--model={name} image.png\npython -m export.serve --model={name}\n```"
    )


def _name(path):
    """What the archive is called where it is used."""
    is_shipped = path.resolve() == shipped_path(path.stem)
    return path.stem if path.stem in SHIPPED and is_shipped else path


def _summary(run, facts):
    height, width, channels = run.model.input_shape[1:]
    names = ", ".join(run.class_names[:20])
    more = ", …" if len(run.class_names) > 20 else ""
    decoder = (
        ', and its decoder, for `decoder="conv"`'
        if getattr(run.recipe.network(), "decoder", "none") != "none"
        else ""
    )
    return "\n".join(
        (
            f"- licence: {facts.licence or 'not stated (--license)'}",
            f"- network: {run.recipe.variant}, "
            f"{count_parameters(run.model).inference:,} parameters{decoder}",
            f"- images: {height}×{width}×{channels}, in [0, 1]",
            f"- classes: {names}{more}",
            f"- {sentence(facts)}",
            "- there an image is looked at "
            f"{view(run.recipe.augmentation).partition(' (')[0]}; seen whole, "
            f"as by `model(images)`: {facts.whole:.2%}",
            f"- file: {facts.megabytes:.1f} MB; kernels in float16, vectors "
            "in float32",
        )
    )


def _making(run, path, facts):
    count = epochs(run.summary.get("epochs", 0))
    minutes = run.summary.get("train_seconds", 0) / 60
    versions = run.summary.get("versions", {}).items()
    return (
        f"{count}, {minutes:.1f} minutes, with "
        f"{', '.join(' '.join(pair) for pair in versions)}:\n\n"
        f"```bash\n{training_command(run.recipe)}\n```\n\n"
        f"Kept on {datetime.now(UTC).date()} by "
        f"`python -m export.weights`."
    )


def training_command(recipe: Recipe) -> str:
    """Returns the command that trains a recipe.

    Example:
        >>> training_command(make_recipe({"decoder": "conv", "epochs": 8}))
        'python -m trainers.fit --epochs=8 --decoder=conv'
    """
    usual = dataclasses.asdict(make_recipe({"variant": recipe.variant}))
    usual["variant"] = Recipe.variant
    words = []
    for name, value in dataclasses.asdict(recipe).items():
        if value == usual[name] or name in PLACES:
            continue
        if name == "override":
            words += [f"--override={k}={v}" for k, v in value.items()]
        elif isinstance(value, bool):
            words.append(f"--{'' if value else 'no'}{name}")
        else:
            words.append(f"--{name}={value}")
    return f"python -m trainers.fit {shlex.join(words)}".rstrip()
