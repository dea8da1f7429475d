"""Every row of the paper's tables as a config, with its number.

Errors are percentages as the paper prints them (ECCV 2018; numbers of tables
and appendices are its own). A row's `fields` are recipe fields, `override` in
them fields of the network's config.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class PaperCost:
    """What table 1 says a network costs.

    Attributes:
        size: The column "param #", in its own unit.
        memory: In MB, on the GPU, at the batch.
        batch: Images of a batch.
        seconds: Per batch.
    """

    size: float
    memory: float
    batch: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """One line of a table, or a run of the authors' logs.

    Attributes:
        name: For `--rows`, and of its folder.
        label: What the paper calls it.
        fields: Fields of the recipe that make it what it is.
        paper: The paper's error per data set, in percent.
        budget: How many times the common budget it gets.
        cost: What the paper says it costs.
        note: What the paper says in place of a number.
        log: Training errors in the authors' own log, in percent, after each
            of the first epochs.
        routing: Figure 2: the final share of the most dissimilar capsules in
            percent, and the length of the most similar.
        point: Of a curve: the line's name, and the place on the axis.
    """

    name: str
    label: str
    fields: dict[str, Any]
    paper: dict[str, float] = field(default_factory=dict)
    budget: float = 1.0
    cost: PaperCost | None = None
    note: str = ""
    log: tuple[float, ...] = ()
    routing: tuple[float, float] | None = None
    point: tuple[str, float] | None = None


@dataclass(frozen=True)
class Question:
    """Whether one row is better than another.

    Attributes:
        text: As a person asks it.
        row: The row that would be better.
        other: The one it is compared with.
    """

    text: str
    row: str
    other: str


def _table1(name, label, variant, cifar10, mnist, cost, routing=None):
    errors = {"cifar10": cifar10, "mnist": mnist}
    fields = {"variant": variant}
    return Row(name, label, fields, errors, cost=cost, routing=routing)


TABLE1 = (
    _table1("a", "CapNet, dynamic", "capnet_dynamic", 14.28, 0.37,
            PaperCost(151.24, 3961, 8, 0.444), routing=(37, 0.01)),
    _table1("b", "CapNet, EM", "capnet_em", 12.66, 0.31,
            PaperCost(152.44, 10078, 4, 0.957), routing=(20, 0.02)),
    _table1("c", "CNN, same shape", "cnn_same_shape", 14.43, 0.38,
            PaperCost(24.44, 1652, 128, 0.026)),
    _table1("d", "CNN, similar parameters", "cnn_similar_param", 12.09, 0.33,
            PaperCost(146.88, 2420, 128, 0.146)),
    _table1("e", "EncapNet, master", "encapnet6_master", 13.87, 0.31,
            PaperCost(25.76, 1433, 128, 0.039)),
    _table1("f", "EncapNet, master/aide", "encapnet6", 11.93, 0.25,
            PaperCost(60.68, 1755, 128, 0.061)),
)  # fmt: skip


def _v1(name, label, error, **override):
    fields = {"variant": "encapnet_v1", "override": override}
    return Row(name, label, fields, {"cifar10": error})


# Table 3, left; rows 5 to 7 add skips to row 4, row 8 agreement to row 7.
CAPCONV = (
    _v1("1", "master", 9.83, aide="none", skip="none", agreement="none"),
    _v1("2", "master/aide v1: coefficients from the own branch", 8.05,
        coefficients="own", skip="none", agreement="none"),
    _v1("3", "master/aide v2: from the other branch", 9.11,
        coefficients="cross", skip="none", agreement="none"),
    _v1("4", "master/aide v3: from both", 7.41, skip="none", agreement="none"),
    _v1("5", "v3, skip on type I", 6.81, skip="type1", agreement="none"),
    _v1("6", "v3, skip on type II", 6.75, skip="type2", agreement="none"),
    _v1("7", "v3, both skips", 5.82, agreement="none"),
    _v1("8", "v3, both skips, two agreement units", 4.55),
)  # fmt: skip


def _unit(name, label, error, **options):
    return _v1(
        name, label, error, agreement="one", agreement_options=options
    )  # fmt: skip


def _resnet(name, label, error, **override):
    fields = {"variant": "resnet18", "override": override}
    return Row(name, label, fields, {"cifar10": error})


# Table 3, right: series d changes one thing of row c.
REGULARIZATION = (
    _v1("a", "EncapNet, no agreement", 5.82, agreement="none"),
    _unit("b", "EncapNet, KL", 5.31, divergence="kl"),
    _unit("c", "EncapNet, OT", 4.58),
    _unit("d1", "OT without the bias fix", 4.71, debias=False),
    _unit("d2", "OT, gradient through the plan", 4.77, plan_gradient=True),
    _unit("d3", "OT without the extractor", 5.79, extractor="none"),
    Row(
        "d3_l2",
        "OT without the extractor, l2",
        {
            "variant": "encapnet_v1",
            "override": {
                "agreement": "one",
                "agreement_options": {"extractor": "none", "cost": "l2"},
            },
        },
        note="does not converge",
    ),
    _unit("d4", "OT, vanilla generator", 5.01, generator="vanilla"),
    _unit("d5", "OT, l2", 4.90, cost="l2"),
    _resnet("resnet_a", "ResNet, no agreement", 8.03, agreement="none"),
    _resnet("resnet_b", "ResNet, KL", 7.72, agreement="one",
            agreement_options={"divergence": "kl"}),
    _resnet("resnet_c", "ResNet, OT", 7.67, agreement="one"),
)  # fmt: skip


def _capnet(name, label, error, override=None, note="", **fields):
    fields |= {"variant": "capnet_dynamic", "override": override or {}}
    errors = {} if error is None else {"cifar10": error}
    return Row(name, label, fields, errors, note=note)


def _losses(loss, label, rmsprop, sgd, adam):
    """A line of table 5, right; the marked setting is row r3."""
    errors = {"rmsprop": rmsprop, "sgd": sgd, "adam": adam}
    return tuple(
        _capnet(
            f"{loss}_{optimizer}", f"{label}, {optimizer}", error,
            note="" if error is not None else "fails",
            loss=loss, optimizer=optimizer,
        )
        for optimizer, error in errors.items()
        if (loss, optimizer) != ("margin", "adam")
    )  # fmt: skip


CAPNET = (
    _capnet("r1", "R = 1: no routing", 14.79, {"num_iterations": 1}),
    _capnet("r2", "R = 2", 14.41, {"num_iterations": 2}),
    _capnet("r3", "R = 3, zero logits, margin loss, Adam", 14.28),
    _capnet("r4", "R = 4", 14.25, {"num_iterations": 4}),
    _capnet("random", "random logits", 14.35, {"logits": "random"}),
    _capnet("learnable", "learnable logits", 14.11, {"logits": "learnable"}),
    *_losses("spread_fixed", "spread loss, fixed margin", 15.61, 15.38, 14.97),
    *_losses("spread", "spread loss", 15.02, 14.87, 14.50),
    *_losses("margin", "margin loss", 14.30, 15.18, 14.28),
    *_losses("cross_entropy", "cross-entropy", 14.76, None, 15.31),
)


def _final(name, label, augmentation, errors, budget=1.0):
    fields = {"variant": "encapnet_v1", "augmentation": augmentation}
    errors = dict(zip(("cifar10", "cifar100", "svhn"), errors, strict=True))
    return Row(name, label, fields, errors, budget)


STATE_OF_THE_ART = (
    _final("plain", "EncapNet", "none", (4.55, 26.77, 2.01)),
    _final("mild", "EncapNet+, mild augmentation", "mild",
           (3.13, 24.01, 1.64)),
    _final("strong", "EncapNet++, strong augmentation", "strong",
           (3.10, 24.18, 1.52), budget=1.5),
)  # fmt: skip


def _imagenet(name, label, variant, error, **fields):
    return Row(
        name, label, {"variant": variant} | fields, {"h_imagenet": error}
    )


# Table 4, right; crops of 128, of 224 for v3.
H_IMAGENET = (
    _imagenet("v1", "EncapNet v1, 18 layers", "encapnet_v1", 48.23),
    _imagenet("v2", "EncapNet v2, 101 layers", "encapnet_v2", 43.15),
    _imagenet("v3", "EncapNet v3, 224 pixels", "encapnet_v3", 42.76,
              image_size=224),
    _imagenet("v3_mild", "EncapNet v3+", "encapnet_v3", 40.18,
              image_size=224, augmentation="mild"),
    _imagenet("v3_strong", "EncapNet v3++", "encapnet_v3", 40.05,
              image_size=224, augmentation="strong", flip=True),
    _imagenet("resnet18", "ResNet-18", "resnet18", 58.17),
)  # fmt: skip


def _logged(name, label, note, log, **override):
    fields = {"variant": "encapnet14_authors_master", "override": override}
    return Row(name, label, fields, note=note, log=log)


# From the authors' repository at commit 4b1ec77, `result/cap_102_OT_*`:
# CIFAR-10, 1,729,920 parameters left at inference, 600 epochs of 50,000 images.
AUTHORS_LOG = (
    _logged("off", "without OT", "their log ends at 13.92",
            (60.34, 48.20, 43.01, 39.14, 35.76, 32.99, 30.85, 28.71, 27.32,
             25.67), agreement="none"),
    _logged("ot", "with OT, λ = 20, ε = 1", "their log ends at 13.53",
            (75.48, 64.56, 59.85, 56.75, 54.60, 52.89, 51.05, 49.35, 48.34,
             46.82), agreement_options={"weight": 20.0, "epsilon": 1.0}),
)  # fmt: skip


# Ours: units in all modules, of a form each.
_FORMS = (
    ("none", "no agreement", None),
    ("paper", "the paper's unit, λ = 1", {"weight": 1.0}),
    ("kl", "KL, λ = 1", {"weight": 1.0, "divergence": "kl"}),
    ("frozen", "frozen f, share 10%",
     {"extractor": "frozen", "lower_gradient": False, "gradient_share": 0.1}),
    ("standardized", "standardized f, share 10%",
     {"extractor": "standardized", "lower_gradient": False,
      "gradient_share": 0.1}),
    ("paired", "paired maps, share 10%",
     {"extractor": "none", "divergence": "paired", "lower_gradient": False,
      "gradient_share": 0.1}),
)  # fmt: skip


def _forms(network, variant, prefix="", **override):
    rows = []
    for name, label, options in _FORMS:
        own = {"agreement": "none"}
        if options is not None:
            own = {"agreement": "one", "agreement_options": options}
        fields = {"variant": variant, "override": override | own}
        label = f"{network}, {label}"
        rows.append(Row(prefix + name, label, fields, note="ours"))
    return tuple(rows)


AGREEMENT_FORMS = (
    *_forms("encapnet_small", "encapnet_small"),
    *_forms("narrow ResNet-18", "resnet18", "resnet_", stem=((16, 1),),
            channels=(16, 32, 64, 128)),
)  # fmt: skip


# Ours: what a decoder does to the error and to the capsules.
DECODER = (
    Row("none", "encapnet_small", {"variant": "encapnet_small"}),
    Row("conv", "encapnet_small, with a decoder",
        {"variant": "encapnet_small", "decoder": "conv"}),
)  # fmt: skip
