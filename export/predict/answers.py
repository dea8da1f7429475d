"""What a model says of images, as a table, as JSON and as features."""

import json
import pathlib
from typing import NamedTuple

import numpy as np

from export.predict.image_files import image_batches
from export.prediction import OpenedModel
from trainers.files import written_atomically
from trainers.tables import aligned


class Answers(NamedTuple):
    """What a model says of the images that could be read.

    Attributes:
        names: Their files.
        scores: `(N, M)`.
        capsules: The class capsules `(N, M, D)`, None where there are none.
        class_names: One per score.
    """

    names: list[str]
    scores: np.ndarray
    capsules: np.ndarray | None
    class_names: tuple[str, ...]


def ask(model: OpenedModel, paths: list[pathlib.Path]) -> Answers | None:
    """Asks a model about files; None where none of them can be read."""
    names, scores, capsules = [], [], []
    for read, images in image_batches(paths, model.image_shape):
        prediction = model(images)
        names += read
        scores.append(prediction.scores)
        capsules.append(prediction.capsules)
    if not names:
        return None
    with_capsules = capsules[0] is not None
    return Answers(
        names,
        np.concatenate(scores),
        np.concatenate(capsules) if with_capsules else None,
        model.class_names,
    )


def table(answers: Answers, top: int) -> str:
    """Sets out the best classes of each image."""
    shown = min(top, len(answers.class_names))
    heads = ["image"]
    for place in range(shown):
        heads += ["class" if place == 0 else f"{place + 1}.", "score"]
    rows = [heads]
    for name, scores in zip(answers.names, answers.scores, strict=True):
        cells = [name]
        for label, score in _ranked(scores, answers.class_names, shown):
            cells += [label, f"{score:.3f}"]
        rows.append(cells)
    return aligned(rows, "<" + "<>" * shown)


def json_lines(answers: Answers, top: int) -> str:
    """Writes one JSON object per image."""
    lines = []
    for name, scores in zip(answers.names, answers.scores, strict=True):
        ranked = _ranked(scores, answers.class_names, top)
        best = [{"class": label, "score": score} for label, score in ranked]
        line = {"image": name, **best[0], "best": best}
        lines.append(json.dumps(line, ensure_ascii=False))
    return "\n".join(lines)


def save_capsules(answers: Answers, path: pathlib.Path) -> None:
    """Saves the class capsules as features, as .npz."""
    if answers.capsules is None:
        raise ValueError(
            "`--capsules` needs a network with class capsules. Received: a "
            "model without them."
        )
    with written_atomically(path) as temporary, temporary.open("wb") as file:
        np.savez(
            file,
            images=np.array(answers.names),
            capsules=answers.capsules,
            scores=answers.scores,
            class_names=np.array(answers.class_names),
        )


def _ranked(scores, class_names, top):
    """Pairs of class and score, the best first, for one image."""
    order = np.argsort(-scores, kind="stable")[:top]
    return [(class_names[label], float(scores[label])) for label in order]
