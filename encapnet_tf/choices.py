"""The allowed values of every argument that is a choice, each list once.

Configs, layers, operations and programs take them from here.
"""

# The class scores of a network.
SCORES = ("lengths", "logits")

# Which two ends a feedback agreement unit joins, per module:
# "one": module input ↔ module output; "type1": type I output ↔ module output;
# "two": both (paper, section 5.1).
AGREEMENTS = ("none", "one", "type1", "two")
CNN_AGREEMENTS = ("none", "one")

# A feedback agreement unit.
COSTS = ("cosine", "l2", "sqeuclidean")
GENERATORS = ("capsule", "vanilla")
EXTRACTORS = ("conv", "frozen", "standardized", "none")
DIVERGENCES = ("sinkhorn", "kl", "paired")
BATCHES = ("replica", "global")
SOLVER_DOMAINS = ("auto", "log", "scaling")

# EncapNet's layers.
AIDES = ("none", "type1", "all")
BRANCHES = ("master", "master_aide")
COEFFICIENTS = ("own", "cross", "both")
AIDE_SCOPES = ("others", "all")
SKIPS = ("none", "type1", "type2", "both")
TYPE2_SKIPS = ("last", "layerwise")
CAP_FC_MODES = ("per_dimension", "dense", "shared")

# The decoder of the class capsules.
DECODERS = ("none", "conv")

# CapNet's routing.
ROUTINGS = ("dynamic", "em")
SOFTMAX_OVER = ("lower", "higher")
ROUTING_LOGITS = ("zero", "random", "learnable")

AUGMENTATIONS = ("none", "mild", "mirrored", "strong")


def mirrors(augmentation: str, flip: bool) -> bool:
    """Whether training shows mirrored images: only then a test may.

    Example:
        >>> mirrors("mirrored", flip=True), mirrors("mild", flip=True)
        (True, False)
    """
    return augmentation in ("mirrored", "strong") and flip
