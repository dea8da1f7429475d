"""Ways to run an experiment: fields of the recipe that go together."""

from typing import Any

PROTOCOLS: dict[str, dict[str, Any]] = {
    # The paper trained to convergence. On few cores the way there is less
    # data and narrower networks, not fewer epochs.
    "converged": {
        "limit_train": 4_000,
        "subset_seed": 0,
        "epochs": 60,
        "batch_size": 64,
        "schedule": "cosine",
        "learning_rates": (3e-4, 1e-3, 3e-3),
    },
}


def protocol_text(name: str) -> str:
    """Writes a protocol as flags.

    Example:
        >>> protocol_text("converged").split()[0]
        '--limit_train=4000'
    """
    return " ".join(
        f"--{field}={_text(value)}" for field, value in PROTOCOLS[name].items()
    )


def _text(value):
    if isinstance(value, tuple):
        return ",".join(f"{part:g}" for part in value)
    return value
