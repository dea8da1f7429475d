"""Capsules in an image: how C capsules of D entries lie in C·D channels.

Capsule c owns the channels c·D … c·D+D−1. Where capsules stand in a row,
capsule i = c·H·W + h·W + w.
"""

import tensorflow as tf

from encapnet_tf.ops import forms
from encapnet_tf.ops.squash import squash, squash_maps


def split_capsules(maps: tf.Tensor, num_capsules: int) -> tf.Tensor:
    """Gives the capsules an axis: `(B, H, W, C·D)` → `(B, H, W, C, D)`."""
    maps = tf.convert_to_tensor(maps)
    dim = maps.shape[-1] // num_capsules
    return tf.reshape(maps, (*_space(maps), num_capsules, dim))


def merge_capsules(capsules: tf.Tensor) -> tf.Tensor:
    """Undoes `split_capsules`."""
    capsules = tf.convert_to_tensor(capsules)
    *_, num_capsules, dim = capsules.shape
    return tf.reshape(capsules, (*_space(capsules), num_capsules * dim))


def list_capsules(maps: tf.Tensor, num_capsules: int) -> tf.Tensor:
    """Puts the capsules in a row: `(B, H, W, C·D)` → `(B, N, D)`."""
    capsules = tf.transpose(split_capsules(maps, num_capsules), (0, 3, 1, 2, 4))
    shape = tf.shape(capsules)
    static = capsules.shape
    count = shape[1] * shape[2] * shape[3]
    if static[1:4].is_fully_defined():
        count = static[1] * static[2] * static[3]
    return tf.reshape(capsules, (shape[0], count, static[4]))


def arrange_capsules(capsules: tf.Tensor, height: int, width: int) -> tf.Tensor:
    """Undoes `list_capsules`: `(B, N, D)` → `(B, H, W, C·D)`."""
    _, count, dim = capsules.shape
    num_capsules = count // (height * width)
    capsules = tf.reshape(capsules, (-1, num_capsules, height, width, dim))
    return merge_capsules(tf.transpose(capsules, (0, 2, 3, 1, 4)))


def activate_capsules(maps: tf.Tensor, num_capsules: int) -> tf.Tensor:
    """ReLU, then squash capsule by capsule; the shape stays."""
    maps = tf.nn.relu(maps)
    if forms.squashes_by_products():
        return squash_maps(maps, num_capsules)
    return merge_capsules(squash(split_capsules(maps, num_capsules)))


def _space(tensor):
    """Batch, height and width, as numbers wherever they are known."""
    if tensor.shape[1:3].is_fully_defined():
        return (-1, *tensor.shape[1:3])
    return tuple(tf.unstack(tf.shape(tensor)[:3]))
