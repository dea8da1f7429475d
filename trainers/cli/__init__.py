"""How every program is started: its flags, the recipe in them, help, refusals.

A program is a module with `define`, which defines its flags, and `main`, which
reads them, refuses what is wrong, starts TensorFlow only then, and hands over
to a function that knows no flags. `FIRST` names the flags that people use
first, where there are many; `CHOICES` the values of flags that take several.
"""

from trainers.cli.log_flag import define_log, log_from_flags
from trainers.cli.recipe_flags import (
    define_recipe,
    epochs,
    given_fields,
    parse_overrides,
    recipe_from_flags,
)
from trainers.cli.starting import refuse, run, say, take_no_arguments

__all__ = [
    "define_log",
    "define_recipe",
    "epochs",
    "given_fields",
    "log_from_flags",
    "parse_overrides",
    "recipe_from_flags",
    "refuse",
    "run",
    "say",
    "take_no_arguments",
]
