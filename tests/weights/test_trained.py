"""Weights from files of a user's own."""

import dataclasses
import zipfile

import keras
import numpy as np
import pytest

import encapnet_tf
from encapnet_tf.config import variant_config
from encapnet_tf.weights.archive import Archive, as_stored, write_archive
from tests.trainers.conftest import LEAST

IMAGES = np.random.default_rng(0).random((4, 32, 32, 3), np.float32)
DECODER = {"decoder": "conv"}


def network(seed=0, **fields):
    """The least network; its batch norms have seen something."""
    keras.utils.set_random_seed(seed)
    model = encapnet_tf.create_model("encapnet_tiny", **LEAST | fields)
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        if any(n in variable.path for n in ("moving", "gamma", "beta")):
            variable.assign(rng.uniform(0.5, 1.5, variable.shape))
    return model


def keep(model, path, **fields):
    """Writes an archive of a network."""
    config = variant_config("encapnet_tiny", **LEAST | fields)
    about = {"variant": "encapnet_tiny", "config": dataclasses.asdict(config)}
    values = {v.path: v.numpy() for v in model.weights}
    with path.open("wb") as file:
        write_archive(file, Archive(about, values))
    return path


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A network of three classes with a decoder, as a run leaves it."""
    folder = tmp_path_factory.mktemp("run")
    model = network(num_classes=3, **DECODER)
    model.save(folder / "model.keras")
    return model, folder


def made(weights, **fields):
    return encapnet_tf.create_model(
        "encapnet_tiny", weights=weights, **LEAST | fields
    )


@pytest.mark.parametrize("file", ["", "model.keras"])
def test_a_run_and_its_file_are_read_exactly(saved, file):
    model, folder = saved
    for fields in ({}, DECODER):
        again = made(folder / file, **fields)
        assert again.output_shape == (None, 3)
        np.testing.assert_array_equal(
            again.predict_on_batch(IMAGES), model.predict_on_batch(IMAGES)
        )
    for ours, theirs in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_archive_is_read_within_rounding(saved, tmp_path):
    model, _ = saved
    path = keep(model, tmp_path / "a.npz", num_classes=3, **DECODER)
    again = made(path, **DECODER)
    for ours, theirs in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, as_stored(theirs.numpy()))
        if ours.ndim == 1:
            np.testing.assert_array_equal(ours, theirs)
    scores, expected = (m.predict_on_batch(IMAGES) for m in (made(path), model))
    np.testing.assert_allclose(scores, expected, atol=2e-3)
    assert not np.array_equal(scores, expected)


def test_units_of_a_run_are_left_behind_or_taken_along(tmp_path):
    unit = {"agreement": "one"}
    model = network(**unit)
    model.save(tmp_path / "model.keras")
    expected = model.predict_on_batch(IMAGES)
    for fields in ({"agreement": "none"}, unit):
        again = made(str(tmp_path), **fields)
        assert len(encapnet_tf.agreement_units(again)) == (fields is unit)
        np.testing.assert_array_equal(again.predict_on_batch(IMAGES), expected)


def test_trained_in_mixed_precision_it_can_be_had_in_float32(tmp_path):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = network()
    finally:
        keras.config.set_dtype_policy("float32")
    model.save(tmp_path / "model.keras")
    again = made(tmp_path / "model.keras")
    assert again.get_layer("scores").compute_dtype == "float32"
    for ours, theirs in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_classes": 4}, "num_classes=3, and num_classes=4"),
        ({"input_shape": (28, 28, 1)}, "input_shape=.*32, 3.*28, 1"),
        ({"strides": (1,)}, "with module1_type1.stride=2, and .*stride=1"),
        ({"agreement": "one"}, "has none for module1_agreement.*, …"),
    ],
)
def test_a_run_of_another_network_is_refused(saved, fields, words):
    with pytest.raises(ValueError, match=words):
        made(saved[1], **fields)


def test_a_decoder_that_nobody_trained_is_refused(tmp_path):
    model = network(num_classes=3)
    path = keep(model, tmp_path / "plain.npz", num_classes=3)
    model.save(tmp_path / "model.keras")
    for weights in (path, tmp_path):
        with pytest.raises(ValueError, match="none for decoder/start/kernel"):
            made(weights, **DECODER)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("mnst", "Did you mean 'mnist'"), ("README.md", "weights=README.md")],
)
def test_what_is_no_weights_is_refused(name, hint):
    with pytest.raises(ValueError, match=f"house_numbers, mnist, .*{hint}"):
        encapnet_tf.create_model("encapnet_tiny", weights=name)


@pytest.mark.parametrize("damage", ["cut", "text", "no_about", "no_config"])
def test_a_damaged_archive_is_refused_in_one_line(saved, tmp_path, damage):
    path = keep(saved[0], tmp_path / "a.npz", num_classes=3, **DECODER)
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "text":
        path.write_text("no zip")
    elif damage == "no_about":
        np.savez(path, a=np.ones(3))
    else:
        with path.open("wb") as file:
            write_archive(file, Archive({"variant": "encapnet_tiny"}, {}))
    with pytest.raises(ValueError, match=r"a\.npz is damaged.*Received") as e:
        made(path)
    assert "\n" not in str(e.value)


def test_a_damaged_keras_file_is_refused_in_one_line(tmp_path):
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("metadata.json", "{")
    with pytest.raises(ValueError, match="is damaged") as refusal:
        made(path)
    assert "\n" not in str(refusal.value)


def test_the_vectors_keep_their_precision(saved, tmp_path):
    """A variance below 6e-8 would be zero in float16."""
    model = saved[0]
    (variance,) = (
        v for v in model.weights if v.path == "stem1/norm/moving_variance"
    )
    before = variance.numpy()
    variance.assign(np.full(variance.shape, 1e-9))
    path = keep(model, tmp_path / "a.npz", num_classes=3, **DECODER)
    variance.assign(before)
    again = {v.path: v.numpy() for v in made(path).weights}
    np.testing.assert_array_equal(again[variance.path], np.float32(1e-9))
