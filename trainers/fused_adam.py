"""Keras' Adam and AdamW, each variable updated by one operation."""

import keras
import tensorflow as tf


class _FusedUpdate:
    """Takes TensorFlow's own kernel for what Keras writes out."""

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable and its two moments."""
        index = self._get_variable_index(variable)
        step = tf.cast(self.iterations + 1, variable.dtype)
        beta_1, beta_2, epsilon = (
            tf.constant(value, variable.dtype)
            for value in (self.beta_1, self.beta_2, self.epsilon)
        )
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=beta_1**step,
            beta2_power=beta_2**step,
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=beta_1,
            beta2=beta_2,
            epsilon=epsilon,
            grad=tf.cast(gradient, variable.dtype),
        )


class Adam(_FusedUpdate, keras.optimizers.Adam):
    """The function of `keras.optimizers.Adam`, without `amsgrad`."""


class AdamW(_FusedUpdate, keras.optimizers.AdamW):
    """The function of `keras.optimizers.AdamW`, without `amsgrad`."""
