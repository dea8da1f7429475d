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
        bias: Optional `(channels,)`, as if added to `inputs`. In training the
            mean takes it away again, so only the moving mean sees it and its
            gradient is 0; nothing is added to the maps.

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

    def call(self, inputs, bias=None, training=None, mask=None):
        """Normalises, by the batch's statistics when training."""
        if not self._fusable(inputs) or mask is not None:
            return self._call_keras(inputs, bias, training, mask)
        if bias is None:
            bias = tf.zeros(inputs.shape[-1])
        bias = tf.cast(bias, tf.float32)
        gamma, beta = (
            tf.cast(self.gamma, tf.float32),
            tf.cast(self.beta, tf.float32),
        )
        if training and self.trainable:
            outputs, mean, variance = self._by_batch(inputs, gamma, beta, bias)
            # The kernel returns n/(n−1) times the variance it divides by.
            count = tf.cast(tf.size(inputs) // inputs.shape[-1], tf.float32)
            self._follow(self.moving_mean, mean + bias)
            self._follow(self.moving_variance, variance * (count - 1) / count)
            return outputs
        mean = tf.cast(self.moving_mean, tf.float32)
        variance = tf.cast(self.moving_variance, tf.float32)
        # Not in the mean: the kernel has no gradient for it.
        beta += bias * gamma * tf.math.rsqrt(variance + self.epsilon)
        return self._fused(inputs, gamma, beta, mean, variance).y

    def affine(self, bias=None):
        """Returns scale and offset, `(channels,)`: what inference applies."""
        scale = self.gamma * tf.math.rsqrt(self.moving_variance + self.epsilon)
        mean = self.moving_mean if bias is None else self.moving_mean - bias
        return scale, self.beta - mean * scale

    def _call_keras(self, inputs, bias, training, mask):
        """Keras' own form, with the bias as above."""
        if bias is None:
            return super().call(inputs, training=training, mask=mask)
        if not (training and self.trainable):
            return super().call(inputs + bias, training=training, mask=mask)
        outputs = super().call(inputs, training=True, mask=mask)
        share = tf.cast(bias, self.moving_mean.dtype) * (1 - self.momentum)
        self.moving_mean.assign(self.moving_mean + share)
        return _independent(outputs, bias)

    def _fusable(self, inputs):
        return (
            inputs.dtype != "float64"
            and len(inputs.shape) == 4
            and self.axis in (-1, 3)
            and self.scale
            and self.center
            and tf.distribute.get_strategy().num_replicas_in_sync == 1
        )

    def _by_batch(self, inputs, gamma, beta, bias):
        """Returns outputs, mean and variance; only the outputs pass gradients.

        The bias gets one of 0. TensorFlow's own gradient makes zeros for every
        result that nobody differentiates.
        """
        moments = []

        @tf.custom_gradient
        def normalize(inputs, gamma, beta, bias):
            forward = self._fused(inputs, gamma, beta, training=True)
            moments.extend((forward.batch_mean, forward.batch_variance))

            def gradient(upstream):
                backward = tf.raw_ops.FusedBatchNormGradV3(
                    y_backprop=upstream,
                    x=inputs,
                    scale=gamma,
                    reserve_space_1=forward.reserve_space_1,
                    reserve_space_2=forward.reserve_space_2,
                    reserve_space_3=forward.reserve_space_3,
                    epsilon=self.epsilon,
                )
                return (
                    backward.x_backprop,
                    backward.scale_backprop,
                    backward.offset_backprop,
                    tf.zeros_like(bias),
                )

            return forward.y, gradient

        return normalize(inputs, gamma, beta, bias), *moments

    def _fused(self, inputs, gamma, beta, mean=(), variance=(), training=False):
        return tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=gamma,
            offset=beta,
            mean=mean,
            variance=variance,
            epsilon=self.epsilon,
            is_training=training,
        )

    def _follow(self, average, value):
        old = tf.cast(average, tf.float32)
        average.assign(old * self.momentum + value * (1 - self.momentum))


@tf.custom_gradient
def _independent(outputs, bias):
    """Returns the outputs; the gradient of the bias is 0, not missing."""
    return outputs, lambda upstream: (upstream, tf.zeros_like(bias))
