"""Exports a trained network: `python -m export --help`.

Writes the next version folder, as TF Serving reads it and model hubs take it,
without what only trains: SavedModel, LiteRT files, ONNX, labels and a model
card, each format checked against the Keras model.
"""

import sys

from absl import flags

from encapnet_tf.checks import check_choice
from export.choices import (
    DEFAULT_FORMATS,
    FORMATS,
    QUANTIZATIONS,
    TOLERANCE,
)
from export.onnx_packages import TO_WRITE, check_installed
from trainers import cli
from trainers.runs.folder import check_finished
from trainers.tensorflow_start import start_tensorflow


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags of this program."""
    kwargs = {"flag_values": values}
    flags.DEFINE_string("run_dir", "runs/latest", "The run's folder.", **kwargs)
    flags.DEFINE_string(
        "out", "exported/encapnet", "Where the version folders go: OUT/1, …",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_list(
        "formats", list(DEFAULT_FORMATS), f"Of {', '.join(FORMATS)}.", **kwargs
    )
    flags.DEFINE_list(
        "quantize", ["none"], f"LiteRT files: {', '.join(QUANTIZATIONS)}.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "dataset", None, "Check and calibrate on these data, not the run's.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "data_dir", None, "Folder with NAME.npz or tfds data.", **kwargs
    )
    flags.DEFINE_float(
        "tolerance",
        TOLERANCE,
        "Largest difference of a float32 format's scores from the Keras "
        "model's; a deep network may need more.",
        lower_bound=0.0,
        **kwargs,
    )
    flags.DEFINE_bool(
        "with_decoder", False, "Add the signature `reconstruct`: class "
        "capsules in, images out; in ONNX a second file.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "license", None, "The model's licence, such as MIT, for its card.",
        **kwargs,
    )  # fmt: skip


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Exports the run that the flags name and says what was written."""
    cli.take_no_arguments(arguments)
    for name, choices in (("formats", FORMATS), ("quantize", QUANTIZATIONS)):
        for value in values[name].value:
            check_choice(name, value, choices)
    if "onnx" in values.formats:
        check_installed(TO_WRITE)
    check_finished("run_dir", values.run_dir)
    start_tensorflow()
    from export.version.from_run import export_run
    from export.version.report import report

    export = export_run(
        values.run_dir,
        values.out,
        formats=tuple(values.formats),
        quantize=tuple(values.quantize),
        dataset=values.dataset,
        data_dir=values.data_dir,
        tolerance=values.tolerance,
        licence=values.license,
        with_decoder=values.with_decoder,
    )
    print(report(export))
    for reason in export.refused:
        print(f"error: Not written: {reason}", file=sys.stderr)
    return 1 if export.refused else 0


if __name__ == "__main__":
    define()
    cli.run(main)
