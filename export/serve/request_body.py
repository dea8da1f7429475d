"""Reads a body that is neither too long nor too slow, and unpacks it."""

import asyncio
import zlib

from fastapi import Request

from export.serve.limits import Limits, Refusal

# Window sizes of zlib; 16 more stand for gzip's header.
_WINDOWS = {"gzip": 31, "deflate": 15}


async def read_body(request: Request, limits: Limits) -> bytes:
    """Returns the body of a request.

    Raises:
        Refusal: It is longer, or takes longer, than the limits allow.
    """
    most = _most(limits)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most:
        raise _too_long(limits)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise _too_long(limits)
    except TimeoutError:
        raise Refusal(
            408,
            f"The body must arrive within {limits.timeout_s:g} seconds. "
            f"Received: {len(body)} bytes of it.",
        ) from None
    return bytes(body)


def unpacked(body: bytes, encoding: str, limits: Limits) -> bytes:
    """Returns what a body holds, which may be no longer than a plain one.

    Args:
        body: As it was sent.
        encoding: Its `Content-Encoding`.
        limits: Of the requests.

    Raises:
        Refusal: It holds more, is damaged, or packed in another way.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in _WINDOWS:
        raise Refusal(
            415,
            "Content-Encoding must be gzip or deflate. "
            f"Received: {encoding[:40]}.",
        )
    stream = zlib.decompressobj(_WINDOWS[encoding])
    most = _most(limits)
    try:
        # A few kilobytes can stand for gigabytes: no more is unpacked.
        content = stream.decompress(body, most + 1)
    except zlib.error:
        raise _damaged(encoding) from None
    if len(content) > most:
        raise _too_long(limits)
    if not stream.eof or stream.unused_data:
        raise _damaged(encoding)
    return content


def _most(limits):
    return int(limits.max_megabytes * 1e6)


def _too_long(limits):
    return Refusal(
        413,
        f"A body may have {limits.max_megabytes:g} MB. Received: more. "
        "Send fewer or smaller images.",
    )


def _damaged(encoding):
    return Refusal(
        400,
        f"The body must be one whole stream of {encoding}. "
        "Received: other bytes.",
    )
