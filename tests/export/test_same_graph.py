"""The exported graph does not depend on the machine that exports."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

ROOT = pathlib.Path(__file__).parent.parent.parent
# 64 groups: where oneDNN is and is not, TensorFlow's fastest forms differ.
# Sides of 32, 16 and 8, strides and both branches.
EXPORT = """
import sys
import keras
import tensorflow as tf
import export
from encapnet_tf import create_model
from export.graph.freezing import freeze

keras.utils.set_random_seed(0)
model = create_model(
    "encapnet_tiny", num_capsules=64, stem=((64, 1),), aide=("none", "type1"),
)
spec = tf.TensorSpec((None, 32, 32, 3), tf.float32, "images")
frozen = freeze(lambda x: {"scores": model(x, training=False)}, spec)
traced = tf.function(frozen, input_signature=[spec]).get_concrete_function()
with open(sys.argv[1], "wb") as file:
    file.write(traced.graph.as_graph_def().SerializeToString())
"""


@pytest.mark.slow
def test_exports_with_and_without_onednn_are_the_same_graph(tmp_path):
    paths = [tmp_path / "without", tmp_path / "with"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", EXPORT, str(path)],
            cwd=ROOT,
            env=os.environ | {"TF_ENABLE_ONEDNN_OPTS": str(number)},
        )
        for number, path in enumerate(paths)
    ]
    assert [process.wait() for process in processes] == [0, 0]
    without, with_onednn = map(nodes, paths)
    assert "Conv2D" in {node.op for node in without}
    for one, other in zip(without, with_onednn, strict=True):
        assert_same(one, other)


def nodes(path):
    graph = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    inner = [node for f in graph.library.function for node in f.node_def]
    return [*graph.node, *inner]


def assert_same(one, other):
    """The numbers of constants may differ by rounding, all else may not."""
    if one.op == "Const":
        value, expected = (
            tf.make_ndarray(node.attr["value"].tensor) for node in (one, other)
        )
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7)
        for node in (one, other):
            del node.attr["value"]
    assert one == other
