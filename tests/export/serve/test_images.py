"""Image files of every kind, by REST and by the page: the same answer."""

import io

import numpy as np
import pytest
from PIL import Image

from encapnet_tf.data.images.pillow import read_image
from tests.export.serve import served

# How a camera may store a picture, and what lays its pixels so.
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
UPRIGHT = served.images(1, seed=3)[0]


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    return served.Served(folder)


def sideways(orientation, kind):
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(UPRIGHT).transpose(TURNS[orientation])
    options = {"quality": 100, "subsampling": 0} if kind == "JPEG" else {}
    return served.png(stored, kind, exif=exif, **options)


def rest(pets, file):
    answer = pets.predict(
        {"signature_name": "serving_bytes", "instances": [served.b64(file)]}
    )
    assert answer.status == 200, answer
    return answer.json["predictions"]


def seen(pets, file):
    answer = pets.ask("POST", "/seen", file)
    assert answer.headers["content-type"] == "image/png"
    return np.asarray(Image.open(io.BytesIO(answer.body)))


@pytest.mark.parametrize("orientation", TURNS)
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_sideways_photo_is_answered_as_predict_answers_it(
    pets, orientation, kind
):
    file = sideways(orientation, kind)
    pixels = read_image(io.BytesIO(file), served.SHAPE[:2])
    assert abs(pixels.astype(int) - UPRIGHT).mean() < 6
    expected = served.offline(pets.folder / "1", images=pixels[None])
    served.assert_answers(rest(pets, file), expected)
    np.testing.assert_array_equal(seen(pets, file), pixels)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "BMP"])
@pytest.mark.parametrize("size", [(8, 8), (21, 13)])
def test_other_formats_are_answered_as_predict_answers_them(pets, kind, size):
    image = Image.fromarray(served.images(1, seed=4, shape=(*size, 3))[0])
    options = {"lossless": True} if kind == "WEBP" else {}
    file = served.png(image, kind, **options)
    upright = Image.open(io.BytesIO(file)).convert("RGB")
    (expected,) = rest(pets, served.png(upright))
    assert rest(pets, file) == [expected]
    np.testing.assert_array_equal(
        seen(pets, file), seen(pets, served.png(upright))
    )


def test_of_an_animation_the_first_frame_is_taken(pets):
    frames = [Image.fromarray(image) for image in served.images(3)]
    file = served.png(
        frames[0], "WEBP", save_all=True, append_images=frames[1:],
        lossless=True,
    )  # fmt: skip
    assert rest(pets, file) == rest(pets, served.png(frames[0]))


def test_seen_refuses_what_predict_refuses(pets):
    answer = pets.ask("POST", "/seen", b"no image")
    assert answer.status == 400
    assert "takes images as PNG, JPEG, GIF, WebP or BMP" in answer.error


BOUNDARY = b"--------------------------d74496d66958873e"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (served.png(UPRIGHT), "an image file"),
        (served.png(UPRIGHT, "JPEG"), "an image file"),
        (served.png(UPRIGHT, "WEBP"), "an image file"),
        (
            BOUNDARY + b'\r\nContent-Disposition: form-data; name="file"'
            b"\r\n\r\n" + served.png(UPRIGHT),
            "a form",
        ),
    ],
)
def test_a_raw_image_or_a_form_is_told_of_base64(pets, body, words):
    answer = pets.predict(body)
    assert answer.status == 400
    assert f"The body looks like {words}. Send JSON" in answer.error
    assert '{"signature_name": "serving_bytes", "instances":' in answer.error


def test_files_for_the_signature_of_pixels_are_told_of_theirs(pets):
    answer = pets.predict({"instances": [served.b64(served.png(UPRIGHT))]})
    assert answer.status == 400
    assert 'Encoded images need "signature_name": "serv' in answer.error
