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
    of vectors is added by `add_loss`. Otherwise nothing runs.

    Metrics, each after `NAME_`:

    - `loss`: the divergence, before weighting.
    - `marginal_error`: of the transport plan ("sinkhorn" only).
    - `spread`: how far f tells the samples of a batch apart, relative to the
      first batch: 1 at first, 0 when it no longer does.
    - `zero_vectors`: the share of the vectors f(u) that are zero.
    - `gradient_share`: the norm of the unit's gradient at the higher maps over
      the norm of the gradient that arrives there from above.

    Args:
        num_capsules: Capsule channels C of both maps.
        weight: λ.
        epsilon: Strength of the entropic regularisation.
        num_iterations: L, Sinkhorn iterations.
        cost: "cosine", "l2" or "sqeuclidean".
        debias: Whether to subtract the self-terms (equation 11).
        plan_gradient: Whether the gradient passes through the iterations.
        generator: "capsule" or "vanilla" (for maps without capsules).
        extractor: "conv" (trained with the loss), "frozen" (stays random),
            "standardized" (trained, each entry with mean 0 and variance 1 over
            the batch) or "none" (the maps themselves).
        divergence: "sinkhorn", "kl" or "paired" (every u' must recover its
            own u: the squared error relative to the variance).
        batch: "replica": each device compares its own batch; "global": all
            devices' vectors are gathered first, as on one device.
        lower_gradient: Whether the loss moves the lower maps; False makes
            them a fixed target.
        gradient_share: What `gradient_share` above is held to, at every step,
            in place of the λ of `weight`. g and f learn at their own pace.

    Call arguments:
        inputs: `[higher, lower]`, maps; the lower ones as large as the higher
            or larger by an integer stride.

    Returns:
        `higher`, unchanged.

    The variable `ramp` (1 at first, saved with the weights) multiplies λ, or
    the share; a training loop sets it to raise either slowly.
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
        lower_gradient=True,
        gradient_share=None,
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
            lower_gradient=lower_gradient,
            gradient_share=gradient_share,
        )
        check_positive(num_capsules=num_capsules)
        self.num_capsules = num_capsules
        self.generator = Generator(
            num_capsules if generator == "capsule" else None,
            name="generator",
            dtype=self.dtype_policy,
        )
        if extractor != "none":
            self.extractor = Extractor(
                frozen=extractor == "frozen",
                signed=extractor == "standardized",
                name="extractor",
                dtype=self.dtype_policy,
            )
        self._recent = threading.local()
        self.loss_metric = self._mean("loss")
        if divergence == "sinkhorn":
            self.error_metric = self._mean("marginal_error")
        self.spread_metric = self._mean("spread")
        self.zeros_metric = self._mean("zero_vectors")
        self.share_metric = self._mean("gradient_share")

    def _mean(self, name):
        return keras.metrics.Mean(f"{self.name}_{name}")

    def build(self, input_shape):
        """Makes g, f, the ramp and what the spread is compared with."""
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
        if self.options.extractor == "none":
            check_entries(lower[1] * lower[2] * lower[3], lower)
        else:
            self.extractor.build(lower)
        scalar = {"shape": (), "trainable": False, "dtype": "float32"}
        self.ramp = self.add_weight(
            name="ramp", initializer="ones", autocast=False, **scalar
        )
        # 0 until there was a batch.
        self.first_spread = self.add_weight(
            name="first_spread",
            initializer="zeros",
            autocast=False,
            aggregation="mean",
            **scalar,
        )

    def call(self, inputs, training=None):
        """Adds the loss when training; returns the higher maps as they are."""
        higher, lower = inputs
        if not training:
            return higher
        passed, higher, lower = self._branch_off(higher, lower)
        recovered = self.generator([higher, lower], training=True)
        recovered, lower = self._vectors(recovered), self._vectors(lower)
        divergence = self._divergence(recovered, lower)
        self.loss_metric.update_state(divergence)
        self._watch(tf.stop_gradient(lower))
        loss = self.options.weight * self.ramp * divergence
        self.add_loss(loss)
        self._recent.loss = loss
        return passed

    @property
    def recent_loss(self):
        """The loss that this thread's last training call added.

        Keras keeps `losses` for all threads together, and the replicas of a
        MirroredStrategy are threads: a custom loop reads this instead.
        """
        return self._recent.loss

    def _branch_off(self, higher, lower):
        options = self.options
        share = options.gradient_share
        if not options.lower_gradient:
            lower = tf.stop_gradient(lower)
        return ops.branch_off(
            higher,
            lower,
            share=None if share is None else share * self.ramp,
            note=self.share_metric.update_state,
            total=_sum if options.batch == "global" else tf.identity,
        )

    def _vectors(self, maps):
        """Returns what is compared: one vector per sample of the batch."""
        options = self.options
        if options.extractor == "none":
            _, height, width, channels = maps.shape
            vectors = tf.reshape(maps, (-1, height * width * channels))
        else:
            vectors = self.extractor(maps, training=True)
        if options.batch == "global":
            vectors = _gather(vectors)
        if options.extractor == "standardized":
            vectors = ops.standardize(vectors)
        return vectors

    def _watch(self, vectors):
        """Notes how far f(u) tells samples apart, as the divergence sees it."""
        options = self.options
        self.zeros_metric.update_state(ops.zero_share(vectors))
        cost = options.cost if options.divergence == "sinkhorn" else "cosine"
        if options.divergence == "kl":
            vectors, cost = tf.nn.softmax(ops.at_least_float32(vectors)), "l2"
        spread = tf.cast(ops.spread(vectors, cost), tf.float32)
        first = tf.convert_to_tensor(self.first_spread)
        first = tf.where(first > 0, first, spread)
        self.first_spread.assign(first)
        self.spread_metric.update_state(tf.math.divide_no_nan(spread, first))

    def _divergence(self, recovered, lower):
        options = self.options
        if options.divergence == "kl":
            return ops.kl_divergence(lower, recovered)
        if options.divergence == "paired":
            return ops.paired_error(lower, recovered)
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

    def load_own_variables(self, store):
        """Loads the ramp, and the first spread from files that have it."""
        for number, variable in enumerate((self.ramp, self.first_spread)):
            if str(number) in store.keys():  # noqa: SIM118, no dictionary
                variable.assign(store[str(number)])


def _gather(vectors):
    context = _replicas()
    return vectors if context is None else context.all_gather(vectors, axis=0)


def _sum(numbers):
    context = _replicas()
    return numbers if context is None else context.all_reduce("SUM", numbers)


def _replicas():
    """The context of this replica, if there are others."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return None
    return context
