"""Tests a trained network closely.

    python -m trainers.evaluate --run_dir=runs/latest
    python -m trainers.evaluate --run_dir=runs/latest --robustness

Writes into the run's folder `evaluation/`: the numbers, the classes one by
one, all mistakes by name, and pictures of what is confused, of the worst
mistakes, of how far scores can be trusted, of the capsules and, with
--robustness, of the error under disturbance.
"""

from absl import flags

from encapnet_tf.data.sources.catalogue import DATASETS
from trainers import cli
from trainers.evaluate import ROBUSTNESS_IMAGES
from trainers.files import check_writable
from trainers.recipe import check_dataset
from trainers.runs.folder import RunFolder, check_finished
from trainers.tensorflow_start import start_tensorflow

CHOICES = {"dataset": DATASETS}


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags."""
    kwargs = {"flag_values": values}
    flags.DEFINE_string("run_dir", "runs/latest", "The run's folder.", **kwargs)
    flags.DEFINE_string(
        "dataset", None, "Test on these data, not the run's.", **kwargs
    )
    flags.DEFINE_string(
        "data_dir", None, "Folder with NAME.npz or tfds data.", **kwargs
    )
    flags.DEFINE_bool(
        "multi_crop", None, "Test on five crops too (ten where training "
        "mirrored); default: as the run was tested after training.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_bool(
        "robustness", False, "Also rotate, scale, shift and attack the images.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "limit_test", None, "Test on this many images; default: all, and "
        f"{ROBUSTNESS_IMAGES:,} for --robustness.", lower_bound=1, **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "compare", None, "Folder of another run to measure on the same images.",
        **kwargs,
    )  # fmt: skip


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Evaluates the run that the flags name."""
    cli.take_no_arguments(arguments)
    if values.dataset:
        check_dataset(values.dataset)
    check_finished("run_dir", values.run_dir)
    if values.compare:
        check_finished("compare", values.compare)
    check_writable(RunFolder(values.run_dir).path)
    start_tensorflow()
    from trainers.evaluate.close_test import evaluate

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
    define()
    cli.run(main)
