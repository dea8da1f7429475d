"""Keeps a run's weights in one small file.

    python -m export.weights --run_dir=runs/latest --out=exported/weights.npz

Kernels become float16, agreement units stay behind, the decoder goes along.
The file is what `encapnet_tf.create_model(VARIANT, weights=FILE)`,
`export.predict` and `export.serve` take. It is read back and tested before it
gets its name, and a model card lies beside it.
"""

import pathlib

from absl import flags

from encapnet_tf.checks import check_choice
from encapnet_tf.weights.archive import SUFFIX
from trainers import cli
from trainers.runs.folder import check_finished
from trainers.tensorflow_start import start_tensorflow


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags of this program."""
    kwargs = {"flag_values": values}
    flags.DEFINE_string("run_dir", "runs/latest", "The run's folder.", **kwargs)
    flags.DEFINE_string(
        "out", "exported/weights.npz", "The file to write; FILE.md is its "
        "card.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "data_dir", None, "Folder with NAME.npz or tfds data.", **kwargs
    )
    flags.DEFINE_integer(
        "samples", 0, "Also write this many test images of each class, for the "
        "server's page: FILE.samples.npz.", lower_bound=0, **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "license", None, "The weights' licence, such as MIT, for the card.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "data_note", None, "Where the data come from and under which licence, "
        "for the card.", **kwargs,
    )  # fmt: skip


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Keeps the weights of the run that the flags name."""
    cli.take_no_arguments(arguments)
    out = pathlib.Path(values.out)
    check_choice("the suffix of --out", out.suffix, (SUFFIX,))
    check_finished("run_dir", values.run_dir)
    start_tensorflow()
    from export.weights.making import Wanted, keep_weights

    wanted = Wanted(values.samples, values.license, values.data_note)
    print(keep_weights(values.run_dir, out, wanted, values.data_dir))
    return 0


if __name__ == "__main__":
    define()
    cli.run(main)
