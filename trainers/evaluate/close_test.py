"""The close test of a run: measures, prints, writes and draws."""

import numpy as np
import tensorflow as tf

from encapnet_tf.data import Dataset, load
from trainers import scoring
from trainers.evaluate import ROBUSTNESS_IMAGES, plots, winner_report
from trainers.evaluate.calibration import measure_calibration, reliability
from trainers.evaluate.capsule_plots import capsules as draw_capsules
from trainers.evaluate.capsules import capsule_statistics
from trainers.evaluate.robustness import (
    measure_robustness,
    robustness_rows,
    robustness_table,
)
from trainers.evaluate.robustness_plots import robustness as draw_robustness
from trainers.files import write_json
from trainers.progress import ShareProgress, StageProgress
from trainers.runs.finished import Run, load_run
from trainers.tables import class_table, error_sentence, write_csv

_SHOWN_MISTAKES = 12

FILES = (
    "evaluation.json", "per_class.csv", "mistakes.csv", "confusion.png",
    "mistakes.png", "reliability.png", "capsules.png", *winner_report.FILES,
    "robustness.csv", "robustness.png",
)  # fmt: skip


def evaluate(
    run_dir: str,
    *,
    dataset: str | None = None,
    data_dir: str | None = None,
    multi_crop: bool | None = None,
    robustness: bool = False,
    limit_test: int | None = None,
    compare: str | None = None,
) -> None:
    """Evaluates a run; the arguments are the flags. Prints and writes."""
    if limit_test is not None and limit_test < 1:
        raise ValueError(
            f"`limit_test` must be >= 1. Received: limit_test={limit_test}."
        )
    runs = _load_runs(run_dir, compare)
    run = next(iter(runs.values()))
    data = _load_data(run, dataset, data_dir)
    for each in runs.values():
        _check_fit(each, data, run)
    seed = run.recipe.seed
    split = scoring.limited(data.test, limit_test, seed)
    crops = run.recipe.tests_crops() if multi_crop is None else multi_crop
    folder = run.folder.path / "evaluation"
    views = sum(11 if crops else 1 for _ in runs)
    progress = StageProgress(_stages(views * split.num_examples))
    with progress.shown():
        summary = _test(runs, data, split, crops, folder, progress)
    if robustness:
        limit = limit_test or ROBUSTNESS_IMAGES
        split = scoring.limited(data.test, limit, seed)
        summary["robustness"] = _disturb(runs, split, folder)
        write_json(folder / "evaluation.json", summary)
    print(f"Written to {folder}:")
    print("  " + "  ".join(n for n in FILES if (folder / n).exists()))


def _load_runs(run_dir, compare) -> dict[str, Run]:
    """Loads one or two runs, by the names they get in tables."""
    run = load_run(run_dir)
    runs = {run.name: run}
    if compare is not None:
        other = load_run(compare)
        same = other.name == run.name
        runs[str(other.folder.path) if same else other.name] = other
    return runs


def _load_data(run: Run, dataset, data_dir) -> Dataset:
    recipe = run.recipe
    if dataset is None:
        dataset, data_dir = recipe.dataset, data_dir or recipe.data_dir
    return load(dataset, data_dir, image_size=recipe.image_size)


def _check_fit(run: Run, data: Dataset, first: Run):
    if run.model.input_shape != first.model.input_shape:
        raise ValueError(
            "`compare` must be a run on images of the same size. Received: "
            f"compare={run.folder.path} with {run.model.input_shape[1:]}, "
            f"run_dir={first.folder.path} with {first.model.input_shape[1:]}."
        )
    if run.class_names != data.class_names:
        raise ValueError(
            "The data must have the classes of the run. Received: "
            f"{data.name} with {_few(data.class_names)}, for the run in "
            f"{run.folder.path} with {_few(run.class_names)}."
        )


def _few(names):
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return f"{len(names)} classes ({shown})"


def _stages(images):
    """Guesses how long the parts of a test take, by the images scored."""
    return {
        "testing": 5 + images / 1_000,
        "looking at capsules": 20.0,
        "drawing": 5.0,
    }


