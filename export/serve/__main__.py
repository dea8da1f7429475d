"""Serves an exported model: `python -m export.serve --model=exported/encapnet`.

TensorFlow Serving's REST protocol (`POST /v1/models/NAME:predict`), a page at
`/`, `/healthz` and `/metrics`. A newer version that appears in the folder is
taken up while the server runs.
"""

import functools
import pathlib
import signal
import socket
import warnings

import uvicorn
from absl import flags
from PIL import Image

from export.serve.access_log import log_to_stderr
from export.serve.app import create_app
from export.serve.limits import Limits
from export.serve.model.served import ServedModel
from export.serve.uvicorn_connection import PatientConnection
from trainers import cli

_POLL_SECONDS = 2
_BACKLOG = 1024
_DEFAULT = Limits()


def define_flags() -> None:
    """Defines the flags of this program."""
    flags.DEFINE_string("model", None, "The folder `python -m export` wrote.")
    flags.DEFINE_string(
        "name", None, "The model's name; by default the folder's."
    )
    flags.DEFINE_string("host", "127.0.0.1", "Address; 0.0.0.0 for all.")
    flags.DEFINE_integer("port", 8501, "Port; 0 takes a free one.", 0, 65535)
    flags.DEFINE_integer(
        "max_batch", _DEFAULT.max_batch, "Images computed together.", 1, 1024
    )
    flags.DEFINE_float(
        "batch_timeout_ms",
        _DEFAULT.batch_timeout_ms,
        "How long a batch waits for more images.",
        0,
        10_000,
    )
    flags.DEFINE_integer(
        "max_images", _DEFAULT.max_images, "Images in one request.", 1
    )
    flags.DEFINE_float(
        "max_megabytes", _DEFAULT.max_megabytes, "Body of one request.", 0
    )
    flags.DEFINE_float(
        "max_megapixels",
        _DEFAULT.max_megapixels,
        "Encoded images of one request, all together.",
        0,
    )
    flags.DEFINE_integer(
        "max_queue",
        _DEFAULT.max_queue,
        "Requests under way; more are answered with 429.",
        1,
        4096,
    )
    flags.DEFINE_float(
        "timeout_s",
        _DEFAULT.timeout_s,
        "Seconds for headers, for a body, for an answer and for its reading.",
        0.1,
    )


def main(arguments: list[str]) -> int:
    """Serves until SIGTERM or Ctrl-C."""
    cli.take_no_arguments(arguments)
    values = flags.FLAGS
    if not values.model:
        raise ValueError(
            "`--model` must name a folder that `python -m export` wrote. "
            "Received: nothing. Try --model=exported/encapnet."
        )
    folder = pathlib.Path(values.model)
    name = values.name or folder.resolve().name
    if set(name) & set("/:"):
        raise ValueError(
            "`--name` must fit between the slashes of /v1/models/NAME:predict. "
            f"Received: --name={name}. Leave / and : out."
        )
    limits = Limits(**{name: values[name].value for name in vars(_DEFAULT)})
    listener = take(values.host, values.port)
    log_to_stderr()
    # Sizes are checked, and refused with a message, in serving/images.py.
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    model = ServedModel(folder, name, limits)
    model.watch(_POLL_SECONDS)
    _announce(model, listener)
    _serve(create_app(model, limits), listener, limits)
    model.stop()
    return 0


def take(host: str, port: int) -> socket.socket:
    """Takes a port, before a model is loaded, so that a no comes early."""
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


def _announce(model, listener):
    listener.listen(_BACKLOG)
    host, port = listener.getsockname()[:2]
    where = f"[{host}]" if ":" in host else host
    print(
        f"serving {model.name} version {model.current.number} "
        f"at http://{where}:{port}/ (Ctrl-C stops)",
        flush=True,
    )


def _serve(app, listener, limits):
    """Runs uvicorn; a signal lets the requests under way finish."""
    config = uvicorn.Config(
        app,
        http=functools.partial(PatientConnection, patience=limits.timeout_s),
        ws="none",
        backlog=_BACKLOG,
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


if __name__ == "__main__":
    define_flags()
    cli.run(main)
