"""Every hyper-parameter of every network, with its source.

A variant is one frozen config; `VARIANTS` names them all. A field that a
module may set for itself takes one value for all modules or a tuple with one
value per module.
"""

import dataclasses
import difflib
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from encapnet_tf.checks import check_choice, check_positive

# Which two ends a feedback agreement unit joins, per module:
# "one": module input ↔ module output; "type1": type I output ↔ module output;
# "two": both (paper, section 5.1).
AGREEMENTS = ("none", "one", "type1", "two")
SKIPS = ("none", "type1", "type2", "both")


@dataclass(frozen=True)
class AgreementConfig:
    """One feedback agreement unit (section 3.2)."""

    weight: float = 10.0  # λ, section 3.2
    epsilon: float = 0.1  # appendix B
    num_iterations: int = 10  # L, appendix B
    cost: str = "cosine"  # section 3.2
    debias: bool = True  # equation 11
    plan_gradient: bool = False  # section 3.2: slightly better without
    generator: str = "capsule"  # appendix B
    extractor: str = "conv"  # appendix B
    divergence: str = "sinkhorn"  # section 3.2
    batch: str = "replica"  # ours: each device its own batch, as the authors

    def __post_init__(self):
        """Refuses values that no unit can have."""
        if self.weight < 0 or self.epsilon <= 0:
            raise ValueError(
                "`weight` must be ≥ 0 and `epsilon` > 0. Received: "
                f"weight={self.weight}, epsilon={self.epsilon}. "
                "The paper has 10 and 0.1."
            )
        check_positive(num_iterations=self.num_iterations)
        check_choice("cost", self.cost, ("cosine", "l2", "sqeuclidean"))
        check_choice("generator", self.generator, ("capsule", "vanilla"))
        check_choice("extractor", self.extractor, ("conv", "none"))
        check_choice("divergence", self.divergence, ("sinkhorn", "kl"))
        check_choice("batch", self.batch, ("replica", "global"))


# For networks without capsules (paper, the ResNet rows of table 4).
VANILLA_AGREEMENT = AgreementConfig(generator="vanilla")


@dataclass(frozen=True)
class NetworkConfig:
    """What every network has."""

    num_classes: int = 10
    input_shape: tuple[int, int, int] = (32, 32, 3)

    # Fields with one value per module, and what each may be.
    _PER_MODULE: ClassVar[dict[str, tuple]] = {}

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
        for name, choices in self._PER_MODULE.items():
            values = per_module(name, getattr(self, name), modules)
            for value in values:
                check_choice(name, value, choices)
            object.__setattr__(self, name, values)


@dataclass(frozen=True)
class EncapNetConfig(NetworkConfig):
    """EncapNet (table 2): a stem, modules of capConv layers, capFC.

    Module m has one type I layer (kernel 3, capsule entries double) and
    `type2_layers[m]` type II layers (kernel 1).
    """

    stem: tuple[tuple[int, int], ...] = ((32, 1),)  # (channels, stride)
    num_capsules: int = 32  # C, table 2
    type2_layers: tuple[int, ...] = (3, 3, 3, 3)  # N, section 5.1
    strides: tuple[int, ...] = (1, 2, 2, 2)  # table 2
    aide: Any = "all"  # layers with an aide branch: "none", "type1", "all"
    coefficients: Any = "both"  # the paper's best (table 3, row 4)
    aide_scope: Any = "others"  # equation 6
    skip: Any = "both"  # table 3, row 7
    skip_type2: Any = "last"  # or "layerwise", the authors' 18-layer run
    cap_fc: str = "per_dimension"  # section 3.1
    agreement: Any = "two"  # table 3, row 8
    agreement_options: AgreementConfig = field(default_factory=AgreementConfig)

    _PER_MODULE: ClassVar[dict[str, tuple]] = {
        "aide": ("none", "type1", "all"),
        "coefficients": ("own", "cross", "both"),
        "aide_scope": ("others", "all"),
        "skip": SKIPS,
        "skip_type2": ("last", "layerwise"),
        "agreement": AGREEMENTS,
    }

    def __post_init__(self):
        """Spreads single values over the modules and checks everything."""
        super().__post_init__()
        check_positive(num_capsules=self.num_capsules)
        check_choice(
            "cap_fc", self.cap_fc, ("per_dimension", "dense", "shared")
        )
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
        if self.stem[-1][0] % self.num_capsules:
            raise ValueError(
                "The last channels of `stem` must be a multiple of "
                f"`num_capsules`. Received: stem={self.stem}, "
                f"num_capsules={self.num_capsules}."
            )


@dataclass(frozen=True)
class CapNetConfig(NetworkConfig):
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
        check_choice("routing", self.routing, ("dynamic", "em"))
        check_choice("softmax_over", self.softmax_over, ("lower", "higher"))
        check_choice("logits", self.logits, ("zero", "random", "learnable"))


@dataclass(frozen=True)
class CNNConfig(NetworkConfig):
    """A plain CNN (table 1, rows c and d): convolutions, pooling, dense."""

    stem: tuple[tuple[int, int], ...] = (
        (32, 1), (64, 1), (128, 2), (256, 2), (512, 1),
    )  # fmt: skip
    agreement: str = "none"  # "one": around each convolution but the first
    agreement_options: AgreementConfig = VANILLA_AGREEMENT

    def __post_init__(self):
        """Checks the placement of the agreement units."""
        super().__post_init__()
        check_choice("agreement", self.agreement, ("none", "one"))


