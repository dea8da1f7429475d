"""Single images: `pillow` reads and fits them, `graph` within TensorFlow.

`sizes` are what they are fitted to, as people write them.
"""
