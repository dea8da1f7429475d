"""Has programs parse command lines, without running them.

Reads a list of `[program, arguments…]` as JSON from stdin, a program being
what follows `python -m`, and answers with one reason to refuse it, or null,
for each. All take their turn in one process: TensorFlow needs seconds to start.
"""

import argparse
import json
import runpy
import sys

from absl import flags

from encapnet_tf import data, list_variants
from trainers import cli


class Parsed(BaseException):
    """Ends a program that has parsed its arguments and accepts them."""


def why_refused(program, *arguments):
    for name in set(flags.FLAGS) - _FLAGS_OF_OTHERS:
        delattr(flags.FLAGS, name)
    sys.argv = [program, *arguments]
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except Parsed:
        return None
    except Exception as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return "It parses no arguments."


def parse_flags(main):
    """In place of `cli.run`."""
    values = flags.FLAGS
    rest = values(sys.argv)[1:]
    program = sys.modules["__main__"]
    for name in ("parts", "variants"):
        if name in values:
            check(name, values[name].value, values[name].default)
    if "quantize" in values:
        check("quantize", values.quantize, program.QUANTIZATIONS)
        check("formats", values.formats, program.FORMATS)
    if "search" in values and values.search:
        program.parse_axes(program.split_texts(values.search))
    if "dataset" in values and values.dataset:
        kinds = [name.partition(":")[0] for name in data.DATASETS]
        check("dataset", [values.dataset.partition(":")[0]], kinds)
    if "experiment" in values:
        program.from_flags(values)
    elif "config" in values:
        values.config = None  # a run's, which is not there
        cli.recipe_from_flags(values)
    name = program.__spec__.name.removesuffix(".__main__")
    if name == "trainers.summary":
        check("variant", rest, list_variants())
    elif name not in ("trainers.launch", "export.predict"):
        cli.take_no_arguments(rest)
    raise Parsed


def check(name, received, choices):
    if not set(received) <= set(choices):
        raise ValueError(f"{name}: {received} are not all of {choices}.")


def parse_with_argparse(parser, args=None):
    """In place of `ArgumentParser.parse_args`."""
    _PARSE(parser, args)
    raise Parsed


def refuse(parser, message):
    raise ValueError(message)


_FLAGS_OF_OTHERS = set(flags.FLAGS)
_PARSE = argparse.ArgumentParser.parse_args
cli.run = parse_flags
argparse.ArgumentParser.parse_args = parse_with_argparse
argparse.ArgumentParser.error = refuse

if __name__ == "__main__":
    answers = [why_refused(*command) for command in json.load(sys.stdin)]
    print(json.dumps(answers))
