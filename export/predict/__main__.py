"""Classes for one's own images: `python -m export.predict --model=… a.png`.

Takes image files and folders of them. The model is an exported one
(SavedModel, .tflite or .onnx), the folder of a run or a .keras file.
"""

import pathlib
import sys

from absl import flags

from export.model_path import kind_of
from export.onnx_packages import TO_RUN, check_installed
from trainers import cli
from trainers.tensorflow_start import start_tensorflow


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags of this program."""
    kwargs = {"flag_values": values}
    flags.DEFINE_string(
        "model",
        "exported/encapnet",
        "SavedModel, .tflite, .onnx or .keras file, or run folder.",
        **kwargs,
    )
    flags.DEFINE_integer(
        "top", 3, "Classes to show per image, the best first.",
        lower_bound=1, **kwargs,
    )  # fmt: skip
    flags.DEFINE_bool(
        "json", False, "Print JSON, one object per line.", **kwargs
    )
    flags.DEFINE_string(
        "capsules", None, "Save the class capsules as features in this .npz.",
        **kwargs,
    )  # fmt: skip


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Predicts; 1 if some image could not be read."""
    if not arguments:
        raise ValueError("Name image files or folders of them. Received: none.")
    if kind_of(values.model) == "onnx":
        check_installed(TO_RUN)
    start_tensorflow()
    from export.opened import open_model
    from export.predict import answers as output
    from export.predict.image_files import find_images

    model = open_model(values.model)
    paths, missing = find_images(arguments)
    answers = output.ask(model, paths)
    if answers is None:
        return 1
    show = output.json_lines if values.json else output.table
    print(show(answers, values.top))
    if values.capsules:
        output.save_capsules(answers, pathlib.Path(values.capsules))
        print(
            f"Class capsules of {len(answers.names)} images: {values.capsules}",
            file=sys.stderr,
        )
    return 0 if len(answers.names) == len(paths) and not missing else 1


if __name__ == "__main__":
    define()
    cli.run(main)
