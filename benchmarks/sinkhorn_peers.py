"""Times the Sinkhorn divergence against geomloss and POT.

Measured: the value of one debiased divergence between two batches of 64-entry
vectors and its gradient with respect to both, cosine distance, epsilon 0.1, 10
iterations, float32, the plan held constant for the gradient. All contenders
normalise the vectors themselves and run in turn within one process, with the
same number of threads, so that a slow moment of the machine hits all of them.

What each computes:

* `encapnet_tf`: `sinkhorn_divergence` in a `tf.function`; three problems (cross
  and two self-terms) of 10 iterations, that is 60 half-steps.
* `POT`: the same three problems by `ot.sinkhorn` (`method="sinkhorn"`, its
  fastest) on torch tensors. The costs are passed detached and the cost of the
  plan taken afterwards, so that its autograd does not record the iterations:
  differentiating `ot.sinkhorn2` would be slower. Same updates in the same order
  as ours, and the same value.
* `geomloss`: `SamplesLoss("sinkhorn", p=2)` on unit vectors, where its cost
  |x - y|^2 / 2 is 1 - cos; `blur = sqrt(0.1)` makes epsilon 0.1, the diameter
  (2) is given so that it is not searched for, and `scaling` is such that its
  annealing takes exactly 10 steps. It works in the log domain with 4 half-steps
  per iteration (each self-term needs one), an initial and a final one: 48 in
  all, fewer than ours. It returns the dual objective with the entropy, so the
  value differs, and its gradient also holds the plan constant.

Run: python -m benchmarks.sinkhorn_peers [--threads 2] [--repeats 50]
"""

import argparse
import importlib.util
import os
import statistics
import time

import numpy as np
import tensorflow as tf

from encapnet_tf.ops import sinkhorn_divergence
from trainers.progress import ShareProgress

EPSILON = 0.1
NUM_ITERATIONS = 10
FEATURES = 64


def ours(x, y):
    """Returns a call of this project's divergence and gradient."""
    x, y = tf.constant(x), tf.constant(y)

    @tf.function
    def value_and_gradient(x, y):
        with tf.GradientTape() as tape:
            tape.watch((x, y))
            value = sinkhorn_divergence(
                x, y, epsilon=EPSILON, num_iterations=NUM_ITERATIONS
            )
        return value, tape.gradient(value, (x, y))

    def run():
        value, gradients = value_and_gradient(x, y)
        for gradient in gradients:
            gradient.numpy()
        return float(value)

    return run


def torch_run(x, y, divergence):
    """Returns a call of a divergence of unit torch vectors and its gradient."""
    import torch

    x, y = (torch.tensor(v, requires_grad=True) for v in (x, y))
    normalize = torch.nn.functional.normalize

    def run():
        x.grad = y.grad = None
        value = divergence(normalize(x, dim=1), normalize(y, dim=1))
        value.backward()
        return value.item()

    return run


def pot(x, y):
    """Returns a call of POT's solver on torch tensors."""
    import ot
    import torch

    def transport(x, y):
        costs = 1 - x @ y.T
        mass = torch.full((len(x),), 1 / len(x))
        plan = ot.sinkhorn(
            mass,
            mass,
            costs.detach(),
            EPSILON,
            method="sinkhorn",
            numItermax=NUM_ITERATIONS,
            stopThr=0,
            warn=False,
        )
        return (plan * costs).sum()

    def divergence(x, y):
        return 2 * transport(x, y) - transport(x, x) - transport(y, y)

    return torch_run(x, y, divergence)


def geomloss(x, y):
    """Returns a call of geomloss' divergence."""
    from geomloss import SamplesLoss

    diameter, blur = 2.0, EPSILON**0.5
    # The schedule is the diameter, the steps of `scaling`, and the blur.
    inner_steps = NUM_ITERATIONS - 2
    scaling = (blur / diameter) ** (1 / (inner_steps - 0.5))
    loss = SamplesLoss(
        "sinkhorn",
        p=2,
        blur=blur,
        diameter=diameter,
        scaling=scaling,
        debias=True,
        backend="tensorized",
    )
    return torch_run(x, y, loss)


CONTENDERS = {
    "encapnet_tf": (ours, "tensorflow"),
    "POT": (pot, "ot"),
    "geomloss": (geomloss, "geomloss"),
}


def available() -> dict:
    """The contenders whose packages are installed; says which are not."""
    found = {}
    for name, (make, package) in CONTENDERS.items():
        needed = [package] if make is ours else [package, "torch"]
        missing = [p for p in needed if importlib.util.find_spec(p) is None]
        if missing:
            print(f"{name}: skipped, not installed: {', '.join(missing)}")
        else:
            found[name] = make
    return found


def set_threads(threads: int) -> None:
    """Gives both frameworks the same number of threads."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(threads)
        torch.set_num_interop_threads(threads)


def measure(runs: dict, repeats: int) -> dict:
    """Milliseconds per call, contenders taking turns."""
    times = {name: [] for name in runs}
    for run in runs.values():
        for _ in range(3):
            run()
    for _ in ShareProgress("measuring").each(range(repeats)):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(1e3 * (time.perf_counter() - start))
    return times


def report(batch: int, runs: dict, times: dict) -> None:
    """Prints median, quartiles, ratio to ours and value."""
    base = statistics.median(times["encapnet_tf"])
    for name, milliseconds in times.items():
        low, median, high = statistics.quantiles(milliseconds, n=4)
        print(
            f"{batch:>5}  {name:<12}{median:>9.2f}{low:>9.2f}{high:>9.2f}"
            f"{median / base:>8.2f}{runs[name]():>11.5f}"
        )


def main() -> None:
    """Runs the comparison at batch 128 and 1024."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 1024])
    options = parser.parse_args()
    set_threads(options.threads)
    contenders = available()
    print(
        f"intra-op and inter-op threads: {options.threads} for every "
        f"contender; {options.repeats} interleaved repeats"
    )
    print("batch  contender   median ms      25%      75%   ratio      value")
    rng = np.random.default_rng(0)
    for batch in options.batches:
        x, y = rng.normal(size=(2, batch, FEATURES)).astype("float32")
        runs = {name: make(x, y) for name, make in contenders.items()}
        report(batch, runs, measure(runs, options.repeats))


if __name__ == "__main__":
    main()
