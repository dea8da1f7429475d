"""What each route does, takes and answers."""

from typing import NamedTuple

from export.serve.rest.answers import JSON_LENGTH

BINARY = "application/octet-stream"
_PNG = "image/png"


class Operation(NamedTuple):
    """What a route does.

    Attributes:
        summary: What it is for.
        answers: Schemas, for JSON, or media types.
        takes: The same of the request's body, if it has one.
        query: A query parameter that it reads, if any.
        header: A header that it reads, if any.
    """

    summary: str
    answers: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    query: str | None = None
    header: str | None = None


# By the name of the function that answers.
OPERATIONS = {
    "predict": Operation(
        "Predictions, in TensorFlow Serving's protocol.",
        ("PredictAnswer",),
        ("PredictRequest",),
    ),
    "other": Operation("Refused: the signatures are for :predict."),
    "no_name": Operation("Refused: the name of the model is missing."),
    "status": Operation("Which versions answer.", ("ModelStatus",)),
    "metadata": Operation("The signatures of a version.", ("Signatures",)),
    "server_metadata": Operation("The server.", ("ServerMetadata",)),
    "server_live": Operation("Whether the server runs.", ("Live",)),
    "server_ready": Operation("Whether a model answers.", ("Ready",)),
    "model_ready": Operation("Whether a version answers.", ("ModelReady",)),
    "model_metadata": Operation(
        "Inputs and outputs of a signature.",
        ("ModelMetadata",),
        query="signature_name",
    ),
    "infer": Operation(
        "Predictions, in the Open Inference Protocol v2. The parameter "
        "signature_name chooses a signature. Tensors in binary follow the "
        "JSON.",
        ("InferAnswer", BINARY),
        ("InferRequest", BINARY),
        header=JSON_LENGTH,
    ),
    "health": Operation("Whether the server answers.", ("Health",)),
    "prometheus": Operation("Prometheus' metrics.", ("text/plain",)),
    "about": Operation("What the page shows.", ("Page",)),
    "sample": Operation("An image of the training data.", (_PNG,)),
    "seen": Operation(
        "The image that the network is given.", (_PNG,), ("image/*",)
    ),
    "page": Operation("A file of the page.", ("text/*",)),
    "openapi": Operation("This document.", ("OpenAPI",)),
}
