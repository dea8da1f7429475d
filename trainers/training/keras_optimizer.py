"""What is borrowed from inside Keras' optimisers.

Adam and AdamW update each variable by one operation, and no optimiser sums over
replicas what `TrainStep` has summed. There is no public way to either.
"""

import keras
import tensorflow as tf


class _FusedUpdate:
    """Takes TensorFlow's own kernel for what Keras writes out."""

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        """Computes once, in each dtype, what all variables share."""
        shared = {
            dtype: self._shared(learning_rate, dtype)
            for dtype in {variable.dtype for variable in trainable_variables}
        }
        super()._backend_update_step(grads, trainable_variables, shared)

    def _shared(self, learning_rate, dtype):
        beta_1, beta_2, epsilon = (
            tf.constant(value, dtype)
            for value in (self.beta_1, self.beta_2, self.epsilon)
        )
        step = tf.cast(self.iterations + 1, dtype)
        return {
            "beta1_power": beta_1**step,
            "beta2_power": beta_2**step,
            "lr": tf.cast(learning_rate, dtype),
            "beta1": beta_1,
            "beta2": beta_2,
            "epsilon": epsilon,
        }

    def update_step(self, gradient, variable, shared):
        """Updates one variable and its two moments."""
        index = self._get_variable_index(variable)
        dtype = variable.dtype.name
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            grad=tf.cast(gradient, dtype),
            **shared[dtype],
        )


class Adam(_FusedUpdate, keras.optimizers.Adam):
    """The function of `keras.optimizers.Adam`, without `amsgrad`."""


class AdamW(_FusedUpdate, keras.optimizers.AdamW):
    """The function of `keras.optimizers.AdamW`, without `amsgrad`."""


def without_sum(optimizer: keras.Optimizer) -> keras.Optimizer:
    """Lets an optimiser take gradients that are summed over the replicas."""
    optimizer._all_reduce_sum_gradients = list
    return optimizer
