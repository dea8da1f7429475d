"""What the JSON bodies of both protocols have in common."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from export.serve.limits import Refusal
from export.serve.rest.tensors import short

Described = TypeVar("Described")


def parse_object(body: bytes, hint: str = "") -> dict[str, Any]:
    """Returns a JSON object.

    Args:
        body: What was sent.
        hint: Follows what the parser says, where it cannot read the body.

    Raises:
        Refusal: It is not one.
    """
    if not body.strip():
        raise Refusal(400, "JSON Parse error: The document is empty")
    try:
        document = json.loads(body)
    except RecursionError:
        raise Refusal(400, "JSON Parse error: nested too deeply") from None
    except ValueError as problem:  # also of text that is not Unicode
        raise Refusal(400, f"JSON Parse error: {problem}{hint}") from None
    if not isinstance(document, dict):
        raise Refusal(
            400, f"Expected a JSON object. Received: {short(document)}."
        )
    return document


def chosen(name: Any, signatures: Mapping[str, Described]) -> Described:
    """Returns what is known of the signature that a request names.

    Raises:
        Refusal: There is no such signature.
    """
    if not isinstance(name, str):
        raise Refusal(
            400,
            "'signature_name' key must be a string value. "
            f"Received: {short(name)}.",
        )
    if name not in signatures:
        raise Refusal(
            400,
            f'Serving signature name: "{short(name)}" not found in '
            f"signature def. It has: {', '.join(sorted(signatures))}.",
        )
    return signatures[name]
