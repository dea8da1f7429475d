"""Where images come from and how they reach the network.

`load` finds a data set in one of the `sources`, or draws `house_numbers`;
`batches` turns one of its splits into what a network trains on. Importing this
package renders, downloads and reads nothing.
"""

from typing import TYPE_CHECKING

from encapnet_tf.data.sources.catalogue import DATASETS
from encapnet_tf.lazy import IS_LAZY, on_demand

if TYPE_CHECKING or not IS_LAZY:
    from encapnet_tf.data.dataset import Dataset, split_validation
    from encapnet_tf.data.loading import load
    from encapnet_tf.data.pipeline import batches
    from encapnet_tf.data.sources.named import DataUnavailable
    from encapnet_tf.data.splits import Split
    from encapnet_tf.data.views import multi_crop, one_view
else:
    __getattr__ = on_demand(
        __name__,
        {
            "DataUnavailable": "sources.named",
            "Dataset": "dataset",
            "Split": "splits",
            "batches": "pipeline",
            "load": "loading",
            "multi_crop": "views",
            "one_view": "views",
            "split_validation": "dataset",
        },
    )

__all__ = [
    "DATASETS",
    "DataUnavailable",
    "Dataset",
    "Split",
    "batches",
    "load",
    "multi_crop",
    "one_view",
    "split_validation",
]
