"""What of an image a trained network looks at: as training showed it.

A network that was trained on crops of enlarged images has never seen a whole
one. It is shown the centre of the enlarged image, wherever it is asked: when
validated, tested, exported and served.
"""

import tensorflow as tf

from encapnet_tf.data.augmentation import enlarged


def one_view(images, augmentation: str):
    """Returns the one view that is judged by, in the size of the images.

    Args:
        images: `(B, H, W, C)`, as large as the network takes them.
        augmentation: What it was trained with. After "none" images are seen
            whole, else it is the centre crop of the enlarged images.

    Returns:
        float32 `(B, H, W, C)`.

    Example:
        >>> one_view(np.zeros((2, 32, 32, 3), np.float32), "mild").shape
        TensorShape([2, 32, 32, 3])
    """
    images = tf.convert_to_tensor(images)
    if augmentation == "none":
        return images
    size = images.shape[1:3]
    return _cut(_enlarged(images, size), size, *_centre(size))


def multi_crop(images, size: int | tuple[int, int], mirrored: bool):
    """Cuts several views: the corners, and last the one view.

    Args:
        images: float32 `(B, h, w, C)`, of any size.
        size: Side, or `(H, W)`, of a view. Images are resized to 34 for 32
            (156 for 128, 256 for 224) first.
        mirrored: Whether to add the mirrored views: ten instead of five.

    Returns:
        float32 `(V, B, H, W, C)`, V = 5 or 10.

    Example:
        >>> multi_crop(np.zeros((2, 32, 32, 3), np.float32), 32, True).shape
        TensorShape([10, 2, 32, 32, 3])
    """
    size = (size, size) if isinstance(size, int) else size
    whole = _enlarged(tf.convert_to_tensor(images), size)
    below, beside = (enlarged(side) - side for side in size)
    places = [(0, 0), (0, beside), (below, 0), (below, beside), _centre(size)]
    views = tf.stack([_cut(whole, size, *place) for place in places])
    if mirrored:
        views = tf.concat([views, views[..., ::-1, :]], axis=0)
    return views


def _enlarged(images, size):
    return tf.image.resize(images, [enlarged(side) for side in size])


def _centre(size):
    return tuple((enlarged(side) - side) // 2 for side in size)


def _cut(images, size, top, left):
    return images[:, top : top + size[0], left : left + size[1]]
