"""Times our networks against the same in plain PyTorch.

Measured, per variant: a training step (forward, backward, margin loss, Adam)
and inference, images per second. The bare networks: without feedback agreement
units. The peer is `benchmarks/torch_networks.py`: our own plain writing in
eager PyTorch with the votes as a tensor, native grouped convolutions and its
fused Adam; as PyTorch lays out maps by default, and with channels last. Ours
runs in a `tf.function`. All in float32; then, where the processor multiplies
bfloat16, both in that: ours under Keras' policy mixed_bfloat16, the peer under
autocast with channels last.

Before anything is timed the peer gets our weights and must compute the same
scores in float64, in inference and with the batch's own statistics, and have
as many parameters. Each contestant has a process of its own with the same
number of threads, and they take turns of a second or more, so that a slow
moment of the machine hits all; medians and quartiles of all calls are printed.
Where torch is missing, that is said and nothing is timed.

Run: pip install torch==2.13.0   (in an environment of its own, beside ours)
     python -m benchmarks.peer_torch [--variants=encapnet6,…] [--batch=64]
         [--routed_batch=4] [--repeats=5] [--threads=2]

The votes of the peer's CapNet take gigabytes, hence a batch of its own for
the routed variants, the same for both sides.
"""

import argparse
import contextlib
import importlib.util
import os
import statistics

import keras
import numpy as np
import tensorflow as tf

import encapnet_tf
from benchmarks.turns import Worker, in_turn
from encapnet_tf.config import VARIANTS
from trainers import machine
from trainers.training.keras_optimizer import Adam

DEFAULT_VARIANTS = (
    "encapnet6_master",
    "encapnet6",
    "encapnet14_authors_master",
    "encapnet14_authors",
    "capnet_dynamic",
    "capnet_em",
)
LEARNING_RATE = 1e-4
# Who is timed: the framework, the type it computes in, how maps are laid out.
CONTESTANTS = {
    "ours": ("tensorflow", "float32", None),
    "PyTorch": ("torch", "float32", "contiguous_format"),
    "channels last": ("torch", "float32", "channels_last"),
    "ours, bfloat16": ("tensorflow", "mixed_bfloat16", None),
    "PyTorch, bfloat16": ("torch", "bfloat16", "channels_last"),
}
# Routing is no convolution, and stays in float32.
ROUTED_CONTESTANTS = ("ours", "PyTorch")
JOBS = ("train", "infer")
# Largest difference of scores in float64, relative to the largest score.
TOLERANCE = 1e-5


def make_ours(variant):
    """Returns our bare network, its weights away from their start.

    Votes start so small that the scores of CapNet are zero in float32; they
    are made as large as training makes them, or the check would be void.
    """
    keras.utils.set_random_seed(0)
    bare = {"agreement": "none"} if not _routed(variant) else {}
    model = encapnet_tf.create_model(variant, **bare)
    rng = np.random.default_rng(0)
    for variable in model.non_trainable_variables:
        centre = 1.0 if variable.name == "moving_variance" else 0.0
        noise = rng.uniform(-0.1, 0.1, variable.shape)
        variable.assign(centre + noise)
    for layer in model.layers:
        if isinstance(layer, encapnet_tf.layers.RoutedCapsules):
            layer.kernel.assign(layer.kernel / np.std(layer.kernel))
    return model


def _routed(variant):
    return variant.startswith("capnet")


def our_runs(variant, policy, images, labels):
    """Returns calls of a training step and of inference."""
    keras.config.set_dtype_policy(policy)
    model = make_ours(variant)
    images, labels = tf.constant(images), tf.constant(labels)
    loss = encapnet_tf.losses.MarginLoss()
    optimizer = Adam(LEARNING_RATE)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=False)
    def train():
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(value, variables), variables)
        return value

    @tf.function(jit_compile=False)
    def infer():
        return model(images, training=False)

    return {"train": lambda: train().numpy(), "infer": lambda: infer().numpy()}


def peer_runs(variant, dtype, memory_format, images, labels):
    """Returns the same calls of the peer."""
    import torch

    layout = getattr(torch, memory_format)
    network = make_peer(variant, make_ours(variant)).to(memory_format=layout)
    images = torch.tensor(images).permute(0, 3, 1, 2)
    images = images.contiguous(memory_format=layout)
    optimizer = torch.optim.Adam(
        network.parameters(), LEARNING_RATE, fused=True
    )
    present = torch.nn.functional.one_hot(torch.tensor(labels), 10).float()

    def precision():
        if dtype == "float32":
            return contextlib.nullcontext()
        return torch.autocast("cpu", getattr(torch, dtype))

    def train():
        network.train()
        optimizer.zero_grad()
        with precision():
            scores = network(images)
        missing = present * torch.relu(0.9 - scores) ** 2
        excess = 0.5 * (1 - present) * torch.relu(scores - 0.1) ** 2
        (missing + excess).sum(1).mean().backward()
        optimizer.step()

    def infer():
        network.eval()
        with torch.inference_mode(), precision():
            network(images)

    return {"train": train, "infer": infer}


def make_peer(variant, model):
    """Returns the peer with our weights."""
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


