"""The other side of the race: the same networks in PyTorch.

No TensorFlow here: its compiler and that of PyTorch do not live in one process.
"""

import contextlib

import numpy as np
import torch

from benchmarks.peer_torch import torch_networks
from encapnet_tf.config import VARIANTS

LEARNING_RATE = 1e-4


def make_runs(
    threads, variant, weights, images, labels, dtype, layout, compiled
):
    """Returns calls of a training step and of inference."""
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(threads)
    torch.set_flush_denormal(True)
    layout = getattr(torch, layout)
    network = torch_networks.build(VARIANTS[variant], weights)
    network = network.to(memory_format=layout)
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


def matching_peer(variant, weights, parameters):
    """Returns the peer with our weights; refuses other parameters than ours."""
    network = torch_networks.build(VARIANTS[variant], weights)
    theirs = sum(p.numel() for p in network.parameters())
    if parameters != theirs:
        raise ValueError(
            f"The peer of {variant} must have our parameters. Received: "
            f"{theirs:,}, ours: {parameters:,}."
        )
    return network


def scores(network, images):
    """Returns scores in float64: in inference, by the batch's statistics."""
    inputs = torch.tensor(np.transpose(images, (0, 3, 1, 2)))
    network = network.double()
    with torch.no_grad():
        found = network.eval()(inputs), network.train()(inputs)
    return [each.numpy() for each in found]
