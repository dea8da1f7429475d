"""The paper's h-ImageNet: `python -m trainers.h_imagenet`."""
