"""Rows of our own: `encapnet_small` beside a CNN and a ResNet of its size.

The opponents are as deep, have maps of the same sizes and, within one percent,
as many parameters at inference. Learning rate, weight decay and augmentation of
all three come from the same search (docs/encapnet_small.md).
"""

import dataclasses

from trainers.reproduce.rows import Row

_NETWORKS = {
    "encapnet": ("encapnet_small", {"variant": "encapnet_small"}),
    "cnn": ("CNN, 1,278,191 parameters", {
        "variant": "cnn_same_shape",
        "override": {
            "stem": ((32, 2), (67, 1), (67, 1), (134, 2), (134, 1), (268, 2),
                     (268, 1)),
        },
    }),
    "resnet": ("ResNet, 1,286,354 parameters", {
        "variant": "resnet18",
        "weight_decay": 1e-3,  # the others: 1e-4, of the shared recipe
        "override": {
            "stem": ((32, 2),), "channels": (66, 132, 264),
            "blocks": (1, 1, 1), "strides": (1, 2, 2),
        },
    }),
}  # fmt: skip
# Of few labels: learning rate and augmentation of each, from six trials each.
_FEW_LABELS = {
    "encapnet": {"learning_rate": 3e-3, "augmentation": "strong"},
    "cnn": {"learning_rate": 1e-2, "augmentation": "strong"},
    "resnet": {"learning_rate": 1e-2, "augmentation": "strong"},
}
# Training images, and the share of the epochs: more images, fewer passes.
_SIZES = {500: 1.0, 1_000: 0.7, 2_000: 0.5, 4_000: 0.35, 8_000: 0.25}
_VALIDATION = 0.1


def _row(network):
    label, fields = _NETWORKS[network]
    return Row(network, label, fields)


def _few_labels(network, images, budget):
    row = _row(network)
    own = {
        # A tenth of what is taken serves to validate.
        "limit_train": round(images / (1 - _VALIDATION)),
        "validation_fraction": _VALIDATION,
    }
    name = row.label.partition(",")[0]
    return dataclasses.replace(
        row,
        name=f"{network}_{images}",
        label=f"{name}, {images:,} images",
        fields=row.fields | _FEW_LABELS[network] | own,
        budget=budget,
        point=(name, images),
    )


EQUAL_TIME = tuple(map(_row, _NETWORKS))
FEW_LABELS = tuple(
    _few_labels(network, images, budget)
    for images, budget in _SIZES.items()
    for network in _NETWORKS
)
AFFINE = EQUAL_TIME
