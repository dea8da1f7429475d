"""The allowed values of the exporter's flags; starts nothing slow."""

FORMATS = ("saved_model", "tflite", "onnx")
# ONNX needs packages that are optional.
DEFAULT_FORMATS = ("saved_model", "tflite")
QUANTIZATIONS = ("none", "float16", "int8")
# Largest difference of a score. Float32 rounds, more so in a deep network.
TOLERANCE = 1e-5
# The signature that classifies uint8 images.
DEFAULT = "serving_default"
# The signature of a decoder: class capsules in, images out.
RECONSTRUCT = "reconstruct"
# ONNX has no signatures: a file for each.
ONNX_FILES = {DEFAULT: "model.onnx", RECONSTRUCT: "reconstruct.onnx"}
# The class names, one a line, beside every model.
LABELS = "labels.txt"
# What a model hub reads: the model card, and the network with its recipe.
CARD = "README.md"
CONFIG = "config.json"
