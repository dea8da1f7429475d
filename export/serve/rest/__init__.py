"""TensorFlow Serving's JSON, and the images in it."""
