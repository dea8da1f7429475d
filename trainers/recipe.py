"""How a network is trained: every choice, with its source.

The fields are the flags of `trainers.fit`, the content of a run's
`config.json` and what a search varies.
"""

import dataclasses
import functools
import math
import pathlib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import encapnet_tf
from encapnet_tf.checks import check_choice, did_you_mean
from encapnet_tf.choices import (
    AGREEMENTS,
    AUGMENTATIONS,
    DECODERS,
    mirrors,
)
from encapnet_tf.config import (
    VARIANTS,
    NetworkConfig,
    variant_config,
)
from encapnet_tf.data.images.sizes import height_and_width, size_text
from encapnet_tf.data.sources.catalogue import DATASETS
from trainers.choices import (
    CLASS_WEIGHTS,
    OPTIMIZERS,
    POLICIES,
    SCHEDULES,
)
from trainers.files import write_json

if TYPE_CHECKING:
    import keras

# Short runs of our own small variants, found by trying on two cores.
QUICK = {
    "epochs": None,  # by steps: `length_of_a_quick_run`
    "learning_rate": 3e-3,
    "batch_size": 64,
    "weight_decay": 1e-4,
    "schedule": "cosine",
    "augmentation": "mild",
    "agreement_ramp": 0.3,
}
QUICK_VARIANTS = ("encapnet_small", "encapnet_tiny")
# What the built-in data need; three hundred photos have three steps an epoch.
QUICK_STEPS = 1_100
QUICK_EPOCHS = (4, 60)


_AT_LEAST_1 = (">= 1", lambda value: value >= 1)
_AT_LEAST_0 = (">= 0", lambda value: value >= 0)
_ABOVE_0 = ("> 0", lambda value: value > 0)
_BETWEEN = ("> 0 and < 1", lambda value: 0 < value < 1)
# What a number may be, in words and as a test; None is no number.
_RANGES = {
    "epochs": _AT_LEAST_1,
    "steps_per_epoch": _AT_LEAST_1,
    "batch_size": _AT_LEAST_1,
    "limit_train": _AT_LEAST_1,
    "limit_test": _AT_LEAST_1,
    "patience": _AT_LEAST_1,
    "seed": _AT_LEAST_0,
    "subset_seed": _AT_LEAST_0,
    "weight_decay": _AT_LEAST_0,
    "learning_rate": _ABOVE_0,
    "clip_norm": _ABOVE_0,
    "validation_fraction": _BETWEEN,
    "ema": _BETWEEN,
    "target_error": _BETWEEN,
    "agreement_ramp": (">= 0 and <= 1", lambda value: 0 <= value <= 1),
}


def _flag(group, default, help_text, choices=()):
    metadata = {"help": help_text, "group": group, "choices": tuple(choices)}
    return field(default=default, metadata=metadata)


# Each under its group in the help.
_data, _network, _training, _agreement, _test = (
    functools.partial(_flag, group)
    for group in ("data", "network", "training", "agreement", "test")
)


