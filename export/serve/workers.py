"""From the body of a request to the body of its answer, off the event loop."""

import asyncio
import functools
import io
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from fastapi import Request, Response
from PIL import Image

from export.serve.limits import Limits, Refusal
from export.serve.metrics import Metrics
from export.serve.model.loaded_version import LoadedVersion
from export.serve.request_body import read_body, unpacked
from export.serve.rest.answers import Answer, response_of
from export.serve.rest.tf_serving.protocol import read_request


class Asked(Protocol):
    """What a request asks for, in whatever protocol.

    Attributes:
        signature_name: The signature to run.
        inputs: Its arrays by name.
    """

    signature_name: str
    inputs: dict[str, np.ndarray]

    def answer(self, outputs: Mapping[str, np.ndarray]) -> Answer:
        """Returns what the client is told."""


Read = Callable[[bytes, Mapping[str, Any]], Asked]


class Workers:
    """Threads that answer requests for predictions.

    A request waits in a thread of its own while TensorFlow collects a batch,
    so there are as many threads as requests may be under way. What needs much
    memory (parsing, decoding) is done by few at a time.

    Args:
        limits: Of the requests.
        metrics: Where batches and queue are counted.
    """

    def __init__(self, limits: Limits, metrics: Metrics):
        self._limits = limits
        self._metrics = metrics
        self._places = limits.max_queue
        self._threads = ThreadPoolExecutor(limits.max_queue, "predict")
        self._preparing = threading.Semaphore(os.cpu_count() or 1)

    async def predict(
        self, request: Request, version: LoadedVersion
    ) -> Response:
        """Answers a request of TensorFlow Serving's protocol.

        Raises:
            Refusal: The request is at fault, or it takes too long.
        """
        return await self.answer(request, version, read_request)

    async def answer(
        self, request: Request, version: LoadedVersion, read: Read
    ) -> Response:
        """Answers a request for predictions.

        Args:
            request: The request.
            version: Computes the answer.
            read: Reads the body, given what each signature takes.

        Raises:
            Refusal: The request is at fault, or it takes too long.
        """
        accepts = request.headers.get("accept-encoding", "")
        work = functools.partial(self._answer, version, read, accepts)
        return await self._run(request, work)

    async def seen(self, request: Request, version: LoadedVersion) -> bytes:
        """Returns the image that the network is given, for an image file.

        Raises:
            Refusal: It is not an image file, or the model takes none.
        """
        return await self._run(request, functools.partial(self._see, version))

    async def _run(self, request, work):
        """Does the work in a thread; keeps its place until that has ended."""
        self._take_place()
        try:
            body = await read_body(request, self._limits)
        except BaseException:
            self._leave_place()
            raise
        loop = asyncio.get_running_loop()
        encoding = request.headers.get("content-encoding", "")
        future = loop.run_in_executor(
            self._threads, self._unpack_for, work, body, encoding
        )
        future.add_done_callback(lambda _: self._leave_place())
        done, _ = await asyncio.wait([future], timeout=self._limits.timeout_s)
        if not done:
            future.add_done_callback(lambda ended: ended.exception())
            raise Refusal(
                504,
                "The answer takes longer than "
                f"{self._limits.timeout_s:g} seconds.",
            )
        return future.result()

    def _take_place(self):
        if self._places == 0:
            raise Refusal(
                429,
                "The queue is full: at most "
                f"{self._limits.max_queue} requests at a time. Try again.",
            )
        self._places -= 1
        self._metrics.queue.inc()

    def _leave_place(self):
        self._places += 1
        self._metrics.queue.dec()

    def close(self) -> None:
        """Lets the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _unpack_for(self, work, body, encoding):
        with self._preparing:
            body = unpacked(body, encoding, self._limits)
        return work(body)

    def _answer(self, version, read, accepts, body):
        with self._preparing:
            specs = {k: s.inputs for k, s in version.signatures.items()}
            asked = read(body, specs)
            self._check_size(asked.inputs)
            signature = version.signatures[asked.signature_name]
            prepared = signature.prepare(asked.inputs)
        outputs = signature.run(prepared)
        if outputs.batch is not None:
            self._metrics.batch.observe(outputs.batch)
        return response_of(asked.answer(outputs.arrays), accepts)

    def _see(self, version, body):
        with self._preparing:
            image = version.decoded(body)
        if image.shape[-1] == 1:
            image = image[..., 0]
        file = io.BytesIO()
        Image.fromarray(image).save(file, "PNG")
        return file.getvalue()

    def _check_size(self, inputs):
        for name, array in inputs.items():
            if array.ndim and len(array) > self._limits.max_images:
                raise Refusal(
                    413,
                    f"`{name}` takes at most {self._limits.max_images} items "
                    f"in one request. Received: {len(array)}.",
                )
