"""Bodies and answers that are packed, and pages of other origins."""

import gzip
import json
import time
import zlib

import numpy as np
import pytest

from export.serve.origins import check_origins
from tests.export.serve import served

IMAGES = served.images(40)
PREDICT = "/v1/models/pets:predict"
BODY = served.to_json({"instances": IMAGES.tolist()})
TAKES_GZIP = [(b"accept-encoding", b"gzip, deflate, br")]
PACKED = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.fixture(scope="module")
def pets(pets_folder):
    return served.Served(pets_folder, max_megabytes=0.1)


def post(pets, body, encoding, path=PREDICT):
    headers = [(b"content-encoding", encoding.encode())]
    return pets.ask("POST", path, body, headers=headers)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity", "GZip "])
def test_a_packed_body(pets, encoding):
    pack = PACKED.get(encoding.strip().lower(), bytes)
    answer = post(pets, pack(BODY), encoding)
    expected = served.offline(pets.folder / "1", images=IMAGES)
    served.assert_answers(answer.json["predictions"], expected)


def test_a_packed_image_file(pets):
    file = served.png(IMAGES[0])
    plain = pets.ask("POST", "/seen", file)
    assert plain.status == 200
    assert post(pets, gzip.compress(file), "gzip", "/seen").body == plain.body


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize(
    "damage",
    [
        lambda body: b"",
        lambda body: body[:-1],
        lambda body: body[: len(body) // 2],
        lambda body: body + b"x",
        lambda body: body + body,
        lambda body: body[:20] + b"x" + body[20:],
        lambda body: BODY,
    ],
    ids=["empty", "cut", "half", "more", "two", "damaged", "plain"],
)
def test_a_body_that_does_not_unpack(pets, encoding, damage):
    answer = post(pets, damage(PACKED[encoding](BODY)), encoding)
    assert answer.status == 400
    assert f"must be one whole stream of {encoding}. Rec" in answer.error


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "x"])
def test_a_body_packed_in_another_way(pets, encoding):
    answer = post(pets, gzip.compress(BODY), encoding)
    assert answer.status == 415
    assert f"gzip or deflate. Received: {encoding}." in answer.error


@pytest.mark.parametrize("encoding", PACKED)
def test_a_body_may_not_unpack_to_more_than_a_plain_one(pets, encoding):
    pack = PACKED[encoding]
    assert post(pets, pack(b" " * 100_000), encoding).status == 400
    answer = post(pets, pack(b" " * 100_001), encoding)
    assert answer.status == 413
    assert "A body may have 0.1 MB. Received: more." in answer.error


