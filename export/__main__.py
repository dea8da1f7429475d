"""Exports a trained network: `python -m export --help`.

Writes the next version folder, as TF Serving reads it, without the training
branch: SavedModel, LiteRT files, labels and a model card, each format checked
against the Keras model.
"""

import sys

from absl import flags

from export.version.from_run import FORMATS, export_run
from export.version.lite import QUANTIZATIONS
from export.version.model_card import format_rows
from export.version.parity import TOLERANCE
from trainers import cli
from trainers.tables import aligned


def define_flags() -> None:
    """Defines the flags of this program."""
    flags.DEFINE_string("run_dir", "runs/latest", "The run's folder.")
    flags.DEFINE_string(
        "out", "exported/encapnet", "Where the version folders go: OUT/1, …"
    )
    flags.DEFINE_list("formats", list(FORMATS), "What to write.")
    flags.DEFINE_list(
        "quantize", ["none"], f"LiteRT files: {', '.join(QUANTIZATIONS)}."
    )
    flags.DEFINE_string(
        "dataset", None, "Check and calibrate on these data, not the run's."
    )
    flags.DEFINE_string("data_dir", None, "Folder with NAME.npz or tfds data.")
    flags.DEFINE_float(
        "tolerance",
        TOLERANCE,
        "Largest difference of a float32 format's scores from the Keras "
        "model's; a deep network may need more.",
        lower_bound=0.0,
    )
    flags.DEFINE_string(
        "license", None, "The model's licence, for its card, such as MIT."
    )


def main(arguments: list[str]) -> int:
    """Exports the run that the flags name and says what was written."""
    cli.take_no_arguments(arguments)
    values = flags.FLAGS
    export = export_run(
        values.run_dir,
        values.out,
        formats=tuple(values.formats),
        quantize=tuple(values.quantize),
        dataset=values.dataset,
        data_dir=values.data_dir,
        tolerance=values.tolerance,
        licence=values.license,
    )
    if export.absence:
        print(f"Checked on noise, for want of the data: {export.absence}")
    print(f"Written to {export.folder}:")
    rows = format_rows(export.written)
    print(aligned(rows, "<" + ">" * (len(rows[0]) - 1)))
    print("  model_card.md  labels.txt")
    for reason in export.refused:
        print(f"error: Not written: {reason}", file=sys.stderr)
    return 1 if export.refused else 0


if __name__ == "__main__":
    define_flags()
    cli.run(main)
