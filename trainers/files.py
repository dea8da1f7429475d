"""Files that are never half-written, folders that one process owns."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import time
from collections.abc import Iterator
from typing import Any

# Not even a small run's files fit in less.
_LEAST_FREE = 16 * 2**20


@contextlib.contextmanager
def written_atomically(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Gives a temporary path that takes the place of `path` at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as problem:
        # The error of a full disk does not say what could not be written.
        if problem.errno and problem.filename is None:
            raise OSError(problem.errno, problem.strerror, str(path)) from None
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes JSON, whole or not at all."""
    with written_atomically(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")


def new_folder(*names: str) -> pathlib.Path:
    """Names a folder in runs/ after the time and what it is for."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return pathlib.Path("runs", "-".join((stamp, *names)))


def check_writable(folder: pathlib.Path) -> None:
    """Refuses a folder in which nothing can be written; makes none."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    reason = None
    if not place.is_dir():
        reason = "is a file"
    elif not os.access(place, os.W_OK | os.X_OK):
        reason = "may not be written to"
    elif shutil.disk_usage(place).free < _LEAST_FREE:
        reason = f"has less than {_LEAST_FREE >> 20} MiB left on its disk"
    if reason:
        raise ValueError(
            "The results need a folder that can be written to. "
            f"Received: {folder}; {place} {reason}."
        )


@contextlib.contextmanager
def owned(folder: pathlib.Path) -> Iterator[bool]:
    """Takes a folder, made where it is missing; says whether nobody has it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def is_owned(folder: pathlib.Path) -> bool:
    """Whether a process has a folder."""
    try:
        file = (folder / ".lock").open()
    except FileNotFoundError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextlib.contextmanager
def locked(folder: pathlib.Path, refusal: str) -> Iterator[None]:
    """Keeps a second process out of a folder.

    Args:
        folder: Made where it is missing.
        refusal: What the second process says.
    """
    with owned(folder) as is_free:
        if not is_free:
            raise ValueError(refusal)
        yield
