"""The page that goes with a model: what it is and how good it is."""

import platform
from datetime import UTC, datetime
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

import encapnet_tf
from export.choices import CONFIG
from export.version.card_classes import classes_section
from export.version.hub import dataset_name, metadata
from export.version.parity import NUM_IMAGES, Parity
from export.version.samples import Samples
from export.version.stages import ONNX
from trainers.cost.step_cost import count_parameters, step_cost
from trainers.machine import processor
from trainers.runs.finished import Run
from trainers.tables import error_sentence


class WrittenFormat(NamedTuple):
    """One file of an export.

    Attributes:
        parity: How it compares with the Keras model.
        num_bytes: Its size.
        milliseconds: Median time of an answer, by batch size.
    """

    parity: Parity
    num_bytes: int
    milliseconds: dict[int, float]


class CardFacts(NamedTuple):
    """What a card says beyond what the run knows.

    Attributes:
        version: The number of the version folder.
        licence: Under which the model is handed on; None: not stated.
        scores: The network's scores of the samples `(N, M)`.
    """

    version: int
    licence: str | None
    scores: np.ndarray


def model_card(
    run: Run, samples: Samples, formats: list[WrittenFormat], facts: CardFacts
) -> str:
    """Returns the card in Markdown, a hub's metadata above it."""
    files = [each.parity.name for each in formats]
    return "\n\n".join(
        (
            metadata(run, facts.licence, files),
            f"# {run.recipe.variant} on {dataset_name(run.recipe)}",
            _summary(run, facts),
            "## Files",
            _formats(formats, samples),
            "## Classes",
            classes_section(samples, facts.scores, run.class_names),
            "## Inputs and outputs",
            _interface(run, formats),
            "## How images are fitted",
            _fitting(run),
            "## Intended use",
            intended_use(run),
            "## How it was trained",
            _training(run),
            "## Made with",
            _versions(run),
        )
    ) + "\n"  # fmt: skip


def _summary(run, facts):
    height, width, channels = run.model.input_shape[1:]
    cost = step_cost(run.model, batch_size=1)
    today = datetime.now(UTC).date()
    return "\n".join(
        (
            f"- version: {facts.version}, exported {today}",
            f"- licence: {facts.licence or 'not stated (--license)'}",
            f"- classes: {len(run.class_names)} (`labels.txt`)",
            f"- images: {height}×{width}×{channels}",
            f"- parameters: {count_parameters(run.model).inference:,}",
            f"- multiply-adds an image: {cost.inference_multiply_adds:,}",
            f"- after training: {error_sentence(run.summary)}",
            f"- an image is looked at {view(run.recipe.augmentation)}",
        )
    )


def view(augmentation: str) -> str:
    """Says which view of an image counts, after a kind of augmentation."""
    if augmentation == "none":
        return "whole"
    return (
        "once: the centre of the enlarged image, as training showed crops "
        "(the files do that themselves)"
    )


def format_rows(formats: list[WrittenFormat]) -> list[list[str]]:
    """Returns the cells of a table of formats, the heads first."""
    sizes = sorted(formats[0].milliseconds)
    rows = [
        ["file", "MiB", "largest difference", "same class", "error",
         *(f"ms at batch {size}" for size in sizes)]
    ]  # fmt: skip
    if formats[0].parity.drawn_difference is not None:
        rows[0].insert(3, "of a drawn pixel")
    for each in formats:
        parity = each.parity
        error = "–" if parity.error is None else f"{parity.error:.2%}"
        if parity.error_change:
            error += f" ({100 * parity.error_change:+.2f})"
        rows.append(
            [parity.name, f"{each.num_bytes / 2**20:.1f}",
             f"{parity.difference:.1e}", f"{parity.agreement:.1%}", error,
             *(f"{each.milliseconds[size]:.1f}" for size in sizes)]
        )  # fmt: skip
        if parity.drawn_difference is not None:
            rows[-1].insert(3, f"{parity.drawn_difference:.1e}")
    return rows


