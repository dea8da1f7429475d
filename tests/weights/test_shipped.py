"""The weights that ship are as good as their cards say."""

import pathlib
import re

import keras
import numpy as np
import pytest

import encapnet_tf
from encapnet_tf.data import one_view
from encapnet_tf.data.house_numbers.cache import load_house_numbers
from encapnet_tf.weights import SHIPPED, sample_images
from encapnet_tf.weights.archive import (
    card_path,
    read_archive,
    read_samples,
    samples_path,
    shipped_path,
)
from trainers.scoring import error_rate, interval

CARDS = {name: card_path(shipped_path(name)).read_text() for name in SHIPPED}
# As they were trained, so they are tested.
(SEEN,) = {
    read_archive(shipped_path(name)).about["recipe"]["augmentation"]
    for name in SHIPPED
}


def percent(text):
    return float(text.removesuffix("%")) / 100


def stated(name):
    """The error on a card, and the ends of its interval."""
    found = re.search(
        r"Test error (\S+) \(95% interval (\S+) to (\S+),", CARDS[name]
    )
    return [percent(number) for number in found.groups()]


@pytest.fixture(scope="module", params=SHIPPED)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def network(name):
    return encapnet_tf.create_model(
        "encapnet_small", decoder="conv", weights=name
    )


def error_on(network, images, labels):
    scores = [
        network.predict_on_batch(one_view(batch / np.float32(255), SEEN))
        for batch in np.array_split(images, -(-len(images) // 250))
    ]
    return error_rate(np.concatenate(scores), labels)


def test_its_error_is_the_card_s(name, network):
    """On the test data of house_numbers; of MNIST, on the sample images."""
    error, low, high = stated(name)
    if name == "house_numbers":
        # The test images are the same however many training images there are.
        data = load_house_numbers(num_train=1)
        measured = error_on(network, data["x_test"], data["y_test"])
        assert low <= measured <= high
        assert measured == pytest.approx(error, abs=1e-3)
    else:
        images, labels = sample_images(name)
        low, high = interval(error_on(network, images, labels), len(labels))
        assert low <= error <= high


def test_its_samples_are_in_the_data_s_form(name, network):
    images, labels = sample_images(name)
    assert images.dtype == labels.dtype == np.uint8
    assert images.shape[1:] == network.input_shape[1:]
    counts = np.bincount(labels)
    assert len(counts) == 10
    assert len(set(counts)) == 1
    if name == "mnist":
        assert len(labels) == 200
    assert error_on(network, images, labels) < 0.05


def test_its_decoder_draws_what_it_sees(name, network):
    """Closer to the image than the mean of all images is."""
    images, _ = sample_images(name)
    images = images / np.float32(255)
    decoder = network.get_layer("decoder")
    reader = keras.Model(network.inputs, decoder.output)
    drawn = decoder.reconstruct(reader.predict_on_batch(images)).numpy()
    mean = np.square(images - images.mean(axis=0)).mean()
    assert np.square(images - drawn).mean() < 0.6 * mean


def test_without_a_decoder_the_scores_are_the_same(name, network):
    plain = encapnet_tf.create_model("encapnet_small", weights=name)
    assert "decoder" not in [layer.name for layer in plain.layers]
    images = sample_images(name).images[:8] / np.float32(255)
    np.testing.assert_array_equal(
        plain.predict_on_batch(images), network.predict_on_batch(images)
    )


def test_its_card_says_what_a_stranger_should_know(name):
    card = CARDS[name]
    assert f'create_model("encapnet_small", weights="{name}")' in card
    assert "licence: Apache-2.0" in card
    assert "\npython -m trainers.fit --dataset=" in card or name != "mnist"
    assert "not stated" not in card
    assert "CC BY-SA 3.0" in CARDS["mnist"]


def test_it_names_no_machine_and_fits_a_package(name):
    about, _ = read_archive(shipped_path(name))
    assert not {"data_dir", "init_from"} & set(about["recipe"])
    assert shipped_path(name).stat().st_size < 4e6
    assert samples_path(shipped_path(name)).stat().st_size < 4e5
    read_samples(shipped_path(name))


def test_every_file_of_the_package_is_of_a_name():
    folder = shipped_path("mnist").parent
    files = {p.name for p in folder.iterdir() if p.suffix in (".npz", ".md")}
    ends = (".npz", ".samples.npz", ".md")
    assert files == {name + end for name in SHIPPED for end in ends}
    package = (pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '"weights/*.npz", "weights/*.md"' in package


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"num_classes": 5}, "mnist with num_classes=10, and num_classes=5"),
        ({"input_shape": (32, 32, 1)}, r"\(28, 28, 1\), and .*\(32, 32, 1\)"),
        ({"strides": (1,) * 6}, r"strides=\(1, 1, 2, 1, 2, 1\), and strides"),
        ({"agreement": "one"}, "with agreement=.*none.*, and agreement=.*one"),
        ({"variant": "resnet18"}, "variant=encapnet_small, and variant=resn"),
        ({"colour": 1}, "EncapNetConfig has no field colour"),
    ],
)
def test_another_network_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        encapnet_tf.create_model(
            **{"variant": "encapnet_small", "weights": "mnist"} | given
        )


def test_what_agrees_may_be_said():
    model = encapnet_tf.create_model(
        "encapnet_small", num_classes=10, input_shape=[28, 28, 1],
        weights="mnist", strides=[1, 1, 2, 1, 2, 1],
    )  # fmt: skip
    assert model.input_shape == (None, 28, 28, 1)
