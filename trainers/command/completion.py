"""Prints what makes a shell complete `encapnet`.

    python -m trainers.command.completion bash

for bash, zsh or fish: programs, flags and their values, as they are in this
version. Where to put it: docs/training.md#one-command.
"""

from absl import flags

from encapnet_tf.checks import check_choice
from trainers import cli
from trainers.command.shells import SHELLS

ARGUMENTS = tuple(SHELLS)


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Has no flags of its own."""


def main(arguments: list[str]) -> int:
    """Prints the script."""
    check_choice("shell", " ".join(arguments), ARGUMENTS)
    return cli.say(SHELLS[arguments[0]]())


if __name__ == "__main__":
    define()
    cli.run(main)
