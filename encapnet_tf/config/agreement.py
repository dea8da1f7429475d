"""One feedback agreement unit."""

from dataclasses import dataclass

from encapnet_tf import choices
from encapnet_tf.checks import check_above_zero, check_choice, check_positive


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
    lower_gradient: bool = True  # the authors' code; ours: False, a target
    gradient_share: float | None = None  # ours, in place of λ; None: λ

    def __post_init__(self):
        """Refuses values that no unit can have."""
        if self.weight < 0 or self.epsilon <= 0:
            raise ValueError(
                "`weight` must be ≥ 0 and `epsilon` > 0. Received: "
                f"weight={self.weight}, epsilon={self.epsilon}. "
                "The paper has 10 and 0.1."
            )
        check_positive(num_iterations=self.num_iterations)
        check_choice("cost", self.cost, choices.COSTS)
        check_choice("generator", self.generator, choices.GENERATORS)
        check_choice("extractor", self.extractor, choices.EXTRACTORS)
        check_choice("divergence", self.divergence, choices.DIVERGENCES)
        check_choice("batch", self.batch, choices.BATCHES)
        check_above_zero(gradient_share=self.gradient_share)


# For networks without capsules (paper, the ResNet rows of table 4).
VANILLA_AGREEMENT = AgreementConfig(generator="vanilla")
