"""An inference that was asked for, and its answer."""

import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from export.serve.limits import Refusal
from export.serve.rest.answers import Answer
from export.serve.rest.open_inference.datatypes import datatype_of, to_binary
from export.serve.rest.tensors import short


class Inference(NamedTuple):
    """What a request asks for.

    Attributes:
        signature_name: The signature to run.
        inputs: Its arrays by name.
        outputs: Those to return, and whether in binary; all, if empty.
        binary: Whether outputs are returned in binary that do not say so.
        head: What the answer begins with.
    """

    signature_name: str
    inputs: dict[str, np.ndarray]
    outputs: dict[str, bool]
    binary: bool
    head: dict[str, str]

    def answer(self, outputs: Mapping[str, np.ndarray]) -> Answer:
        """Returns what the client is told.

        Args:
            outputs: The signature's.

        Raises:
            Refusal: One that is wanted is not there, or JSON cannot hold it.
        """
        described, tensors = [], []
        for name, binary in _wanted(self, outputs).items():
            array = outputs[name]
            tensor = {
                "name": name,
                "datatype": datatype_of(array.dtype),
                "shape": list(array.shape),
            }
            if binary:
                tensors.append(to_binary(array))
                size = len(tensors[-1])
                tensor["parameters"] = {"binary_data_size": size}
            else:
                tensor["data"] = _flat(name, array)
            described.append(tensor)
        text = json.dumps(self.head | {"outputs": described}).encode()
        length = len(text) if tensors else None
        return Answer(text + b"".join(tensors), length)


def _wanted(asked, arrays):
    """Output names, and whether they are wanted in binary."""
    for name in asked.outputs:
        if name not in arrays:
            raise Refusal(
                400,
                f"'outputs' may name: {', '.join(arrays)}. "
                f"Received: {short(name)}.",
            )
    return asked.outputs or dict.fromkeys(arrays, asked.binary)


def _flat(name, array):
    """Values in row-major order."""
    if array.dtype != object:
        # JSON knows nothing of the number formats that NumPy was taught.
        known = array if array.dtype.kind in "biuf" else array.astype(float)
        return known.ravel().tolist()
    try:
        return [value.decode() for value in array.ravel()]
    except UnicodeDecodeError:
        raise Refusal(
            400,
            f"`{name}` holds bytes that are no text: ask for it with the "
            "parameter 'binary_data'.",
        ) from None
