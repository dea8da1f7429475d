import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.losses import LengthCrossentropy, MarginLoss, SpreadLoss

RNG = np.random.default_rng(0)
LENGTHS = RNG.uniform(size=(6, 4)).astype("float32")
LABELS = np.array([0, 3, 1, 1, 2, 0])
LOSSES = [MarginLoss, SpreadLoss, LengthCrossentropy]


def margin(lengths, labels, positive=0.9, negative=0.1, down_weight=0.5):
    total = 0.0
    for sample, label in zip(lengths, labels, strict=True):
        for k, v in enumerate(sample):
            if k == label:
                total += max(0, positive - v) ** 2
            else:
                total += down_weight * max(0, v - negative) ** 2
    return total / len(labels)


def spread(lengths, labels, m=0.9):
    total = 0.0
    for sample, label in zip(lengths, labels, strict=True):
        for k, a in enumerate(sample):
            if k != label:
                total += max(0, m - (sample[label] - a)) ** 2
    return total / len(labels)


def cross_entropy(lengths, labels):
    total = 0.0
    for sample, label in zip(lengths, labels, strict=True):
        total -= np.log(np.exp(sample[label]) / np.exp(sample).sum())
    return total / len(labels)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (MarginLoss(), margin(LENGTHS, LABELS)),
        (
            MarginLoss(positive=0.8, negative=0.2, down_weight=0.3),
            margin(LENGTHS, LABELS, 0.8, 0.2, 0.3),
        ),
        (SpreadLoss(), spread(LENGTHS, LABELS)),
        (SpreadLoss(margin=0.2), spread(LENGTHS, LABELS, 0.2)),
        (LengthCrossentropy(), cross_entropy(LENGTHS, LABELS)),
    ],
)
def test_sums_over_classes_and_averages_over_the_batch(loss, expected):
    np.testing.assert_allclose(loss(LABELS, LENGTHS), expected, rtol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_labels_as_integers_columns_or_one_hot_are_the_same(loss, dtype):
    expected = loss()(LABELS, LENGTHS)
    labels = LABELS.astype(dtype)
    one_hot = np.eye(4, dtype=dtype)[LABELS]
    for form in (labels, labels[:, None], one_hot):
        np.testing.assert_allclose(loss()(form, LENGTHS), expected, rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_as_many_samples_as_classes_are_not_one_hot_rows(loss):
    one_hot = np.eye(4)[LABELS[:4]]
    np.testing.assert_allclose(
        loss()(LABELS[:4], LENGTHS[:4]),
        loss()(one_hot, LENGTHS[:4]),
        rtol=1e-6,
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes_take_integers_and_one_hot(loss):
    labels, lengths = np.array([1, 0]), LENGTHS[:2, :2]
    one_hot = np.array([[0, 1], [1, 0]])
    expected = loss()(labels, lengths)
    np.testing.assert_allclose(loss()(one_hot, lengths), expected)
    np.testing.assert_allclose(loss()(labels[:, None], lengths), expected)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [(MarginLoss(), 0.4**2), (SpreadLoss(), 0), (LengthCrossentropy(), 0)],
)
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_a_column_of_labels_of_one_class_holds_integers(loss, expected, shape):
    value = loss(np.zeros(shape, "int64"), np.full((3, 1), 0.5))
    np.testing.assert_allclose(value, expected, atol=1e-7)


def test_perfect_lengths_have_no_margin_loss():
    lengths = np.where(np.eye(4)[LABELS], 0.95, 0.05)
    assert float(MarginLoss()(LABELS, lengths)) == 0
    assert float(SpreadLoss()(LABELS, lengths)) == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_narrow_lengths_are_compared_in_float32(loss):
    narrow = tf.cast(LENGTHS, tf.bfloat16)
    np.testing.assert_allclose(
        loss()(LABELS, narrow),
        loss()(LABELS, tf.cast(narrow, tf.float32)),
        rtol=1e-6,
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_unknown_batch_size_in_a_graph(loss):
    function = loss()
    traced = tf.function(
        lambda labels, lengths: function(labels, lengths),
        input_signature=[
            tf.TensorSpec((None,), tf.int64),
            tf.TensorSpec((None, 4), tf.float32),
        ],
    )
    np.testing.assert_allclose(
        traced(LABELS, LENGTHS), function(LABELS, LENGTHS), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, 0.2), (20, 0.2), (300, 0.55), (160, 0.375), (580, 0.9), (600, 0.9)],
)
def test_margin_rises_between_the_first_and_last_twenty_epochs(epoch, expected):
    assert SpreadLoss.margin_at(epoch / 600) == pytest.approx(expected)


def test_set_margin_reaches_a_compiled_step():
    loss = SpreadLoss(margin=0.9)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Identity()])
    model.compile(loss=loss)
    before = model.evaluate(LENGTHS, LABELS, verbose=0)
    loss.set_margin(0.3)
    after = model.evaluate(LENGTHS, LABELS, verbose=0)
    assert before == pytest.approx(spread(LENGTHS, LABELS, 0.9), rel=1e-5)
    assert after == pytest.approx(spread(LENGTHS, LABELS, 0.3), rel=1e-5)


@pytest.mark.parametrize(
    "loss",
    [
        MarginLoss(0.8, 0.2, 0.3, reduction="sum", name="m"),
        SpreadLoss(0.4, name="s"),
        LengthCrossentropy(name="c"),
    ],
)
def test_config_round_trip(loss):
    config = keras.losses.serialize(loss)
    again = keras.losses.deserialize(config)
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()
    np.testing.assert_allclose(
        again(LABELS, LENGTHS), loss(LABELS, LENGTHS), rtol=1e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_a_saved_model_keeps_its_loss(loss, tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    model.compile(optimizer="sgd", loss=loss())
    expected = model.evaluate(LENGTHS, LABELS, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded.loss, loss)
    assert loaded.evaluate(LENGTHS, LABELS, verbose=0) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_finite_everywhere(loss):
    lengths = tf.constant([[0.0, 0.0], [1.0, 1.0], [0.9, 0.1], [1e4, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(lengths)
        value = loss()(np.array([0, 1, 0, 1]), lengths)
    assert np.isfinite(tape.gradient(value, lengths)).all()
