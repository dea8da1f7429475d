"""Makes a data set of ImageNet's hardest classes."""

import concurrent.futures
import itertools
import os
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from encapnet_tf.data.images.pillow import fit
from trainers.files import written_atomically
from trainers.h_imagenet.class_accuracy import (
    hardest,
    measure_accuracies,
    read_accuracies,
    read_classes,
)
from trainers.h_imagenet.imagenet import PARTS, ImageNet, Picture, crop
from trainers.h_imagenet.settings import HardClasses
from trainers.progress import ShareProgress
from trainers.tables import aligned, write_csv

_CHUNK = 512
_QUALITY = 95
_MEMORY_LIMIT = 4 * 2**30  # bytes of pixels in an .npz file
_OUTPUT = {"train": "train", "val": "test"}


def make(settings: HardClasses) -> None:
    """Makes the data set, and says what was written where."""
    boxes = settings.boxes and pathlib.Path(settings.boxes)
    imagenet = ImageNet(pathlib.Path(settings.imagenet), boxes)
    accuracies = _accuracies(settings, imagenet)
    out = pathlib.Path(settings.out)
    print(f"{len(accuracies)} classes of {len(imagenet.classes)}.", flush=True)
    if out.suffix == ".npz":
        counts = _write_npz(settings, imagenet, sorted(accuracies), out)
        listing, name = out.with_suffix(".csv"), f"npz:{out}"
    else:
        counts = _write_folder(settings, imagenet, set(accuracies), out)
        listing, name = out / "classes.csv", f"folder:{out}"
    rows = [{"class": c, "accuracy": a} for c, a in accuracies.items()]
    write_csv(listing, rows)
    heads = ("part", "pictures", "damaged, left out")
    print(aligned([heads, *counts], "<>>"))
    print(f"Written to {out}; train on it with --dataset={name}")


def _accuracies(settings, imagenet) -> dict[str, float | None]:
    """Returns the chosen classes, with their accuracies where known."""
    source = settings.source
    if source == "classes":
        found = dict.fromkeys(read_classes(settings.classes))
    elif source == "accuracies":
        found = read_accuracies(settings.accuracies)
    else:
        found = measure_accuracies(settings.model, imagenet, settings.white)
    unknown = sorted(set(found) - set(imagenet.classes))
    if unknown:
        raise ValueError(
            f"The classes must be ImageNet's. Received: {unknown[0]}"
            f"{' and others' if len(unknown) > 1 else ''}, which "
            f"{settings.imagenet} does not have."
        )
    return (
        found if source == "classes" else hardest(found, settings.num_classes)
    )


def _write_folder(settings, imagenet, classes, out):
    def write(part, picture):
        path = out / _OUTPUT[part] / picture.label / f"{picture.name}.jpg"
        if not path.exists():
            image = _cut(settings, imagenet, part, picture)
            with written_atomically(path) as temporary:
                image.save(temporary, "JPEG", quality=_QUALITY)

    return [
        _count(part, _each(imagenet, part, classes, write)) for part in PARTS
    ]


def _write_npz(settings, imagenet, classes, out):
    size = settings.image_size
    labels = {name: label for label, name in enumerate(classes)}
    room = _MEMORY_LIMIT // (size * size * 3)

    def read(part, picture):
        image = fit(_cut(settings, imagenet, part, picture), size)
        return np.asarray(image), labels[picture.label]

    arrays: dict[str, Any] = {"class_names": np.array(classes)}
    counts = []
    for part in PARTS:
        found = _each(imagenet, part, set(classes), read, room)
        counts.append(_count(part, found))
        pairs = [pair for pair in found if pair is not None]
        if pairs:
            images, numbers = zip(*pairs, strict=True)
            arrays[f"x_{_OUTPUT[part]}"] = np.stack(images)
            arrays[f"y_{_OUTPUT[part]}"] = np.array(numbers, np.int32)
    with written_atomically(out) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)
    return counts


def _cut(settings, imagenet, part, picture):
    box = imagenet.box(part, picture)
    return crop(picture.image(), box, settings.padding, settings.largest)


def _each(
    imagenet: ImageNet,
    part: str,
    classes: set[str],
    handle: Callable[[str, Picture], Any],
    room: int | None = None,
) -> list[Any]:
    """Handles every picture, on all cores; None stands for a damaged one."""

    def guarded(picture):
        try:
            return handle(part, picture) or True
        except OSError:
            return None

    found = []
    pictures = imagenet.pictures(part, classes)
    total, show = imagenet.count(part, classes), ShareProgress(_OUTPUT[part])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        # Not all at once: pictures from tfds bring their content.
        while chunk := list(itertools.islice(pictures, _CHUNK)):
            # Before any of them is decoded.
            if room is not None and len(found) + len(chunk) > room:
                raise ValueError(
                    f"An .npz file may hold {room:,} pictures of this size. "
                    "Received: more. Let --out be a folder, or make "
                    "--image_size or --num_classes smaller."
                )
            found.extend(pool.map(guarded, chunk))
            show(min(len(found) / total, 0.99))
    show.clear()
    return found


def _count(part, found):
    damaged = sum(one is None for one in found)
    if found and 2 * damaged > len(found):
        raise ValueError(
            f"Most pictures must be readable. Received: {damaged} of "
            f"{len(found)} damaged in {part}."
        )
    return _OUTPUT[part], f"{len(found) - damaged:,}", f"{damaged:,}"
