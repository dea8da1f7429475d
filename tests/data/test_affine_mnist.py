import numpy as np
import pytest
from scipy import ndimage

from encapnet_tf import data
from encapnet_tf.data import affine_mnist as made

COUNT = 300


@pytest.fixture(scope="module")
def digits():
    """Blobs of 28×28 within a rim of zeros, each unlike the others."""
    rng = np.random.default_rng(3)
    noise = rng.uniform(0, 255, (COUNT, 28, 28))
    smooth = ndimage.gaussian_filter(noise, (0, 2, 2))
    smooth = 255 * (smooth - smooth.min()) / np.ptp(smooth)
    smooth[:, :4] = smooth[:, -4:] = 0
    smooth[:, :, :4] = smooth[:, :, -4:] = 0
    return smooth.astype(np.uint8)[..., None]


@pytest.fixture(scope="module")
def folder(digits, tmp_path_factory):
    path = tmp_path_factory.mktemp("mnist")
    labels = np.arange(COUNT) % 10
    np.savez(
        path / "mnist.npz",
        x_train=digits, y_train=labels, x_test=digits, y_test=labels,
    )  # fmt: skip
    return str(path)


@pytest.fixture(scope="module")
def dataset(folder):
    return data.load("affine_mnist", folder)


def images(split):
    return split.decode(np.arange(COUNT), None)[0].numpy()


def test_training_digits_are_whole_and_lie_anywhere(dataset, digits):
    assert dataset.image_shape == (40, 40, 1)
    assert not dataset.flip
    places = set()
    for canvas, digit in zip(images(dataset.train), digits, strict=True):
        rows, columns = (np.flatnonzero(canvas.any((a, 2))) for a in (1, 0))
        inner = digit[4:-4, 4:-4]
        own = np.argwhere(inner[..., 0])
        top, left = (
            rows[0] - own[:, 0].min(), columns[0] - own[:, 1].min()
        )  # fmt: skip
        found = canvas[top : top + 20, left : left + 20]
        np.testing.assert_array_equal(found, inner)
        places.add((top, left))
    tops, lefts = zip(*places, strict=True)
    assert (min(tops), max(tops), min(lefts), max(lefts)) == (4, 16, 4, 16)


def test_changes_stay_within_affnists_ranges():
    changes = made._changes(20_000, np.random.default_rng(0))
    angle = np.degrees(np.arctan2(changes[:, 1, 0], changes[:, 0, 0]))
    width = np.hypot(changes[:, 0, 0], changes[:, 1, 0])
    height = np.linalg.det(changes) / width
    along = np.einsum("ni,ni->n", changes[:, :, 0], changes[:, :, 1])
    shear = along / (width * height)
    for values, low, high in (
        (angle, -20, 20),
        (width, 0.8, 1.2),
        (height, 0.8, 1.2),
        (shear, -0.2, 0.2),
    ):
        room = 0.01 * (high - low)
        assert low - 1e-9 <= values.min() <= low + room
        assert high - room <= values.max() <= high + 1e-9


def test_test_digits_are_bent_as_an_independent_transform_bends_them(
    dataset, digits
):
    rng = np.random.default_rng(made._SEEDS["test"])
    changes = made._changes(COUNT, rng)
    # A matrix of (x, y) is one of (row, column) with both axes swapped.
    inverse = np.linalg.inv(changes)[:, ::-1, ::-1]
    moves = np.stack([rng.uniform(-6, 6, COUNT) for _ in "xy"], 1)[:, ::-1]
    bent = images(dataset.test)
    for n in range(0, COUNT, 10):
        offset = 13.5 - inverse[n] @ (19.5 + moves[n])
        wanted = ndimage.affine_transform(
            digits[n, :, :, 0].astype(float), inverse[n], offset, (40, 40),
            order=1,
        )  # fmt: skip
        np.testing.assert_allclose(bent[n, :, :, 0], wanted, atol=0.51)


def test_the_data_are_always_the_same(dataset, folder):
    again = data.load("affine_mnist", folder, image_size=40)
    for name in ("train", "test"):
        first, second = getattr(dataset, name), getattr(again, name)
        np.testing.assert_array_equal(images(first), images(second))
        np.testing.assert_array_equal(first.labels, second.labels)


def test_another_size_is_refused(folder):
    with pytest.raises(ValueError, match="40x40.*Received: image_size=32x32"):
        data.load("affine_mnist", folder, image_size=32)
