"""Statistics of batch norms: those of the weights and images as they are."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import create_model
from encapnet_tf.layers import BatchNorm
from trainers.training.norm_statistics import NormStatistics


def settled(model, batches, strategy=None):
    strategy = strategy or tf.distribute.get_strategy()
    NormStatistics(model, strategy).settle((b, None) for b in batches)


@pytest.mark.parametrize("norm", [BatchNorm, keras.layers.BatchNormalization])
def test_statistics_are_those_of_all_the_images(norm):
    images = np.random.default_rng(0).normal(3, 2, (6, 8, 4, 4, 2))
    images = images.astype(np.float32)
    layer = norm()
    model = keras.Sequential([keras.Input((4, 4, 2)), layer])
    layer.moving_mean.assign([1e4, -1e4])
    layer.moving_variance.assign([1e8, 1e-8])
    settled(model, list(images))
    np.testing.assert_allclose(
        layer.moving_mean, images.mean(axis=(0, 1, 2, 3)), rtol=1e-5
    )
    np.testing.assert_allclose(
        layer.moving_variance, images.var(axis=(0, 1, 2, 3)), rtol=1e-4
    )


def test_frozen_norms_and_agreement_units_are_left_alone():
    model = create_model(
        "encapnet_tiny", type2_layers=(0,), strides=(2,), aide="none"
    )
    frozen = model.get_layer("stem1").norm
    frozen.trainable = False
    before = {v.path: v.numpy() for v in model.non_trainable_variables}
    settled(model, [np.random.rand(4, 32, 32, 3).astype(np.float32)])
    changed = {
        v.path
        for v in model.non_trainable_variables
        if not np.array_equal(v, before[v.path])
    }
    assert changed
    assert not any("agreement" in p or "stem1" in p for p in changed)


class TwoReplicas:
    num_replicas_in_sync = 2

    def run(self, function, args):
        function(*args)


def test_several_replicas_trace_the_network_once():
    traced = []

    class Watched(BatchNorm):
        def call(self, inputs, training=None):
            traced.append(tf.inside_function())
            return super().call(inputs, training=training)

    model = keras.Sequential([keras.Input((4, 4, 2)), Watched()])
    traced.clear()
    settled(model, list(tf.random.normal((3, 8, 4, 4, 2))), TwoReplicas())
    assert traced == [True]
