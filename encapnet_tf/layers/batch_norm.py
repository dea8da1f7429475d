"""Batch normalisation as every network of the paper uses it."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="encapnet")
class BatchNorm(keras.layers.BatchNormalization):
    """Keras' batch normalisation through TensorFlow's fused kernel.

    On one replica the fused kernel computes statistics and result in one
    pass. On several, Keras' own synchronised form takes over, so that the
    statistics are those of the global batch. Everything else, weights and
    arguments included, is `keras.layers.BatchNormalization`.

    Args:
        momentum: Share of the old moving average that is kept.
        epsilon: Added to the variance.
        **kwargs: As for `keras.layers.BatchNormalization`.

    Call arguments:
        inputs: `(B, H, W, channels)`.

    Returns:
        A tensor like `inputs`.
    """

    def __init__(self, momentum=0.9, epsilon=1e-5, synchronized=True, **kwargs):
        super().__init__(
            momentum=momentum,
            epsilon=epsilon,
            synchronized=synchronized,
            **kwargs,
        )

    def call(self, inputs, training=None, mask=None):
        """Normalises, by the batch's statistics when training."""
        if not self._fusable(inputs) or mask is not None:
            return super().call(inputs, training=training, mask=mask)
        if training and self.trainable:
            outputs, mean, variance = self._fused(inputs, is_training=True)
            # The kernel returns n/(n−1) times the variance it divides by.
            count = tf.cast(tf.size(inputs) // inputs.shape[-1], tf.float32)
            self._follow(self.moving_mean, mean)
            self._follow(self.moving_variance, variance * (count - 1) / count)
            return outputs
        return self._fused(
            inputs,
            mean=tf.cast(self.moving_mean, tf.float32),
            variance=tf.cast(self.moving_variance, tf.float32),
            is_training=False,
        )[0]

    def _fusable(self, inputs):
        return (
            inputs.dtype != "float64"
            and len(inputs.shape) == 4
            and self.axis in (-1, 3)
            and self.scale
            and self.center
            and tf.distribute.get_strategy().num_replicas_in_sync == 1
        )

    def _fused(self, inputs, **statistics):
        return tf.compat.v1.nn.fused_batch_norm(
            inputs,
            tf.cast(self.gamma, tf.float32),
            tf.cast(self.beta, tf.float32),
            epsilon=self.epsilon,
            **statistics,
        )

    def _follow(self, average, value):
        old = tf.cast(average, tf.float32)
        average.assign(old * self.momentum + value * (1 - self.momentum))
