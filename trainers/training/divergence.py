"""When the loss is no number any more: where, and what is to blame."""

from collections.abc import Sequence

import numpy as np

from trainers.recipe import Recipe


class Diverged(RuntimeError):
    """The loss is no number any more.

    Args:
        finding: Where it happened, and what is to blame.
    """

    def __init__(self, finding: str):
        self.finding = finding
        super().__init__(
            f"{finding} Try a lower --learning_rate, --clip_norm=1, a longer "
            "--agreement_ramp or --dtype_policy=float32. The last good "
            "checkpoint is kept."
        )


def is_finite(report: np.ndarray, names: Sequence[str], recipe: Recipe) -> bool:
    """Whether training may go on after a step.

    Args:
        report: What `TrainStep` reported.
        names: Its names.
        recipe: The recipe of the run: with float16 the gradient may overflow,
            since the loss is rescaled then and the step skipped.
    """
    watched = ["loss"]
    if recipe.dtype_policy != "mixed_float16":
        watched.append("gradient_norm")
    return bool(np.isfinite(report[[names.index(n) for n in watched]]).all())


def diagnosis(
    report: np.ndarray,
    names: Sequence[str],
    variables: Sequence[str],
    epoch: int,
    step: int,
) -> str:
    """Says where a run diverged, and which numbers went bad first.

    Args:
        report: What `TrainStep` reported.
        names: Its names.
        variables: The paths of the trainable variables.
        epoch: The epoch, from 1.
        step: The step in it, from 1.

    Example:
        >>> report = np.array([np.nan, -1])
        >>> diagnosis(report, ["loss", "bad_variable"], [], epoch=2, step=7)
        'The loss is nan at step 7 of epoch 2. Culprit: the gradient.'
    """
    values = dict(zip(names, report, strict=True))
    bad = [
        name
        for name, value in values.items()
        if not np.isfinite(value) and name not in ("loss", "gradient_norm")
    ]
    culprit = ", ".join(bad) or "the gradient"
    if values["bad_variable"] >= 0:
        first = variables[int(values["bad_variable"])]
        culprit += f"; the gradient of {first} is the first bad one"
    return (
        f"The loss is {report[0]} at step {step} of epoch {epoch}. "
        f"Culprit: {culprit}."
    )
