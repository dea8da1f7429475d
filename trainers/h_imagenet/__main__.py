"""Makes a data set of ImageNet's hardest classes, objects cut out.

    python -m trainers.h_imagenet --imagenet=DIR --accuracies=resnet18.csv
    python -m trainers.fit --dataset=folder:h_imagenet --image_size=128

The paper's h-ImageNet: the 200 classes that ResNet-18 tells apart worst,
objects cut out with some padding. The same command goes on where it stopped.
"""

import concurrent.futures
import itertools
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from absl import flags

from encapnet_tf.data.images import fit
from trainers import cli
from trainers.files import written_atomically
from trainers.h_imagenet.class_accuracy import (
    hardest,
    measure_accuracies,
    read_accuracies,
    read_classes,
)
from trainers.h_imagenet.imagenet import PARTS, ImageNet, Picture, crop
from trainers.tables import aligned, write_csv

_CHUNK = 512
_QUALITY = 95
_MEMORY_LIMIT = 4 * 2**30  # bytes of pixels in an .npz file
_OUTPUT = {"train": "train", "val": "test"}


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags."""
    kwargs = {"flag_values": values}
    flags.DEFINE_string(
        "imagenet", None, "Folder with train/ and val/, with ILSVRC/, or with "
        "what tfds prepared of imagenet2012.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "boxes", None, "Folder of XML annotations; default: where ILSVRC has "
        "them. Pictures without one are taken whole.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "accuracies", None, "CSV file class,accuracy: its lowest are taken.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "model", None, "Keras classifier of all classes, in the order of "
        "their names, to measure the accuracies with on val/.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_float(
        "white", 1.0, "A white pixel in the input of --model: 1, or 255 for "
        "many networks of keras.applications.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "classes", None, "File with one class per line, instead.", **kwargs
    )
    flags.DEFINE_integer(
        "num_classes", 200, "How many classes.", lower_bound=2, **kwargs
    )
    flags.DEFINE_float(
        "padding", 0.1, "What is added around an object, as a share of it.",
        lower_bound=0.0, **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "largest", 500, "Longest side of a picture.", lower_bound=1, **kwargs
    )
    flags.DEFINE_string(
        "out", "h_imagenet", "Folder of the data set; or a file NAME.npz.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "image_size", 128, "Side of the pictures in an .npz file.",
        lower_bound=1, **kwargs,
    )  # fmt: skip


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> None:
    """Makes the data set that the flags ask for."""
    cli.take_no_arguments(arguments)
    if not values.imagenet:
        raise ValueError(
            "--imagenet must be ImageNet's folder. Received: none."
        )
    boxes = values.boxes and pathlib.Path(values.boxes)
    imagenet = ImageNet(pathlib.Path(values.imagenet), boxes)
    accuracies = _accuracies(values, imagenet)
    out = pathlib.Path(values.out)
    print(f"{len(accuracies)} classes of {len(imagenet.classes)}.", flush=True)
    if out.suffix == ".npz":
        counts = _write_npz(values, imagenet, sorted(accuracies), out)
        listing, name = out.with_suffix(".csv"), f"npz:{out}"
    else:
        counts = _write_folder(values, imagenet, set(accuracies), out)
        listing, name = out / "classes.csv", f"folder:{out}"
    rows = [{"class": c, "accuracy": a} for c, a in accuracies.items()]
    write_csv(listing, rows)
    heads = ("part", "pictures", "damaged, left out")
    print(aligned([heads, *counts], "<>>"))
    print(f"Written to {out}; train on it with --dataset={name}")


def _accuracies(values, imagenet) -> dict[str, float | None]:
    """Returns the chosen classes, with their accuracies where known."""
    sources = [n for n in ("classes", "accuracies", "model") if values[n].value]
    if len(sources) != 1:
        raise ValueError(
            "What is hard is said by one of --accuracies, --model and "
            f"--classes. Received: {' and '.join(sources) or 'none'}."
        )
    if values.classes:
        found = dict.fromkeys(read_classes(values.classes))
    elif values.accuracies:
        found = read_accuracies(values.accuracies)
    else:
        found = measure_accuracies(values.model, imagenet, values.white)
    unknown = sorted(set(found) - set(imagenet.classes))
    if unknown:
        raise ValueError(
            f"The classes must be ImageNet's. Received: {unknown[0]}"
            f"{' and others' if len(unknown) > 1 else ''}, which "
            f"{values.imagenet} does not have."
        )
    return found if values.classes else hardest(found, values.num_classes)


def _write_folder(values, imagenet, classes, out):
    def write(part, picture):
        path = out / _OUTPUT[part] / picture.label / f"{picture.name}.jpg"
        if not path.exists():
            image = _cut(values, imagenet, part, picture)
            with written_atomically(path) as temporary:
                image.save(temporary, "JPEG", quality=_QUALITY)

    return [
        _count(part, _each(imagenet.pictures(part, classes), part, write))
        for part in PARTS
    ]


def _write_npz(values, imagenet, classes, out):
    size = values.image_size
    labels = {name: label for label, name in enumerate(classes)}
    room = _MEMORY_LIMIT // (size * size * 3)

    def read(part, picture):
        image = fit(_cut(values, imagenet, part, picture), size)
        return np.asarray(image), labels[picture.label]

    arrays: dict[str, Any] = {"class_names": np.array(classes)}
    counts = []
    for part in PARTS:
        found = _each(imagenet.pictures(part, set(classes)), part, read, room)
        counts.append(_count(part, found))
        pairs = [pair for pair in found if pair is not None]
        if pairs:
            images, numbers = zip(*pairs, strict=True)
            arrays[f"x_{_OUTPUT[part]}"] = np.stack(images)
            arrays[f"y_{_OUTPUT[part]}"] = np.array(numbers, np.int32)
    with written_atomically(out) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)
    return counts


def _cut(values, imagenet, part, picture):
    box = imagenet.box(part, picture)
    return crop(picture.image(), box, values.padding, values.largest)


def _each(
    pictures: Iterable[Picture],
    part: str,
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
    pictures = iter(pictures)
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
    return found


def _count(part, found):
    damaged = sum(one is None for one in found)
    if found and 2 * damaged > len(found):
        raise ValueError(
            f"Most pictures must be readable. Received: {damaged} of "
            f"{len(found)} damaged in {part}."
        )
    return _OUTPUT[part], f"{len(found) - damaged:,}", f"{damaged:,}"


if __name__ == "__main__":
    define()
    cli.run(main)
