"""Who races in `benchmarks.peer_torch`: the calls of either side.

Both get the weights of a short real training: the maps of fresh ones hold
denormal numbers, which one framework flushes to zero and the other does not.
"""

import contextlib
import os
import shutil

import keras
import numpy as np
import tensorflow as tf

import encapnet_tf
from encapnet_tf.config import VARIANTS
from encapnet_tf.data.house_numbers.rendering import render
from trainers import machine
from trainers.training.keras_optimizer import Adam

LEARNING_RATE = 1e-4
# Who is timed: the framework, the type it computes in, how maps are laid out,
# whether it is compiled.
CONTESTANTS = {
    "ours": ("tensorflow", "float32", None, False),
    "PyTorch": ("torch", "float32", "contiguous_format", False),
    "channels last": ("torch", "float32", "channels_last", False),
    "compiled": ("torch", "float32", "channels_last", True),
    "ours, bfloat16": ("tensorflow", "mixed_bfloat16", None, False),
    "channels last, bfloat16": ("torch", "bfloat16", "channels_last", False),
    "compiled, bfloat16": ("torch", "bfloat16", "channels_last", True),
}
# Routing is no convolution, and stays in float32.
ROUTED_CONTESTANTS = ("ours", "PyTorch", "compiled")
_TRAINING_STEPS = 30
_TRAINING_BATCH = 32
_TRAINING_RATE = 1e-3


def is_routed(variant):
    """Whether a variant routes."""
    return variant.startswith("capnet")


def has_compiler():
    """Whether PyTorch finds what compiles its kernels."""
    names = (os.environ.get("CXX"), "g++", "clang++", "c++")
    return any(name and shutil.which(name) for name in names)


def contestants(variant):
    """Names who is timed."""
    all_types = not machine.bfloat16_is_slow()
    return [
        name
        for name, (_, dtype, _, compiled) in CONTESTANTS.items()
        if (not is_routed(variant) or name in ROUTED_CONTESTANTS)
        and (all_types or dtype == "float32")
        and (not compiled or has_compiler())
    ]


def bare_model(variant):
    """Returns our network without agreement units."""
    keras.utils.set_random_seed(0)
    bare = {} if is_routed(variant) else {"agreement": "none"}
    return encapnet_tf.create_model(variant, **bare)


def trained_weights(variant, batch):
    """Returns the weights after some steps on rendered house numbers."""
    model = bare_model(variant)
    size = min(batch, _TRAINING_BATCH)
    images, labels = photographs(size * _TRAINING_STEPS)
    step = training_step(model, _TRAINING_RATE)
    for place in range(0, len(images), size):
        chosen = slice(place, place + size)
        step(tf.constant(images[chosen]), tf.constant(labels[chosen]))
    return model.get_weights()


def photographs(count):
    """Returns images in [0, 1] and labels."""
    images, labels = render(np.random.default_rng(0), count)
    return images.astype("float32") / 255.0, labels.astype("int64")


def training_step(model, learning_rate):
    """Returns a traced step: forward, backward, margin loss, Adam."""
    loss = encapnet_tf.losses.MarginLoss()
    optimizer = Adam(learning_rate)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=False, reduce_retracing=True)
    def train(images, labels):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(value, variables), variables)
        return value

    return train


def make_runs(threads, contestant, variant, weights, batch):
    """Returns the calls of a contestant, by job."""
    framework, *how = CONTESTANTS[contestant]
    _set_threads(framework, threads)
    images, labels = photographs(batch)
    runs = {"tensorflow": _our_runs, "torch": _peer_runs}[framework]
    return runs(variant, weights, images, labels, *how)


def _our_runs(variant, weights, images, labels, policy, _, __):
    keras.config.set_dtype_policy(policy)
    model = bare_model(variant)
    model.set_weights(weights)
    images, labels = tf.constant(images), tf.constant(labels)
    train = training_step(model, LEARNING_RATE)
    infer = tf.function(
        lambda images: model(images, training=False), jit_compile=False
    )
    return {
        "train": lambda: train(images, labels).numpy(),
        "infer": lambda: infer(images).numpy(),
    }


def _peer_runs(variant, weights, images, labels, dtype, layout, compiled):
    import torch

    torch.set_flush_denormal(True)
    layout = getattr(torch, layout)
    model = bare_model(variant)
    model.set_weights(weights)
    network = make_peer(variant, model).to(memory_format=layout)
    images = torch.tensor(images).permute(0, 3, 1, 2)
    images = images.contiguous(memory_format=layout)
    optimizer = torch.optim.Adam(
        network.parameters(), LEARNING_RATE, fused=True
    )
    present = torch.nn.functional.one_hot(torch.tensor(labels), 10).float()

    def loss(images):
        scores = network(images).float()
        missing = present * torch.relu(0.9 - scores) ** 2
        excess = 0.5 * (1 - present) * torch.relu(scores - 0.1) ** 2
        return (missing + excess).sum(1).mean()

    answer = network
    if compiled:
        loss, answer = torch.compile(loss), torch.compile(network)

    def precision():
        if dtype == "float32":
            return contextlib.nullcontext()
        return torch.autocast("cpu", getattr(torch, dtype))

    def train():
        network.train()
        optimizer.zero_grad()
        with precision():
            value = loss(images)
        value.backward()
        optimizer.step()

    def infer():
        network.eval()
        with torch.inference_mode(), precision():
            answer(images)

    return {"train": train, "infer": infer}


def make_peer(variant, model):
    """Returns the peer with the weights of a model of ours."""
    from benchmarks import torch_networks

    weights = {w.path: w.numpy() for w in model.weights}
    network = torch_networks.build(VARIANTS[variant], weights)
    ours = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    theirs = sum(p.numel() for p in network.parameters())
    if ours != theirs:
        raise ValueError(
            f"The peer of {variant} must have our parameters. Received: "
            f"{theirs:,}, ours: {ours:,}."
        )
    return network


def _set_threads(framework, threads):
    if framework == "tensorflow":
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        return
    import torch

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(threads)