@dataclass(frozen=True)
class Recipe:
    """One training run. The defaults are the paper's (section 5)."""

    variant: str = _network(
        "encapnet_small", "Network, see `trainers.summary`.", choices=VARIANTS
    )
    dataset: str = _data(
        "house_numbers",
        "house_numbers (built in), svhn, cifar10, cifar100, mnist, "
        "fashion_mnist, affine_mnist, imagenet2012, npz:PATH or folder:PATH.",
        choices=DATASETS,
    )
    data_dir: str | None = _data(None, "Folder with NAME.npz or tfds data.")
    image_size: str | int | None = _data(
        None, "Fit the images to this size: 96, or 96x64 (height x width). "
        "Default: as they are; 32 for folder:, 128 for imagenet2012.",
    )  # fmt: skip
    epochs: int | None = _training(600, "Passes over the training data.")
    steps_per_epoch: int | None = _training(
        None, "End each pass after this many steps; default: all images once."
    )
    batch_size: int = _training(128, "Global batch, over all devices.")
    optimizer: str = _training(
        "adam", "adam, sgd, rmsprop or any of Keras.", choices=OPTIMIZERS
    )
    learning_rate: float = _training(1e-4, "Learning rate at the start.")
    weight_decay: float = _training(
        5e-4, "L2 in the gradient of kernels (decoupled for adamw, lion, lamb)."
    )
    schedule: str = _training(
        "steps",
        "steps: x0.1 after 1/3, 1/2 and 2/3 of the run (the paper's 200, 300, "
        "400 of 600); cosine: a short rise, then to zero; constant.",
        choices=SCHEDULES,
    )
    loss: str = _training(
        "auto",
        "margin, spread, spread_fixed, cross_entropy or any of Keras; auto: "
        "margin for capsules, cross_entropy else.",
    )
    augmentation: str = _data(
        "none", "none, mild, mirrored or strong.", choices=AUGMENTATIONS
    )
    agreement: str | None = _agreement(
        None,
        "Agreement units: none, one, two; default the variant's own.",
        choices=AGREEMENTS,
    )
    agreement_weight: float | None = _agreement(None, "lambda of the units.")
    agreement_epsilon: float | None = _agreement(None, "epsilon of the units.")
    agreement_ramp: float = _agreement(
        0.0, "Share of the run over which lambda rises from 0."
    )
    decoder: str | None = _network(
        None, "Decoder of the class capsules: none, conv; default the "
        "variant's own.", choices=DECODERS,
    )  # fmt: skip
    decoder_weight: float | None = _network(
        None, "Weight of the squared error of an image, summed over its "
        "values; default 0.0005 for images in grey, 0.003 in colour.",
    )  # fmt: skip
    override: dict = _network(
        None, "More fields of the variant's config, NAME=VALUE, repeatable."
    )
    validation_fraction: float = _test(
        0.1, "Share of the training data to select on, where the data have no "
        "val part; the test data are read once, at the end."
    )  # fmt: skip
    limit_train: int | None = _data(None, "Use only this many training images.")
    limit_test: int | None = _test(None, "Test on only this many images.")
    class_weights: str = _data(
        "none",
        "none, or balanced: rare classes count more.",
        choices=CLASS_WEIGHTS,
    )
    clip_norm: float | None = _training(None, "Clip the global gradient norm.")
    ema: float | None = _training(
        None,
        "Momentum of averaged weights, e.g. 0.99; the averaged weights are "
        "evaluated and saved.",
    )
    patience: int | None = _training(
        None, "Stop after this many epochs without a better validation error."
    )
    target_error: float | None = _training(
        None, "Stop after the epoch whose validation error is at most this."
    )
    multi_crop: bool | None = _test(
        None,
        "Test on five crops too (ten where training mirrored); default: "
        "if augmented.",
    )
    flip: bool | None = _data(
        None, "Mirror images in augmentation mirrored and strong, and in tests "
        "after it. Default: where it is known to be safe; never for npz: and "
        "folder:.",
    )  # fmt: skip
    dtype_policy: str = _network(
        "float32", ", ".join(POLICIES) + ".", choices=POLICIES
    )
    init_from: str | None = _network(
        None,
        "Start from the weights of this run or .keras file; the classes may "
        "differ.",
    )
    seed: int = _training(0, "Seed of weights, order and augmentation.")
    subset_seed: int | None = _data(
        None, "Seed of which images --limit_train, --limit_test and "
        "--validation_fraction take; default: --seed. Several seeds then see "
        "the same images.",
    )  # fmt: skip
    deterministic: bool = _training(
        False,
        "The same numbers from the same seed on GPUs too, bit for bit, if "
        "slower; a CPU gives them without it.",
    )

    def __post_init__(self):
        """Refuses what cannot be trained, before anything is loaded."""
        object.__setattr__(self, "override", dict(self.override or {}))
        object.__setattr__(self, "image_size", _plain_size(self.image_size))
        for name, (words, holds) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not holds(value):
                raise ValueError(
                    f"`{name}` must be {words}. Received: {name}={value}."
                )
        check_dataset(self.dataset)
        check_choice("optimizer", self.optimizer.lower(), OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("augmentation", self.augmentation, AUGMENTATIONS)
        check_choice("class_weights", self.class_weights, CLASS_WEIGHTS)
        check_choice("dtype_policy", self.dtype_policy, POLICIES)
        self.network()

    @property
    def label(self) -> str:
        """What its folders are named after: the network and the data."""
        return f"{self.variant}-{self.dataset.partition(':')[0]}"

    @property
    def seed_of_subsets(self) -> int:
        """The seed of which images are taken."""
        return self.seed if self.subset_seed is None else self.subset_seed

    def network(self, **more: Any) -> NetworkConfig:
        """Returns the config of the network that this recipe trains."""
        overrides = dict(self.override) | more
        for name in ("agreement", "decoder", "decoder_weight"):
            if getattr(self, name) is not None:
                overrides[name] = getattr(self, name)
        options = dict(overrides.pop("agreement_options", {}))
        if self.agreement_weight is not None:
            options["weight"] = self.agreement_weight
        if self.agreement_epsilon is not None:
            options["epsilon"] = self.agreement_epsilon
        if options:
            overrides["agreement_options"] = options
        return variant_config(self.variant, **overrides)

    def build(
        self, num_classes: int, image_shape: tuple[int, int, int]
    ) -> "keras.Model":
        """Builds the network, with fresh weights."""
        network = self.network(num_classes=num_classes, input_shape=image_shape)
        overrides = {f.name: getattr(network, f.name) for f in fields(network)}
        return encapnet_tf.create_model(self.variant, **overrides)

    def loss_name(self) -> str:
        """Returns the loss, `auto` resolved."""
        if self.loss != "auto":
            return self.loss
        lengths = self.network().scores == "lengths"
        return "margin" if lengths else "cross_entropy"

    def mirrors(self, is_safe: bool) -> bool:
        """Whether training shows mirrored images, so that tests may too.

        Args:
            is_safe: Whether a mirrored image is known to show its class.
        """
        flip = is_safe if self.flip is None else self.flip
        return mirrors(self.augmentation, flip)

    def tests_crops(self) -> bool:
        """Whether the test looks at several crops, too."""
        if self.multi_crop is None:
            return self.augmentation != "none"
        return self.multi_crop

    def save(self, path: pathlib.Path) -> None:
        """Writes the recipe as JSON."""
        write_json(path, dataclasses.asdict(self))


def make_recipe(given: dict[str, Any]) -> Recipe:
    """Fills up what was not given: quick defaults for our small variants."""
    known = {f.name for f in fields(Recipe)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ValueError(
            f"A recipe has no field {', '.join(unknown)}. Its fields: "
            f"{', '.join(sorted(known))}. Received: {given}."
        )
    variant = given.get("variant", Recipe.variant)
    preset = QUICK if variant in QUICK_VARIANTS else {}
    return Recipe(**(preset | given))


def has_units(network: NetworkConfig) -> bool:
    """Whether a network has agreement units."""
    placement = getattr(network, "agreement", "none")
    modules = [placement] if isinstance(placement, str) else placement
    return set(modules) != {"none"}


def length_of_a_quick_run(steps: int) -> int:
    """Returns the default epochs of small variants, by the steps of each.

    Example:
        >>> [length_of_a_quick_run(steps) for steps in (3, 28, 281, 1030)]
        [60, 40, 4, 4]
    """
    least, most = QUICK_EPOCHS
    return min(most, max(least, math.ceil(QUICK_STEPS / steps)))


def _plain_size(image_size):
    """A number for a square, text such as "96x64" for height and width."""
    size = height_and_width(image_size)
    if size is None or size[0] == size[1]:
        return size and size[0]
    return size_text(*size)


def check_dataset(dataset: str) -> None:
    """Refuses a name that `encapnet_tf.data.load` does not know."""
    kind, _, path = dataset.partition(":")
    named = [name for name in DATASETS if ":" not in name]
    if (path and kind in ("npz", "folder")) or dataset in named:
        return
    raise ValueError(
        f"`dataset` must be one of {', '.join(DATASETS)}. "
        f"Received: dataset={dataset!r}.{did_you_mean(dataset, named)}"
    )
