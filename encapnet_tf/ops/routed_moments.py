"""Sums of lower capsules, weighted by a softmax of their scores.

All that routing does with its N·M coefficients, without keeping them: they are
made for one image at a time, in the forward pass and again in the backward
pass. Letters: C capsule channels of P places each (N = C·P lower capsules), F
features of a lower capsule, M higher capsules.
"""

import tensorflow as tf

from encapnet_tf.ops import forms


def routed_moments(
    features: tf.Tensor,
    queries: tf.Tensor,
    *,
    softmax_over: str,
    logits: tf.Tensor | None = None,
    gains: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns Σ_p c·g·f, with coefficients c = softmax(f·q + b).

    Args:
        features: f `(B, C, P, F)`. The first of the F is a 1, and gets no
            gradient worth having.
        queries: q `(B, C, F, M)`.
        softmax_over: "lower" (the C·P together) or "higher" (the M).
        logits: b `(C·P, M)`; zero where not given.
        gains: g `(B, C, P)`, only with a softmax over "higher"; one where
            not given.

    Returns:
        Moments `(B, C, F, M)`.
    """
    _, channels, places, _ = features.shape
    higher = queries.shape[-1]
    at_once = forms.routes_at_once(channels * places * higher)
    images = _at_once if at_once else _one_by_one
    route = _over_lower if softmax_over == "lower" else _over_higher
    values = features if gains is None else features * gains[..., None]
    inputs = [features, values, queries]
    if logits is not None:
        inputs.append(tf.reshape(logits, (channels, places, higher)))
    return tf.custom_gradient(lambda *inputs: route(images, *inputs))(*inputs)


def _over_lower(images, keys, values, queries, *logits):
    """Moments and their gradient; softmax over the lower capsules.

    The denominators are the sums of the first feature, the 1. What has to be
    taken off the scores, and off their gradients, is taken off the first
    query: of M·F numbers, not of N·M.
    """

    def exponential_sums(keys, values, queries):
        scores = _scores(keys, queries, logits)
        largest = tf.reduce_max(scores, axis=-2, keepdims=True)
        largest = tf.reduce_max(largest, axis=-3, keepdims=True)
        weights = tf.exp(scores - largest)
        return tf.matmul(values, weights, transpose_a=True), largest

    sums, largest = images(exponential_sums, (keys, values, queries), 2)
    totals = tf.reduce_sum(sums[..., :1, :], axis=-3, keepdims=True)
    moments = sums / totals

    def gradient(upstream):
        means = tf.reduce_sum(moments * upstream, (-3, -2), keepdims=True)
        first = tf.one_hot([0], queries.shape[-2], axis=0, dtype=keys.dtype)
        centred = (
            queries - first * (largest + tf.math.log(totals)),
            upstream - first * means,
        )

        def pull_back(keys, values, queries, upstream):
            coefficients = tf.exp(_scores(keys, queries, logits))
            slopes = coefficients * tf.matmul(values, upstream)
            return tf.matmul(coefficients, upstream, transpose_b=True), slopes

        return _gradients(images, pull_back, (keys, values, *centred), logits)

    return moments, gradient


def _over_higher(images, keys, values, queries, *logits):
    """Moments and their gradient; softmax over the higher capsules."""

    def moments(keys, values, queries):
        coefficients = tf.nn.softmax(_scores(keys, queries, logits))
        return (tf.matmul(values, coefficients, transpose_a=True),)

    def gradient(upstream):
        def pull_back(keys, values, queries, upstream):
            coefficients = tf.nn.softmax(_scores(keys, queries, logits))
            of_values = tf.matmul(coefficients, upstream, transpose_b=True)
            means = tf.reduce_sum(values * of_values, axis=-1, keepdims=True)
            slopes = coefficients * (tf.matmul(values, upstream) - means)
            return of_values, slopes

        inputs = (keys, values, queries, upstream)
        return _gradients(images, pull_back, inputs, logits)

    return *images(moments, (keys, values, queries), 1), gradient


def _scores(keys, queries, logits):
    scores = tf.matmul(keys, queries)
    return scores + logits[0] if logits else scores


def _gradients(images, pull_back, inputs, logits):
    """Gradients of keys, values, queries and, where there are any, logits.

    Args:
        images: How to go through the batch.
        pull_back: From one image's keys, values, queries and upstream
            gradient to the gradients of its values and its scores.
        inputs: These four of the batch.
        logits: None or one, in a tuple.
    """

    def of_image(keys, values, queries, upstream):
        of_values, of_scores = pull_back(keys, values, queries, upstream)
        of_keys = tf.matmul(of_scores, queries, transpose_b=True)
        of_queries = tf.matmul(keys, of_scores, transpose_a=True)
        return of_keys, of_values, of_queries, of_scores

    totals = tuple(tf.zeros_like(values) for values in logits)
    return images(of_image, inputs, 3, totals)


def _at_once(function, tensors, num_outputs, totals=()):
    """Like `_one_by_one`, for the whole batch at once."""
    outputs = function(*tensors)
    added = outputs[num_outputs:][: len(totals)]
    return *outputs[:num_outputs], *(tf.reduce_sum(o, axis=0) for o in added)


def _one_by_one(function, tensors, num_outputs, totals=()):
    """Goes through a batch image by image.

    Args:
        function: From one image's part of the tensors to its outputs.
        tensors: Tensors of the batch.
        num_outputs: How many of the outputs are stacked.
        totals: What the sums of the next outputs over the images start from.

    Returns:
        The stacked outputs, then the totals.
    """
    size = tensors[0].shape[0] or tf.shape(tensors[0])[0]
    arrays = [
        tf.TensorArray(tensors[0].dtype, size) for _ in range(num_outputs)
    ]

    def turn(image, arrays, totals):
        outputs = function(*(tensor[image] for tensor in tensors))
        added = outputs[num_outputs:][: len(totals)]
        arrays = [
            array.write(image, output)
            for array, output in zip(arrays, outputs, strict=False)
        ]
        totals = [total + o for total, o in zip(totals, added, strict=True)]
        return image + 1, arrays, totals

    _, arrays, totals = tf.while_loop(
        lambda image, *_: image < size,
        turn,
        (0, arrays, list(totals)),
        parallel_iterations=1,
        maximum_iterations=size,
    )
    return *(array.stack() for array in arrays), *totals
