"""What the library borrows from Keras and TensorFlow is still there.

Read the failing test first after an upgrade: it names what has gone.
"""

import ast
import pathlib

import keras
import tensorflow as tf

from encapnet_tf.keras_internals import sub_layers
from encapnet_tf.tensorflow_internals import under_xla, with_constants

ROOT = pathlib.Path(__file__).parent.parent


class Wrapping(keras.layers.Layer):
    """A layer with layers that is no model."""

    def __init__(self):
        super().__init__()
        self.parts = [keras.layers.Dense(1, name="within")]


def test_keras_tells_the_layers_within_layers():
    model = keras.Sequential([keras.Sequential([Wrapping()])])
    assert "within" in [layer.name for layer in sub_layers(model)]


def test_tensorflow_tells_when_xla_compiles():
    seen = {}

    def look(name):
        seen[name] = under_xla()
        return tf.constant(0.0)

    tf.function(look, jit_compile=True)("compiled")
    tf.function(look)("plain")
    look("eager")
    assert seen == {"compiled": True, "plain": False, "eager": False}


def test_tensorflow_makes_constants_of_variables():
    weight = tf.Variable(3.0)
    function = tf.function(lambda x: x * weight).get_concrete_function(
        tf.TensorSpec((), tf.float32)
    )
    frozen = with_constants(function)
    weight.assign(5.0)
    assert [t.numpy() for t in frozen(tf.constant(2.0))] == [6.0]


def test_the_inside_of_others_is_used_in_the_named_places_alone():
    """Imports of private modules, and private attributes of other objects."""
    found = set()
    for path in (ROOT / "encapnet_tf").rglob("*.py"):
        if any(map(_is_private, ast.walk(ast.parse(path.read_text())))):
            found.add(path.name)
    assert found == {"keras_internals.py", "tensorflow_internals.py"}


def _is_private(node):
    if isinstance(node, ast.ImportFrom):
        return node.module.startswith(("keras.src", "tensorflow.python"))
    return (
        isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and isinstance(node.value, ast.Name)
        and node.value.id not in ("self", "cls")
    )
