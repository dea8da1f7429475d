"""The statistics that batch norms use at inference, taken afresh."""

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.keras_internals import sub_layers
from encapnet_tf.training_only import strip


class NormStatistics:
    """Gives batch norms the statistics of the weights as they are now.

    A moving average starts at mean 0 and variance 1 and follows with a lag:
    after the dozen steps of a short run on 300 images a network that had
    learned them all was at chance on the same images, and averaged weights
    have no moving averages of their own. So before each validation the mean
    and variance are taken anew over batches of the training data.

    Args:
        model: The network.
        strategy: The strategy that made its variables.
    """

    def __init__(self, model: keras.Model, strategy: tf.distribute.Strategy):
        # Agreement units have norms too, but none that inference sees.
        self._model = strip(model)
        self._norms = [
            layer
            for layer in sub_layers(self._model)
            if isinstance(layer, keras.layers.BatchNormalization)
            and layer.trainable
        ]
        self._strategy = strategy
        self._run = self._on_every_replica
        if strategy.num_replicas_in_sync > 1:
            self._run = tf.function(self._run, autograph=False)

    def settle(self, batches) -> None:
        """Takes the statistics over `batches` of images and labels."""
        if not self._norms:
            return
        moments = [self._of_batch(images) for images, _ in batches]
        for norm, batches_of_norm in zip(
            self._norms, zip(*moments, strict=True), strict=True
        ):
            means, variances = map(np.stack, zip(*batches_of_norm, strict=True))
            norm.moving_mean.assign(means.mean(axis=0))
            norm.moving_variance.assign(
                variances.mean(axis=0) + means.var(axis=0)
            )

    def _of_batch(self, images):
        """Returns mean and variance of each norm's inputs."""
        for norm in self._norms:
            norm.moving_mean.assign(np.zeros(norm.moving_mean.shape))
            norm.moving_variance.assign(np.zeros(norm.moving_variance.shape))
        self._run(images)
        # From zero, a moving average is (1 − momentum) times the batch's own.
        return [
            tuple(
                average.numpy().astype(np.float64) / (1 - norm.momentum)
                for average in (norm.moving_mean, norm.moving_variance)
            )
            for norm in self._norms
        ]

    def _on_every_replica(self, images):
        self._strategy.run(self._forward, (images,))

    def _forward(self, images):
        self._model(images, training=True)
