"""A server in a process of its own, and cheap connections to it."""

import asyncio
import base64
import contextlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from benchmarks.inference import untrained
from export.version.folders import write_version


def export_untrained(variant: str, folder: pathlib.Path) -> pathlib.Path:
    """Writes the next version of an untrained variant."""
    _, servable = untrained(variant, folder)
    return write_version(folder, lambda path: servable.save(str(path)))


class Reference(NamedTuple):
    """Images and what the SavedModel itself says of them.

    Attributes:
        images: uint8 `(N, H, W, C)`.
        files: The same as PNG.
        outputs: Outputs by name.
    """

    images: np.ndarray
    files: list[bytes]
    outputs: dict[str, np.ndarray]

    def agrees(self, place: int, prediction: dict) -> bool:
        """Whether an answer is that of the image at `place`."""
        expected = {name: x[place] for name, x in self.outputs.items()}
        return (
            prediction["class_ids"] == expected["class_ids"]
            and prediction["class_names"] == expected["class_names"].decode()
            and np.allclose(prediction["scores"], expected["scores"], 0, 1e-5)
            and np.allclose(
                prediction["capsules"], expected["capsules"], 0, 1e-5
            )
        )


def reference(version: pathlib.Path, count: int = 64) -> Reference:
    """Asks the SavedModel, without a server."""
    loaded = tf.saved_model.load(str(version))
    signature = loaded.signatures["serving_default"]
    (spec,) = signature.structured_input_signature[1].values()
    shape = (count, *spec.shape[1:])
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    outputs = signature(images=tf.constant(images))
    return Reference(
        images,
        [tf.io.encode_png(image).numpy() for image in images],
        {name: value.numpy() for name, value in outputs.items()},
    )


class Server(NamedTuple):
    """A running server.

    Attributes:
        process: Its process.
        port: Where it listens.
    """

    process: subprocess.Popen
    port: int

    def megabytes(self) -> float:
        """Returns its resident memory."""
        text = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def cpu_seconds(self) -> float:
        """Returns the processor time it has used."""
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def serving(folder: pathlib.Path, *flags: str) -> Iterator[Server]:
    """Runs `python -m export.serve` on a folder."""
    log = folder.parent / "serve.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "export.serve", f"--model={folder}",
             "--port=0", *flags],
            stdout=subprocess.PIPE, stderr=stderr, text=True,
        )  # fmt: skip
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"The server did not start: {log.read_text()}")
        yield Server(process, int(line.split(":")[2].split("/")[0]))
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


class Connection:
    """A connection that stays open from request to request.

    Args:
        port: Of a server on this machine.
    """

    def __init__(self, port: int):
        self._port = port
        self._streams = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Sends a request as it is; returns status and body."""
        reader, writer = await self.open()
        writer.write(request)
        return await self.answer()

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects if need be."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                "127.0.0.1", self._port
            )
        return self._streams

    async def answer(self) -> tuple[int, bytes]:
        """Reads an answer; closes the connection if that is what it says."""
        reader, _ = self._streams
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head.split(b" ", 2)[1])
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if b"connection: close" in head:
            self.close()
        return status, body

    def close(self) -> None:
        """Drops the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def post(name: str, content: dict | bytes, length: int | None = None) -> bytes:
    """Returns the bytes of a request for predictions."""
    body = (
        content if isinstance(content, bytes) else json.dumps(content).encode()
    )
    length = len(body) if length is None else length
    return (
        f"POST /v1/models/{name}:predict HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode() + body


def encoded(files: list[bytes]) -> dict:
    """Returns the JSON of a request with encoded images."""
    values = [{"b64": base64.b64encode(file).decode()} for file in files]
    return {"signature_name": "serving_bytes", "instances": values}
