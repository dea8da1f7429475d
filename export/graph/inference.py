"""What a run's network does at inference, as a plain function."""

import keras
import tensorflow as tf

from encapnet_tf import strip
from encapnet_tf.data import one_view
from encapnet_tf.layers import CapsuleDecoder
from encapnet_tf.training_only import training_only_layers
from export.graph.freezing import Inference
from trainers.evaluate.capsules import class_capsules
from trainers.runs.finished import Run


def inference(run: Run) -> Inference:
    """Returns the network of a run without its training branch.

    It looks at the same view of an image as the run's tests did.

    Args:
        run: A finished run.

    Returns:
        A function from float32 images in [0, 1] `(B, H, W, C)` to "scores"
        `(B, M)`, lengths of capsules or else probabilities, and, where the
        network has them, the class "capsules" `(B, M, D)`.
    """
    model = _in_float32(run)
    augmentation = run.recipe.augmentation
    if run.scores == "logits":
        plain = strip(model)

        def infer_scores(images):
            view = one_view(images, augmentation)
            return {"scores": tf.nn.softmax(plain(view, training=False))}

        return infer_scores
    both = strip(
        keras.Model(model.inputs, [model.output, class_capsules(model)])
    )

    def infer(images):
        view = one_view(images, augmentation)
        scores, capsules = both(view, training=False)
        return {"scores": scores, "capsules": capsules}

    return infer


def reconstruction(run: Run) -> Inference:
    """Returns the decoder of a run, the part that training leaves behind.

    Args:
        run: A finished run whose network has a decoder.

    Returns:
        A function from float32 "capsules" `(B, M, D)`, of which the longest is
        drawn, to "images" `(B, H, W, C)` in [0, 1].

    Raises:
        ValueError: The network has no decoder.
    """
    decoders = training_only_layers(_in_float32(run), (CapsuleDecoder,))
    if not decoders:
        raise ValueError(
            "`with_decoder` needs a network that was trained with "
            f"--decoder=conv. Received: {run.folder.path} without a decoder."
        )
    (decoder,) = decoders
    return lambda capsules: {"images": decoder.reconstruct(capsules)}


def _in_float32(run):
    """The weights are float32 always; mixed precision is for training."""
    if run.recipe.dtype_policy == "float32":
        return run.model
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        model = run.recipe.build(
            len(run.class_names), run.model.input_shape[1:]
        )
    finally:
        keras.config.set_dtype_policy(before)
    model.set_weights(run.model.get_weights())
    return model
