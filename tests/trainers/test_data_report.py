import dataclasses
import re

import numpy as np
import pytest

from encapnet_tf.data import Dataset
from encapnet_tf.data.splits import ArraySplit
from trainers.data_report import class_warnings, data_report
from trainers.recipe import make_recipe

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


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "random crops, never mirrored."),
        ({"flip": True}, "never mirrored: that takes --augmentation=strong"),
        ({"augmentation": "mirrored"}, r"crops, never mirrored \(--flip mirr"),
        ({"augmentation": "strong"}, r"never mirrored \(--flip mirrors"),
        ({"augmentation": "strong", "flip": True}, r"and mirrored \(--noflip"),
        ({"augmentation": "none"}, "shown whole, without variation"),
    ],
)
def test_what_is_done_to_the_images_is_said(fields, words):
    data = dataset((40, 30, 10), (5, 5, 1))
    data = dataclasses.replace(data, fitting="Images of 4x4 are fitted.")
    first, last = data_report(make_recipe(fields), data)
    assert first == "Images of 4x4 are fitted."
    assert re.search(words, last)
