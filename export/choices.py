"""The allowed values of the exporter's flags; starts nothing slow."""

FORMATS = ("saved_model", "tflite")
QUANTIZATIONS = ("none", "float16", "int8")
# Largest difference of a score. Float32 rounds, more so in a deep network.
TOLERANCE = 1e-5
# The signature that classifies uint8 images.
DEFAULT = "serving_default"
# The signature of a decoder: class capsules in, images out.
RECONSTRUCT = "reconstruct"
