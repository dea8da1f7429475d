"""What a benchmark is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from encapnet_tf.checks import check_choice
from encapnet_tf.config import VARIANTS as KNOWN

PARTS = (
    "variants",
    "agreement",
    "convolutions",
    "pipeline",
    "solver",
    "growth",
)
# The small one, the EncapNets of table 1, and the authors' 14 layers.
VARIANTS = (
    "encapnet_small",
    "encapnet6_master",
    "encapnet6",
    "encapnet14_authors_master",
    "encapnet14_authors",
)


@dataclass(frozen=True)
class Settings:
    """What is asked for.

    Attributes:
        variants: Networks to measure.
        batch: Images in a step of theirs, and in a batch of the pipeline.
        seconds: About how long to time each thing.
        parts: What to measure, of `PARTS`.
    """

    variants: Sequence[str]
    batch: int
    seconds: float
    parts: Sequence[str]

    def __post_init__(self):
        """Refuses a part or network that is unknown."""
        for part in self.parts:
            check_choice("parts", part, PARTS)
        for variant in self.variants:
            check_choice("variants", variant, KNOWN)
        if not self.parts or not self.variants:
            raise ValueError(
                "`parts` and `variants` must name something to measure. "
                f"Received: parts={self.parts}, variants={self.variants}."
            )
