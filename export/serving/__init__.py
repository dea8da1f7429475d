"""TensorFlow Serving's REST protocol, and a page, on an exported model."""

from export.serving.app import create_app
from export.serving.limits import Limits
from export.serving.models import ServedModel

__all__ = ["Limits", "ServedModel", "create_app"]