@dataclass(frozen=True)
class ResNetConfig(NetworkConfig):
    """The ResNet beside EncapNet (table 2, right column)."""

    stem: tuple[tuple[int, int], ...] = ((32, 1),)
    channels: tuple[int, ...] = (64, 128, 256, 512)
    blocks: tuple[int, ...] = (2, 2, 2, 2)  # n, section 5.1
    strides: tuple[int, ...] = (1, 2, 2, 2)
    agreement: Any = "none"  # "one": each stage's input ↔ output
    agreement_options: AgreementConfig = VANILLA_AGREEMENT

    _PER_MODULE: ClassVar[dict[str, tuple]] = {"agreement": AGREEMENTS}

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


def override(config: NetworkConfig, **overrides: Any) -> NetworkConfig:
    """Returns the config with some fields replaced.

    `agreement_options` may be a dictionary with only the options to change. A
    per-module field that was spread over the modules may change together with
    the number of modules.
    """
    names = {f.name: f for f in dataclasses.fields(config)}
    unknown = sorted(set(overrides) - set(names))
    if unknown:
        raise ValueError(
            f"{type(config).__name__} has no field {', '.join(unknown)}. "
            f"Received: {overrides}. Its fields: {', '.join(sorted(names))}."
        )
    options = overrides.get("agreement_options")
    if isinstance(options, dict):
        known = {f.name for f in dataclasses.fields(AgreementConfig)}
        if set(options) - known:
            raise ValueError(
                f"`agreement_options` may have {', '.join(sorted(known))}. "
                f"Received: agreement_options={options}."
            )
        overrides["agreement_options"] = replace(
            config.agreement_options, **options
        )
    # Uniform per-module fields follow a new number of modules.
    uniform = {
        name: getattr(config, name)[0]
        for name in config._PER_MODULE
        if len(set(getattr(config, name))) == 1
    }
    return replace(config, **(uniform | overrides))


# The six layers of table 1, rows e and f: the stem of CapNet, one module.
_ENCAPNET6 = EncapNetConfig(
    stem=((32, 1), (64, 1), (128, 2), (256, 2)),
    type2_layers=(0,),
    strides=(2,),
    aide_scope="all",
    coefficients="cross",
    skip="type1",
    agreement="none",
)
# The authors' 14-layer runs (their released code).
_ENCAPNET14 = EncapNetConfig(
    type2_layers=(2, 2, 2, 2),
    aide=("none", "none", "all", "all"),
    aide_scope="all",
    coefficients="cross",
    agreement=("none", "none", "type1", "one"),
)
_V1 = EncapNetConfig()
_V2 = EncapNetConfig(
    num_classes=200,
    input_shape=(128, 128, 3),
    type2_layers=(8, 11, 68, 8),  # ours: ResNet-101's proportions, 101 layers
    aide=("none", "none", "type1", "all"),  # section 5.2: master when shallow
    skip_type2="layerwise",  # ours: 68 layers do not train without
)

VARIANTS: dict[str, NetworkConfig] = {
    "capnet_dynamic": CapNetConfig(),
    "capnet_em": CapNetConfig(routing="em"),
    "cnn_same_shape": CNNConfig(),
    "cnn_similar_param": CNNConfig(
        stem=((32, 1), (256, 1), (512, 2), (512, 2), (1300, 1))
    ),
    "encapnet6_master": replace(_ENCAPNET6, aide="none"),
    "encapnet6": _ENCAPNET6,
    "encapnet14_authors_master": replace(_ENCAPNET14, aide="none"),
    "encapnet14_authors": _ENCAPNET14,
    "encapnet_v1_authors": EncapNetConfig(
        aide_scope="all",
        coefficients=("own", "own", "cross", "cross"),
        skip_type2=("layerwise", "last", "layerwise", "layerwise"),
        agreement=("type1", "one", "type1", "one"),
    ),
    "encapnet_v1": _V1,
    "resnet18": ResNetConfig(),
    "encapnet_v2": _V2,
    "encapnet_v3": replace(_V2, input_shape=(224, 224, 3)),
    # Ours: what a laptop CPU trains in minutes.
    "encapnet_small": EncapNetConfig(
        stem=((32, 2),),
        num_capsules=16,
        type2_layers=(1, 1, 1),
        strides=(1, 2, 2),
        aide=("none", "none", "type1"),
        agreement=("none", "none", "one"),
        agreement_options=AgreementConfig(weight=1.0),
    ),
    # Ours: every mechanism at the least cost, for tests.
    "encapnet_tiny": EncapNetConfig(
        stem=((8, 2),),
        num_capsules=4,
        type2_layers=(1, 1),
        strides=(2, 2),
    ),
}


def variant_config(variant: str, **overrides: Any) -> NetworkConfig:
    """Returns the config of a variant, with some fields replaced."""
    if variant not in VARIANTS:
        close = difflib.get_close_matches(variant, VARIANTS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"`variant` must be one of {', '.join(VARIANTS)}. "
            f"Received: variant={variant!r}.{hint}"
        )
    return override(VARIANTS[variant], **overrides)
