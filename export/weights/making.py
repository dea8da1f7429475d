"""From a run's folder to an archive of its weights, tested and described."""

import dataclasses
import pathlib
from typing import Any, NamedTuple

import numpy as np

from encapnet_tf.data import Dataset, batches, load
from encapnet_tf.layers import FeedbackAgreement
from encapnet_tf.training_only import without
from encapnet_tf.weights.archive import (
    Archive,
    card_path,
    samples_path,
    write_archive,
)
from export.weights.card import PLACES, Facts, card, sentence
from trainers.files import written_atomically
from trainers.runs.finished import Run, load_archive, load_run
from trainers.scoring import error_rate, scores_and_labels, summarise_test


class Wanted(NamedTuple):
    """What goes along with the weights.

    Attributes:
        samples: How many test images of each class.
        licence: Of the weights, None where it is not stated.
        data_note: Of the data, likewise.
    """

    samples: int
    licence: str | None
    data_note: str | None


def keep_weights(
    run_dir: str, out: pathlib.Path, wanted: Wanted, data_dir: str | None = None
) -> str:
    """Writes an archive, its card and sample images.

    Args:
        run_dir: Folder of a finished run.
        out: The archive.
        wanted: What goes along.
        data_dir: Where the data lie; default: where the run found them.

    Returns:
        What was written and measured, for a reader.

    Raises:
        ValueError: There is no such run, or rounding costs accuracy: then
            nothing is written.
    """
    run = load_run(run_dir)
    data_dir = data_dir or run.recipe.data_dir
    size = run.recipe.image_size
    data = load(run.recipe.dataset, data_dir, image_size=size)
    before = _test(run, data)
    with written_atomically(out) as temporary:
        with temporary.open("wb") as file:
            write_archive(file, _archive(run, wanted))
        kept = load_archive(temporary)
        facts = Facts(
            before,
            _test(kept, data),
            _error_of_whole(kept, data),
            temporary.stat().st_size / 1e6,
            wanted.licence,
            wanted.data_note,
        )
        _check(facts, run_dir)
    if wanted.samples:
        _write_samples(run, data, wanted.samples, samples_path(out))
    with written_atomically(card_path(out)) as temporary:
        temporary.write_text(card(kept, out, facts))
    written = [f"{out} ({facts.megabytes:.1f} MB)", str(card_path(out))]
    if wanted.samples:
        written.append(str(samples_path(out)))
    return "\n  ".join([sentence(facts), *written])


def _archive(run, wanted):
    recipe = {
        name: value
        for name, value in dataclasses.asdict(run.recipe).items()
        if value is not None and name not in PLACES
    }
    about = {
        "variant": run.recipe.variant,
        "config": _config(run),
        "recipe": recipe,
        "summary": run.summary,
        "license": wanted.licence,
    }
    bare = without(run.model, (FeedbackAgreement,))
    return Archive(about, {v.path: v.numpy() for v in bare.weights})


def _config(run) -> dict[str, Any]:
    network = run.recipe.network(
        num_classes=len(run.class_names),
        input_shape=tuple(run.model.input_shape[1:]),
    )
    config = dataclasses.asdict(network)
    return config | ({"agreement": "none"} if "agreement" in config else {})


def _test(run: Run, data: Dataset) -> dict[str, Any]:
    augmentation = run.recipe.augmentation
    scores = scores_and_labels(run.model, data.test, augmentation=augmentation)
    return summarise_test(*scores)


def _error_of_whole(run, data):
    """As `model(images)` has it, without the view of the tests."""
    scores = scores_and_labels(run.model, data.test, augmentation="none")
    return error_rate(*scores)


def _check(facts, run_dir):
    before, after = facts.before, facts.after
    if after["test_error"] > before["test_error_interval"][1]:
        raise ValueError(
            "The weights must bear rounding to float16. Received: "
            f"{run_dir} with a test error of {before['test_error']:.2%}, and "
            f"{after['test_error']:.2%} after it. Nothing is written."
        )


def _write_samples(run, data, count, path):
    """The first of each class, in the order of the test images."""
    images, labels = [], []
    shape = run.model.input_shape[1:]
    split = batches(data.test, 256, training=False, image_shape=shape)
    for batch, batch_labels in split.as_numpy_iterator():
        images.append(np.round(batch * 255).astype(np.uint8))
        labels.append(batch_labels)
    images, labels = np.concatenate(images), np.concatenate(labels)
    places = [
        np.flatnonzero(labels == label)[:count]
        for label in range(len(run.class_names))
    ]
    chosen = np.sort(np.concatenate(places))
    with written_atomically(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file, images=images[chosen], labels=labels[chosen].astype(np.uint8)
        )
