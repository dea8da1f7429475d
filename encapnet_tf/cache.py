"""Where this library keeps what it has made once, for one user."""

import os
import pathlib


def cache_folder(folder: str | os.PathLike | None = None) -> pathlib.Path:
    """Returns the folder; whoever writes into it makes it.

    Args:
        folder: The folder itself. Default: the environment variable
            `ENCAPNET_CACHE`, else `~/.cache/encapnet_tf`.
    """
    default = os.environ.get("ENCAPNET_CACHE") or "~/.cache/encapnet_tf"
    return pathlib.Path(folder or default).expanduser()
