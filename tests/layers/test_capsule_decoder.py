import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import create_model, true_classes
from encapnet_tf.layers import CapsuleDecoder
from tests import reference

RNG = np.random.default_rng(0)
CAPSULES = RNG.normal(size=(4, 5, 6)).astype("float32")
IMAGES = RNG.uniform(size=(4, 11, 9, 2)).astype("float32")
LABELS = np.array([3, 0, 4, 3])
SMALL = {
    "decoder": "conv",
    "agreement": "none",
    "aide": "none",
    "type2_layers": (0,),
    "strides": (2,),
}


def made(images=IMAGES, **options):
    keras.utils.set_random_seed(1)
    decoder = CapsuleDecoder(**options)
    decoder([CAPSULES, images])
    for weight in decoder.weights:
        if "bias" in weight.path:
            weight.assign(RNG.normal(size=weight.shape))
    return decoder


def added_loss(decoder, labels=LABELS, capsules=CAPSULES):
    with true_classes(labels):
        decoder([capsules, IMAGES], training=True)
    (loss,) = decoder.losses
    return float(loss)


def test_an_image_is_drawn_as_numpy_loops_draw_it():
    """11×9 pixels: maps of 6×5, doubled once, and cut."""
    decoder = made()
    drawn = decoder.reconstruct(CAPSULES, LABELS)
    assert drawn.shape == IMAGES.shape
    (grow,) = decoder.growth
    for place, label in enumerate(LABELS):
        masked = np.zeros((5, 6))
        masked[label] = CAPSULES[place, label]
        start = reference.dense(masked.ravel(), decoder.start)
        maps = np.maximum(start, 0.2 * start).reshape(1, 6, 5, 32)
        maps = reference.doubling(maps, grow)
        maps = np.maximum(maps, 0.2 * maps)
        kernel, bias = decoder.paint.get_weights()
        image = reference.conv(maps, kernel, bias, 1)[0, :11, :9]
        expected = 1 / (1 + np.exp(-image))
        np.testing.assert_allclose(drawn[place], expected, atol=1e-5)


def test_the_loss_is_the_weighted_squared_error_of_the_true_class():
    decoder = made(weight=0.25)
    loss = added_loss(decoder)
    drawn = decoder.reconstruct(CAPSULES, LABELS).numpy()
    errors = [np.sum((a - b) ** 2) for a, b in zip(drawn, IMAGES, strict=True)]
    assert loss == pytest.approx(0.25 * np.mean(errors), rel=1e-5)
    metric = float(decoder.loss_metric.result())
    assert metric == pytest.approx(np.mean(errors), rel=1e-5)
    assert float(decoder.recent_loss) == loss


@pytest.mark.parametrize(("channels", "factor"), [(1, 0.0005), (3, 0.003)])
def test_the_default_weight_is_that_of_sabour_et_al_in_grey(channels, factor):
    """In colour it has to be larger, or all is drawn as the mean image."""
    images = np.ones((4, 8, 8, channels), "float32")
    decoder = made(images)
    with true_classes(LABELS):
        decoder([CAPSULES, images], training=True)
    error = float(decoder.loss_metric.result())
    (loss,) = decoder.losses
    assert float(loss) == pytest.approx(factor * error, rel=1e-5)
    assert decoder.get_config()["weight"] is None


def test_no_other_capsule_has_a_part_in_the_loss():
    decoder, capsules = made(), tf.constant(CAPSULES)
    with tf.GradientTape() as tape, true_classes(LABELS):
        tape.watch(capsules)
        decoder([capsules, IMAGES], training=True)
        loss = tf.add_n(decoder.losses)
    reached = np.abs(tape.gradient(loss, capsules)).sum(axis=-1) > 0
    np.testing.assert_array_equal(reached, np.eye(5, dtype=bool)[LABELS])


@pytest.mark.parametrize("form", ["column", "one-hot"])
def test_labels_may_come_in_the_forms_that_keras_takes(form):
    decoder = made()
    column = LABELS[:, None].astype("float32")
    labels = {"column": column, "one-hot": np.eye(5)[LABELS]}[form]
    assert added_loss(decoder, labels) == added_loss(decoder)