def difference(variant):
    """Returns by how much the peer's scores differ from ours, in float64."""
    import torch

    keras.config.set_dtype_policy("float64")
    try:
        model = make_ours(variant)
    finally:
        keras.config.set_dtype_policy("float32")
    # The peer takes its weights in float32.
    model.set_weights([np.float32(w) for w in model.get_weights()])
    images = np.random.default_rng(1).uniform(size=(2, 32, 32, 3))
    inputs = torch.tensor(images).permute(0, 3, 1, 2)
    network = make_peer(variant, model).double()
    with torch.no_grad():
        scores = network.eval()(inputs), network.train()(inputs)
    return check(variant, model, images, [s.numpy() for s in scores])


def check(variant, model, images, peer_scores):
    """Refuses a peer whose scores differ; returns the largest difference."""
    ours = model(images, training=False), model(images, training=True)
    differences = [
        np.abs(our - their).max() / np.abs(our).max()
        for our, their in zip(map(np.asarray, ours), peer_scores, strict=True)
    ]
    # Unlike Python's, NumPy's maximum does not pass over NaN.
    difference = np.max(differences)
    if not difference <= TOLERANCE:
        raise ValueError(
            f"The peer of {variant} must compute our scores within "
            f"{TOLERANCE}. Received: a difference of {difference:.1e}."
        )
    return difference


def make_runs(threads, contestant, variant, batch):
    """Returns the calls of a contestant, by job."""
    set_threads(contestant, threads)
    rng = np.random.default_rng(0)
    images = rng.uniform(size=(batch, 32, 32, 3)).astype("float32")
    labels = rng.integers(0, 10, size=batch)
    framework, dtype, memory_format = CONTESTANTS[contestant]
    if framework == "tensorflow":
        return our_runs(variant, dtype, images, labels)
    return peer_runs(variant, dtype, memory_format, images, labels)


def rate(times, batch):
    """Returns the median images per second with its quartiles, as text."""
    low, median, high = statistics.quantiles(times, n=4)
    return f"{batch / median:.1f} ({batch / high:.1f}–{batch / low:.1f})"


def compare(variant, batch, repeats, threads):
    """Prints the rows of a variant."""
    print(f"{variant}, batch {batch}, scores {difference(variant):.0e} apart")
    workers = {
        name: Worker(make_runs, threads, name, variant, batch)
        for name in contestants(variant)
    }
    for job in JOBS:
        times = in_turn(workers, job, repeats)
        medians = {n: statistics.median(spent) for n, spent in times.items()}
        for name, spent in times.items():
            print(
                f"  {job:7}{name:19}{rate(spent, batch):>26}"
                f"{faster(name, medians):>8}",
                flush=True,
            )
    for worker in workers.values():
        worker.close()


def contestants(variant):
    """Names who is timed."""
    if _routed(variant):
        return ROUTED_CONTESTANTS
    all_types = not machine.bfloat16_is_slow()
    return [
        name
        for name, (_, dtype, _) in CONTESTANTS.items()
        if all_types or dtype == "float32"
    ]


def faster(name, medians):
    """Says how many times as fast as a peer ours of the same type is."""
    framework, dtype, _ = CONTESTANTS[name]
    if framework == "tensorflow":
        return ""
    ours = "ours" if dtype == "float32" else "ours, bfloat16"
    return f"{medians[name] / medians[ours]:.2f}"


def set_threads(contestant, threads):
    """Gives a contestant's framework its threads."""
    if CONTESTANTS[contestant][0] == "tensorflow":
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        return
    import torch

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(threads)


def parse(arguments=None):
    """Reads the command line; refuses what could not be timed."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--variants", default=",".join(DEFAULT_VARIANTS), help="by commas")
    add("--batch", type=int, default=64, help="images of a step")
    add("--routed_batch", type=int, default=4, help="the same for CapNet")
    add("--repeats", type=int, default=5, help="turns of each side, 2 or more")
    add("--threads", type=int, default=os.cpu_count(), help="of each side")
    options = parser.parse_args(arguments)
    options.variants = options.variants.split(",")
    unknown = set(options.variants) - set(DEFAULT_VARIANTS)
    if unknown:
        parser.error(
            f"--variants must be of {', '.join(DEFAULT_VARIANTS)}. "
            f"Received: {', '.join(sorted(unknown))}."
        )
    numbers = (options.batch, options.routed_batch, options.threads)
    if min(numbers) < 1 or options.repeats < 2:
        parser.error(
            "--batch, --routed_batch and --threads must be 1 or more and "
            f"--repeats 2 or more. Received: {numbers} and {options.repeats}."
        )
    return options


def main(arguments=None):
    """Prints a table, or that torch is missing."""
    options = parse(arguments)
    if importlib.util.find_spec("torch") is None:
        print("skipped: torch is not installed (pip install torch==2.13.0)")
        return
    print(
        f"{options.threads} threads for each; images per second, median and "
        f"quartiles of {options.repeats} turns of calls; how many times as "
        "fast ours is in the same type",
        flush=True,
    )
    for variant in options.variants:
        batch = options.routed_batch if _routed(variant) else options.batch
        compare(variant, batch, options.repeats, options.threads)


if __name__ == "__main__":
    main()
