import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.training.test_loop import WITH_UNIT
from trainers.training import objective
from trainers.training.loop import Loop
from trainers.training.step import TrainStep


@pytest.fixture
def traces(monkeypatch):
    """Counts traces: only then does Python run through a step."""
    found = []
    step = TrainStep._replica_step

    def counted(self, images, labels, stop):
        found.append(images.shape)
        return step(self, images, labels, stop)

    monkeypatch.setattr(TrainStep, "_replica_step", counted)
    return found


def test_a_run_traces_its_step_once(recipe, stripes, traces):
    """Three epochs of nine steps, with an agreement loss that rises."""
    made = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            made.append(len(traces))

    settings = recipe(epochs=3, override=WITH_UNIT, agreement_ramp=0.5)
    Loop(settings, stripes, None, callbacks=[Watch()], quiet=True).run()
    assert made == [1] * 27


def make_step(settings, model):
    optimizer = objective.make_optimizer(settings, 10)
    optimizer.build(model.trainable_variables)
    return TrainStep(
        model, optimizer, settings, np.ones(3, np.float32),
        tf.distribute.get_strategy(),
    )  # fmt: skip


def test_a_variable_that_the_loss_does_not_reach_is_named(recipe):
    images = keras.Input((2,))
    used, idle = (keras.layers.Dense(3, name=name) for name in ("used", "idle"))

    class Both(keras.layers.Layer):
        def __init__(self):
            super().__init__(name="both")
            self.used, self.idle = used, idle

        def call(self, inputs):
            self.idle(inputs)
            return self.used(inputs)

    model = keras.Model(images, Both()(images))
    step = make_step(recipe(loss="cross_entropy"), model)
    with pytest.raises(ValueError, match="Received: both/idle/kernel, both/id"):
        step(tf.zeros((4, 2)), tf.zeros(4, tf.int32), tf.constant(False))


def test_the_decoder_is_told_the_labels_and_counts_by_its_weight(recipe):
    """A class that no capsule is the longest of is the one that is drawn."""
    settings = recipe(decoder="conv", decoder_weight=0.25)
    model = settings.build(3, (32, 32, 3))
    images = tf.random.stateless_uniform((6, 32, 32, 3), (0, 1))
    decoder = model.get_layer("decoder")
    capsules = keras.Model(model.inputs, decoder.input[0])(images)
    shortest = tf.argmin(tf.norm(capsules, axis=-1), axis=-1)
    model.trainable = False
    decoder.trainable = True
    step = make_step(settings, model)
    drawn = decoder.reconstruct(capsules, shortest)
    errors = tf.reduce_sum((drawn - images) ** 2, axis=(1, 2, 3))
    report = step(images, tf.cast(shortest, tf.int32), tf.constant(False))
    row = dict(zip(step.names, report.numpy(), strict=True))
    np.testing.assert_allclose(row["decoder_loss"], np.mean(errors), rtol=1e-4)
    np.testing.assert_allclose(
        row["loss"] - row["class_loss"], 0.25 * np.mean(errors), rtol=1e-4
    )


def test_batches_of_other_sizes_trace_a_step_once_more(recipe, traces):
    settings = recipe()
    step = make_step(settings, settings.build(3, (32, 32, 3)))
    made = []
    for size in (8, 8, 6, 5, 8, 1):
        images = tf.zeros((size, 32, 32, 3))
        step(images, tf.zeros(size, tf.int32), tf.constant(False))
        made.append(len(traces))
    assert made == [1, 1, 2, 2, 2, 2]
