import numpy as np
import pytest
from PIL import Image

from encapnet_tf.data.images import pillow


def save(path, pixels, mode=None, **kwargs):
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(path, **kwargs)
    return path


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "RGBA", "LA", "CMYK"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    white = np.full((10, 10, 3), 255, np.uint8)
    suffix = "jpg" if mode == "CMYK" else "png"
    source = Image.fromarray(white)
    if mode == "LA":
        source = source.convert("L")
    source.convert(mode).save(tmp_path / f"a.{suffix}")
    read = pillow.read_image(tmp_path / f"a.{suffix}", 8)
    assert read.shape == (8, 8, 3)
    assert read.dtype == np.uint8
    assert read.min() >= 254


def test_sixteen_bits_keep_their_upper_eight(tmp_path):
    deep = np.full((8, 8), 0x8040, np.uint16)
    read = pillow.read_image(save(tmp_path / "a.png", deep), 8)
    np.testing.assert_array_equal(read, np.full((8, 8, 3), 0x7F))


def test_transparent_parts_come_out_white(tmp_path):
    clear = np.zeros((8, 8, 4), np.uint8)
    read = pillow.read_image(save(tmp_path / "a.png", clear), 8)
    np.testing.assert_array_equal(read, np.full((8, 8, 3), 255))


def test_exif_rotation_is_undone(tmp_path):
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:4] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by a quarter, clockwise
    path = save(tmp_path / "a.png", pixels, exif=exif)
    read = pillow.read_image(path, 8)
    np.testing.assert_array_equal(read[:, 4:], np.full((8, 4, 3), 255))
    assert read[:, :4].max() == 0


@pytest.mark.parametrize("shape", [(8, 40), (40, 8), (3, 3), (1, 100)])
def test_odd_sizes_keep_their_centre(tmp_path, shape):
    pixels = np.zeros((*shape, 3), np.uint8)
    read = pillow.read_image(save(tmp_path / "a.png", pixels), 16)
    assert read.shape == (16, 16, 3)


def test_the_centre_is_kept_without_distortion(tmp_path):
    pixels = np.zeros((8, 24, 3), np.uint8)
    pixels[:, 8:16] = 200
    read = pillow.read_image(save(tmp_path / "a.png", pixels), 8)
    np.testing.assert_array_equal(read, np.full((8, 8, 3), 200))


@pytest.mark.parametrize("suffix", sorted(pillow.SUFFIXES))
def test_every_suffix_listed_can_be_read(tmp_path, suffix):
    path = save(tmp_path / f"a{suffix}", np.full((8, 8, 3), 90, np.uint8))
    assert abs(pillow.read_image(path, 8).astype(int) - 90).max() < 10


@pytest.mark.parametrize("content", [b"", b"not an image", "cut"])
def test_damaged_files_raise_os_error(tmp_path, content):
    path = tmp_path / "a.png"
    if content == "cut":
        noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3))
        save(path, noise.astype(np.uint8))
        content = path.read_bytes()[:5000]
    path.write_bytes(content)
    with pytest.raises(
        OSError, match="cannot identify|Cannot decode|truncated"
    ):
        pillow.read_image(path, 8)


def test_arrays_are_fitted_with_one_or_three_channels():
    for channels in (1, 3):
        array = np.full((2, 8, 12, channels), 7, np.uint8)
        fitted = pillow.fit_array(array, 4)
        np.testing.assert_array_equal(
            fitted, np.full((2, 4, 4, channels), 7, np.uint8)
        )
