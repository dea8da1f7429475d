import numpy as np
import pytest
import tensorflow as tf

from export.graph.inference import inference
from export.graph.servable import Servable
from export.opened import (
    OpenedLite,
    OpenedRun,
    OpenedSavedModel,
)
from export.opened_onnx import OpenedOnnx
from export.version import onnx_files
from export.version.lite import _convert_all, file_name
from tests.export.conftest import tolerance, untrained_run

RNG = np.random.default_rng(0)


def servable_of(run):
    shape = run.model.input_shape[1:]
    return Servable(inference(run), shape, run.class_names), shape


def pixels(count, shape):
    return RNG.integers(0, 256, (count, *shape), np.uint8)


@pytest.mark.slow
def test_every_variant_runs_in_every_format_at_any_batch(variant_run, tmp_path):
    servable, shape = servable_of(variant_run)
    servable.save(str(tmp_path / "saved"))
    servable.save_lite(str(tmp_path / "lite"))
    # In this process: a child for each of so many small ones takes minutes.
    _convert_all(str(tmp_path / "lite"), ["none"], None, str(tmp_path))
    onnx_files.convert(servable, tmp_path)
    keras_model = OpenedRun(variant_run)
    # Kernels of its own: the last bit differs in every operation.
    relative = tolerance(variant_run.recipe.variant, 0)
    for model, of_scores in (
        (OpenedSavedModel(tmp_path / "saved"), 0),
        (OpenedLite(tmp_path / file_name("none")), 0),
        (OpenedOnnx(tmp_path / "model.onnx"), relative),
    ):
        assert model.image_shape == shape
        for count in (1, 3):
            images = pixels(count, shape)
            expected, found = keras_model(images), model(images)
            np.testing.assert_allclose(
                found.scores, expected.scores, rtol=of_scores, atol=1e-5
            )
            assert (found.capsules is None) == (expected.capsules is None)
            if found.capsules is not None:
                np.testing.assert_allclose(
                    found.capsules,
                    expected.capsules,
                    rtol=relative,
                    atol=1e-5,
                )


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A SavedModel of a grey, oblong network, and its Keras model."""
    path = tmp_path_factory.mktemp("servable")
    run = untrained_run(path, "encapnet_tiny", input_shape=(36, 40, 1))
    servable, _ = servable_of(run)
    servable.save(str(path / "1"))
    return tf.saved_model.load(str(path / "1")), OpenedRun(run)


def test_signatures_take_pixels_floats_and_files(loaded):
    model, keras_model = loaded
    images = pixels(3, (36, 40, 1))
    expected = keras_model(images)
    files = [tf.io.encode_png(image).numpy() for image in images]
    answers = [
        model.signatures["serving_default"](images=tf.constant(images)),
        model.signatures["serving_float"](
            images=tf.constant(images / 255, tf.float32)
        ),
        model.signatures["serving_bytes"](image_bytes=tf.constant(files)),
    ]
    ids = expected.scores.argmax(axis=1)
    for answer in answers:
        assert set(answer) == {"scores", "class_ids", "class_names", "capsules"}
        np.testing.assert_allclose(answer["scores"], expected.scores, atol=1e-5)
        np.testing.assert_allclose(
            answer["capsules"], expected.capsules, atol=1e-5
        )
        assert answer["class_ids"].dtype == tf.int32
        np.testing.assert_array_equal(answer["class_ids"], ids)
        names = [f"class {label}".encode() for label in ids]
        assert answer["class_names"].numpy().tolist() == names


def test_decode_gives_what_the_default_signature_takes(loaded):
    model, _ = loaded
    images = pixels(2, (36, 40, 1))
    files = [tf.io.encode_png(image).numpy() for image in images]
    np.testing.assert_array_equal(model.decode(tf.constant(files)), images)


def test_a_file_that_is_no_image_is_an_error_of_its_own(loaded):
    model, _ = loaded
    with pytest.raises(tf.errors.InvalidArgumentError):
        model.decode(tf.constant([b"no image"]))
