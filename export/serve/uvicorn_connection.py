"""Connections that do not wait forever."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientConnection(H11Protocol):
    """Closes a connection on which nothing moves for too long.

    Uvicorn waits without end for a client that sends nothing, or its headers
    byte by byte, or never reads its answer. Bodies have their own limit, in
    the application.

    Args:
        patience: Seconds until the connection is closed.
        arguments: Uvicorn's own.
    """

    def __init__(self, *, patience: float, **arguments):
        super().__init__(**arguments)
        self._patience = patience
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Starts to wait for the first request."""
        super().connection_made(transport)
        self._wait(self._close_if_idle)

    def on_response_complete(self) -> None:
        """Starts to wait for the next request."""
        super().on_response_complete()
        self._wait(self._close_if_idle)

    def pause_writing(self) -> None:
        """Starts to wait for the client to read."""
        super().pause_writing()
        self._wait(self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads."""
        super().resume_writing()
        self._wait(self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops waiting."""
        self._timer.cancel()
        super().connection_lost(exc)

    def _wait(self, then):
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(self._patience, then)

    def _close_if_idle(self):
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
