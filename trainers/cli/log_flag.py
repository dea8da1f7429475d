"""The flag of programs that train: where the numbers of runs go."""

import importlib.util

from absl import flags

from encapnet_tf.checks import check_choice
from trainers.choices import LOGS

# Needs no tracker: it is written in any case.
_ALWAYS = "csv"


def define_log(values: flags.FlagValues) -> None:
    """Defines `--log`."""
    flags.DEFINE_list(
        "log", [], "Where the numbers go besides metrics.csv and TensorBoard's "
        f"files: {', '.join(LOGS)}; {_ALWAYS} names metrics.csv, which every "
        "run has.", flag_values=values,
    )  # fmt: skip


def log_from_flags(values: flags.FlagValues) -> list[str]:
    """Returns the logs; refuses what is unknown or not installed."""
    for name in values.log:
        check_choice("log", name, (_ALWAYS, *LOGS))
        if name in LOGS and importlib.util.find_spec(name) is None:
            raise ValueError(
                f"`--log={name}` needs the package {name}. Received: none "
                f"that is installed. `pip install {LOGS[name]}` brings it."
            )
    return [name for name in values.log if name != _ALWAYS]
