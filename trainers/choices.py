"""The allowed values of every flag that is a choice.

Programs refuse what is not among them before TensorFlow starts.
"""

STRATEGIES = ("auto", "single", "mirrored", "multi_worker")
SCHEDULES = ("steps", "cosine", "constant")
CLASS_WEIGHTS = ("none", "balanced")
POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
# Each an extra of pyproject.toml; the package that it installs.
LOGS = {"mlflow": "mlflow-skinny", "wandb": "wandb"}
TUNERS = ("bayesian", "hyperband", "random", "grid")
# All of Keras; a test compares.
OPTIMIZERS = (
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "ftrl",
    "lamb", "lion", "muon", "nadam", "rmsprop", "schedulefreeadamw", "sgd",
)  # fmt: skip
