"""What is minimised and by what: losses, optimisers, schedules."""

import inspect

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf import losses
from encapnet_tf.layers import CapsuleDecoder
from encapnet_tf.training_only import training_only_layers
from trainers.recipe import Recipe
from trainers.training import keras_optimizer

LOSSES = {
    "margin": losses.MarginLoss,
    "spread": losses.SpreadLoss,
    "spread_fixed": losses.SpreadLoss,
    "cross_entropy": losses.LengthCrossentropy,
}
# These have a weight decay of their own, apart from the gradient.
DECOUPLED = ("adamw", "lion", "lamb")
# The paper's Adam (section 5); SGD with momentum 0.9.
_OPTIONS = {"adam": {"epsilon": 1e-8}, "sgd": {"momentum": 0.9}}
# The paper's learning-rate steps: epochs 200, 300, 400 of 600.
_STEPS = (1 / 3, 1 / 2, 2 / 3)
# Ours: share of the run over which a cosine schedule rises.
_WARM_UP = 0.05


def make_loss(recipe: Recipe) -> keras.losses.Loss:
    """Returns the loss, one value per sample."""
    name = recipe.loss_name()
    if name in LOSSES:
        return LOSSES[name](reduction=None)
    try:
        loss = keras.losses.get(name)
    except ValueError:
        loss = None
    if not callable(loss):
        raise ValueError(
            f"`loss` must be one of {', '.join(LOSSES)} or the name of a Keras "
            f"loss. Received: loss={name!r}."
        )
    if inspect.isclass(loss):
        loss = loss()
    if isinstance(loss, keras.losses.Loss):
        loss.reduction = None
    return loss


def labels_for(loss, labels: tf.Tensor, num_classes: int) -> tf.Tensor:
    """Gives a Keras loss the labels it wants: one-hot, unless sparse."""
    if isinstance(loss, tuple(LOSSES.values())):
        return labels
    name = getattr(loss, "__name__", "") or type(loss).__name__
    if "sparse" in name.lower():
        return labels
    return tf.one_hot(labels, num_classes)


def make_optimizer(recipe: Recipe, total_steps: int) -> keras.Optimizer:
    """Returns the optimiser with its schedule over the whole run."""
    name = recipe.optimizer.lower()
    # A name of its own: Keras would number the optimisers of a process, and
    # checkpoints go by names.
    options = {"name": name} | _OPTIONS.get(name, {})
    if name in DECOUPLED and recipe.weight_decay:
        options["weight_decay"] = recipe.weight_decay
    if recipe.ema:
        options |= {"use_ema": True, "ema_momentum": recipe.ema}
    known = {
        key.lower(): value for key, value in vars(keras.optimizers).items()
    } | {"adam": keras_optimizer.Adam, "adamw": keras_optimizer.AdamW}
    optimizer = known[name](
        learning_rate=make_schedule(recipe, total_steps), **options
    )
    if name in DECOUPLED:
        # As the L2 form: kernels only.
        optimizer.exclude_from_weight_decay(
            var_names=["bias", "gamma", "beta", "beta_v", "beta_a", "logits"]
        )
    optimizer = keras_optimizer.without_sum(optimizer)
    if recipe.dtype_policy == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(
            optimizer, name="loss_scale"
        )
    return optimizer


def make_schedule(recipe: Recipe, total_steps: int):
    """Returns the learning rate over `total_steps`."""
    schedules = keras.optimizers.schedules
    rate = recipe.learning_rate
    if recipe.schedule == "steps":
        boundaries = [max(1, round(total_steps * s)) for s in _STEPS]
        values = [rate * 0.1**n for n in range(len(_STEPS) + 1)]
        return schedules.PiecewiseConstantDecay(boundaries, values)
    if recipe.schedule == "cosine":
        warm_up = max(1, round(total_steps * _WARM_UP))
        return schedules.CosineDecay(
            rate / 10,
            max(1, total_steps - warm_up),
            warmup_target=rate,
            warmup_steps=warm_up,
        )
    return schedules.PiecewiseConstantDecay([total_steps], [rate, rate])


def decayed_variables(recipe: Recipe, model: keras.Model) -> list[bool]:
    """Says which trainable variables get L2 in their gradient: kernels.

    Not those of a decoder: its loss is weighted by 0.0005, and beside such a
    gradient Adam would see nothing but the L2.
    """
    coupled = recipe.optimizer.lower() not in DECOUPLED
    decoders = training_only_layers(model, (CapsuleDecoder,))
    exempt = {v.path for each in decoders for v in each.trainable_variables}
    return [
        coupled
        and recipe.weight_decay > 0
        and v.name in ("kernel", "sum")
        and v.path not in exempt
        for v in model.trainable_variables
    ]


def make_class_weights(recipe: Recipe, labels, num_classes: int):
    """Returns one weight per class, their mean over the examples 1."""
    if recipe.class_weights == "none":
        return np.ones(num_classes, np.float32)
    counts = np.bincount(labels, minlength=num_classes)
    weights = len(labels) / (num_classes * np.maximum(counts, 1))
    return weights.astype(np.float32)
