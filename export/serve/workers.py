"""From the body of a request to the body of its answer, off the event loop."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

from export.serve.limits import Limits, Refusal
from export.serve.metrics import Metrics
from export.serve.model.loaded_version import LoadedVersion
from export.serve.rest.protocol import read_request, write_answer


class Workers:
    """Answers requests for predictions in threads.

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

    def take_place(self) -> None:
        """Counts a request in.

        Raises:
            Refusal: There are too many.
        """
        if self._places == 0:
            raise Refusal(
                429,
                "The queue is full: at most "
                f"{self._limits.max_queue} requests at a time. Try again.",
            )
        self._places -= 1
        self._metrics.queue.inc()

    def leave_place(self) -> None:
        """Counts a request out."""
        self._places += 1
        self._metrics.queue.dec()

    async def predict(self, version: LoadedVersion, body: bytes) -> bytes:
        """Returns the answer's body; keeps the place until it is computed.

        Raises:
            Refusal: The request is at fault, or it takes too long.
        """
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(
            self._threads, self._answer, version, body
        )
        future.add_done_callback(lambda _: self.leave_place())
        done, _ = await asyncio.wait([future], timeout=self._limits.timeout_s)
        if not done:
            future.add_done_callback(lambda ended: ended.exception())
            raise Refusal(
                504,
                "The answer takes longer than "
                f"{self._limits.timeout_s:g} seconds.",
            )
        return future.result()

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

    def _check_size(self, inputs):
        for name, array in inputs.items():
            if array.ndim and len(array) > self._limits.max_images:
                raise Refusal(
                    413,
                    f"`{name}` takes at most {self._limits.max_images} items "
                    f"in one request. Received: {len(array)}.",
                )
