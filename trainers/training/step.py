"""One training step, the same under every distribution strategy."""

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.layers.capsule_decoder import true_classes
from encapnet_tf.training_only import training_only_layers
from trainers.recipe import Recipe
from trainers.scoring import TOP5_CLASSES
from trainers.training import objective


class TrainStep:
    """Computes, applies and reports one update.

    Args:
        model: The network.
        optimizer: Built on the model's trainable variables.
        recipe: The recipe of the run.
        class_weights: One weight per class.
        strategy: The strategy that made the variables.

    Attributes:
        names: What `__call__` reports, in order: means over the global batch,
            the metrics of the layers that only train, then the gradient norm,
            the number of the first variable whose gradient is not finite (−1:
            none) and whether any process wants to stop.
    """

    def __init__(self, model, optimizer, recipe, class_weights, strategy):
        self._model = model
        self._optimizer = optimizer
        self._recipe: Recipe = recipe
        self._loss = objective.make_loss(recipe)
        self._class_weights = tf.constant(class_weights)
        self._strategy = strategy
        self._decayed = objective.decayed_variables(recipe, model)
        self._units = training_only_layers(model)
        self._unit_metrics = [m for unit in self._units for m in unit.metrics]
        self.names = ["loss", "class_loss", "error"]
        if self.num_classes >= TOP5_CLASSES:
            self.names.append("top5_error")
        self.names += [metric.name for metric in self._unit_metrics]
        self.names += ["gradient_norm", "bad_variable", "stop"]

    @property
    def num_classes(self) -> int:
        """The number of classes the model tells apart."""
        return self._model.output_shape[-1]

    def set_progress(self, progress: float) -> None:
        """Moves what follows the run: the margin of the spread loss."""
        if self._recipe.loss_name() == "spread":
            self._loss.set_margin(self._loss.margin_at(progress))

    @tf.function(autograph=False, jit_compile=False, reduce_retracing=True)
    def __call__(self, images, labels, stop):
        """Makes one update; returns the report as one vector.

        Args:
            images: Share of the global batch, or one share per replica.
            labels: Likewise.
            stop: Whether this process wants to stop.
        """
        reports = self._strategy.run(self._replica_step, (images, labels, stop))
        return self._strategy.reduce("SUM", reports, axis=None)

    def _replica_step(self, images, labels, stop):
        for metric in self._unit_metrics:
            metric.reset_state()
        replicas = self._strategy.num_replicas_in_sync
        batch_size = tf.cast(tf.shape(images)[0] * replicas, tf.float32)
        variables = self._model.trainable_variables
        with tf.GradientTape() as tape:
            with true_classes(labels):
                scores = self._model(images, training=True)
            class_loss = self._class_loss(labels, scores) / batch_size
            added = [unit.recent_loss / replicas for unit in self._units]
            total = tf.add_n([class_loss, *added])
            scaled = self._scaled(total)
        gradients = tape.gradient(scaled, variables)
        _refuse_unreached(gradients, variables)
        norm, bad_variable = self._apply(gradients, variables)
        errors = [_errors(labels, scores, 1)]
        if "top5_error" in self.names:
            errors.append(_errors(labels, scores, 5))
        return tf.stack(
            [total, class_loss]
            + [count / batch_size for count in errors]
            + [metric.result() / replicas for metric in self._unit_metrics]
            + [norm / replicas, bad_variable / replicas]
            + [tf.cast(stop, tf.float32)]
        )

    def _class_loss(self, labels, scores):
        wanted = objective.labels_for(self._loss, labels, self.num_classes)
        per_sample = tf.cast(self._loss(wanted, scores), tf.float32)
        return tf.reduce_sum(
            per_sample * tf.gather(self._class_weights, labels)
        )

    def _scale(self):
        if isinstance(self._optimizer, keras.optimizers.LossScaleOptimizer):
            return tf.cast(self._optimizer.dynamic_scale, tf.float32)
        return None

    def _scaled(self, loss):
        scale = self._scale()
        return loss if scale is None else loss * scale

    def _apply(self, gradients, variables):
        """Sums over replicas, decays, clips and updates."""
        scale = self._scale()
        if scale is not None:
            gradients = [g / scale for g in gradients]
        if self._strategy.num_replicas_in_sync > 1:
            context = tf.distribute.get_replica_context()
            gradients = context.all_reduce("SUM", gradients)
        rate = self._recipe.weight_decay
        gradients = [
            g + rate * v if decayed else g
            for g, v, decayed in zip(
                gradients, variables, self._decayed, strict=True
            )
        ]
        norms = tf.sqrt(2 * tf.stack([tf.nn.l2_loss(g) for g in gradients]))
        norm = tf.norm(norms)
        if self._recipe.clip_norm:
            gradients, _ = tf.clip_by_global_norm(
                gradients, self._recipe.clip_norm, norm
            )
        if scale is not None:
            gradients = [g * scale for g in gradients]
        self._optimizer.apply(gradients, variables)
        return norm, _first_bad(norms)


def _refuse_unreached(gradients, variables):
    """Runs while the step is traced, so once."""
    unreached = [
        variable.path
        for gradient, variable in zip(gradients, variables, strict=True)
        if gradient is None
    ]
    if unreached:
        raise ValueError(
            "The loss must depend on every trainable variable. Received: "
            f"{', '.join(unreached)}, which it does not reach. Use the layer, "
            "or make it not trainable."
        )


def learning_rate(optimizer: keras.Optimizer) -> float:
    """Returns the learning rate of the next update."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return float(np.asarray(inner.learning_rate))


def _errors(labels, scores, top):
    """Counts the samples whose class is not among the `top` scores."""
    # Not in_top_k: it takes ties for hits, so a dead network looks perfect.
    best = tf.math.top_k(tf.cast(scores, tf.float32), top).indices
    hits = tf.reduce_any(best == labels[:, None], axis=1)
    return tf.reduce_sum(tf.cast(~hits, tf.float32))


def _first_bad(norms):
    bad = ~tf.math.is_finite(norms)
    first = tf.cast(tf.argmax(bad), tf.float32)
    return tf.where(tf.reduce_any(bad), first, -1.0)
