"""Takes a port before a model is loaded: one in use is refused at once."""

import socket

BACKLOG = 1024


def take(host: str, port: int) -> socket.socket:
    """Returns a socket that is bound and does not listen yet.

    Raises:
        ValueError: The port is not free.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as problem:
        raise ValueError(
            "`--host` and `--port` must be free to listen on. Received: "
            f"--host={host} --port={port} ({problem.strerror}). "
            "Try another port."
        ) from None
    return listener
