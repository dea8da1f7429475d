"""A model behind a port, until a signal ends it."""

import functools
import pathlib
import signal
import socket
import warnings
from collections.abc import Mapping, Sequence

import uvicorn
from PIL import Image

from export.serve.access_log import log_to_stderr
from export.serve.app import create_app
from export.serve.limits import Limits
from export.serve.model.served import ServedModel
from export.serve.port import BACKLOG
from export.serve.uvicorn_connection import PatientConnection

_POLL_SECONDS = 2


def serve(
    folder: pathlib.Path,
    name: str,
    listener: socket.socket,
    limits: Limits,
    labels: Mapping[str, int],
    origins: Sequence[str],
) -> None:
    """Serves a model until SIGTERM or Ctrl-C.

    Args:
        folder: The folder of its versions.
        name: What clients call it.
        listener: A port that was taken.
        limits: Of the requests.
        labels: Names of versions that stay loaded.
        origins: Whose pages in a browser may ask; `*` stands for all.
    """
    log_to_stderr()
    # Sizes are checked, and refused with a message, in rest/images.py.
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    model = ServedModel(folder, name, limits, labels)
    model.watch(_POLL_SECONDS)
    _announce(model, listener)
    _run(create_app(model, limits, origins), listener, limits)
    model.stop()


def _announce(model, listener):
    listener.listen(BACKLOG)
    host, port = listener.getsockname()[:2]
    where = f"[{host}]" if ":" in host else host
    print(
        f"serving {model.name} version {model.current.number} "
        f"at http://{where}:{port}/ (Ctrl-C stops)",
        flush=True,
    )


def _run(app, listener, limits):
    """Runs uvicorn; a signal lets the requests under way finish."""
    config = uvicorn.Config(
        app,
        http=functools.partial(PatientConnection, patience=limits.timeout_s),
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.timeout_s) + 1,
    )
    # Uvicorn raises the signal again once it has finished.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        uvicorn.Server(config).run([listener])
    except KeyboardInterrupt:
        return
