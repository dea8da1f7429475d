"""What is sent back: JSON, and gzip'd where that pays."""

import gzip
import json
from typing import Any, NamedTuple

from fastapi import Response

# HEAD is answered as GET is.
READ = ("GET", "HEAD")
JSON_LENGTH = "Inference-Header-Content-Length"
# What fits into a packet arrives no sooner for being shorter.
_LEAST = 1400
# Of the digits of an answer the quickest level leaves as little as any.
_LEVEL = 1


class Answer(NamedTuple):
    """The body of an answer to a request for predictions.

    Attributes:
        content: JSON, and the tensors that follow it in binary, if any.
        json_length: Of the JSON, where tensors follow.
    """

    content: bytes
    json_length: int | None = None


def json_response(content: Any, status: int = 200) -> Response:
    """Returns a response that is a JSON value."""
    # ASCII, so that any text a client sent can be quoted back.
    return Response(json.dumps(content), status, media_type="application/json")


def response_of(answer: Answer, accepts: str) -> Response:
    """Returns the response that an answer is sent as.

    Args:
        answer: The answer.
        accepts: The request's `Accept-Encoding`.
    """
    if answer.json_length is not None:  # random bits are not compressed
        return Response(
            answer.content,
            headers={JSON_LENGTH: str(answer.json_length)},
            media_type="application/octet-stream",
        )
    content, headers = answer.content, {"Vary": "Accept-Encoding"}
    if len(content) > _LEAST and takes_gzip(accepts):
        content = gzip.compress(content, _LEVEL, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(content, headers=headers, media_type="application/json")


def takes_gzip(accepts: str) -> bool:
    """Whether an `Accept-Encoding` allows gzip.

    Example:
        >>> takes_gzip("br, gzip;q=0.5"), takes_gzip("gzip;q=0, *")
        (True, False)
    """
    weights = {}
    for part in accepts.lower().split(","):
        coding, _, weight = part.replace(" ", "").partition(";")
        weights[coding] = weight
    weight = weights.get("gzip", weights.get("*", "q=0"))
    return weight.removeprefix("q=").strip("0.") != "" or weight == ""
