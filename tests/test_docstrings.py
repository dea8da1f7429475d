"""The examples in the docstrings hold."""

import doctest
import importlib
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

ROOT = pathlib.Path(__file__).parent.parent


def modules_with_examples():
    for package in ("encapnet_tf", "export", "trainers"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if ">>> " in path.read_text():
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(p for p in parts if p != "__init__")


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples(name):
    module = importlib.import_module(name)
    results = doctest.testmod(
        module, extraglobs={"keras": keras, "np": np, "tf": tf}
    )
    assert results.attempted > 0
    assert results.failed == 0
