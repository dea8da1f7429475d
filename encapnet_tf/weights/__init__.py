"""Trained weights: those that ship with the package, and a user's own.

Each shipped network is an archive here, `NAME.npz`, with its model card,
`NAME.md`, and some test images, `NAME.samples.npz`. `archive` reads and writes
such files, `trained` gives them, or those of a run, to a network.
"""

from encapnet_tf.weights.archive import sample_images

__all__ = ["MODEL_FILE", "SHIPPED", "sample_images"]

# The names that `create_model(weights=…)` takes.
SHIPPED = ("house_numbers", "mnist")
# What a run's folder calls its network.
MODEL_FILE = "model.keras"
