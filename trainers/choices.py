"""The allowed values of every flag that is a choice.

Programs refuse what is not among them before TensorFlow starts.
"""

STRATEGIES = ("auto", "single", "mirrored", "multi_worker")
SCHEDULES = ("steps", "cosine", "constant")
CLASS_WEIGHTS = ("none", "balanced")
POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
TUNERS = ("bayesian", "hyperband", "random", "grid")
# All of Keras; a test compares.
OPTIMIZERS = (
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "ftrl",
    "lamb", "lion", "muon", "nadam", "rmsprop", "schedulefreeadamw", "sgd",
)  # fmt: skip
