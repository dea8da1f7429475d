"""Measures how long capsules are, and how much of the gradient squash lets by.

A small EncapNet (stem and three modules, 64 channels in capsules of D = 2, 4,
8 or 16 entries) is trained on the rendered house numbers from the paper's
start (γ = 1) and from `initial_length=1`. Before and after training, for every
module: the mean length of its capsules, the mean slope of squash (how much a
capsule's length changes with its length before squash), and the norm of the
loss's gradient with respect to the master kernel over the kernel's own norm.

Run: python -m benchmarks.capsule_lengths [--steps=300] [--out=DIR]
It writes capsule_lengths.csv and capsule_lengths.png.
"""

import argparse
import itertools
import pathlib

import keras
import numpy as np
import tensorflow as tf
from matplotlib import pyplot as plt

import encapnet_tf
from encapnet_tf import data
from encapnet_tf.layers import CapConv
from encapnet_tf.losses import MarginLoss
from trainers.pictures import COLORS, GREY, STYLE, save
from trainers.tables import write_csv

CHANNELS, MODULES, BATCH = 64, 3, 64
DIMS = (2, 4, 8, 16)
STARTS = {"the paper's start": None, "initial_length=1": 1.0}
MEASURES = {
    "length": "length of a capsule",
    "slope": "slope of squash",
    "gradient": "gradient over weight",
}
_GRADIENTS = (0.003, 0.005, 0.01, 0.02, 0.05)


def network(capsule_dim, initial_length):
    """Returns a network whose capsules all have `capsule_dim` entries."""
    return encapnet_tf.create_model(
        "encapnet_small",
        stem=((CHANNELS, 2),),
        num_capsules=CHANNELS // capsule_dim,
        type2_layers=(0,) * MODULES,
        strides=(1, 2, 2),
        capsule_dims=(capsule_dim,) * MODULES,
        aide="none",
        agreement="none",
        initial_length=initial_length,
    )


def slope(lengths):
    """Returns how much a squashed length changes with the length before.

    From the squashed length v = n²/(1 + n²): dv/dn = 2n/(1 + n²)².

    Example:
        >>> round(float(slope(0.5)), 3), round(float(slope(0.889)), 3)
        (0.5, 0.07)
    """
    before = np.sqrt(lengths / (1 - lengths))
    return 2 * before / (1 + np.square(before)) ** 2


def measure(model, images, labels):
    """Returns one dictionary of `MEASURES` per module, in training mode."""
    layers = [x for x in model.layers if isinstance(x, CapConv)]
    inside = keras.Model(
        model.inputs, [*(x.output for x in layers), model.output]
    )
    kernels = [layer.master.kernel for layer in layers]
    with tf.GradientTape() as tape:
        *maps, scores = inside(images, training=True)
        loss = MarginLoss()(labels, scores)
    gradients = tape.gradient(loss, [kernel.value for kernel in kernels])
    found = []
    for layer, capsules, kernel, gradient in zip(
        layers, maps, kernels, gradients, strict=True
    ):
        vectors = np.reshape(capsules, (-1, layer.capsule_dim))
        # Squash ends just below 1, float32 may end at it.
        lengths = np.minimum(np.linalg.norm(vectors, axis=-1), 1 - 1e-6)
        found.append({
            "length": lengths.mean(),
            "slope": slope(lengths).mean(),
            "gradient": np.linalg.norm(gradient) / np.linalg.norm(kernel),
        })  # fmt: skip
    return found


def run(steps):
    """Returns the rows of the table: every D, start and module, twice."""
    split = data.load("house_numbers").train
    batches = data.batches(
        split, BATCH, training=True, image_shape=(32, 32, 3),
        drop_remainder=True,
    )  # fmt: skip
    images, labels = next(iter(batches))
    rows = []
    for dim, (start, length) in itertools.product(DIMS, STARTS.items()):
        keras.utils.set_random_seed(0)
        model = network(dim, length)
        found = {"before training": measure(model, images, labels)}
        model.compile(keras.optimizers.Adam(3e-3), MarginLoss())
        model.fit(batches.repeat().take(steps), verbose=0)
        found[f"after {steps} steps"] = measure(model, images, labels)
        rows += [
            {"entries": dim, "start": start, "when": when, "module": m} | values
            for when, modules in found.items()
            for m, values in enumerate(modules, start=1)
        ]
        print(f"D = {dim}, {start}: done", flush=True)
    return rows


def draw(rows, path):
    """Draws each measure over D: a line per start and time, modules as dots."""
    starts, times = (
        list(dict.fromkeys(row[name] for row in rows))
        for name in ("start", "when")
    )
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            len(times), len(MEASURES), figsize=(11, 3.1 * len(times)),
            layout="constrained", sharex=True, sharey="col",
        )  # fmt: skip
        for when, panels in zip(times, axes, strict=True):
            for axis, name in zip(panels, MEASURES, strict=True):
                for colour, start in zip(COLORS[1::-1], starts, strict=True):
                    _line(axis, rows, name, when, start, colour)
                axis.set_xscale("log", base=2)
                axis.set_xticks(DIMS, [str(dim) for dim in DIMS])
                axis.grid(True)
                if name == "gradient":
                    axis.set_yscale("log")
                    axis.set_yticks(_GRADIENTS, [f"{g:g}" for g in _GRADIENTS])
                    axis.minorticks_off()
                else:
                    axis.set_ylim(0, 1)
            panels[0].set_ylabel(when)
        for axis, title in zip(axes[0], MEASURES.values(), strict=True):
            axis.set_title(title)
        for axis in axes[-1]:
            axis.set_xlabel("entries of a capsule, D")
        axes[0][0].legend(loc="upper left")
        figure.supxlabel(
            "dots: the three modules; lines: their mean", fontsize=9, color=GREY
        )
        save(figure, path)


def _line(axis, rows, name, when, start, colour):
    chosen = [r for r in rows if r["when"] == when and r["start"] == start]
    values = {
        dim: [r[name] for r in chosen if r["entries"] == dim] for dim in DIMS
    }
    means = [np.mean(values[dim]) for dim in DIMS]
    axis.plot(DIMS, means, color=colour, label=start)
    for dim, found in values.items():
        axis.plot([dim] * len(found), found, "o", color=colour, markersize=3.5)


def main():
    """Prints the table and writes it, with its picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path())
    arguments = parser.parse_args()
    rows = run(arguments.steps)
    for row in rows:
        values = "  ".join(f"{name} {row[name]:.4f}" for name in MEASURES)
        print(
            f"D = {row['entries']:2}, {row['start']}, {row['when']}, module "
            f"{row['module']}: {values}"
        )
    write_csv(arguments.out / "capsule_lengths.csv", rows)
    draw(rows, arguments.out / "capsule_lengths.png")


if __name__ == "__main__":
    main()
