"""Which examples go where: stratified and deterministic choices."""

import numpy as np


def stratified_choice(
    labels: np.ndarray, count: int, seed: int, *, leave: int = 0
) -> np.ndarray:
    """Chooses `count` examples with the classes in their given proportions.

    Args:
        labels: Integer labels `(N,)`.
        count: How many to choose, at most N.
        seed: Non-negative integer; the choice depends on nothing else.
        leave: Examples that stay unchosen in every class.

    Returns:
        Sorted indices `(count,)`, fewer if `leave` forbids more.

    Example:
        >>> chosen = stratified_choice(np.array([0, 0, 0, 0, 1, 1]), 3, seed=0)
        >>> np.array([0, 0, 0, 0, 1, 1])[chosen]
        array([0, 0, 1])
    """
    generator = np.random.default_rng([seed, 1])
    order = generator.permutation(len(labels))
    classes, sizes = np.unique(labels, return_counts=True)
    quota = _quotas(sizes, count)
    quota = np.minimum(quota, np.maximum(sizes - leave, 0))
    chosen = [
        order[labels[order] == label][:share]
        for label, share in zip(classes, quota, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


def _quotas(sizes, count):
    """Shares `count` out in proportion; largest remainders round up."""
    exact = sizes * (count / sizes.sum())
    quota = np.floor(exact).astype(np.int64)
    by_remainder = np.argsort(quota - exact, kind="stable")
    quota[by_remainder[: count - quota.sum()]] += 1
    return quota
