"""Where images come from and how they reach the network.

`load` finds a data set, `batches` turns one of its splits into what a network
trains on. Importing this package renders, downloads and reads nothing.
"""

from encapnet_tf.data.dataset import Dataset, split_validation
from encapnet_tf.data.loading import DATASETS, load
from encapnet_tf.data.named import DataUnavailable
from encapnet_tf.data.pipeline import batches, multi_crop
from encapnet_tf.data.splits import Split

__all__ = [
    "DATASETS",
    "DataUnavailable",
    "Dataset",
    "Split",
    "batches",
    "load",
    "multi_crop",
    "split_validation",
]
