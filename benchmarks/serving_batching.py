"""Measures what batching brings to a server.

Measured: answers per second of `python -m export.serve` to 32 clients, each of
which sends one PNG, waits for the answer and sends the next, with `--max_batch`
as it is and with `--max_batch=1`. Both servers run all the time and take turns,
so that a slow moment of the machine hits both; the medians are compared. The
clients are one process on the same machine. Every answer is checked against
the SavedModel's own.

Run: python -m benchmarks.serving_batching [--seconds 4] [--repeats 5]
"""

import argparse
import asyncio
import json
import pathlib
import tempfile
import time

import numpy as np

from benchmarks import served
from export.serve.limits import Limits
from trainers.progress import ShareProgress

VARIANT = "encapnet_small"
CLIENTS = 32
BATCH = Limits().max_batch


async def turn(server, requests, reference, seconds):
    """Lets the clients ask; returns answers per second, and CPU ms of each."""
    answers, used = [], server.cpu_seconds()
    end = time.perf_counter() + seconds

    async def client(place):
        connection = served.Connection(server.port)
        while time.perf_counter() < end:
            answers.append((place, await connection.ask(requests[place])))
            place = (place + CLIENTS) % len(requests)
        connection.close()

    start = time.perf_counter()
    await asyncio.gather(*(client(place) for place in range(CLIENTS)))
    rate = len(answers) / (time.perf_counter() - start)
    cost = 1000 * (server.cpu_seconds() - used) / len(answers)
    for place, (status, body) in answers:
        (prediction,) = json.loads(body)["predictions"]
        if status != 200 or not reference.agrees(place, prediction):
            raise RuntimeError(f"A wrong answer: {status} {body[:200]}")
    return rate, cost


def main():
    """Prints the rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / VARIANT
        reference = served.reference(served.export_untrained(VARIANT, folder))
        requests = [
            served.post(VARIANT, served.encoded([file]))
            for file in reference.files
        ]
        with (
            served.serving(folder) as batched,
            served.serving(folder, "--max_batch=1") as single,
        ):
            progress = ShareProgress("turns")
            turns = [
                [
                    asyncio.run(
                        turn(server, requests, reference, arguments.seconds)
                    )
                    for server in (batched, single)
                ]
                for _ in progress.each(range(arguments.repeats + 1))
            ]
    # The first turn warms up.
    (many, cheap), (one, dear) = np.median(turns[1:], axis=0)
    print(f"{VARIANT}, {CLIENTS} clients with one PNG each, every answer right")
    for batch, rate, cost in ((BATCH, many, cheap), (1, one, dear)):
        print(
            f"--max_batch={batch:<3} {rate:6.0f} answers per second, "
            f"{cost:.2f} ms of processor time each"
        )
    print(f"ratio           {many / one:6.2f}")


if __name__ == "__main__":
    main()
