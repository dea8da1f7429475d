"""Reads a body that is neither too long nor too slow."""

import asyncio

from fastapi import Request

from export.serve.limits import Limits, Refusal


async def read_body(request: Request, limits: Limits) -> bytes:
    """Returns the body of a request.

    Raises:
        Refusal: It is longer, or takes longer, than the limits allow.
    """
    most = int(limits.max_megabytes * 1e6)
    too_long = Refusal(
        413,
        f"A body may have {limits.max_megabytes:g} MB. Received: more. "
        "Send fewer or smaller images.",
    )
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(limits.timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise too_long
    except TimeoutError:
        raise Refusal(
            408,
            f"The body must arrive within {limits.timeout_s:g} seconds. "
            f"Received: {len(body)} bytes of it.",
        ) from None
    return bytes(body)
