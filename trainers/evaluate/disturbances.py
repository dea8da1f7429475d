"""What may disturb an image: being moved, or altered by an adversary.

Moved: an image is rotated, scaled about its centre or shifted, with bilinear
interpolation; what comes in from outside repeats the border.

Attacked: every pixel may change by at most the strength, in [0, 1] still
(an L∞ ball), so as to raise the softmax cross-entropy of the class scores.
That is one loss for all networks, so that they can be compared, and unlike
the margin loss it never falls silent on a sample that is far on the right
side. FGSM makes one step as large as the ball. PGD starts at a point drawn
from the ball and makes ten steps of a quarter of the strength, each put back
into the ball. Both see the gradient of the network as it is deployed, the
choice of the view included.
"""

import math

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.data import one_view

PGD_STEPS = 10
# Madry et al. (2018): so the steps can cross the ball and come back.
PGD_REACH = 2.5


class Adversary:
    """Attacks a model, and counts how often it errs.

    Args:
        model: From images in [0, 1] to class scores.
        augmentation: What it was trained with: it says which view counts.
    """

    def __init__(self, model: keras.Model, augmentation: str = "none"):
        images = tf.TensorSpec((None, *model.input_shape[1:]), tf.float32)
        labels = tf.TensorSpec((None,), tf.int32)

        def scores(images):
            view = one_view(images, augmentation)
            return tf.cast(model(view, training=False), tf.float32)

        @tf.function(input_signature=[images, labels], jit_compile=False)
        def losses(images, labels):
            return tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, scores(images)
            )

        @tf.function(input_signature=[images, labels], jit_compile=False)
        def ascent(images, labels):
            with tf.GradientTape() as tape:
                tape.watch(images)
                loss = tf.reduce_sum(losses(images, labels))
            return tf.sign(tape.gradient(loss, images))

        @tf.function(input_signature=[images, labels], jit_compile=False)
        def errors(images, labels):
            winners = tf.argmax(scores(images), axis=-1, output_type=tf.int32)
            return tf.reduce_sum(tf.cast(winners != labels, tf.int32))

        self.losses = losses
        self.errors = errors
        self._ascent = ascent

    def fgsm(self, images, labels, strength: float):
        """Returns the images after one step of size `strength` in [0, 1]."""
        step = strength * self._ascent(images, labels)
        return tf.clip_by_value(images + step, 0.0, 1.0)

    def pgd(self, images, labels, strength: float, seed: tuple[int, int]):
        """Returns the images after ten steps from a random start."""
        low = tf.maximum(images - strength, 0.0)
        high = tf.minimum(images + strength, 1.0)
        start = tf.random.stateless_uniform(
            tf.shape(images), seed, -strength, strength
        )
        attacked = tf.clip_by_value(images + start, low, high)
        size = PGD_REACH * strength / PGD_STEPS
        for _ in range(PGD_STEPS):
            attacked += size * self._ascent(attacked, labels)
            attacked = tf.clip_by_value(attacked, low, high)
        return attacked


def rotate(images, degrees: float):
    """Turns images about their centre, counter-clockwise."""
    angle = math.radians(degrees)
    cosine, sine = math.cos(angle), math.sin(angle)
    return _moved(images, ((cosine, -sine), (sine, cosine)), (0, 0))


def scale(images, factor: float):
    """Enlarges images about their centre."""
    return _moved(images, ((1 / factor, 0), (0, 1 / factor)), (0, 0))


def shift(images, right: float, down: float):
    """Shifts images right and down, by pixels."""
    return _moved(images, ((1, 0), (0, 1)), (right, down))


def _moved(images, inverse, offset):
    """Reads pixel (x, y) at inverse · (x − cx, y − cy) + (cx, cy) − offset."""
    images = tf.convert_to_tensor(images)
    size = tf.shape(images)[1:3]
    centre = np.array([images.shape[2] - 1, images.shape[1] - 1]) / 2
    rest = centre - np.array(inverse) @ centre - np.array(offset)
    rows = np.hstack([np.array(inverse), rest[:, None]]).ravel()
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=np.array([[*rows, 0, 0]], np.float32),
        output_shape=size,
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="NEAREST",
    )
