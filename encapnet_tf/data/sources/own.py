"""Data of one's own: the parts there are become a data set."""

from encapnet_tf.data.dataset import Dataset
from encapnet_tf.data.images.sizes import fitting
from encapnet_tf.data.splits import Split

TEST_FRACTION = 0.15  # split off where the data bring no test part


def own_dataset(
    name: str,
    parts: dict[str, Split],
    class_names: tuple[str, ...],
    image_shape: tuple[int, int, int],
    originals: list[tuple[int, int]],
) -> Dataset:
    """Makes a data set of "train" and, where there are any, "val" and "test".

    Args:
        name: What was asked for.
        parts: The splits. Without a test part a stratified 15% of the
            training part becomes one, always the same.
        class_names: One name per label.
        image_shape: `(H, W, C)` of the images as fitted.
        originals: Heights and widths they had before.
    """
    train, test = parts["train"], parts.get("test")
    if test is None:
        train, test = _divide_off_test(train)
    return Dataset(
        name,
        train,
        test,
        class_names,
        image_shape,
        validation=parts.get("val"),
        fitting=fitting(originals, image_shape[:2]),
    )


def _divide_off_test(train):
    count = max(1, round(TEST_FRACTION * train.num_examples))
    train, test = train.divide(count)
    if test.num_examples == 0:
        raise ValueError(
            "Data without a test part need at least two images in a class, to "
            f"split one off. Received: {train.num_examples} images, one of "
            "each class. Add images, or a test part."
        )
    return train, test
