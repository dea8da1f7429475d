"""ONNX files of the graph that is served: a file has one graph."""

import pathlib

import tf2onnx

from export.choices import ONNX_FILES
from export.graph.servable import Servable
from trainers.quiet import silenced_stderr


def convert(servable: Servable, folder: pathlib.Path) -> None:
    """Writes `model.onnx`, and `reconstruct.onnx` where there is a decoder.

    Args:
        servable: What is served.
        folder: Where the files go.
    """
    for signature, function in servable.without_text.items():
        with silenced_stderr():
            model, _ = tf2onnx.convert.from_function(
                function, function.input_signature
            )
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
        path = folder / ONNX_FILES[signature]
        path.write_bytes(model.SerializeToString())