def test_a_bomb_is_not_unpacked(pets):
    """Of 80 MB of zeros, which gzip makes a thousandth of."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    pieces = [packer.compress(bytes(1_000_000)) for _ in range(80)]
    bomb = b"".join([*pieces, packer.flush()])
    assert len(bomb) < 100_000
    start = time.process_time()
    assert post(pets, bomb, "gzip").status == 413
    assert time.process_time() - start < 0.1


@pytest.mark.parametrize("accepts", ["gzip", "br;q=1, GZIP;q=0.5", "*"])
def test_a_long_answer_is_packed_for_who_takes_it(pets, accepts):
    plain = pets.ask("POST", PREDICT, BODY)
    assert "content-encoding" not in plain.headers
    headers = [(b"accept-encoding", accepts.encode())]
    packed = pets.ask("POST", PREDICT, BODY, headers=headers)
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-length"] == str(len(packed.body))
    assert len(packed.body) < 0.6 * len(plain.body)
    (rows,) = json.loads(gzip.decompress(packed.body)).values()
    for row, other in zip(rows, plain.json["predictions"], strict=True):
        np.testing.assert_allclose(row["scores"], other["scores"], atol=1e-6)
    for answer in (plain, packed):
        assert answer.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "accepts", ["", "identity", "br", "gzip;q=0", "gzip; q=0.000, *", "x-gzip"]
)
def test_no_answer_is_packed_for_who_does_not_take_it(pets, accepts):
    headers = [(b"accept-encoding", accepts.encode())]
    answer = pets.ask("POST", PREDICT, BODY, headers=headers)
    assert len(answer.json["predictions"]) == len(IMAGES)


def test_what_would_not_pay_is_not_packed(pets):
    short = served.to_json({"instances": IMAGES[:1].tolist()})
    answer = pets.ask("POST", PREDICT, short, headers=TAKES_GZIP)
    assert len(answer.json["predictions"]) == 1
    rows = IMAGES.tolist()
    images = served.tensor("images", "UINT8", IMAGES.shape, rows)
    asked = {"inputs": [images], "parameters": {"binary_data_output": True}}
    path = "/v2/models/pets/infer"
    answer = pets.ask("POST", path, asked, headers=TAKES_GZIP)
    assert answer.status == 200
    assert "content-encoding" not in answer.headers


ORIGIN = "https://example.org"


def asked_by(origin, **more):
    headers = {"origin": origin} | more
    return [
        (k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()
    ]


def preflight(pets, origin, wants="content-type"):
    headers = asked_by(
        origin,
        access_control_request_method="POST",
        access_control_request_headers=wants,
    )
    return pets.ask("OPTIONS", PREDICT, headers=headers)


def allowed(answer):
    return answer.headers.get("access-control-allow-origin")


def test_other_origins_are_not_let_in_unasked(pets):
    assert preflight(pets, ORIGIN).status == 400
    answer = pets.get("/v1/models/pets", headers=asked_by(ORIGIN))
    assert answer.status == 200
    assert allowed(answer) is None


@pytest.mark.parametrize(
    ("origins", "told"), [([ORIGIN, "http://x:1"], ORIGIN), (["*"], "*")]
)
def test_origins_that_are_let_in(pets_folder, origins, told):
    pets = served.Served(pets_folder, origins=origins)
    answer = preflight(
        pets, ORIGIN, "content-type, inference-header-content-length"
    )
    assert answer.status == 200
    assert allowed(answer) == told
    assert "POST" in answer.headers["access-control-allow-methods"]
    headers = asked_by(ORIGIN)
    answer = pets.ask("POST", PREDICT, BODY, headers=headers)
    assert (answer.status, allowed(answer)) == (200, told)
    exposed = answer.headers["access-control-expose-headers"]
    assert exposed == "Inference-Header-Content-Length"
    refused = pets.ask("POST", PREDICT, b"", headers=headers)
    assert (refused.status, allowed(refused)) == (400, told)


def test_other_origins_stay_out(pets_folder):
    pets = served.Served(pets_folder, origins=[ORIGIN])
    for origin in ("https://example.com", "http://example.org", "null"):
        answer = preflight(pets, origin)
        assert (answer.status, allowed(answer)) == (400, None)
        answer = pets.get("/v1/models/pets", headers=asked_by(origin))
        assert allowed(answer) is None
    assert pets.get("/v1/models/pets").status == 200


def test_preflights_are_logged_and_counted(pets_folder):
    pets = served.Served(pets_folder, origins=["*"])
    preflight(pets, ORIGIN)
    line = 'encapnet_requests_total{path="other",status="200"} 1.0'
    assert line in pets.get("/metrics").body.decode().splitlines()


def test_what_is_an_origin():
    good = (
        "*", "https://example.org", "http://localhost:3000", "http://[::1]:80",
        "chrome-extension://abcdef",
    )  # fmt: skip
    check_origins(good)
    for text in (
        "example.org", "https://example.org/", "https://example.org/x", "",
        "https://", "https://a.org:x", "https://a@b.org", "HTTPS://a.org",
        "https://A.org", "https://a.org?x", "http://[::1", "null", "**",
        "https://a.org:99999", "//a.org",
    ):  # fmt: skip
        with pytest.raises(ValueError, match="`--cors` must be .* or origins"):
            check_origins([text])
