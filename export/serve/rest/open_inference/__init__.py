"""KServe's Open Inference Protocol v2, with Triton's binary tensors."""
