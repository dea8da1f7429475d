"""What a data set of hard classes is asked to be."""

import pathlib
from dataclasses import dataclass

from trainers.files import check_writable


@dataclass(frozen=True)
class HardClasses:
    """What is asked for; the names are those of the flags.

    Attributes:
        imagenet: ImageNet's folder.
        boxes: Folder of XML annotations, or None.
        accuracies: CSV file class,accuracy, …
        model: … or a Keras classifier, …
        white: A white pixel in its input.
        classes: … or a file of classes: what says which are hard.
        num_classes: How many.
        padding: What is added around an object, as a share of it.
        largest: Longest side of a picture.
        out: A folder, or a file NAME.npz.
        image_size: Side of the pictures in an .npz file.
    """

    imagenet: str | None
    boxes: str | None
    accuracies: str | None
    model: str | None
    white: float
    classes: str | None
    num_classes: int
    padding: float
    largest: int
    out: str
    image_size: int

    def __post_init__(self):
        """Refuses what names no data."""
        if not self.imagenet:
            raise ValueError(
                "--imagenet must be ImageNet's folder. Received: none."
            )
        check_writable(pathlib.Path(self.out).parent)

    @property
    def source(self) -> str:
        """Which of three fields says what is hard; exactly one must."""
        names = ("classes", "accuracies", "model")
        sources = [name for name in names if getattr(self, name)]
        if len(sources) != 1:
            raise ValueError(
                "What is hard is said by one of --accuracies, --model and "
                f"--classes. Received: {' and '.join(sources) or 'none'}."
            )
        return sources[0]