def test_the_longest_capsule_is_decoded_where_no_class_is_told():
    decoder = made()
    longest = np.linalg.norm(CAPSULES, axis=-1).argmax(axis=-1)
    np.testing.assert_array_equal(
        decoder.reconstruct(CAPSULES), decoder.reconstruct(CAPSULES, longest)
    )
    assert added_loss(decoder, None) == added_loss(decoder, longest)
    assert added_loss(decoder, None) != added_loss(decoder)


def test_classes_are_told_to_one_thread_and_until_the_end_of_the_block():
    decoder, lost = made(), []

    def untold():
        lost.append(added_loss(decoder, None))

    told = added_loss(decoder)
    with true_classes(LABELS):
        with true_classes(np.zeros(4, int)):
            pass
        decoder([CAPSULES, IMAGES], training=True)
        assert float(decoder.recent_loss) == told
        thread = threading.Thread(target=untold)
        thread.start()
        thread.join()
    decoder([CAPSULES, IMAGES], training=True)
    assert [float(decoder.recent_loss)] == lost != [told]


def test_capsules_pass_unchanged_and_nothing_is_added_but_in_training():
    decoder = made()
    for training in (True, False, None):
        passed = decoder([CAPSULES, IMAGES], training=training)
        np.testing.assert_array_equal(passed, CAPSULES)
        assert len(decoder.losses) == bool(training)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "size", [(8, 8), (28, 28), (32, 32), (33, 64), (50, 40), (224, 96)]
)
def test_images_of_any_size_are_drawn(size, channels):
    decoder = CapsuleDecoder()
    decoder.build([(None, 5, 6), (None, *size, channels)])
    drawn = decoder.reconstruct(CAPSULES)
    assert drawn.shape == (4, *size, channels)
    assert np.min(drawn) > 0
    assert np.max(drawn) < 1
    assert max(decoder.start_shape[:2]) <= 8


def test_fit_tells_the_true_classes(monkeypatch):
    """In a user's own `fit`, validation and all."""
    told = []
    draw = CapsuleDecoder.reconstruct

    def spied(self, capsules, classes=None):
        told.append(None if classes is None else classes.numpy().tolist())
        return draw(self, capsules, classes)

    monkeypatch.setattr(CapsuleDecoder, "reconstruct", spied)
    model = create_model("encapnet_tiny", num_classes=5, **SMALL)
    model.compile("adam", loss="mse", run_eagerly=True)
    images = RNG.uniform(size=(6, 32, 32, 3)).astype("float32")
    labels = np.array([2, 0, 1, 4, 4, 3])
    targets = np.eye(5)[labels]
    model.fit(
        images, targets, batch_size=3, shuffle=False, verbose=0,
        validation_data=(images, targets),
    )  # fmt: skip
    assert told == [[2, 0, 1], [4, 4, 3]]


def test_fit_learns_to_draw():
    keras.utils.set_random_seed(0)
    model = create_model(
        "encapnet_tiny", num_classes=2, decoder_weight=0.01, **SMALL
    )
    labels = np.arange(16) % 2
    images = np.zeros((16, 32, 32, 3), "float32")
    images[labels == 0, :16] = images[labels == 1, 16:] = 1
    model.compile(keras.optimizers.Adam(1e-2), loss="mse")
    targets = np.eye(2)[labels]
    history = model.fit(images, targets, epochs=40, batch_size=16, verbose=0)
    # A picture that knows no class is off by 0.5 everywhere.
    assert history.history["decoder_loss"][-1] < 0.5 * 0.25 * images[0].size


@pytest.mark.parametrize(
    "shapes",
    [
        [(None, 5, 6), (None, None, None, 3)],
        [(None, 5, 6), (None, 5)],
        [(None, 5, 6)],
    ],
)
def test_other_inputs_are_refused(shapes):
    with pytest.raises(ValueError, match="capsules, images.*Received: inputs"):
        CapsuleDecoder().build(shapes)


def test_a_weight_that_is_none_is_refused():
    with pytest.raises(ValueError, match="`weight` must.*Received: weight=0"):
        CapsuleDecoder(weight=0)
