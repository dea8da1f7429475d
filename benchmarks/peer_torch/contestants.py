"""Who races, and how many times as fast ours is.

Nothing slow is imported here: PyTorch compiles in processes without TensorFlow.
"""

import os
import shutil
import statistics

from benchmarks.turns import Call
from trainers.tensorflow_start import start_tensorflow

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


def is_routed(variant):
    """Whether a variant routes."""
    return variant.startswith("capnet")


def has_compiler():
    """Whether PyTorch finds what compiles its kernels."""
    names = (os.environ.get("CXX"), "g++", "clang++", "c++")
    return any(name and shutil.which(name) for name in names)


def contestants(variant):
    """Names who is timed."""
    from trainers import machine

    all_types = not machine.bfloat16_is_slow()
    return [
        name
        for name, (_, dtype, _, compiled) in CONTESTANTS.items()
        if (not is_routed(variant) or name in ROUTED_CONTESTANTS)
        and (all_types or dtype == "float32")
        and (not compiled or has_compiler())
    ]


def make_runs(threads, contestant, variant, *given):
    """Returns the calls of a contestant, by job.

    Args:
        threads: How many it gets.
        contestant: Its name.
        variant: The network.
        *given: Weights by their paths, images and labels.
    """
    framework, dtype, layout, compiled = CONTESTANTS[contestant]
    if framework == "tensorflow":
        start_tensorflow()
        from benchmarks.peer_torch import ours

        return ours.make_runs(threads, variant, *given, dtype)
    from benchmarks.peer_torch import theirs

    return theirs.make_runs(threads, variant, *given, dtype, layout, compiled)


def times_as_fast(calls):
    """Says how many times as fast as each peer ours of its type is.

    Args:
        calls: What the calls of each contestant took.

    Returns:
        By contestant, by the clock and by processor time, as text; nothing
        for ours.
    """
    medians = {
        name: Call(
            *(statistics.median(part) for part in zip(*own, strict=True))
        )
        for name, own in calls.items()
    }
    found = {}
    for name, theirs in medians.items():
        framework, dtype, *_ = CONTESTANTS[name]
        ours = medians["ours" if dtype == "float32" else "ours, bfloat16"]
        found[name] = (
            ""
            if framework == "tensorflow"
            else f"{theirs.wall / ours.wall:8.2f}"
            f"{theirs.processor / ours.processor:8.2f}"
        )
    return found