def _test(runs, data, split, crops, folder, progress):
    """Errors, classes, mistakes and capsules: prints, writes and draws.

    Returns the content of `evaluation.json`.
    """
    run = next(iter(runs.values()))
    progress.begin("testing")
    tests = {
        name: scoring.measure_test(
            each.model,
            split,
            augmentation=each.recipe.augmentation,
            crops=crops,
            mirrored=each.recipe.mirrors(data.flip),
        )
        for name, each in runs.items()
    }
    errors = {name: found for name, (_, _, found) in tests.items()}
    progress.say(f"{data.name}, one view per image, as it is exported:")
    for name, found in errors.items():
        progress.say(f"  {name}: {error_sentence(found)}")
    scores, labels, _ = next(iter(tests.values()))
    if run.scores == "logits":
        # Logits have no unit; probabilities can be read.
        scores = tf.nn.softmax(scores).numpy()
    matrix = scoring.confusion_matrix(scores, labels)
    classes = scoring.class_errors(matrix, data.class_names)
    calibration = measure_calibration(scores, labels)
    progress.say(class_table(classes))
    progress.say(
        "Expected calibration error: "
        f"{100 * calibration.expected_error:.1f} points."
    )
    for name in FILES:
        # The folder tells of one evaluation, not of parts of several.
        (folder / name).unlink(missing_ok=True)
    summary = {
        "variant": run.recipe.variant,
        "dataset": data.name,
        "seed": run.recipe.seed,
        "runs": errors,
        "classes": [row._asdict() for row in classes],
        "calibration": {"score": _score_name(run)} | calibration.as_json(),
    }
    progress.begin("looking at capsules")
    summary |= _capsules(run, split, folder, progress.say)
    progress.begin("drawing")
    write_json(folder / "evaluation.json", summary)
    write_csv(folder / "per_class.csv", summary["classes"])
    _list_mistakes(run, split, scores, labels, folder / "mistakes.csv")
    plots.confusion(matrix, data.class_names, folder / "confusion.png")
    reliability(calibration, _score_name(run), folder / "reliability.png")
    _draw_mistakes(run, split, scores, labels, folder / "mistakes.png")
    return summary


def _score_name(run):
    if run.scores == "lengths":
        return "length of the winning capsule"
    return "probability of the winning class"


def _captions(run, split, scores, labels, places):
    """Says of images at some places what they are and are taken for."""
    captions = []
    for place in places:
        true, predicted = labels[place], scores[place].argmax()
        captions.append(
            plots.Shown(
                split.name_of(int(place)),
                run.class_names[true],
                float(scores[place, true]),
                run.class_names[predicted],
                float(scores[place, predicted]),
            )
        )
    return captions


def _list_mistakes(run, split, scores, labels, path):
    places = scoring.worst_mistakes(scores, labels)
    rows = _captions(run, split, scores, labels, places)
    write_csv(path, [row._asdict() for row in rows], plots.Shown._fields)


def _draw_mistakes(run, split, scores, labels, path):
    places = scoring.worst_mistakes(scores, labels, _SHOWN_MISTAKES)
    if not len(places):
        places = scoring.least_certain(scores, _SHOWN_MISTAKES)
    captions = _captions(run, split, scores, labels, places)
    images = scoring.images_at(run.model, split, np.array(places))
    plots.mistakes(images, captions, path)


def _capsules(run, split, folder, say):
    """Draws the class capsules; returns what is measured of them."""
    if run.scores == "logits":
        say(f"No capsules.png: {run.recipe.variant} has no class capsules.")
        return {}
    statistics = capsule_statistics(run.model, split, run.recipe.augmentation)
    folder.mkdir(parents=True, exist_ok=True)
    draw_capsules(statistics, run.class_names, folder / "capsules.png")
    found = winner_report.report_winners(run, split, folder)
    used = [n for n in found["entries_in_use"].values() if n is not None]
    if used:
        say(
            f"Entries in use per winning capsule: {np.mean(used):.1f} of "
            f"{statistics.effects.shape[1]} ({min(used):.1f} to "
            f"{max(used):.1f})."
        )
    if "reconstruction_error" in found:
        say(
            "Mean squared error of a reconstructed pixel: "
            f"{found['reconstruction_error']:.4f}."
        )
    return found


def _disturb(runs, split, folder):
    """Robustness: measures, prints, writes and draws; returns the rows."""
    print(
        f"Robustness on {split.num_examples:,} test images, one view each "
        "(more or fewer: --limit_test):",
        flush=True,
    )
    seed = next(iter(runs.values())).recipe.seed
    measured = {
        name: measure_robustness(
            run.model, split, run.recipe.augmentation, seed, ShareProgress(name)
        )
        for name, run in runs.items()
    }
    print(robustness_table(measured))
    rows = list(robustness_rows(measured))
    write_csv(folder / "robustness.csv", rows)
    draw_robustness(measured, folder / "robustness.png")
    return rows
