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
        flip: Whether a mirrored image still shows its class: False for
            digits, True for photographs. Own data flip unless all class names
            are digits, or the file gives no names; use
            `dataclasses.replace(dataset, flip=True)` where you know better.
    """

    name: str
    train: Split
    test: Split
    class_names: tuple[str, ...]
    image_shape: tuple[int, int, int]
    flip: bool

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return len(self.class_names)


def names_allow_flip(class_names: tuple[str, ...]) -> bool:
    """Whether images with these class names may be mirrored.

    Example:
        >>> names_allow_flip(("cat", "dog")), names_allow_flip(("0", "1"))
        (True, False)
    """
    return not all(name.isdigit() for name in class_names)


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
