"""What `--help` says: the flags that people use first, or all, in groups."""

import types
from dataclasses import fields

from absl import flags

from trainers.cli import recipe_flags
from trainers.cli.programs import as_started, module_of
from trainers.recipe import Recipe

# What every program has.
ALWAYS = ("help", "helpfull", "version")


def define(values: flags.FlagValues) -> None:
    """Defines the flags that every program has."""
    kwargs = {"flag_values": values}
    flags.DEFINE_bool(
        "help", False, "Show what is used first.", short_name="h", **kwargs
    )
    flags.DEFINE_bool("helpfull", False, "Show all flags, in groups.", **kwargs)
    flags.DEFINE_bool("version", False, "Show the version.", **kwargs)


def short(program: types.ModuleType, values: flags.FlagValues) -> str:
    """Says what a program is, and the flags that people use first."""
    known = own_flags(values)
    first = getattr(program, "FIRST", None) or known
    shown = [known[name] for name in first if name not in ALWAYS]
    text = f"{program.__doc__}\n{_listed(shown)}"
    others = len(known) - len(ALWAYS) - len(shown)
    if others:
        text += f"\n\n{others} more: python -m {module_of(program)} --helpfull"
    return as_started(text)


def full(program: types.ModuleType, values: flags.FlagValues) -> str:
    """Says what a program is, and all of its flags, in groups."""
    groups: dict[str, list[flags.Flag]] = {}
    for flag in own_flags(values).values():
        groups.setdefault(_group(program, flag, values), []).append(flag)
    texts = [f"\n{name}:\n{_listed(group)}" for name, group in groups.items()]
    return as_started("\n".join([program.__doc__.rstrip(), *texts]))


def own_flags(values: flags.FlagValues) -> dict[str, flags.Flag]:
    """Returns a program's flags, its own first, without those of libraries."""
    by_module = values.flags_by_module_dict()
    recipe = by_module.get(recipe_flags.__name__, [])
    own = [
        flag
        for module, defined in by_module.items()
        if not module.startswith("absl.")
        for flag in defined
        if flag not in recipe and flag.name not in ALWAYS
    ]
    always = [values[name] for name in ALWAYS if name in values]
    return {flag.name: flag for flag in (*own, *recipe, *always)}


def _group(program, flag, values):
    if flag.name in ALWAYS:
        return "help"
    if values.find_module_defining_flag(flag.name) == recipe_flags.__name__:
        groups = {f.name: f.metadata["group"] for f in fields(Recipe)}
        if flag.name in groups:
            return groups[flag.name]
    return module_of(program).rpartition(".")[-1]


def _listed(shown):
    return "\n".join(map(_entry, shown))


def _entry(flag):
    """As absl writes it: help, then the default, then what it must be."""
    dashes = "--[no]" if flag.boolean else "--"
    head = f"{dashes}{flag.name}: {flag.help}"
    if flag.short_name:
        head = f"-{flag.short_name}, {head}"
    lines = [flags.text_wrap(head, indent="    ", firstline_indent="  ")]
    if flag.default_as_str:
        lines.append(f"    (default: {flag.default_as_str})")
    if flag.parser.syntactic_help:
        lines.append(f"    ({flag.parser.syntactic_help})")
    return "\n".join(lines)