def _formats(formats, samples):
    heads, *rows = format_rows(formats)
    lines = [heads, ["---"] * len(heads)]
    lines += [[f"`{row[0]}`", *row[1:]] for row in rows]
    if samples.labels is None:
        source = f"{NUM_IMAGES} images of noise (the data could not be read)"
    else:
        source = (
            f"{min(NUM_IMAGES, len(samples.images))} test images; error: one "
            f"view of {len(samples.images):,} test images, and in brackets "
            "the points by which it differs from the Keras model's"
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + (
        "\n\nLargest difference of a score, and share of the same class, "
        f"against the Keras model: on {source}. Times: medians on the machine "
        f"that exported, {processor()}."
    )


def _interface(run, formats):
    with_onnx = any(each.parity.name == ONNX for each in formats)
    if run.scores == "lengths":
        scores = "lengths of the class capsules, 0 to 1, not probabilities"
        more = "\n- `capsules` (B, M, D): the class capsules"
    else:
        scores, more = "probabilities", ""
    decoder = ""
    if formats[0].parity.drawn_difference is not None:
        decoder = (
            " The `.tflite` files, too, have the signature `reconstruct`"
            f"{'; ONNX has a file, `reconstruct.onnx`' * with_onnx}.\n\n"
            "`reconstruct` takes `capsules`, float32 (B, M, D), and returns "
            "`images`, float32 (B, H, W, C) in [0, 1]: what the decoder draws "
            "of the longest of each M capsules. For another one set all others "
            "to zero."
        )
    return (
        "Signatures of the SavedModel:\n\n"
        "- `serving_default`: `images`, uint8 (B, H, W, C), any B\n"
        "- `serving_float`: `images`, float32 in [0, 1]\n"
        "- `serving_bytes`: `image_bytes`, JPEG or PNG files of any size, "
        "upright\n\n"
        "They return:\n\n"
        f"- `scores` (B, M): {scores}\n"
        "- `class_ids` (B,), `class_names` (B,): the highest score's class"
        f"{more}\n\n"
        f"The `.tflite` {'and `.onnx` ' * with_onnx}files take uint8 `images` "
        "and return all but the names."
        f"{decoder}"
    )


def _fitting(run):
    height, width, channels = run.model.input_shape[1:]
    grey = ", made grey" if channels == 1 else ""
    return (
        f"`serving_bytes`, `export.predict` and `export.serve` resize an image "
        f"until it just covers {height}×{width} pixels (height×width), cut its "
        f"centre out{grey} and lay what is transparent on white. Whoever sends "
        "`images` does so first.\n\n"
        "Photos often lie on their side and say so in EXIF. `export.predict` "
        "and `export.serve` turn them upright. The graph itself cannot: for "
        "`serving_bytes` in TensorFlow Serving turn them before they are sent, "
        "with Pillow: `ImageOps.exif_transpose(image)`."
    )


def intended_use(run: Run) -> str:
    """Says what a network is for, and what it has not been tested on."""
    names = ", ".join(run.class_names[:10])
    more = ", …" if len(run.class_names) > 10 else ""
    return (
        f"To tell apart {names}{more} in images like those of "
        f"{dataset_name(run.recipe)}, one object in the centre. It always "
        "answers with one of these classes, also for an image of something "
        "else, and has not been tested on other data. `python -m "
        "trainers.evaluate --robustness` measures what rotation, shift, scale "
        "and attacks do to it."
    )


def _training(run):
    minutes = run.summary.get("train_seconds", 0) / 60
    return (
        f"{run.summary.get('epochs', '?')} epochs, {minutes:.1f} minutes. "
        f"`{CONFIG}` has the whole recipe and the network: "
        f"`python -m trainers.fit --config={CONFIG}` trains it again, and\n\n"
        "```python\n"
        f'config = json.load(open("{CONFIG}"))\n'
        'encapnet_tf.create_model(config["variant"], **config["network"])\n'
        "```\n\nbuilds it, without its weights."
    )


def _versions(run):
    trained = ", ".join(
        f"{name} {number}"
        for name, number in run.summary.get("versions", {}).items()
    )
    return (
        f"Trained with {trained or 'unknown versions'}; exported with "
        f"encapnet_tf {encapnet_tf.__version__}, tensorflow {tf.__version__}, "
        f"keras {keras.__version__}, python {platform.python_version()}."
    )
