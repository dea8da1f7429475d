"""What the server refuses, and that it says so."""

import asyncio
import struct
import time
import zlib

import pytest

from benchmarks.serving_load import bomb
from export.serve import workers
from tests.export.serve import served


@pytest.fixture(scope="module")
def pets(pets_folder):
    return served.Served(
        pets_folder,
        max_images=4,
        max_megabytes=0.02,
        max_megapixels=0.01,
        max_queue=2,
        timeout_s=0.3,
    )


PREDICT = "/v1/models/pets:predict"


def encoded(*files):
    return {
        "signature_name": "serving_bytes",
        "instances": [served.b64(file) for file in files],
    }


def test_too_many_images(pets):
    answer = pets.predict({"instances": served.images(5).tolist()})
    assert answer.status == 413
    assert "`images` takes at most 4 items" in answer.error
    assert "Received: 5" in answer.error


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"999999999")]])
def test_too_long_a_body(pets, headers):
    answer = pets.ask("POST", PREDICT, b" " * 20_001, headers=headers)
    assert answer.status == 413
    assert "A body may have 0.02 MB. Received: more." in answer.error


def test_a_body_that_says_it_is_too_long_is_not_read(pets):
    async def receive():
        raise AssertionError("read")

    headers = [(b"content-length", b"20001")]
    answer = pets.ask("POST", PREDICT, headers=headers, receive=receive)
    assert answer.status == 413


@pytest.mark.parametrize(
    "size", [(101, 100), (50_000, 50_000), (2**31 - 1, 2**31 - 1), (9000, 1)]
)
def test_images_that_unpack_to_too_much(pets, size):
    start = time.process_time()
    answer = pets.predict(encoded(bomb(*size)))
    assert answer.status == 413
    assert "`image_bytes` may unpack to 0.01 megapixels" in answer.error
    assert time.process_time() - start < 0.5


def test_images_that_unpack_to_too_much_together(pets):
    file = served.png(served.images(1, shape=(60, 60, 3))[0])
    assert pets.predict(encoded(file)).status == 200
    assert pets.predict(encoded(*[bomb(60, 60)] * 3)).status == 413


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"no image",
        served.png(served.images(1)[0])[:60],
        served.png(served.images(1)[0], "TIFF"),
        served.png(served.images(1)[0], "GIF")[:20],
        served.png(served.images(1)[0], "BMP")[:60],
        served.png(served.images(1)[0], "WEBP")[:40],
        b"\xff\xd8\xff\xe0" + bytes(50),
        bomb(8, 8),
        bomb(0, 8),
    ],
    ids=[
        "empty",
        "text",
        "cut",
        "tiff",
        "cut gif",
        "cut bmp",
        "cut webp",
        "jpeg",
        "no pixels",
        "no size",
    ],
)
def test_what_is_no_image(pets, file):
    answer = pets.predict(encoded(served.png(served.images(1)[0]), file))
    assert answer.status == 400
    assert "`image_bytes` takes images as PNG, JPEG, GIF" in answer.error


async def never():
    await asyncio.Event().wait()


def test_a_body_that_does_not_come(pets):
    pieces = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive():
        return pieces.pop() if pieces else await never()

    answer = pets.ask("POST", PREDICT, receive=receive)
    assert answer.status == 408
    assert "must arrive within 0.3 seconds. Received: 1 b" in answer.error


def test_a_client_that_leaves(pets, caplog):
    async def receive():
        return {"type": "http.disconnect"}

    with caplog.at_level("INFO", "export.serve"):
        assert pets.ask("POST", PREDICT, receive=receive) is None
    assert [record.status for record in caplog.records] == [499]


def test_a_full_queue(pets):
    async def fill():
        waiting = [
            asyncio.create_task(pets.request("POST", PREDICT, receive=never))
            for _ in range(2)
        ]
        await asyncio.sleep(0.05)
        third = await pets.request("POST", PREDICT)
        return third, await asyncio.gather(*waiting)

    refused, waited = asyncio.run(fill())
    assert refused.status == 429
    assert "at most 2 requests at a time. Try again." in refused.error
    assert [answer.status for answer in waited] == [408, 408]
    answer = pets.predict({"instances": served.images(1).tolist()})
    assert answer.status == 200


def test_an_answer_that_takes_too_long_keeps_its_place(pets, monkeypatch):
    def slow(body, signatures):
        time.sleep(0.6)
        raise AssertionError("nobody hears this")

    monkeypatch.setattr(workers, "read_request", slow)
    queue = "encapnet_queue {}".format

    async def ask():
        answer = await pets.request("POST", PREDICT)
        during = await pets.request("GET", "/metrics")
        await asyncio.sleep(0.5)
        return answer, during, await pets.request("GET", "/metrics")

    answer, during, after = asyncio.run(ask())
    assert answer.status == 504
    assert "takes longer than 0.3 seconds" in answer.error
    assert queue(1.0) in during.body.decode()
    assert queue(0.0) in after.body.decode()


def test_the_unforeseen_shows_no_traceback(pets, monkeypatch, caplog):
    def fail(body, signatures):
        raise RuntimeError("/a/path/of/the/machine")

    monkeypatch.setattr(workers, "read_request", fail)
    answer = pets.predict({"instances": []})
    assert answer.status == 500
    assert answer.error == "Internal error; the server's log says more."
    assert "/a/path/of/the/machine" in caplog.text


def test_chunks_of_a_png_do_not_fool_the_check(pets):
    """A large text chunk before the pixels is not unpacked either."""
    text = b"tEXt\0" + zlib.compress(bytes(10**6))
    chunk = struct.pack(">I", len(text)) + b"zTXt" + text
    chunk += struct.pack(">I", zlib.crc32(b"zTXt" + text))
    file = served.png(served.images(1)[0])
    answer = pets.predict(encoded(file[:33] + chunk + file[33:]))
    assert answer.status in (200, 400)
