"""Which forms of feedback agreement collapse where nothing holds them.

Two convolutions, 16×16 noise in, joined by one unit whose loss is all there is:
the easiest place to find out what the loss asks for. Shown after each step are
how far f tells the samples of a batch apart, relative to the first batch, and
the loss, relative to the first one.

Run: python -m benchmarks.agreement_forms [--steps 100] [--picture FILE.png]
"""

import argparse
import functools
import pathlib

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf import agreement_units, attach_agreement

# Options of the unit, where they are not the paper's.
FORMS = {
    "the paper": {},
    "KL": {"divergence": "kl"},
    "frozen f": {"extractor": "frozen"},
    "frozen f, u a target": {"extractor": "frozen", "lower_gradient": False},
    "standardized f": {"extractor": "standardized"},
    "paired, frozen f": {"divergence": "paired", "extractor": "frozen"},
    "paired maps": {"divergence": "paired", "extractor": "none"},
}
_LEARNING_RATE = 0.03


def free_network(options):
    """Two convolutions, joined, with nothing to do but to agree."""
    keras.utils.set_random_seed(0)
    layers = [keras.Input((16, 16, 3))]
    for filters, stride, name in ((8, 1, "lower"), (16, 2, "higher")):
        layers += [
            keras.layers.Conv2D(filters, 3, stride, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(name=name),
        ]
    return attach_agreement(
        keras.Sequential(layers), [("higher", "lower")], **options
    )


def agree(options, steps=100):
    """Trains on fresh noise; returns the unit's metrics after each step."""
    model = free_network(options)
    (unit,) = agreement_units(model)
    optimizer = keras.optimizers.Adam(_LEARNING_RATE)
    variables = model.trainable_variables
    optimizer.build(variables)

    @functools.partial(tf.function, autograph=False)
    def step(images):
        for metric in unit.metrics:
            metric.reset_state()
        with tf.GradientTape() as tape:
            model(images, training=True)
            loss = unit.recent_loss
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        optimizer.apply(gradients, variables)
        return {
            metric.name.removeprefix(f"{unit.name}_"): metric.result()
            for metric in unit.metrics
        }

    rng = np.random.default_rng(0)
    batches = (rng.normal(size=(32, 16, 16, 3)) for _ in range(steps))
    return [
        {name: float(value) for name, value in step(images).items()}
        for images in (tf.constant(batch, "float32") for batch in batches)
    ]


def draw(found, path):
    """Draws spread and loss of every form over the steps."""
    from matplotlib import pyplot as plt
    from matplotlib import ticker

    from trainers.pictures import COLORS, GREY, INK, STYLE, save

    with plt.rc_context(STYLE):
        figure, (spread, loss) = plt.subplots(
            1, 2, figsize=(9.5, 4.2), layout="constrained"
        )
        colors = (INK, GREY, *COLORS)
        for (name, history), color in zip(found.items(), colors, strict=False):
            steps = np.arange(1, len(history) + 1)
            collapses = name in ("the paper", "KL")
            for axis, number in ((spread, "spread"), (loss, "loss")):
                values = np.array([entry[number] for entry in history])
                axis.plot(
                    steps, 100 * values / values[0], color=color, label=name,
                    linestyle=(0, (4, 2)) if collapses else "-",
                )  # fmt: skip
        spread.set_title("Spread of f(u), % of its start")
        spread.set_ylim(bottom=0)
        loss.set_title("Agreement loss, % of its start")
        loss.set_yscale("log")
        loss.set_ylim(bottom=1e-2)
        loss.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        for axis in (spread, loss):
            axis.set_xlabel("step")
            axis.grid(True)
            axis.set_axisbelow(True)
        figure.legend(
            *spread.get_legend_handles_labels(), loc="outside lower center",
            ncols=4,
        )  # fmt: skip
        save(figure, path)


def main():
    """Trains every form and prints how each ends."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--picture", type=pathlib.Path)
    settings = parser.parse_args()
    found = {}
    for name, options in FORMS.items():
        found[name] = history = agree(options, settings.steps)
        last = history[-1]
        print(
            f"{name:22}spread {last['spread']:7.1%} of its start, zero vectors "
            f"{last['zero_vectors']:4.0%}, loss {history[0]['loss']:.2f} → "
            f"{last['loss']:.2g}",
            flush=True,
        )
    if settings.picture:
        draw(found, settings.picture)


if __name__ == "__main__":
    main()
