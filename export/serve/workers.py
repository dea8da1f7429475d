"""From the body of a request to the body of its answer, off the event loop."""

import asyncio
import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from fastapi import Request
from PIL import Image

from export.serve.limits import Limits, Refusal
from export.serve.metrics import Metrics
from export.serve.model.loaded_version import LoadedVersion
from export.serve.request_body import read_body
from export.serve.rest.protocol import read_request, write_answer


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

    async def predict(self, request: Request, version: LoadedVersion) -> bytes:
        """Returns the answer's body.

        Raises:
            Refusal: The request is at fault, or it takes too long.
        """
        return await self._run(request, version, self._answer)

    async def seen(self, request: Request, version: LoadedVersion) -> bytes:
        """Returns the image that the network is given, for an image file.

        Raises:
            Refusal: It is not an image file, or the model takes none.
        """
        return await self._run(request, version, self._see)

    async def _run(self, request, version, work):
        """Does the work in a thread; keeps its place until that has ended."""
        self._take_place()
        try:
            body = await read_body(request, self._limits)
        except BaseException:
            self._leave_place()
            raise
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, work, version, body)
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

    def _answer(self, version, body):
        with self._preparing:
            specs = {k: s.inputs for k, s in version.signatures.items()}
            request = read_request(body, specs)
            self._check_size(request.inputs)
            signature = version.signatures[request.signature_name]
            prepared = signature.prepare(request.inputs)
        outputs = signature.run(prepared)
        if outputs.batch is not None:
            self._metrics.batch.observe(outputs.batch)
        return write_answer(outputs.arrays, request.by_rows)

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
