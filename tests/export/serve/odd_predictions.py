"""Requests that nobody in their right mind would send, to be drawn."""

import base64
import json

from hypothesis import strategies as st
from PIL import Image

from tests.export.serve import served

IMAGE = served.images(1)[0].tolist()
FILE = served.png(served.images(1)[0])
JPEG = served.png(served.images(1)[0], "JPEG")
WEBP = served.png(served.images(1)[0], "WEBP")
EXIF = Image.Exif()
EXIF[0x0112] = 6
SIDEWAYS = served.png(served.images(1)[0], "JPEG", exif=EXIF)

# Of one kind but never the same: hypothesis asks nothing twice.
ARRAYS = st.integers(0, 10**6).map(lambda seed: served.images(1, seed)[0])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["images", "b64", "x"]), inner),
    ),
    max_leaves=5,
)


@st.composite
def damaged(draw, whole):
    """Bytes with some of them changed, cut off or doubled."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(content) - 1))
        content[place] = draw(st.integers(0, 255))
    end = draw(st.integers(0, len(content)))
    return bytes(content[:end]) + bytes(content[end:]) * draw(st.integers(0, 2))


def to_json(content):
    return json.dumps(content).encode()


FILES = st.one_of(
    st.binary(max_size=40),
    damaged(FILE),
    damaged(JPEG),
    damaged(SIDEWAYS),
    damaged(WEBP),
    ARRAYS.map(served.png),
    ARRAYS.map(lambda image: served.png(image, "JPEG")),
).map(lambda file: {"b64": base64.b64encode(file).decode()})
IMAGES = st.one_of(
    ARRAYS.map(lambda image: image.tolist()),
    VALUES,
    st.lists(st.lists(LEAVES, max_size=3), max_size=3),
    LEAVES.map(lambda leaf: [[[leaf] * 3] * 8] * 8),
)
NAMES = st.sampled_from(
    ["serving_default", "serving_float", "serving_bytes", "other", 3, None]
)
CONTENTS = st.fixed_dictionaries(
    {},
    optional={
        "signature_name": NAMES,
        "instances": st.one_of(VALUES, st.lists(IMAGES, max_size=3)),
        "inputs": st.one_of(
            VALUES, st.fixed_dictionaries({"images": st.lists(IMAGES)})
        ),
        "other": VALUES,
    },
)
FILE_REQUESTS = st.lists(FILES, max_size=3).map(
    lambda files: {"signature_name": "serving_bytes", "instances": files}
)
BODIES = st.one_of(
    ARRAYS.map(lambda image: to_json({"instances": [image.tolist()]})),
    st.binary(max_size=60),
    CONTENTS.map(to_json),
    st.lists(IMAGES, max_size=3).map(lambda x: to_json({"instances": x})),
    FILE_REQUESTS.map(to_json),
    damaged(to_json({"instances": [IMAGE]})),
    VALUES.map(to_json),
)
PREDICT = "/v1/models/pets:predict"
ODD_PATHS = st.one_of(
    st.just("/v1/models/pets/versions/1:predict"),
    st.text(max_size=20).map(lambda text: f"/v1/models/pets{text}"),
    st.text(max_size=20).map(lambda text: "/" + text),
    st.integers(0, 2**70).map(lambda n: f"/v1/models/pets/versions/{n}"),
    st.text(max_size=8).map(lambda text: f"/samples/{text}"),
)
# One in ten has an odd path, and perhaps an odd method.
TARGETS = st.tuples(
    st.integers(0, 9),
    st.sampled_from(["POST", "GET", "PUT", "HEAD", "OPTIONS"]),
    ODD_PATHS,
).map(lambda target: target[1:] if target[0] == 9 else ("POST", PREDICT))
