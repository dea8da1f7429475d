"""The networks: a class of hyper-parameters each, with their sources.

A field that a module may set for itself takes one value for all modules or a
tuple with one value per module.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from encapnet_tf import choices
from encapnet_tf.checks import check_above_zero, check_choice, check_positive
from encapnet_tf.config.agreement import VANILLA_AGREEMENT, AgreementConfig


@dataclass(frozen=True)
class NetworkConfig:
    """What every network has."""

    num_classes: int = 10
    input_shape: tuple[int, int, int] = (32, 32, 3)

    # What the class scores are, one of `choices.SCORES`.
    scores: ClassVar[str] = "lengths"
    # Fields with one value per module, and what each may be.
    PER_MODULE: ClassVar[dict[str, tuple]] = {}

    def __post_init__(self):
        """Refuses what no network can take."""
        check_positive(num_classes=self.num_classes)
        shape = tuple(self.input_shape)
        if len(shape) != 3 or not all(
            isinstance(side, int) and side > 0 for side in shape
        ):
            raise ValueError(
                "`input_shape` must be (height, width, channels), three "
                f"positive integers. Received: input_shape={shape}."
            )
        object.__setattr__(self, "input_shape", shape)

    def _spread(self, modules):
        """Gives every module its value of the per-module fields."""
        for name, allowed in self.PER_MODULE.items():
            values = per_module(name, getattr(self, name), modules)
            for value in values:
                check_choice(name, value, allowed)
            object.__setattr__(self, name, values)


@dataclass(frozen=True)
class CapsuleConfig(NetworkConfig):
    """What every network has that ends in class capsules."""

    decoder: str = "none"  # or "conv": Sabour et al., made convolutional
    decoder_weight: float | None = None  # None: the decoder's own

    def __post_init__(self):
        """Checks the decoder."""
        super().__post_init__()
        check_choice("decoder", self.decoder, choices.DECODERS)
        check_above_zero(decoder_weight=self.decoder_weight)


@dataclass(frozen=True)
class EncapNetConfig(CapsuleConfig):
    """EncapNet (table 2): a stem, modules of capConv layers, capFC.

    Module m has one type I layer (kernel 3, capsule entries double) and
    `type2_layers[m]` type II layers (kernel 1).
    """

    stem: tuple[tuple[int, int], ...] = ((32, 1),)  # (channels, stride)
    num_capsules: int = 32  # C, table 2
    type2_layers: tuple[int, ...] = (3, 3, 3, 3)  # N, section 5.1
    strides: tuple[int, ...] = (1, 2, 2, 2)  # table 2
    # Entries of a module's capsules; None: each module doubles them (table 2).
    capsule_dims: tuple[int, ...] | None = None
    # Of a capsule before squash, when training starts; None: γ = 1 (the paper).
    initial_length: float | None = None
    aide: Any = "all"  # layers with an aide branch: "none", "type1", "all"
    coefficients: Any = "both"  # the paper's best (table 3, row 4)
    aide_scope: Any = "others"  # equation 6
    skip: Any = "both"  # table 3, row 7
    skip_type2: Any = "last"  # or "layerwise", the authors' 18-layer run
    cap_fc: str = "per_dimension"  # section 3.1
    agreement: Any = "two"  # table 3, row 8
    agreement_options: AgreementConfig = field(default_factory=AgreementConfig)

    PER_MODULE: ClassVar[dict[str, tuple]] = {
        "aide": choices.AIDES,
        "coefficients": choices.COEFFICIENTS,
        "aide_scope": choices.AIDE_SCOPES,
        "skip": choices.SKIPS,
        "skip_type2": choices.TYPE2_SKIPS,
        "agreement": choices.AGREEMENTS,
    }

    def __post_init__(self):
        """Spreads single values over the modules and checks everything."""
        super().__post_init__()
        check_positive(num_capsules=self.num_capsules)
        check_choice("cap_fc", self.cap_fc, choices.CAP_FC_MODES)
        for name in ("stem", "type2_layers", "strides"):
            value = getattr(self, name)
            if not isinstance(value, (tuple, list)) or not value:
                raise ValueError(
                    f"`{name}` must be a sequence with an entry per layer or "
                    f"module. Received: {name}={value!r}."
                )
        modules = len(self.type2_layers)
        self._spread(modules)
        if len(self.strides) != modules or min(self.type2_layers) < 0:
            raise ValueError(
                "`strides` and `type2_layers` must have one entry per module, "
                f"N ≥ 0. Received: strides={self.strides}, "
                f"type2_layers={self.type2_layers}."
            )
        dims = self.capsule_dims
        if dims is not None and (len(dims) != modules or min(dims) < 1):
            raise ValueError(
                "`capsule_dims` must have one positive entry per module, or be "
                f"None. Received: capsule_dims={dims}, {modules} modules."
            )
        check_above_zero(initial_length=self.initial_length)
        if self.stem[-1][0] % self.num_capsules:
            raise ValueError(
                "The last channels of `stem` must be a multiple of "
                f"`num_capsules`. Received: stem={self.stem}, "
                f"num_capsules={self.num_capsules}."
            )


@dataclass(frozen=True)
class CapNetConfig(CapsuleConfig):
    """CapNet (table 1, rows a and b): the routed baseline."""

    stem: tuple[tuple[int, int], ...] = ((32, 1), (64, 1), (128, 2), (256, 2))
    num_capsules: int = 32  # C, appendix A
    middle_capsules: int = 32  # channels of the fifth layer's capsules
    capsule_dim: int = 16  # E, appendix A
    routing: str = "dynamic"
    num_iterations: int = 3  # R, appendix A
    softmax_over: str = "lower"  # appendix A
    logits: str = "zero"  # table 6

    def __post_init__(self):
        """Checks the routing."""
        super().__post_init__()
        check_positive(
            num_capsules=self.num_capsules,
            middle_capsules=self.middle_capsules,
            capsule_dim=self.capsule_dim,
            num_iterations=self.num_iterations,
        )
        check_choice("routing", self.routing, choices.ROUTINGS)
        check_choice("softmax_over", self.softmax_over, choices.SOFTMAX_OVER)
        check_choice("logits", self.logits, choices.ROUTING_LOGITS)


@dataclass(frozen=True)
class CNNConfig(NetworkConfig):
    """A plain CNN (table 1, rows c and d): convolutions, pooling, dense."""

    stem: tuple[tuple[int, int], ...] = (
        (32, 1), (64, 1), (128, 2), (256, 2), (512, 1),
    )  # fmt: skip
    agreement: str = "none"  # "one": around each convolution but the first
    agreement_options: AgreementConfig = VANILLA_AGREEMENT

    scores: ClassVar[str] = "logits"

    def __post_init__(self):
        """Checks the placement of the agreement units."""
        super().__post_init__()
        check_choice("agreement", self.agreement, choices.CNN_AGREEMENTS)


@dataclass(frozen=True)
class ResNetConfig(NetworkConfig):
    """The ResNet beside EncapNet (table 2, right column)."""

    stem: tuple[tuple[int, int], ...] = ((32, 1),)
    channels: tuple[int, ...] = (64, 128, 256, 512)
    blocks: tuple[int, ...] = (2, 2, 2, 2)  # n, section 5.1
    strides: tuple[int, ...] = (1, 2, 2, 2)
    agreement: Any = "none"  # "one": each stage's input ↔ output
    agreement_options: AgreementConfig = VANILLA_AGREEMENT

    scores: ClassVar[str] = "logits"
    PER_MODULE: ClassVar[dict[str, tuple]] = {"agreement": choices.AGREEMENTS}

    def __post_init__(self):
        """Checks that the stages agree."""
        super().__post_init__()
        stages = len(self.channels)
        if len(self.blocks) != stages or len(self.strides) != stages:
            raise ValueError(
                "`channels`, `blocks` and `strides` must have one entry per "
                f"stage. Received: channels={self.channels}, "
                f"blocks={self.blocks}, strides={self.strides}."
            )
        self._spread(stages)


def per_module(name: str, value: Any, modules: int) -> tuple:
    """Returns one value per module, from one for all or a sequence."""
    if not isinstance(value, (tuple, list)):
        return (value,) * modules
    if len(value) != modules:
        raise ValueError(
            f"`{name}` must be one value or one for each of the {modules} "
            f"modules. Received: {name}={value!r}."
        )
    return tuple(value)
