"""Sets 32 clients of every kind on a server, and checks every answer.

Good requests (rows, columns, PNGs, several at once), slow ones, malformed and
oversized ones, connections that are dropped or stall. Checked: the server
stays up, every good request gets the SavedModel's own answer, every bad one
the status it deserves, and the server's memory after warm-up stays within 5%.

Run: python -m benchmarks.serving_load [--minutes 10] [--variant encapnet_small]
"""

import argparse
import asyncio
import collections
import json
import pathlib
import random
import statistics
import struct
import sys
import tempfile
import time
import zlib

from benchmarks import served
from trainers.progress import ShareProgress

CLIENTS = 32
GROWTH = 0.05
# Shares of the requests.
KINDS = {
    "rows": 20, "png": 35, "pngs": 10, "floats": 8, "bad": 12, "slow": 4,
    "oversized": 1, "stalled": 2, "dropped": 3, "other paths": 5,
}  # fmt: skip
PATHS = ("/", "/page.js", "/page.json", "/healthz", "/metrics",
         "/v1/models/{}", "/v1/models/{}/metadata")  # fmt: skip


class Client:
    """One of the clients.

    Args:
        load: What all clients share.
        seed: Of its choices.
    """

    def __init__(self, load: "Load", seed: int):
        self._load = load
        self._random = random.Random(seed)
        self._connection = served.Connection(load.port)

    async def work(self) -> None:
        """Asks until the time is up."""
        while time.monotonic() < self._load.end:
            (kind,) = self._random.choices(list(KINDS), KINDS.values())
            try:
                await getattr(self, "_" + kind.replace(" ", "_"))()
                self._load.done[kind] += 1
            except (OSError, EOFError, ValueError, KeyError) as problem:
                self._load.problems.append(f"{kind}: {problem!r}")
                self._connection.close()
        self._connection.close()

    async def _rows(self):
        await self._ask_rows(self._load.rows, 1)

    async def _png(self):
        await self._ask_rows(self._load.pngs, 1)

    async def _pngs(self):
        place = self._random.randrange(len(self._load.reference.files) - 5)
        files = self._load.reference.files[place : place + 5]
        request = served.post(self._load.name, served.encoded(files))
        answer = await self._connection.ask(request)
        self._load.check(answer, place, len(files))

    async def _floats(self):
        place = self._random.randrange(len(self._load.reference.images))
        status, body = await self._connection.ask(self._load.floats[place])
        outputs = json.loads(body)["outputs"]
        row = {name: column[0] for name, column in outputs.items()}
        body = json.dumps({"predictions": [row]})
        self._load.check((status, body), place, 1)

    async def _bad(self):
        expected, request = self._random.choice(self._load.bad)
        status, body = await self._connection.ask(request)
        if status != expected or "error" not in json.loads(body):
            raise ValueError(f"{status} for {request[-60:]}: {body[:200]}")

    async def _slow(self):
        place = self._random.randrange(len(self._load.pngs))
        request = self._load.pngs[place]
        _, writer = await self._connection.open()
        for start in range(0, len(request), len(request) // 5 + 1):
            writer.write(request[start : start + len(request) // 5 + 1])
            await asyncio.sleep(0.2)
        self._load.check(await self._connection.answer(), place, 1)

    async def _oversized(self):
        body = b"[" * 11_000_000
        answer = await self._connection.ask(served.post(self._load.name, body))
        if answer[0] != 413:
            raise ValueError(f"{answer[0]} for a body of {len(body)} bytes")

    async def _stalled(self):
        _, writer = await self._connection.open()
        writer.write(self._load.pngs[0][:-20])
        await asyncio.sleep(1)
        self._connection.close()

    async def _dropped(self):
        _, writer = await self._connection.open()
        writer.write(self._load.pngs[0])
        await writer.drain()
        self._connection.close()

    async def _other_paths(self):
        path = self._random.choice(PATHS).format(self._load.name)
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        status, _ = await self._connection.ask(request)
        if status != 200:
            raise ValueError(f"{status} for {path}")

    async def _ask_rows(self, requests, count):
        place = self._random.randrange(len(requests))
        answer = await self._connection.ask(requests[place])
        self._load.check(answer, place, count)


class Load:
    """What the clients send, and what came of it.

    Args:
        server: The server.
        name: The model's name.
        reference: Images and their right answers.
        seconds: How long to go on.
    """

    def __init__(self, server, name, reference, seconds):
        self.port, self.name, self.reference = server.port, name, reference
        self.end = time.monotonic() + seconds
        self.done = collections.Counter()
        self.problems: list[str] = []
        self.megabytes: list[float] = []
        images = [image.tolist() for image in reference.images]
        self.rows = [served.post(name, {"instances": [x]}) for x in images]
        self.pngs = [
            served.post(name, served.encoded([file]))
            for file in reference.files
        ]
        self.floats = [
            served.post(
                name,
                {"signature_name": "serving_float", "inputs": [x.tolist()]},
            )
            for x in reference.images.astype("float32") / 255
        ]
        self.bad = [
            (status, served.post(name, body))
            for status, body in bad_bodies(images[0], reference.files[0])
        ]
        self._server, self._seconds = server, seconds

    async def run(self) -> None:
        """Runs all clients to the end, watching the server's memory."""
        watch = asyncio.create_task(self._watch())
        await asyncio.gather(
            *(Client(self, seed).work() for seed in range(CLIENTS))
        )
        await watch

    def check(self, answer: tuple[int, bytes], place: int, count: int) -> None:
        """Raises if the answer is not right."""
        status, body = answer
        rows = json.loads(body).get("predictions") or []
        if (
            status != 200
            or len(rows) != count
            or not all(
                self.reference.agrees(place + n, row)
                for n, row in enumerate(rows)
            )
        ):
            raise ValueError(f"a wrong answer: {status} {body[:200]}")

    def growth(self) -> float:
        """Memory of the last quarter after warm-up against that of the first.

        The first quarter of the time, and at least ten seconds, is warm-up.
        """
        after = self.megabytes[max(len(self.megabytes) // 4, 10) :]
        quarter = max(1, len(after) // 4)
        first = statistics.median(after[:quarter])
        return statistics.median(after[-quarter:]) / first - 1

    async def _watch(self):
        progress = ShareProgress("load")
        while time.monotonic() < self.end:
            if self._server.process.poll() is not None:
                self.problems.append("the server ended")
                return
            self.megabytes.append(self._server.megabytes())
            progress(1 - (self.end - time.monotonic()) / self._seconds)
            await asyncio.sleep(1)
        progress.clear()


def bad_bodies(image, file):
    """Yields bodies and the status that each deserves."""
    noted = {"signature_name": "serving_bytes"}
    yield 400, b""
    yield 400, b'{"instances": [[[[1, 2'
    yield 400, {"instances": []}
    yield 400, {"instances": [image[1:]]}
    yield 400, {"instances": [[[[0.5, 1, 2]] * 32] * 32]}
    yield 400, {"instances": [[[[256, 1, 2]] * 32] * 32]}
    yield 400, {"instances": [image, image[:1]]}
    yield 400, {"signature_name": "none", "instances": [image]}
    yield 400, served.encoded([file[:60]])
    yield 400, served.encoded([b"no image"])
    yield 400, noted | {"instances": [{"b64": "*"}]}
    yield 413, served.encoded([bomb(50_000, 50_000)])
    yield 413, served.encoded([bomb(15_000_000, 1)])


def bomb(width, height):
    """A PNG that says it is large."""

    def chunk(kind, content):
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*pair)
        for pair in (
            (b"IHDR", header),
            (b"IDAT", zlib.compress(bytes(100))),
            (b"IEND", b""),
        )
    )


def load_server(folder: pathlib.Path, seconds: float) -> Load:
    """Serves a model folder under load."""
    reference = served.reference(folder / "1")
    with served.serving(folder) as server:
        load = Load(server, folder.name, reference, seconds)
        asyncio.run(load.run())
    if server.process.returncode != 0:
        load.problems.append(f"exit code {server.process.returncode}")
    return load


def main() -> int:
    """Prints what was done and what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--variant", default="encapnet_small")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder) / arguments.variant
        served.export_untrained(arguments.variant, folder)
        load = load_server(folder, 60 * arguments.minutes)
    total = sum(load.done.values())
    print(f"{arguments.variant}, {CLIENTS} clients, {arguments.minutes} min")
    for kind, count in load.done.most_common():
        print(f"  {kind:12} {count:8,}")
    print(f"  {'all':12} {total:8,}")
    print(
        f"memory {load.megabytes[0]:.0f} MB at the start, "
        f"{load.megabytes[-1]:.0f} MB at the end, "
        f"{load.growth():+.1%} after warm-up"
    )
    print(f"{len(load.problems)} wrong answers or failures")
    for problem in load.problems[:10]:
        print(f"  {problem}")
    return 1 if load.problems or load.growth() > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
