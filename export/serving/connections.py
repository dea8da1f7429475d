"""Connections that do not wait forever."""

from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientConnection(H11Protocol):
    """Closes a connection on which no request arrives in time.

    Uvicorn waits without end for a client that sends nothing, or its headers
    byte by byte. Bodies have their own limit, in the application.
    """

    def connection_made(self, transport):
        """Starts to wait for the first request."""
        super().connection_made(transport)
        self._await_request()

    def on_response_complete(self):
        """Starts to wait for the next request."""
        super().on_response_complete()
        self._await_request()

    def connection_lost(self, exc):
        """Stops waiting."""
        self._patience.cancel()
        super().connection_lost(exc)

    def _await_request(self):
        if hasattr(self, "_patience"):
            self._patience.cancel()
        self._patience = self.loop.call_later(
            self.timeout_keep_alive, self._close_if_idle
        )

    def _close_if_idle(self):
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
