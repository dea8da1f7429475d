import dataclasses

import numpy as np

from encapnet_tf.data import Dataset
from encapnet_tf.data.splits import ArraySplit
from trainers.class_balance import class_warnings

NAMES = ("ant", "bee", "cat")


def dataset(train, test):
    splits = [
        ArraySplit(
            np.zeros((sum(counts), 2, 2, 3), np.uint8),
            np.repeat(np.arange(3), counts),
        )
        for counts in (train, test)
    ]
    return Dataset("own", *splits, NAMES, (2, 2, 3))


def test_nothing_is_said_of_even_classes():
    assert class_warnings(dataset((40, 30, 10), (5, 5, 1)), "none") == []


def test_uneven_classes_are_named_with_what_helps():
    data = dataset((200, 20, 5), (40, 4, 1))
    (found,) = class_warnings(data, "none")
    assert "200 training images of ant, 5 of cat" in found
    assert "--class_weights=balanced" in found
    assert class_warnings(data, "balanced") == []


def test_a_class_of_one_image_and_one_without_test_images_are_named():
    one, none = class_warnings(dataset((4, 4, 1), (2, 2, 0)), "none")
    assert one.startswith("Only one training image: cat.")
    assert none.startswith("No test image: cat.")


def test_nothing_is_known_of_streamed_data():
    data = dataset((200, 1, 5), (40, 4, 1))
    streamed = dataclasses.replace(data, train=object())
    assert class_warnings(streamed, "none") == []
