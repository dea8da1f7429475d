"""What `load` returns."""

import dataclasses

from encapnet_tf.data.splits import Split


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A training and a test split, and what is known about their images.

    Attributes:
        name: What was asked for.
        train: Training examples.
        test: Test examples.
        class_names: One name per label, in label order.
        image_shape: `(H, W, C)` a network should expect.
        flip: Whether a mirrored image is known to show its class still: True
            for CIFAR's photographs, False for digits and for own data, of
            which nothing is known.
        validation: Examples to select on, where the data bring some.
        fitting: How the images were fitted to `image_shape`, in words; "" if
            they are as they were.
    """

    name: str
    train: Split
    test: Split
    class_names: tuple[str, ...]
    image_shape: tuple[int, int, int]
    flip: bool = False
    validation: Split | None = None
    fitting: str = ""

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return len(self.class_names)


def split_validation(
    split: Split, fraction: float, seed: int = 0
) -> tuple[Split, Split]:
    """Sets a part of the training examples aside to select on.

    Deterministic, and stratified for data in memory or in files: every class
    gives the same fraction and keeps at least one training example. Data
    streamed from tfds, which are stored in random order, give their tail.

    Args:
        split: The training split.
        fraction: In (0, 1).
        seed: Non-negative integer.

    Returns:
        The training and the validation split.
    """
    if not 0.0 < fraction < 1.0:
        raise ValueError(
            "`fraction` must lie strictly between 0 and 1. "
            f"Received: fraction={fraction}. Try 0.1."
        )
    count = round(split.num_examples * fraction)
    if count == 0 or split.num_examples < 2:
        raise ValueError(
            "Nothing would be left to validate on. Received: "
            f"fraction={fraction} of {split.num_examples} examples. Use a "
            "larger fraction or more examples."
        )
    return split.divide(count, seed)
