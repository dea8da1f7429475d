"""ImageNet's pictures and boxes: as ILSVRC unpacks them, or from tfds."""

import io
import pathlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from PIL import Image

from encapnet_tf.data.images.pillow import SUFFIXES, decode
from encapnet_tf.data.sources import tfds_source

PARTS = ("train", "val")
_TFDS = {"train": "train", "val": "validation"}
# Where ILSVRC's archives put what this program reads.
_DATA = ("", "Data/CLS-LOC", "ILSVRC/Data/CLS-LOC")
_BOXES = ("Annotations/CLS-LOC", "ILSVRC/Annotations/CLS-LOC", "Annotations")
_LAYOUT = (
    "Expected is a folder with train/ and val/, each with one sub-folder of "
    "images per class, or one where tfds has prepared imagenet2012."
)


class Box(NamedTuple):
    """An object, in shares of the picture's width and height."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def area(self) -> float:
        """Share of the picture."""
        return (self.right - self.left) * (self.bottom - self.top)


class Picture(NamedTuple):
    """A picture that is read when it is needed.

    Attributes:
        label: The name of its class.
        name: Its own, without suffix.
        content: Returns the bytes of its file.
    """

    label: str
    name: str
    content: Callable[[], bytes]

    def image(self) -> Image.Image:
        """Decodes the picture, upright and in RGB."""
        return decode(io.BytesIO(self.content()), self.name)


class ImageNet:
    """A copy of ImageNet, or of part of it.

    Args:
        root: The folder with train/ and val/, the one above ILSVRC/, or one
            where tfds has prepared imagenet2012.
        boxes: Folder of annotations in XML; default: where ILSVRC has them.

    Attributes:
        classes: The names of the classes, in order.
    """

    def __init__(self, root: pathlib.Path, boxes: pathlib.Path | None = None):
        self._boxes = boxes or _first_folder(root, _BOXES)
        prepared = tfds_source.find_prepared("imagenet2012", root)
        self._builder = prepared and tfds_source.stored_builder(prepared)
        if self._builder:
            names = self._builder.info.features["label"].names
            self.classes = tuple(names)
            return
        self._folder = next(
            (root / n for n in _DATA if (root / n / "train").is_dir()), None
        )
        if self._folder is None:
            raise ValueError(f"{_LAYOUT} Received: {root}.")
        self.classes = tuple(
            sorted(f.name for f in _subfolders(self._folder / "train"))
        )
        if not self.classes:
            raise ValueError(f"{_LAYOUT} Received: {root}, without classes.")

    def pictures(self, part: str, classes: set[str]) -> Iterator[Picture]:
        """Yields the pictures of some classes, "train" or "val"."""
        if self._builder:
            yield from self._stored(part, classes)
            return
        folder = self._folder / part
        if not folder.is_dir():
            return
        if not _subfolders(folder):
            yield from self._unsorted(folder, classes)
        for label in sorted(classes):
            for path in _images(folder / label):
                yield Picture(label, path.stem, path.read_bytes)

    def count(self, part: str, classes: set[str]) -> int:
        """Returns about how many pictures `pictures` yields; one at least."""
        if self._builder:
            examples = self._builder.info.splits[_TFDS[part]].num_examples
            return max(1, examples * len(classes) // len(self.classes))
        folders = [self._folder / part / label for label in classes]
        found = sum(len(_images(f)) for f in folders if f.is_dir())
        if not found and (self._folder / part).is_dir():
            everything = len(_images(self._folder / part))
            found = everything * len(classes) // len(self.classes)
        return max(1, found)

    def _stored(self, part, classes):
        import tensorflow_datasets as tfds

        encoded = self._builder.as_dataset(
            split=_TFDS[part], decoders={"image": tfds.decode.SkipDecoding()}
        )
        for example in encoded.as_numpy_iterator():
            label = self.classes[example["label"]]
            if label in classes:
                name = pathlib.Path(example["file_name"].decode()).stem
                content = example["image"]
                yield Picture(label, name, lambda content=content: content)

    def _unsorted(self, folder, classes):
        """ILSVRC's own val/ has no sub-folders: the boxes name the class."""
        for path in _images(folder):
            objects = self._objects("val", "", path.stem)
            if not objects:
                raise ValueError(
                    "Pictures of val/ without a sub-folder need annotations "
                    f"that name their class. Received: {path} without any. "
                    "Sort val/ into classes, or give --boxes."
                )
            label = objects[0][0]
            if label in classes:
                yield Picture(label, path.stem, path.read_bytes)

    def box(self, part: str, picture: Picture) -> Box | None:
        """Returns the largest object of the picture's class, if any is known.

        Where no object is of that class, the largest of all.
        """
        objects = self._objects(part, picture.label, picture.name)
        own = [box for label, box in objects if label == picture.label]
        boxes = own or [box for _, box in objects]
        return max(boxes, key=lambda box: box.area, default=None)

    def _objects(self, part, label, name):
        if self._boxes is None:
            return []
        for place in (f"{part}/{label}", part, label, ""):
            path = self._boxes / place / f"{name}.xml"
            if path.is_file():
                return read_objects(path)
        return []


def read_objects(path: pathlib.Path) -> list[tuple[str, Box]]:
    """Reads the objects of an annotation: their classes and boxes."""
    try:
        root = ElementTree.parse(path).getroot()
        width, height = (float(root.findtext(f"size/{n}")) for n in _SIZES)
        found = []
        for item in root.iter("object"):
            left, top, right, bottom = (
                float(item.findtext(f"bndbox/{name}")) for name in _SIDES
            )
            box = (left / width, top / height, right / width, bottom / height)
            found.append((item.findtext("name"), Box(*np.clip(box, 0, 1))))
    except (ElementTree.ParseError, TypeError, ValueError, ZeroDivisionError):
        raise ValueError(
            "An annotation must be XML with the size of the picture and a "
            f"bndbox per object, as ILSVRC has them. Received: {path}."
        ) from None
    return found


_SIZES = ("width", "height")
_SIDES = ("xmin", "ymin", "xmax", "ymax")


def crop(
    image: Image.Image, box: Box | None, padding: float, largest: int
) -> Image.Image:
    """Cuts an object out, with some of what is around it.

    Args:
        image: The picture.
        box: The object; None: all of the picture.
        padding: What to add on every side, as a share of the object's.
        largest: The longer side is reduced to this where it is longer.

    Returns:
        The object.
    """
    if box is not None:
        across = padding * (box.right - box.left)
        along = padding * (box.bottom - box.top)
        sides = (box.left - across, box.top - along,
                 box.right + across, box.bottom + along)  # fmt: skip
        left, top, right, bottom = np.clip(sides, 0, 1) * (2 * image.size)
        image = image.crop((
            int(left), int(top),
            max(int(left) + 1, round(right)), max(int(top) + 1, round(bottom)),
        ))  # fmt: skip
    scale = largest / max(image.size)
    if scale >= 1:
        return image
    size = tuple(max(1, round(side * scale)) for side in image.size)
    return image.resize(size, Image.Resampling.BILINEAR)


def _first_folder(root, names):
    return next((root / n for n in names if (root / n).is_dir()), None)


def _subfolders(folder):
    return [f for f in folder.iterdir() if f.is_dir() and f.name[0] != "."]


def _images(folder):
    if not folder.is_dir():
        return []
    return sorted(f for f in folder.iterdir() if f.suffix.lower() in SUFFIXES)
