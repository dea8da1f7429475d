"""How votes come to agree with what they vote for (figure 2)."""

import json
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.data import Split
from encapnet_tf.layers import RoutedCapsules
from trainers.evaluate.capsules import class_capsules
from trainers.files import write_json
from trainers.runs.folder import RunFolder
from trainers.scoring import stored_batches

NUM_BINS = 21  # figure 2
# The paper's epochs 1, 20, 80 and 200 of 200.
SNAPSHOTS = (1 / 200, 20 / 200, 80 / 200, 1.0)
# Ours: 256 images have half a million votes for their classes.
_IMAGES = 256
_BATCH = 32
FILE = "routing.json"


class VotesSnapshot(NamedTuple):
    """Votes v̂_{j|i} for the class j of each image, over lower capsules i.

    Attributes:
        percent: Share of the votes in each bin of cos(v_j, v̂_{j|i}), from −1
            to 1, in percent.
        lengths: Mean |v̂_{j|i}| in each bin; NaN in empty ones.
    """

    percent: np.ndarray
    lengths: np.ndarray


def vote_statistics(
    capsules: np.ndarray, votes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sorts votes into bins by how much they agree with their capsule.

    Args:
        capsules: v_j `(B, E)`.
        votes: v̂_{j|i} `(B, N, E)`.

    Returns:
        The number of votes and the sum of their lengths, per bin.

    Example:
        >>> counts, _ = vote_statistics(np.eye(2), np.ones((2, 3, 2)))
        >>> int(counts.argmax()), int(counts.max())
        (17, 6)
    """
    lengths = np.linalg.norm(votes, axis=-1)
    scale = lengths * np.linalg.norm(capsules, axis=-1)[:, None]
    products = np.einsum("be,bne->bn", capsules, votes)
    # A vote or capsule of no length has no direction: cos = 0.
    cosines = np.divide(
        products, scale, out=np.zeros_like(products), where=scale > 0
    )
    places = np.floor((cosines + 1) / 2 * NUM_BINS).astype(int)
    places = places.clip(0, NUM_BINS - 1).ravel()
    counts = np.bincount(places, minlength=NUM_BINS)
    sums = np.bincount(places, lengths.ravel(), minlength=NUM_BINS)
    return counts, sums


def has_routing(model: keras.Model) -> bool:
    """Whether the class capsules come from agreement routing."""
    return any(
        layer.name == "class_capsules" and isinstance(layer, RoutedCapsules)
        for layer in model.layers
    )


def measure_votes(model: keras.Model, split: Split) -> VotesSnapshot:
    """Looks at the votes for the classes of some images of a split."""
    split = split.take(min(_IMAGES, split.num_examples))
    layer = model.get_layer("class_capsules")
    lower = tf.nest.flatten(layer.input)[0]
    reader = keras.Model(model.inputs, [lower, class_capsules(model)])

    @tf.function(reduce_retracing=True)
    def read(images, labels):
        maps, capsules = reader(images, training=False)
        votes = tf.gather(layer.votes(maps), labels, axis=2, batch_dims=1)
        own = tf.gather(capsules, labels, axis=1, batch_dims=1)
        return tf.cast(own, tf.float32), tf.cast(votes, tf.float32)

    counts, sums = np.zeros(NUM_BINS), np.zeros(NUM_BINS)
    for images, labels in stored_batches(model, split).rebatch(_BATCH):
        found = vote_statistics(*(v.numpy() for v in read(images, labels)))
        counts, sums = counts + found[0], sums + found[1]
    with np.errstate(invalid="ignore"):
        return VotesSnapshot(100 * counts / counts.sum(), sums / counts)


class RoutingDynamics(keras.callbacks.Callback):
    """Writes `routing.json` in a run's folder: votes at several epochs.

    Args:
        epochs: How many epochs the run has.
        folder: The run's folder.

    Attributes:
        split: Where the images are taken from; set it before the run.
    """

    def __init__(self, epochs: int, folder: RunFolder):
        super().__init__()
        self._epochs = {max(1, round(share * epochs)) for share in SNAPSHOTS}
        self._folder = folder
        self.split: Split | None = None

    def on_epoch_end(self, epoch, logs=None):
        """Measures, if it is time to."""
        if epoch + 1 not in self._epochs or not has_routing(self.model):
            return
        found = measure_votes(self.model, self.split)
        snapshot = {
            "epoch": epoch + 1,
            "percent": found.percent.tolist(),
            # JSON has no NaN.
            "lengths": [None if np.isnan(n) else n for n in found.lengths],
        }
        earlier = [
            s for s in read_snapshots(self._folder) if s["epoch"] <= epoch
        ]
        write_json(self._folder.path / FILE, [*earlier, snapshot])


def read_snapshots(folder: RunFolder) -> list[dict]:
    """Returns what `RoutingDynamics` wrote, one entry per epoch."""
    path = folder.path / FILE
    return json.loads(path.read_text()) if path.exists() else []
