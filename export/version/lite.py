"""LiteRT files from a SavedModel.

The converter never returns its memory and writes to stderr at will:
it works in a process of its own.
"""

import concurrent.futures
import functools
import multiprocessing
import pathlib

import numpy as np
import tensorflow as tf

from encapnet_tf.checks import check_choice
from export.choices import DEFAULT, QUANTIZATIONS, RECONSTRUCT
from trainers.quiet import silenced_stderr
from trainers.tensorflow_start import start_tensorflow

# Squash and routing stay in float32: squares and quotients of 8-bit numbers
# lose the short capsules, and a quotient by a rounded zero stops LiteRT.
_IN_FLOAT = (
    "ADD", "BATCH_MATMUL", "CONCATENATION", "DIV", "EXP", "LOG", "LOGISTIC",
    "MAXIMUM", "MEAN", "MINIMUM", "MUL", "NEG", "REDUCE_MAX", "REDUCE_MIN",
    "RESHAPE", "RESIZE_BILINEAR", "RSQRT", "SLICE", "SOFTMAX", "SPLIT",
    "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "STRIDED_SLICE", "SUB", "SUM",
    "TRANSPOSE", "TRANSPOSE_CONV",
)  # fmt: skip


def file_name(quantization: str) -> str:
    """Returns the name a LiteRT file gets.

    Example:
        >>> file_name("none"), file_name("int8")
        ('model.tflite', 'model_int8.tflite')
    """
    check_choice("quantize", quantization, QUANTIZATIONS)
    return f"model{'' if quantization == 'none' else '_' + quantization}.tflite"


def convert(
    saved_model: pathlib.Path,
    quantizations: list[str],
    calibration: np.ndarray | None,
    folder: pathlib.Path,
) -> None:
    """Writes one LiteRT file per quantization.

    Args:
        saved_model: Folder of a SavedModel that `Servable.save_lite` wrote.
        quantizations: "none", "float16" (weights) or "int8" (weights and what
            the convolutions read; the rest stays in float32).
        calibration: uint8 images `(N, H, W, C)` that int8 finds its ranges on.
        folder: Where the files go.
    """
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(
        1, context, initializer=start_tensorflow
    ) as pool:
        arguments = (str(saved_model), quantizations, calibration, str(folder))
        pool.submit(_convert_all, *arguments).result()


def _convert_all(saved_model, quantizations, calibration, folder):
    for quantization in quantizations:
        with silenced_stderr():
            content = _convert(saved_model, quantization, calibration)
        pathlib.Path(folder, file_name(quantization)).write_bytes(content)


def _examples(loaded, calibration):
    """What each signature is calibrated on: images, and their capsules."""
    for image in calibration:
        yield DEFAULT, {"images": image[None]}
        if RECONSTRUCT in loaded.signatures:
            outputs = loaded.signatures[DEFAULT](images=image[None])
            yield RECONSTRUCT, {"capsules": outputs["capsules"].numpy()}


def _convert(saved_model, quantization, calibration):
    converter = tf.lite.TFLiteConverter.from_saved_model(saved_model)
    if quantization == "none":
        return converter.convert()
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantization == "float16":
        converter.target_spec.supported_types = [tf.float16]
        return converter.convert()

    converter.representative_dataset = functools.partial(
        _examples, tf.saved_model.load(saved_model), calibration
    )
    # The debugger is the converter's way to choose what to quantize.
    debugger = tf.lite.experimental.QuantizationDebugger(
        converter=converter,
        debug_dataset=converter.representative_dataset,
        debug_options=tf.lite.experimental.QuantizationDebugOptions(
            denylisted_ops=list(_IN_FLOAT)
        ),
    )
    return debugger.get_nondebug_quantized_model()
