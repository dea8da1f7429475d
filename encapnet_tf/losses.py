"""Losses on capsule lengths: margin, spread and cross-entropy."""

import keras
import tensorflow as tf

from encapnet_tf import backend  # noqa: F401


class _LengthLoss(keras.losses.Loss):
    """A loss on class scores that takes integer or one-hot labels."""

    def call(self, y_true, y_pred):
        """Returns one loss per sample."""
        lengths = tf.cast(y_pred, tf.float32)
        return self.per_sample(_one_hot(y_true, lengths), lengths)


@keras.saving.register_keras_serializable(package="encapnet")
class MarginLoss(_LengthLoss):
    """Σ_k T_k max(0, m⁺ − |v_k|)² + 0.5 (1 − T_k) max(0, |v_k| − m⁻)².

    Summed over classes, mean over the batch (the authors' 0.9, 0.1, 0.5).

    Args:
        positive: m⁺, the length a present class should reach.
        negative: m⁻, the length an absent class should stay below.
        down_weight: Weight of the absent classes.

    Example:
        >>> float(MarginLoss()(np.array([0]), np.array([[0.9, 0.1]])))
        0.0
    """

    def __init__(
        self,
        positive=0.9,
        negative=0.1,
        down_weight=0.5,
        name="margin_loss",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        self.positive = positive
        self.negative = negative
        self.down_weight = down_weight

    def per_sample(self, present, lengths):
        """Computes the loss of each sample."""
        missing = tf.square(tf.nn.relu(self.positive - lengths))
        excess = tf.square(tf.nn.relu(lengths - self.negative))
        absent = self.down_weight * (1 - present)
        return tf.reduce_sum(present * missing + absent * excess, axis=-1)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "positive": self.positive,
            "negative": self.negative,
            "down_weight": self.down_weight,
        }


@keras.saving.register_keras_serializable(package="encapnet")
class SpreadLoss(_LengthLoss):
    """Σ_{i≠t} max(0, m − (a_t − a_i))².

    Args:
        margin: The margin m at first; `margin_at` gives the paper's schedule,
            and `set_margin` moves it.

    Example:
        >>> float(SpreadLoss(margin=0.5)(np.array([0]), np.array([[1, 0.5]])))
        0.0
    """

    def __init__(self, margin=0.9, name="spread_loss", **kwargs):
        super().__init__(name=name, **kwargs)
        self.margin = margin
        self._margin = tf.Variable(
            margin, trainable=False, dtype=tf.float32, name="margin"
        )

    @staticmethod
    def margin_at(progress: float) -> float:
        """The paper's m after a share of the run: 0.2 to 0.9, linear.

        It rises between epochs 20 and 580 of 600 (kept as fractions).
        """
        first, last = 20 / 600, 580 / 600
        share = min(1.0, max(0.0, (progress - first) / (last - first)))
        return 0.2 + 0.7 * share

    def set_margin(self, margin: float) -> None:
        """Sets m, also for a compiled training step."""
        self._margin.assign(margin)

    def per_sample(self, present, lengths):
        """Computes the loss of each sample."""
        target = tf.reduce_sum(present * lengths, axis=-1, keepdims=True)
        gap = tf.nn.relu(self._margin - (target - lengths))
        return tf.reduce_sum((1 - present) * tf.square(gap), axis=-1)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {"margin": self.margin}


@keras.saving.register_keras_serializable(package="encapnet")
class LengthCrossentropy(_LengthLoss):
    """Softmax cross-entropy with the lengths, or logits, as scores.

    Example:
        >>> loss = LengthCrossentropy()
        >>> round(float(loss(np.array([1]), np.array([[0.5, 0.5]]))), 4)
        0.6931
    """

    def __init__(self, name="length_crossentropy", **kwargs):
        super().__init__(name=name, **kwargs)

    def per_sample(self, present, lengths):
        """Computes the loss of each sample."""
        return tf.nn.softmax_cross_entropy_with_logits(present, lengths)


def _one_hot(labels, scores):
    """Labels as one-hot rows: integers `(B,)`, `(B, 1)` or rows already."""
    labels = tf.convert_to_tensor(labels)
    if labels.shape.rank == scores.shape.rank and (
        labels.shape[-1] == scores.shape[-1] and scores.shape[-1] > 1
    ):
        return tf.cast(labels, scores.dtype)
    labels = tf.reshape(tf.cast(labels, tf.int32), (-1,))
    return tf.one_hot(labels, tf.shape(scores)[-1], dtype=scores.dtype)
