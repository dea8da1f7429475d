"""The networks of the paper, by name."""

from encapnet_tf.config import variant_config
from encapnet_tf.models.registry import create_model, list_variants

__all__ = ["create_model", "list_variants", "variant_config"]
