"""Makes a data set of ImageNet's hardest classes, objects cut out.

    python -m trainers.h_imagenet --imagenet=DIR --accuracies=resnet18.csv
    python -m trainers.fit --dataset=folder:h_imagenet --image_size=128

The paper's h-ImageNet: the 200 classes that ResNet-18 tells apart worst,
objects cut out with some padding. The same command goes on where it stopped.
"""

import dataclasses

from absl import flags

from trainers import cli
from trainers.h_imagenet.settings import HardClasses
from trainers.tensorflow_start import start_tensorflow


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags."""
    kwargs = {"flag_values": values}
    flags.DEFINE_string(
        "imagenet", None, "Folder with train/ and val/, with ILSVRC/, or with "
        "what tfds prepared of imagenet2012.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "boxes", None, "Folder of XML annotations; default: where ILSVRC has "
        "them. Pictures without one are taken whole.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "accuracies", None, "CSV file class,accuracy: its lowest are taken.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "model", None, "Keras classifier of all classes, in the order of "
        "their names, to measure the accuracies with on val/.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_float(
        "white", 1.0, "A white pixel in the input of --model: 1, or 255 for "
        "many networks of keras.applications.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "classes", None, "File with one class per line, instead.", **kwargs
    )
    flags.DEFINE_integer(
        "num_classes", 200, "How many classes.", lower_bound=2, **kwargs
    )
    flags.DEFINE_float(
        "padding", 0.1, "What is added around an object, as a share of it.",
        lower_bound=0.0, **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "largest", 500, "Longest side of a picture.", lower_bound=1, **kwargs
    )
    flags.DEFINE_string(
        "out", "h_imagenet", "Folder of the data set; or a file NAME.npz.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "image_size", 128, "Side of the pictures in an .npz file.",
        lower_bound=1, **kwargs,
    )  # fmt: skip


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Makes the data set that the flags ask for."""
    cli.take_no_arguments(arguments)
    names = [f.name for f in dataclasses.fields(HardClasses)]
    settings = HardClasses(**{name: values[name].value for name in names})
    start_tensorflow()
    from trainers.h_imagenet.making import make

    make(settings)
    return 0


if __name__ == "__main__":
    define()
    cli.run(main)
