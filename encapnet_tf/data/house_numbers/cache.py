"""The built-in data: rendered house numbers, nothing to download.

A stand-in for real data. The crops have SVHN's shape (32x32 RGB, the centre
digit is the label, neighbours distract) and something of its difficulty, so
that the library can be tried, tested and timed without a network. Results on
them say nothing about the paper's tables; use `svhn` for those.
"""

import concurrent.futures
import os
import uuid
import zipfile

import numpy as np
from absl import logging

from encapnet_tf.cache import cache_folder

NUM_TRAIN = 20_000
NUM_TEST = 4_000
_CHUNK = 200  # images drawn from one random stream
_VERSION = 2  # raise when the rendering changes: older cache files are stale
_PARTS = ("train", "test")


def load_house_numbers(
    cache_dir: str | os.PathLike | None = None,
    *,
    num_train: int = NUM_TRAIN,
    num_test: int = NUM_TEST,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Renders the data, or reads them back from the cache.

    The result depends on the arguments alone (and on the installed Pillow
    and matplotlib, which bring the typefaces), not on the number of threads.

    Args:
        cache_dir: Folder of the cache file. Default: the environment variable
            `ENCAPNET_CACHE`, else `~/.cache/encapnet_tf`. If it cannot be
            written, the data are rendered each time, with a warning.
        num_train: Number of training images.
        num_test: Number of test images, from other random streams.
        seed: Non-negative integer.

    Returns:
        `x_train, y_train, x_test, y_test`: uint8 images `(N, 32, 32, 3)` and
        uint8 labels `(N,)`, 0 to 9.
    """
    counts = (num_train, num_test)
    if min(*counts, seed) < 0 or min(counts) == 0:
        raise ValueError(
            "`num_train` and `num_test` must be > 0 and `seed` >= 0. Received: "
            f"num_train={num_train}, num_test={num_test}, seed={seed}."
        )
    name = f"house_numbers-v{_VERSION}-{num_train}-{num_test}-{seed}.npz"
    path = cache_folder(cache_dir) / name
    arrays = _read(path, counts)
    if arrays is None:
        logging.info("Rendering %d house numbers, once.", sum(counts))
        arrays = _render_all(counts, seed)
        _write(path, arrays)
    return arrays


def _render_all(counts, seed):
    """Renders both parts in threads: NumPy's loops run outside the GIL."""
    from encapnet_tf.data.house_numbers import glyphs

    glyphs.digit_fields()
    chunks = [
        (part, chunk, min(_CHUNK, counts[part] - start))
        for part in range(2)
        for chunk, start in enumerate(range(0, counts[part], _CHUNK))
    ]
    threads = min(os.cpu_count() or 1, len(chunks), 16)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        rendered = list(pool.map(lambda c: _render_chunk(seed, *c), chunks))
    arrays = {}
    for part, name in enumerate(_PARTS):
        mine = [
            r for r, c in zip(rendered, chunks, strict=True) if c[0] == part
        ]
        arrays[f"x_{name}"] = np.concatenate([images for images, _ in mine])
        arrays[f"y_{name}"] = np.concatenate([labels for _, labels in mine])
    return arrays


def _render_chunk(seed, part, chunk, count):
    from encapnet_tf.data.house_numbers import rendering

    return rendering.render(np.random.default_rng([seed, part, chunk]), count)


def _read(path, counts):
    """Returns the cached arrays, or None if they must be rendered."""
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in sorted(stored.files)}
        for name, count in zip(_PARTS, counts, strict=True):
            if arrays[f"x_{name}"].shape != (count, 32, 32, 3):
                raise ValueError(f"x_{name} has another shape")
            if arrays[f"y_{name}"].shape != (count,):
                raise ValueError(f"y_{name} has another shape")
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as e:
        logging.warning("Cache file %s is damaged (%s): rendering.", path, e)
        return None
    return arrays


def _write(path, arrays):
    """Writes beside the final name, then renames: readers never see half."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{uuid.uuid4().hex}.part")
        with open(unfinished, "wb") as file:
            np.savez(file, **arrays)
        os.replace(unfinished, path)
    except OSError as error:
        logging.warning(
            "Cannot keep the rendered house numbers in %s (%s); they will be "
            "rendered again next time. Set ENCAPNET_CACHE to a folder that "
            "can be written.",
            path.parent,
            error,
        )
