import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from encapnet_tf.data.images import graph, pillow


def smooth(height, width, channels):
    """A picture without noise, so that resizing is well defined."""
    rows, columns = np.mgrid[:height, :width]
    waves = [
        127 + 120 * np.sin(rows / 9 + c) * np.cos(columns / 7 - c)
        for c in range(channels)
    ]
    return Image.fromarray(
        np.stack(waves, -1).squeeze(axis=-1).astype(np.uint8)
        if channels == 1
        else np.stack(waves, -1).astype(np.uint8)
    )


@pytest.mark.parametrize("size", [(32, 32), (90, 61), (20, 33), (32, 70)])
@pytest.mark.parametrize("kind", ["png", "jpeg", "grey", "rgba", "palette"])
def test_files_are_decoded_as_by_pillow(kind, size, tmp_path):
    image = smooth(*size, {"grey": 1, "rgba": 4}.get(kind, 3))
    if kind == "palette":
        image = image.quantize(32)
    path = tmp_path / "image"
    image.save(path, format="JPEG" if kind == "jpeg" else "PNG", quality=95)
    content = path.read_bytes()
    expected = pillow.read_image(path, (32, 40)).astype(int)
    found = (
        graph.decode(tf.constant([content]), (32, 40, 3))[0].numpy().astype(int)
    )
    # Pillow rounds after each direction.
    assert abs(found - expected).max() <= 2


@pytest.mark.parametrize("size", [(40, 64), (17, 90), (5, 3)])
def test_arrays_are_fitted_as_by_pillow(size):
    image = smooth(*size, 3)
    expected = np.asarray(pillow.fit(image, (24, 16))).astype(int)
    found = graph.fit(tf.constant(np.asarray(image)), (24, 16))
    assert abs(found.numpy() - expected).max() <= 2


def test_one_channel_is_the_brightness():
    white = io.BytesIO()
    Image.fromarray(np.full((9, 9, 3), 255, np.uint8)).save(white, "PNG")
    found = graph.decode(tf.constant([white.getvalue()]), (4, 4, 1))
    np.testing.assert_array_equal(found, np.full((1, 4, 4, 1), 255))
