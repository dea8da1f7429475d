"""One JSON line per request, and the same figures for the metrics."""

import json
import logging
import sys
import time
from datetime import UTC, datetime

from starlette.requests import ClientDisconnect

from export.serve.metrics import Metrics

_log = logging.getLogger("export.serve")
# nginx' code for a client that left; nothing is sent.
_CLIENT_LEFT = 499
_FIELDS = ("client", "method", "path", "status", "ms", "version")


class JsonLines(logging.Formatter):
    """Formats records as JSON objects, one to a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns time, level, event and what else the record carries."""
        time_of = datetime.fromtimestamp(record.created, UTC)
        fields = {
            "time": time_of.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        for name in _FIELDS:
            if hasattr(record, name):
                fields[name] = getattr(record, name)
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def log_to_stderr() -> None:
    """Sends the server's log, and uvicorn's warnings, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, level in (("export.serve", "INFO"), ("uvicorn", "WARNING")):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


class AccessLog:
    """Logs and counts every request; answers unexpected errors.

    Args:
        app: The ASGI application within.
        metrics: Where requests are counted.
    """

    def __init__(self, app, metrics: Metrics):
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope, receive, send):
        """Runs one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), None

        async def observed(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except ClientDisconnect:
            status = _CLIENT_LEFT
        except Exception:  # no traceback for the client, but one for us
            _log.exception("unforeseen error")
            if status is None:
                await _send_internal_error(observed)
        self._record(scope, status, time.perf_counter() - start)

    def _record(self, scope, status, seconds):
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.requests.labels(route, status).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        _log.info(
            "request",
            extra={
                "client": (scope.get("client") or ("",))[0],
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(1000 * seconds, 1),
            },
        )


async def _send_internal_error(send):
    body = json.dumps({"error": "Internal error; the server's log says more."})
    headers = [(b"content-type", b"application/json")]
    await send(
        {"type": "http.response.start", "status": 500, "headers": headers}
    )
    await send({"type": "http.response.body", "body": body.encode()})
