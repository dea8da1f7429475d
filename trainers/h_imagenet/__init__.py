"""The paper's h-ImageNet: `python -m trainers.h_imagenet`.

`imagenet` reads what there is, `class_accuracy` says which classes are hard,
`making` cuts the objects out and writes the data set.
"""
