"""Version folders as TF Serving reads them: `model/1`, then `model/2`."""

import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable

from encapnet_tf.weights import SHIPPED


def versions(folder: str | os.PathLike) -> dict[int, pathlib.Path]:
    """Returns the version folders by their numbers, in order.

    Example:
        >>> versions("no/such/folder")
        {}
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        return {}
    found = {
        int(path.name): path
        for path in folder.iterdir()
        if path.name.isdecimal() and path.is_dir()
    }
    return dict(sorted(found.items()))


def check_has_versions(folder: pathlib.Path) -> None:
    """Refuses a folder in which there is nothing to serve."""
    if not folder.is_dir():
        raise ValueError(
            "`--model` must be a folder that `python -m export` wrote, or one "
            f"of {', '.join(SHIPPED)}. Received: --model={folder}, which is "
            "no folder."
        )
    if not versions(folder):
        raise ValueError(
            "`--model` must hold a version that can be loaded, such as "
            f"{folder / '1'}. Received: --model={folder}, which has none."
        )


def write_version(
    folder: str | os.PathLike,
    write: Callable[[pathlib.Path], None],
    finish: Callable[[pathlib.Path, int], None] | None = None,
) -> pathlib.Path:
    """Writes the next version.

    It is written beside the versions and takes its place by a rename, so that
    a server never sees half of it, and it never takes another's place. If the
    writing fails, nothing is left of it.

    Args:
        folder: The model's folder, made if need be.
        write: Writes into the folder it is given.
        finish: Writes what needs the version's number. It is called again
            with another number where another export took the first.

    Returns:
        The new version's folder.
    """
    folder = pathlib.Path(folder)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    temporary = pathlib.Path(tempfile.mkdtemp(prefix=".writing-", dir=folder))
    try:
        temporary.chmod(0o755)
        write(temporary)
        return _settle(temporary, folder, finish)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if is_new and not any(folder.iterdir()):
            folder.rmdir()


def _flush(folder):
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _settle(temporary, folder, finish):
    number = max(versions(folder), default=0)
    while True:
        number += 1
        if finish is not None:
            finish(temporary, number)
        _flush(temporary)
        target = folder / str(number)
        try:
            return temporary.rename(target)
        except OSError:
            if not target.exists():
                raise
            # Another export was quicker: take the number after it.
