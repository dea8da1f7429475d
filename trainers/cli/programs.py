"""The programs of `encapnet`, and how one is named as it was started."""

import importlib
import importlib.util
import re
import sys
import types

COMMAND = "encapnet"
# What people come for, and what serves it: the name after `encapnet`, and what
# follows `python -m`.
GROUPS = {
    "Train": {
        "fit": "trainers.fit",
        "tune": "trainers.tune",
        "launch": "trainers.launch",
    },
    "Look": {
        "runs": "trainers.runs",
        "evaluate": "trainers.evaluate",
        "summary": "trainers.summary",
    },
    "Ship": {
        "export": "export",
        "predict": "export.predict",
        "serve": "export.serve",
        "weights": "export.weights",
    },
    "Study": {
        "reproduce": "trainers.reproduce",
        "benchmark": "trainers.benchmark",
        "h_imagenet": "trainers.h_imagenet",
    },
    "Shell": {"completion": "trainers.command.completion"},
}
PROGRAMS = {
    name: module
    for programs in GROUPS.values()
    for name, module in programs.items()
}
_NAMES = {module: name for name, module in PROGRAMS.items()}


def load(name: str) -> types.ModuleType:
    """Imports the module that `python -m` would run; none is slow to import."""
    module = PROGRAMS[name]
    spec = importlib.util.find_spec(module)
    if spec.submodule_search_locations is not None:
        module += ".__main__"
    return importlib.import_module(module)


def module_of(program: types.ModuleType) -> str:
    """Returns what follows `python -m`."""
    return program.__spec__.name.removesuffix(".__main__")


def one_line(program: types.ModuleType) -> str:
    """Returns what a program does: the first line of its docstring.

    Example:
        >>> one_line(load("summary"))
        'Shows what a variant costs before anything is allocated'
    """
    return program.__doc__.partition("\n")[0].rstrip(".")


def as_started(text: str) -> str:
    """Names programs as `encapnet NAME` where this one was started so."""
    if not sys.argv[0].startswith(f"{COMMAND} "):
        return text

    def rename(found):
        name = _NAMES.get(found[1])
        return f"{COMMAND} {name}" if name else found[0]

    return re.sub(r"python -m (\w+(?:\.\w+)*)", rename, text)
