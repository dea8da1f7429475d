"""What a search may vary: hyper-parameters, each with a range or choices.

Known ranges hold the paper's own value of each hyper-parameter.
"""

import dataclasses
import math
import re
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from encapnet_tf import config
from encapnet_tf.checks import check_choice
from encapnet_tf.choices import AIDES, AUGMENTATIONS, COEFFICIENTS, COSTS
from trainers.recipe import Recipe

# More make no difference, and files stay readable.
_DIGITS = 4


@dataclass(frozen=True)
class Axis:
    """One hyper-parameter: a range, or choices.

    Attributes:
        name: As in `--search`.
        low: Least value.
        high: Greatest value.
        log: Whether equal ratios count alike, rather than differences.
        integer: Whether only whole numbers do.
        choices: The values, for an axis that is no range.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = True
    integer: bool = False
    choices: tuple[str, ...] = ()

    def values(self, count: int) -> list[Any]:
        """Returns the choices, or `count` values from end to end."""
        if self.choices:
            return list(self.choices)
        shares = [i / (count - 1) if count > 1 else 0.5 for i in range(count)]
        if self.log:
            ratio = self.high / self.low
            values = [self.low * ratio**share for share in shares]
        else:
            values = [
                self.low + share * (self.high - self.low) for share in shares
            ]
        return list(dict.fromkeys(self.rounded(value) for value in values))

    def rounded(self, value: Any) -> Any:
        """Returns the value as a recipe and a table hold it."""
        if self.choices:
            return value
        if self.integer:
            return round(value)
        return float(f"{value:.{_DIGITS}g}")

    @property
    def width(self) -> float:
        """How wide the range is: in decades, or in its own steps."""
        if self.log:
            return math.log10(self.high / self.low)
        return self.high - self.low

    def __str__(self) -> str:
        """Says what is searched, as for a person."""
        if self.choices:
            return f"{self.name} {', '.join(self.choices)}"
        return f"{self.name} {self.low:g} … {self.high:g}"


AXES = {
    axis.name: axis
    for axis in (
        Axis("agreement_weight", 0.1, 100.0),  # λ: 10, section 3.2
        Axis("agreement_epsilon", 0.01, 1.0),  # ε: 0.1, appendix B
        Axis("learning_rate", 1e-5, 1e-2),  # 1e-4, section 5
        Axis("weight_decay", 1e-5, 1e-2),  # 5e-4, section 5
        Axis("num_iterations", 1, 100, integer=True),  # L: 10, appendix B
        Axis("type2_layers", 0, 4, log=False, integer=True),  # N: 3, sec. 5.1
        Axis("initial_length", 0.3, 3.0),  # about √(D/2), section 3.1
        Axis("loss", choices=("margin", "spread", "cross_entropy")),
        Axis("augmentation", choices=AUGMENTATIONS),
        Axis("aide", choices=AIDES),
        Axis("coefficients", choices=COEFFICIENTS),
        Axis("cost", choices=COSTS),
    )
}
# These say what is compared, and by what, and are no hyper-parameters.
_FIXED = {
    "variant", "dataset", "data_dir", "epochs", "steps_per_epoch", "override",
    "validation_fraction", "limit_train", "limit_test", "init_from", "seed",
    "subset_seed",
}  # fmt: skip
_FORMS = "NAME, NAME:LOW:HIGH or NAME=A/B/C"


def _types_of_fields():
    """The types of all fields of recipes, networks and agreement units."""
    owners = (Recipe, config.EncapNetConfig, config.CapNetConfig,
              config.CNNConfig, config.ResNetConfig,
              config.AgreementConfig)  # fmt: skip
    return {
        field.name: field.type
        for owner in owners
        for field in dataclasses.fields(owner)
        if field.name not in _FIXED
    }


_TYPES = _types_of_fields()


def split_texts(text: str) -> list[str]:
    """Splits `--search` at its commas, but for those within brackets.

    Example:
        >>> split_texts("cost,strides=(1,2)/(2,2)")
        ['cost', 'strides=(1,2)/(2,2)']
    """
    parts = re.split(r",(?![^(]*\))", text)
    return [part.strip() for part in parts if part.strip()]


def parse_axes(texts: Sequence[str]) -> list[Axis]:
    """Reads `--search`: names, each perhaps with a range or choices.

    Example:
        >>> [str(axis) for axis in parse_axes(["cost", "learning_rate:0.1:1"])]
        ['cost cosine, l2, sqeuclidean', 'learning_rate 0.1 … 1']
        >>> str(*parse_axes(["num_capsules=8/16"]))
        'num_capsules 8, 16'
    """
    axes = [_parse_axis(text.strip()) for text in texts]
    names = [axis.name for axis in axes]
    if len(set(names)) < len(names) or not names:
        raise ValueError(
            "`--search` takes one or more different names. Received: "
            f"--search={','.join(texts)}."
        )
    return axes


def _parse_axis(text):
    name = re.match(r"\w*", text)[0]
    check_choice("search", name, sorted({*AXES, *_TYPES}))
    rest = text[len(name) :]
    if not rest and name in AXES:
        return AXES[name]
    if rest.startswith(":"):
        return _with_range(name, rest[1:].split(":"), text)
    choices = tuple(filter(None, rest[1:].split("/")))
    if not rest.startswith("=") or len(set(choices)) < len(choices or "-"):
        raise _refused(text)
    return Axis(name, choices=choices)


def _with_range(name, ends, text):
    try:
        low, high = (float(end) for end in ends)
    except ValueError:
        low = high = math.nan
    axis = AXES.get(name) or Axis(
        name, log=low > 0, integer=float not in _kinds(name)
    )
    lowest = 0 if not axis.log else 1 if axis.integer else math.ulp(0.0)
    if axis.choices or not lowest <= low < high < math.inf:
        raise _refused(text)
    if axis.integer:
        low, high = int(low), int(high)
    return dataclasses.replace(axis, low=low, high=high)


def _kinds(name):
    """What a field's values may be: `float | None` is float and None."""
    return typing.get_args(_TYPES[name]) or (_TYPES[name],)


def _refused(text):
    return ValueError(
        f"`--search` takes {_FORMS}: a range within what the name can be, or "
        f"different choices. Received: --search={text}."
    )
