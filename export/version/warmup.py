"""Requests that TF Serving sends to a new version before its users do."""

import pathlib

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    model_pb2,
    predict_pb2,
    prediction_log_pb2,
)


def write_warmup(images: np.ndarray, path: pathlib.Path) -> None:
    """Writes one request per signature.

    Args:
        images: uint8 `(B, H, W, C)`.
        path: The file, `assets.extra/tf_serving_warmup_requests`.
    """
    files = np.array([tf.io.encode_png(image).numpy() for image in images])
    requests = {
        "serving_default": {"images": images},
        "serving_float": {"images": images.astype(np.float32) / 255},
        "serving_bytes": {"image_bytes": files},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests.items():
            writer.write(_log(signature, inputs).SerializeToString())


def _log(signature, inputs):
    request = predict_pb2.PredictRequest(
        model_spec=model_pb2.ModelSpec(signature_name=signature),
        inputs={name: tf.make_tensor_proto(v) for name, v in inputs.items()},
    )
    return prediction_log_pb2.PredictionLog(
        predict_log=prediction_log_pb2.PredictLog(request=request)
    )
