"""What an export is asked for, and the stages in which it does that."""

from typing import NamedTuple

from export.choices import DEFAULT, ONNX_FILES
from export.version.lite import file_name

SAVED_MODEL = "saved_model.pb"
ONNX = ONNX_FILES[DEFAULT]
READING = "reading the run and its data"
FREEZING = "folding the batch norms"
WRITING = f"writing {SAVED_MODEL}"
TO_LITE = "converting to LiteRT"
TO_ONNX = "converting to ONNX"
ASKING = "asking the Keras model"
CHECKING = "checking"
TIMING = "timing the answers"
# Batch sizes that are timed, and for how long each.
BATCHES = (1, 64)
TIMING_SECONDS = 1.0


class Wanted(NamedTuple):
    """What is to be written.

    Attributes:
        saved_model: Whether a SavedModel is.
        lite: The quantizations of the LiteRT files.
        onnx: Whether an ONNX file is.
        tolerance: Largest difference of a float32 format's scores from the
            Keras model's.
        licence: For the card, None where it is not stated.
        decoder: Whether the decoder goes along.
    """

    saved_model: bool
    lite: list[str]
    onnx: bool
    tolerance: float
    licence: str | None
    decoder: bool


def stages(wanted: Wanted) -> dict[str, float]:
    """Returns the stages of an export and the seconds they may take.

    As measured on two cores, `encapnet_small` at 32×32.
    """
    lite = wanted.lite
    names = [SAVED_MODEL] * wanted.saved_model + [ONNX] * wanted.onnx
    names += [file_name(quantization) for quantization in lite]
    seconds = {READING: 4, FREEZING: 5}
    if wanted.saved_model:
        seconds[WRITING] = 5
    if lite:
        seconds[TO_LITE] = 8 + 3 * len(lite) + 6 * ("int8" in lite)
    if wanted.onnx:
        seconds[TO_ONNX] = 5
    seconds[ASKING] = 5
    seconds |= {f"{CHECKING} {name}": 2 for name in names}
    return seconds | {TIMING: len(BATCHES) * TIMING_SECONDS * len(names)}
