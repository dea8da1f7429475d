"""Shows what a variant costs before anything is allocated.

    python -m trainers.summary encapnet_v1 --batch_size=128

prints its layers, parameters, multiply-adds and the memory of a training
step, and says whether the step fits here. Without a variant: all of them.
"""

from absl import flags

from encapnet_tf.checks import check_choice
from encapnet_tf.config import VARIANTS, variant_config
from trainers import cli
from trainers.choices import POLICIES
from trainers.tensorflow_start import start_tensorflow

CHOICES = {"dtype_policy": POLICIES}
ARGUMENTS = VARIANTS


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags."""
    kwargs = {"flag_values": values}
    flags.DEFINE_integer(
        "batch_size", 128, "Images in a step.", lower_bound=1, **kwargs
    )
    flags.DEFINE_list(
        "input_shape", None, "Height,width,channels of an image.", **kwargs
    )
    flags.DEFINE_integer(
        "num_classes", None, "Number of classes.", lower_bound=1, **kwargs
    )
    flags.DEFINE_string(
        "dtype_policy", "float32", f"{', '.join(POLICIES)}.", **kwargs
    )
    flags.DEFINE_multi_string(
        "override",
        [],
        "Fields of the variant's config, values as in Python: "
        "--override=type2_layers=(1,1,1),agreement=none",
        **kwargs,
    )


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Prints one variant, or the list of them."""
    if len(arguments) > 1:
        raise ValueError(
            f"At most one variant is expected. Received: {' '.join(arguments)}."
        )
    check_choice("dtype_policy", values.dtype_policy, POLICIES)
    if arguments:
        _check_variant(*arguments, values)
    start_tensorflow()
    from trainers.cost.summary import summarise, variants_table

    if not arguments:
        print(variants_table())
        return 0
    print(
        summarise(
            *arguments,
            batch_size=values.batch_size,
            dtype_policy=values.dtype_policy,
            **_fields(values),
        )
    )
    return 0


def _fields(values):
    """Fields of the variant's config that flags give."""
    shape = values.input_shape and parse_shape(values.input_shape)
    given = {"num_classes": values.num_classes, "input_shape": shape}
    overrides = cli.parse_overrides(values.override)
    return overrides | {n: v for n, v in given.items() if v is not None}


def _check_variant(variant, values):
    fields = _fields(values)
    try:
        variant_config(variant, **fields)
    except TypeError as error:
        raise ValueError(
            "--override must give each field a value of its kind. "
            f"Received: {fields} ({error})."
        ) from error


def parse_shape(sides: list[str]) -> tuple[int, ...]:
    """Reads `--input_shape`."""
    try:
        return tuple(int(side) for side in sides)
    except ValueError:
        raise ValueError(
            "--input_shape must be height,width,channels, such as 32,32,3. "
            f"Received: --input_shape={','.join(sides)}."
        ) from None


if __name__ == "__main__":
    define()
    cli.run(main)
