"""Two protocols over HTTP, and the tensors and images in them.

`tf_serving/` is TensorFlow Serving's, `open_inference/` KServe's second; both
ask the same model, in the same batches and within the same limits.
"""
