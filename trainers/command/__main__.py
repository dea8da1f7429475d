"""Capsule networks that train, reload and ship.

    encapnet fit --dataset=folder:photos
    encapnet export --run_dir=runs/latest --out=exported/encapnet
    encapnet serve --model=exported/encapnet

In a checkout `python -m trainers.fit` is `encapnet fit`, and so on.
"""

import sys

from encapnet_tf.checks import check_choice
from encapnet_tf.version import __version__
from trainers import cli
from trainers.cli.programs import COMMAND, GROUPS, PROGRAMS, load, one_line
from trainers.tables import aligned


def main() -> None:
    """Starts the program that the first argument names."""
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        sys.exit(cli.say(_page()))
    if name == "--version":
        sys.exit(cli.say(__version__))
    try:
        check_choice("program", name, PROGRAMS)
    except ValueError as refusal:
        sys.exit(cli.refuse(refusal))
    program = load(name)
    sys.argv = [f"{COMMAND} {name}", *arguments]
    program.define()
    cli.run(program.main)


def _page():
    texts = [__doc__.rstrip()]
    for group, names in GROUPS.items():
        rows = [(f"{name:12}", one_line(load(name))) for name in names]
        texts.append(f"\n{group}\n{aligned(rows, '<<')}")
    texts.append(f"\n`{COMMAND} PROGRAM --help` says more about each.")
    return "\n".join(texts)


if __name__ == "__main__":
    main()
