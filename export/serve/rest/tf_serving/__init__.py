"""TensorFlow Serving's REST protocol: its routes and its JSON."""
