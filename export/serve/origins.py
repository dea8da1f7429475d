"""Origins of pages in a browser that may ask the server."""

from collections.abc import Iterable
from urllib.parse import urlsplit


def check_origins(origins: Iterable[str]) -> None:
    """Refuses what a browser never sends as an origin."""
    for origin in origins:
        if origin != "*" and not _is_origin(origin):
            raise ValueError(
                "`--cors` must be * or origins: a scheme and a host, perhaps "
                f"a port. Received: {origin}. Try --cors=https://example.org."
            )


def _is_origin(text):
    try:
        parts = urlsplit(text)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:  # of a port, or of brackets
        return False
    host = parts.netloc.removesuffix(port)
    # Browsers send no user and no capital letters.
    return (
        bool(parts.scheme and parts.hostname)
        and "@" not in host
        and text == f"{parts.scheme}://{host.lower()}{port}"
    )
