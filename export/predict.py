"""Classes for one's own images: `python -m export.predict --model=… a.png`.

Takes image files and folders of them. The model is an exported one
(SavedModel or .tflite), the folder of a run or a .keras file.
"""

import json
import pathlib
import sys
from collections.abc import Iterator

import numpy as np
from absl import flags
from PIL import Image

from encapnet_tf.data.images import SUFFIXES, read_image
from export.opened import open_model
from trainers import cli
from trainers.files import written_atomically
from trainers.tables import aligned

_BATCH = 64


def define_flags() -> None:
    """Defines the flags of this program."""
    flags.DEFINE_string(
        "model",
        "exported/encapnet",
        "SavedModel, .tflite or .keras file, or run folder.",
    )
    flags.DEFINE_integer(
        "top", 3, "Classes to show per image, the best first.", lower_bound=1
    )
    flags.DEFINE_bool("json", False, "Print JSON, one object per line.")
    flags.DEFINE_string(
        "capsules", None, "Save the class capsules as features in this .npz."
    )


def main(arguments: list[str]) -> int:
    """Predicts; 1 if some image could not be read."""
    values = flags.FLAGS
    if not arguments:
        raise ValueError("Name image files or folders of them. Received: none.")
    model = open_model(values.model)
    paths, missing = _image_files(arguments)
    names, scores, capsules = [], [], []
    for read, images in _batches(paths, model.image_shape):
        prediction = model(images)
        names += read
        scores.append(prediction.scores)
        capsules.append(prediction.capsules)
    if names:
        scores = np.concatenate(scores)
        show = _json_lines if values.json else _table
        print(show(names, scores, model.class_names, values.top))
        if values.capsules:
            _save_capsules(
                values.capsules, names, scores, capsules, model.class_names
            )
    return 0 if len(names) == len(paths) and not missing else 1


def _image_files(arguments):
    """Returns the files named or found, and how many names led nowhere."""
    paths, missing = [], 0
    for argument in arguments:
        path = pathlib.Path(argument)
        found = [path]
        if not path.exists():
            missing, found = missing + 1, []
            _complain(f"There is no file {path}.")
        elif path.is_dir():
            found = sorted(
                file
                for file in path.rglob("*")
                if file.suffix.lower() in SUFFIXES and file.is_file()
            )
            if not found:
                missing += 1
                _complain(f"There is no image in {path}.")
        paths += found
    return paths, missing


def _batches(
    paths: list[pathlib.Path], shape: tuple[int, int, int]
) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yields names and images; says which files are none."""
    for start in range(0, len(paths), _BATCH):
        names, images = [], []
        for path in paths[start : start + _BATCH]:
            try:
                images.append(_read(path, shape))
                names.append(str(path))
            except OSError as problem:
                _complain(str(problem))
        if names:
            yield names, np.stack(images)


def _read(path, shape):
    pixels = read_image(path, shape[:2])
    if shape[-1] == 1:
        pixels = np.asarray(Image.fromarray(pixels).convert("L"))[..., None]
    return pixels


def _ranked(scores, class_names, top):
    """Pairs of class and score, the best first, for one image."""
    order = np.argsort(-scores, kind="stable")[:top]
    return [(class_names[label], float(scores[label])) for label in order]


def _table(names, scores, class_names, top):
    shown = min(top, len(class_names))
    heads = ["image"]
    for place in range(shown):
        heads += ["class" if place == 0 else f"{place + 1}.", "score"]
    rows = [heads]
    for name, row in zip(names, scores, strict=True):
        cells = [name]
        for label, score in _ranked(row, class_names, shown):
            cells += [label, f"{score:.3f}"]
        rows.append(cells)
    return aligned(rows, "<" + "<>" * shown)


def _json_lines(names, scores, class_names, top):
    lines = []
    for name, row in zip(names, scores, strict=True):
        ranked = _ranked(row, class_names, top)
        best = [{"class": label, "score": score} for label, score in ranked]
        lines.append(
            json.dumps(
                {"image": name, **best[0], "best": best}, ensure_ascii=False
            )
        )
    return "\n".join(lines)


def _save_capsules(path, names, scores, capsules, class_names):
    if capsules[0] is None:
        raise ValueError(
            "`--capsules` needs a network with class capsules. Received: a "
            "model without them."
        )
    path = pathlib.Path(path)
    with written_atomically(path) as temporary, temporary.open("wb") as file:
        np.savez(
            file,
            images=np.array(names),
            capsules=np.concatenate(capsules),
            scores=scores,
            class_names=np.array(class_names),
        )
    print(f"Class capsules of {len(names)} images: {path}", file=sys.stderr)


def _complain(problem):
    print(f"error: {' '.join(problem.split())}", file=sys.stderr)


if __name__ == "__main__":
    define_flags()
    cli.run(main)
