import pytest

from encapnet_tf.data.images.sizes import fitting, height_and_width


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (96, (96, 96)),
        ("96", (96, 96)),
        ("96x64", (96, 64)),
        ((96, 64), (96, 64)),
        ([96, 64], (96, 64)),
        (None, None),
    ],
)
def test_a_size_is_a_side_or_height_and_width(given, size):
    assert height_and_width(given) == size


@pytest.mark.parametrize(
    "given", [0, -3, "", "96x", "x", "9x9x9", "1.5", (1, 0)]
)
def test_what_is_no_size_is_refused(given):
    with pytest.raises(ValueError, match="Received: image_size"):
        height_and_width(given)


def test_nothing_is_said_of_images_that_stay_as_they_are():
    assert fitting([(32, 32)], (32, 32)) == ""
    assert "of 48x36 (" in fitting([(48, 36)] * 2, (32, 32))
