"""A decoder: one class capsule must be able to recall the image."""

import contextlib
import threading
from collections.abc import Iterator

import keras
import tensorflow as tf

from encapnet_tf import ops
from encapnet_tf.checks import check_above_zero

# The first maps are at most this large; each convolution then doubles them.
_LARGEST_START = 8
_START_CHANNELS = 32
_LEAST_CHANNELS = 8
# Sabour et al., section 4.1, for digits in grey.
_GREY_WEIGHT = 0.0005
# Ours: with less, images in colour are drawn as their mean, all alike.
_COLOUR_WEIGHT = 0.003

_told = threading.local()


@contextlib.contextmanager
def true_classes(labels) -> Iterator[None]:
    """Inside, decoders that train are told the true classes, in this thread.

    `fit` does so itself for the networks of `create_model`; a training loop of
    one's own calls the network inside.

    Args:
        labels: Integers `(B,)` or `(B, 1)`, or one-hot `(B, M)`.
    """
    before = getattr(_told, "labels", None)
    _told.labels = labels
    try:
        yield
    finally:
        _told.labels = before


@keras.saving.register_keras_serializable(package="encapnet")
class CapsuleDecoder(keras.layers.Layer):
    """Adds the error of the image as one class capsule recalls it.

    In training the capsule of the true class is decoded, all others set to
    zero, and the squared error, summed over the image, is added by `add_loss`
    (Sabour et al., section 4.1). Otherwise nothing runs. The true classes come
    from `true_classes`; where nobody tells them the longest capsule is decoded.
    The error before weighting is recorded as the metric `NAME_loss`.

    A dense layer makes maps of at most 8×8 of the capsule, transposed
    convolutions double them up to the image.

    Args:
        weight: Factor of the error; default: 0.0005 for images in grey, 0.003
            for images in colour.

    Call arguments:
        inputs: `[capsules, images]`: `(B, M, D)`, and `(B, H, W, C)` in [0, 1].

    Returns:
        `capsules`, unchanged.

    Example:
        >>> decoder = CapsuleDecoder()
        >>> capsules = np.ones((2, 10, 16), "float32")
        >>> decoder([capsules, np.zeros((2, 28, 28, 1), "float32")]).shape
        TensorShape([2, 10, 16])
        >>> decoder.reconstruct(capsules).shape
        TensorShape([2, 28, 28, 1])
    """

    def __init__(self, weight=None, **kwargs):
        # The capsules pass through as they are under mixed precision, too.
        super().__init__(autocast=False, **kwargs)
        check_above_zero(weight=weight)
        self.weight = weight
        self._recent = threading.local()
        self.loss_metric = keras.metrics.Mean(f"{self.name}_loss")

    def build(self, input_shape):
        """Makes the layers that lead from a capsule to an image."""
        _check_shapes(input_shape)
        (_, count, dim), (_, *self.image_size, image_channels) = input_shape
        own = _GREY_WEIGHT if image_channels == 1 else _COLOUR_WEIGHT
        self.factor = own if self.weight is None else self.weight
        doublings = 0
        while max(self.image_size) > _LARGEST_START * 2**doublings:
            doublings += 1
        rows, columns = (-(-side // 2**doublings) for side in self.image_size)
        channels = _START_CHANNELS
        policy = {"dtype": self.dtype_policy}
        self.start_shape = (rows, columns, channels)
        self.start = keras.layers.Dense(
            rows * columns * channels, "leaky_relu", name="start", **policy
        )
        self.start.build((None, count * dim))
        self.growth = []
        for number in range(1, doublings + 1):
            lower, channels = channels, max(_LEAST_CHANNELS, channels // 2)
            # Kernel 4 at stride 2: every pixel is reached equally often.
            layer = keras.layers.Conv2DTranspose(
                channels, 4, 2, "same", activation="leaky_relu",
                name=f"grow{number}", **policy,
            )  # fmt: skip
            layer.build((None, None, None, lower))
            self.growth.append(layer)
        self.paint = keras.layers.Conv2D(
            image_channels, 3, padding="same", name="paint", **policy
        )
        self.paint.build((None, None, None, channels))

    def call(self, inputs, training=None):
        """Adds the loss when training; returns the capsules as they are."""
        capsules, images = inputs
        if training:
            labels = getattr(_told, "labels", None)
            classes = None if labels is None else _class_numbers(labels)
            drawn = self.reconstruct(capsules, classes)
            squares = tf.square(drawn - tf.cast(images, tf.float32))
            error = tf.reduce_mean(tf.reduce_sum(squares, axis=(1, 2, 3)))
            self.loss_metric.update_state(error)
            loss = self.factor * error
            self.add_loss(loss)
            self._recent.loss = loss
        return capsules

    def reconstruct(self, capsules, classes=None):
        """Draws one capsule of each row as an image.

        Args:
            capsules: `(B, M, D)`.
            classes: Which one, integers `(B,)`; the longest where not given.

        Returns:
            float32 `(B, H, W, C)` in [0, 1].
        """
        _, count, dim = capsules.shape
        if classes is None:
            lengths = ops.length(ops.at_least_float32(capsules))
            classes = tf.argmax(lengths, axis=-1)
        mask = tf.one_hot(classes, count, dtype=capsules.dtype)
        masked = tf.reshape(capsules * mask[..., None], (-1, count * dim))
        maps = tf.reshape(self.start(masked), (-1, *self.start_shape))
        for layer in self.growth:
            maps = layer(maps)
        height, width = self.image_size
        image = self.paint(maps)[:, :height, :width]
        return tf.sigmoid(tf.cast(image, tf.float32))

    @property
    def recent_loss(self):
        """The loss that this thread's last training call added."""
        return self._recent.loss

    def compute_output_spec(self, inputs, training=None):
        """The capsules, in whatever format they come."""
        return keras.KerasTensor(inputs[0].shape, inputs[0].dtype)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {"weight": self.weight}


# Here, so that whoever knows the layers can load a network with a decoder.
@keras.saving.register_keras_serializable(package="encapnet")
class DecodingModel(keras.Model):
    """A functional model whose `fit` tells its decoder the true classes."""

    def train_step(self, data):
        """Makes one update."""
        _, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        with true_classes(labels):
            return super().train_step(data)


def _class_numbers(labels):
    """From one-hot rows or a column of numbers to numbers `(B,)`."""
    labels = tf.convert_to_tensor(labels)
    if labels.shape.rank == 2 and labels.shape[1] > 1:
        return tf.argmax(labels, axis=-1)
    return tf.cast(tf.reshape(labels, (-1,)), tf.int64)


def _check_shapes(shapes):
    if (
        len(shapes) != 2
        or [len(shape) for shape in shapes] != [3, 4]
        or None in (*shapes[0][1:], *shapes[1][1:])
    ):
        raise ValueError(
            "CapsuleDecoder is called on [capsules, images], (B, M, D) and "
            "(B, H, W, C), of known sizes. "
            f"Received: inputs of shape {shapes}."
        )
