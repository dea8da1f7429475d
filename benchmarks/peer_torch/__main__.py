"""Times our networks against the same in PyTorch, also at its best.

Measured, per variant: a training step (forward, backward, margin loss, Adam)
and inference, images per second. The bare networks: without feedback agreement
units. The peer is `torch_networks.py`, our own plain writing with
the votes as a tensor, native grouped convolutions and PyTorch's fused Adam:
eager, as PyTorch lays out maps by default; with channels last; and that
compiled (`torch.compile`, which needs a C++ compiler). Denormal numbers are
flushed to zero on both sides. Ours runs in a `tf.function`. All in float32;
then, where the processor multiplies bfloat16, in that: ours under Keras'
policy mixed_bfloat16, the peer under autocast.

Before anything is timed the peer gets our weights and must compute the same
scores in float64, in inference and with the batch's own statistics, and have
as many parameters. What is timed has the weights of a short training on
rendered house numbers. Each contestant has a process of its own with the same
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
import importlib.util
import os
import statistics

from benchmarks.peer_torch.contestants import (
    contestants,
    has_compiler,
    is_routed,
    make_runs,
    times_as_fast,
)
from benchmarks.turns import Worker, in_turn

DEFAULT_VARIANTS = (
    "encapnet6_master",
    "encapnet6",
    "encapnet14_authors_master",
    "encapnet14_authors",
    "capnet_dynamic",
    "capnet_em",
)
JOBS = ("train", "infer")


def compare(variant, batch, repeats, threads):
    """Prints the rows of a variant."""
    from benchmarks.peer_torch.check import difference
    from benchmarks.peer_torch.ours import photographs, trained_weights

    print(f"{variant}, batch {batch}, scores {difference(variant):.0e} apart")
    given = trained_weights(variant, batch), *photographs(batch)
    workers = {
        name: Worker(make_runs, threads, name, variant, *given)
        for name in contestants(variant)
    }
    for job in JOBS:
        calls = in_turn(workers, job, repeats)
        for name, ratios in times_as_fast(calls).items():
            walls = [call.wall for call in calls[name]]
            print(
                f"  {job:7}{name:25}{rate(walls, batch):>26}{ratios}",
                flush=True,
            )
    for worker in workers.values():
        worker.close()


def rate(times, batch):
    """Returns the median images per second with its quartiles, as text."""
    low, median, high = statistics.quantiles(times, n=4)
    return f"{batch / median:.1f} ({batch / high:.1f}–{batch / low:.1f})"


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
    if not has_compiler():
        print("not compiled: no C++ compiler (apt-get install g++)")
    print(
        f"{options.threads} threads for each; images per second, median and "
        f"quartiles of {options.repeats} turns of calls; how many times as "
        "fast ours is in the same type, by the clock and by processor time",
        flush=True,
    )
    for variant in options.variants:
        batch = options.routed_batch if is_routed(variant) else options.batch
        compare(variant, batch, options.repeats, options.threads)


if __name__ == "__main__":
    main()
