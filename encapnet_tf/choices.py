"""The allowed values of every argument that is a choice, each list once."""

AUGMENTATIONS = ("none", "mild", "strong")
