"""Whether both sides compute the same, in float64."""

import keras
import numpy as np

import encapnet_tf
from benchmarks.peer_torch.ours import bare_model, by_path

# Largest difference of scores in float64, relative to the largest score.
TOLERANCE = 1e-5


def make_ours(variant):
    """Returns our bare network, its weights away from their start.

    Votes start so small that the scores of CapNet are zero in float32; they
    are made as large as training makes them, or the check would be void.
    """
    model = bare_model(variant)
    rng = np.random.default_rng(0)
    for variable in model.non_trainable_variables:
        centre = 1.0 if variable.name == "moving_variance" else 0.0
        noise = rng.uniform(-0.1, 0.1, variable.shape)
        variable.assign(centre + noise)
    for layer in model.layers:
        if isinstance(layer, encapnet_tf.layers.RoutedCapsules):
            layer.kernel.assign(layer.kernel / np.std(layer.kernel))
    return model


def difference(variant):
    """Returns by how much the peer's scores differ from ours, in float64."""
    from benchmarks.peer_torch import theirs

    keras.config.set_dtype_policy("float64")
    try:
        model = make_ours(variant)
    finally:
        keras.config.set_dtype_policy("float32")
    # The peer takes its weights in float32.
    model.set_weights([np.float32(w) for w in model.get_weights()])
    images = np.random.default_rng(1).uniform(size=(2, 32, 32, 3))
    parameters = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    network = theirs.matching_peer(variant, by_path(model), parameters)
    return check(variant, model, images, theirs.scores(network, images))


def check(variant, model, images, peer_scores):
    """Refuses a peer whose scores differ; returns the largest difference."""
    ours = model(images, training=False), model(images, training=True)
    differences = [
        np.abs(our - their).max() / np.abs(our).max()
        for our, their in zip(map(np.asarray, ours), peer_scores, strict=True)
    ]
    # Unlike Python's, NumPy's maximum does not pass over NaN.
    difference = np.max(differences)
    if not difference <= TOLERANCE:
        raise ValueError(
            f"The peer of {variant} must compute our scores within "
            f"{TOLERANCE}. Received: a difference of {difference:.1e}."
        )
    return difference
