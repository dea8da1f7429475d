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


def test_batches_of_other_sizes_trace_a_step_once_more(recipe, traces):
    settings = recipe()
    model = settings.build(3, (32, 32, 3))
    optimizer = objective.make_optimizer(settings, 10)
    optimizer.build(model.trainable_variables)
    step = TrainStep(
        model, optimizer, settings, np.ones(3, np.float32),
        tf.distribute.get_strategy(),
    )  # fmt: skip
    made = []
    for size in (8, 8, 6, 5, 8, 1):
        images = tf.zeros((size, 32, 32, 3))
        step(images, tf.zeros(size, tf.int32), tf.constant(False))
        made.append(len(traces))
    assert made == [1, 1, 2, 2, 2, 2]
