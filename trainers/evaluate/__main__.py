"""Tests a trained network closely: `python -m trainers.evaluate --help`.

Writes into the run's folder `evaluation/`: the numbers, the classes one by
one, all mistakes by name, and pictures of what is confused, of the worst
mistakes, of how far scores can be trusted, of the capsules and, with
--robustness, of the error under disturbance.
"""

from absl import flags

from trainers import cli
from trainers.evaluate.close_test import ROBUSTNESS_IMAGES, evaluate


def define_flags() -> None:
    """Defines the flags of this program."""
    flags.DEFINE_string("run_dir", "runs/latest", "The run's folder.")
    flags.DEFINE_string("dataset", None, "Test on these data, not the run's.")
    flags.DEFINE_string("data_dir", None, "Folder with NAME.npz or tfds data.")
    flags.DEFINE_bool(
        "multi_crop", None, "Test on five crops too (ten where training "
        "mirrored); default: as the run was tested after training.",
    )  # fmt: skip
    flags.DEFINE_bool(
        "robustness", False, "Also rotate, scale, shift and attack the images."
    )
    flags.DEFINE_integer(
        "limit_test", None, "Use only so many test images; default: all, and "
        f"{ROBUSTNESS_IMAGES:,} for --robustness.",
    )  # fmt: skip
    flags.DEFINE_string(
        "compare", None, "Another run's folder, measured on the same images."
    )


def main(arguments: list[str]) -> int:
    """Evaluates the run that the flags name."""
    cli.take_no_arguments(arguments)
    values = flags.FLAGS
    evaluate(
        values.run_dir,
        dataset=values.dataset,
        data_dir=values.data_dir,
        multi_crop=values.multi_crop,
        robustness=values.robustness,
        limit_test=values.limit_test,
        compare=values.compare,
    )
    return 0


if __name__ == "__main__":
    define_flags()
    cli.run(main)
