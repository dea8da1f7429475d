"""The flags of a program as a shell completes them."""

import types
from collections.abc import Iterable
from dataclasses import dataclass, fields

from absl import flags

from trainers.cli import help as texts
from trainers.recipe import Recipe

_OF_RECIPE = {f.name: f.metadata["choices"] for f in fields(Recipe)}


@dataclass(frozen=True)
class Option:
    """A flag.

    Attributes:
        name: Without dashes.
        help: Its first sentence.
        takes: What follows its `=`: "nothing", "words", "list" for words with
            commas between them, "file", or "number".
        words: The words it takes.
    """

    name: str
    help: str
    takes: str
    words: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The flag; of one that takes nothing its opposite, too."""
        if self.takes != "nothing" or self.name in texts.ALWAYS:
            return (self.name,)
        return self.name, f"no{self.name}"


def options(program: types.ModuleType) -> list[Option]:
    """Returns the flags of a program."""
    values = flags.FlagValues()
    program.define(values)
    texts.define(values)
    return [_option(program, f) for f in texts.own_flags(values).values()]


def arguments(program: types.ModuleType) -> tuple[str, ...] | None:
    """Returns the words that a program takes without dashes; None: files."""
    words = getattr(program, "ARGUMENTS", ())
    return None if words is None else tuple(words)


def _option(program, flag):
    help_text = flag.help.partition(">: ")[2] or flag.help
    help_text = " ".join(help_text.partition(". ")[0].rstrip(".").split())
    words = _words(program, flag)
    if flag.boolean:
        takes = "nothing"
    elif words:
        takes = "words"
        if isinstance(flag.parser, flags.ListParser):
            takes = "list"
    elif flag.parser.syntactic_help:
        takes = "number"
    else:
        takes = "file"
    return Option(flag.name, help_text, takes, words)


def _words(program, flag) -> tuple[str, ...]:
    chosen: Iterable[str] = getattr(program, "CHOICES", {}).get(flag.name, ())
    chosen = chosen or getattr(flag.parser, "enum_values", ())
    chosen = chosen or _OF_RECIPE.get(flag.name, ())
    # npz:PATH is completed as far as it is known.
    return tuple(word.removesuffix("PATH") for word in chosen)
