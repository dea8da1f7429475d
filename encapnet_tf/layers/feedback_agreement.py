"""Feedback agreement: higher capsules must be able to recover lower ones.

The training-only unit of section 3.2, with `Generator`, the paper's g, and
`Extractor`, its f.
"""

import threading

import keras
import tensorflow as tf

from encapnet_tf import ops
from encapnet_tf.checks import check_positive
from encapnet_tf.config import AgreementConfig
from encapnet_tf.layers.extractor import Extractor, check_entries
from encapnet_tf.layers.generator import Generator


@keras.saving.register_keras_serializable(package="encapnet")
class FeedbackAgreement(keras.layers.Layer):
    """Adds λ times the divergence between lower maps and their recovery.

    In training, u' = g(higher) is compared with u = lower: an extractor f makes
    one vector per sample of each, and the divergence between the two batches
    of vectors is added by `add_loss`. Otherwise nothing runs. The loss before
    weighting and the marginal error of the transport plan are recorded as
    metrics `NAME_loss` and `NAME_marginal_error`.

    Args:
        num_capsules: Capsule channels C of both maps.
        weight: λ.
        epsilon: Strength of the entropic regularisation.
        num_iterations: L, Sinkhorn iterations.
        cost: "cosine", "l2" or "sqeuclidean".
        debias: Whether to subtract the self-terms (equation 11).
        plan_gradient: Whether the gradient passes through the iterations.
        generator: "capsule" or "vanilla" (for maps without capsules).
        extractor: "conv" or "none" (the maps themselves).
        divergence: "sinkhorn" or "kl".
        batch: "replica": each device compares its own batch; "global": all
            devices' vectors are gathered first, as on one device.

    Call arguments:
        inputs: `[higher, lower]`, maps; the lower ones as large as the higher
            or larger by an integer stride.

    Returns:
        `higher`, unchanged.

    The variable `ramp` (1 at first, saved with the weights) multiplies λ; a
    training loop sets it to raise λ slowly.
    """

    def __init__(
        self,
        num_capsules,
        weight=10.0,
        epsilon=0.1,
        num_iterations=10,
        cost="cosine",
        debias=True,
        plan_gradient=False,
        generator="capsule",
        extractor="conv",
        divergence="sinkhorn",
        batch="replica",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.options = AgreementConfig(
            weight=weight,
            epsilon=epsilon,
            num_iterations=num_iterations,
            cost=cost,
            debias=debias,
            plan_gradient=plan_gradient,
            generator=generator,
            extractor=extractor,
            divergence=divergence,
            batch=batch,
        )
        check_positive(num_capsules=num_capsules)
        self.num_capsules = num_capsules
        self.generator = Generator(
            num_capsules if generator == "capsule" else None,
            name="generator",
            dtype=self.dtype_policy,
        )
        if extractor == "conv":
            self.extractor = Extractor(
                name="extractor", dtype=self.dtype_policy
            )
        self._recent = threading.local()
        self.loss_metric = keras.metrics.Mean(f"{self.name}_loss")
        if divergence == "sinkhorn":
            self.error_metric = keras.metrics.Mean(
                f"{self.name}_marginal_error"
            )

    def build(self, input_shape):
        """Makes g, f and the ramp."""
        if len(input_shape) != 2 or any(len(s) != 4 for s in input_shape):
            raise ValueError(
                "FeedbackAgreement is called on [higher, lower], two maps "
                "(B, H, W, channels). Received: inputs of shape "
                f"{input_shape}."
            )
        higher, lower = input_shape
        if None in (*higher[1:], *lower[1:]):
            raise ValueError(
                "FeedbackAgreement needs maps of known height, width and "
                f"channels. Received: inputs of shape {input_shape}."
            )
        channels = (higher[-1], lower[-1])
        if self.options.generator == "capsule" and any(
            count % self.num_capsules for count in channels
        ):
            raise ValueError(
                "The channels of both maps must be a multiple of "
                f"`num_capsules`. Received: num_capsules={self.num_capsules}, "
                f"channels {channels}. For maps without capsules take "
                "generator='vanilla'."
            )
        self.generator.build(input_shape)
        if self.options.extractor == "conv":
            self.extractor.build(lower)
        else:
            check_entries(lower[1] * lower[2] * lower[3], lower)
        self.ramp = self.add_weight(
            name="ramp",
            shape=(),
            initializer="ones",
            trainable=False,
            dtype="float32",
            autocast=False,
        )

    def call(self, inputs, training=None):
        """Adds the loss when training; returns the higher maps as they are."""
        higher, lower = inputs
        if training:
            divergence = self._divergence(
                self._vectors(self.generator(inputs, training=True)),
                self._vectors(lower),
            )
            self.loss_metric.update_state(divergence)
            loss = self.options.weight * self.ramp * divergence
            self.add_loss(loss)
            self._recent.loss = loss
        return higher

    @property
    def recent_loss(self):
        """The loss that this thread's last training call added.

        Keras keeps `losses` for all threads together, and the replicas of a
        MirroredStrategy are threads: a custom loop reads this instead.
        """
        return self._recent.loss

    def _vectors(self, maps):
        if self.options.extractor == "conv":
            return self.extractor(maps, training=True)
        _, height, width, channels = maps.shape
        return tf.reshape(maps, (-1, height * width * channels))

    def _divergence(self, recovered, lower):
        options = self.options
        if options.batch == "global":
            recovered, lower = _gather(recovered), _gather(lower)
        if options.divergence == "kl":
            return ops.kl_divergence(lower, recovered)
        divergence = ops.sinkhorn_divergence_with_error(
            recovered,
            lower,
            cost=options.cost,
            epsilon=options.epsilon,
            num_iterations=options.num_iterations,
            debias=options.debias,
            plan_gradient=options.plan_gradient,
        )
        self.error_metric.update_state(divergence.marginal_error)
        return tf.cast(divergence.value, tf.float32)

    def compute_output_shape(self, input_shape):
        """Returns the shape of the higher maps."""
        return input_shape[0]

    def get_config(self):
        """Returns the constructor's arguments."""
        return (
            super().get_config()
            | {"num_capsules": self.num_capsules}
            | vars(self.options)
        )


def _gather(vectors):
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return vectors
    return context.all_gather(vectors, axis=0)
