"""Files that are never half-written, folders that one process owns."""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator


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
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(folder: pathlib.Path, refusal: str) -> Iterator[None]:
    """Keeps a second process out of a folder.

    Args:
        folder: Made where it is missing.
        refusal: What the second process says.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(refusal) from None
        yield
