"""Measures speed and memory.

    python -m trainers.benchmark
    python -m trainers.benchmark --parts=solver,pipeline --seconds=2

Everything is timed in turn with a matrix product, each network in a process of
its own; medians count, quartiles are the spread. --compare sets the run beside
a stored one and ends with exit code 1 where something became slower.
"""

import pathlib
from collections.abc import Callable

from absl import flags

from encapnet_tf.config import VARIANTS as ALL_VARIANTS
from trainers import cli
from trainers.benchmark.results import read_results
from trainers.benchmark.settings import PARTS, VARIANTS, Settings
from trainers.files import check_writable, new_folder
from trainers.tensorflow_start import start_tensorflow

CHOICES = {"variants": ALL_VARIANTS, "parts": PARTS}


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags."""
    kwargs = {"flag_values": values}
    flags.DEFINE_list(
        "variants", list(VARIANTS), "The networks of the part `variants`.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "batch",
        64,
        "Images in a step of a network, and in a batch of the pipeline.",
        lower_bound=1,
        **kwargs,
    )
    flags.DEFINE_float(
        "seconds",
        5.0,
        "About how long to time each thing; five rounds at least.",
        lower_bound=0.0,
        **kwargs,
    )
    flags.DEFINE_list(
        "parts",
        list(PARTS),
        "What to measure; everything by default.",
        **kwargs,
    )
    flags.DEFINE_string(
        "out", None, "Folder of the results; default: a new one in runs/.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "compare", None, "A stored benchmark.json to compare with.", **kwargs
    )


def main(
    arguments: list[str],
    values: flags.FlagValues = flags.FLAGS,
    ask: Callable[[dict], dict] | None = None,
) -> int:
    """Measures, reports, compares; returns the exit code."""
    cli.take_no_arguments(arguments)
    settings = Settings(
        values.variants, values.batch, values.seconds, values.parts
    )
    base = values.compare and read_results(values.compare)
    folder = pathlib.Path(values.out or new_folder("benchmark"))
    check_writable(folder)
    # The processes that measure need the GPUs.
    start_tensorflow(gpus=False)
    from trainers.benchmark.measuring import measure_and_report

    return measure_and_report(settings, folder, base, ask)


if __name__ == "__main__":
    define()
    cli.run(main)
