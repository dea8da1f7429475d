"""Tests a trained network closely: `python -m trainers.evaluate --help`.

Writes into the run's folder `evaluation/`: the numbers, the classes one by
one, and pictures of what is confused, of the worst mistakes, of the capsules
and, with --robustness, of the error under disturbance.
"""

import sys

import tensorflow as tf
from absl import flags

from encapnet_tf.data import Dataset, load
from trainers import cli, scoring
from trainers.evaluate import plots
from trainers.evaluate.capsule_plots import capsules as draw_capsules
from trainers.evaluate.capsules import capsule_statistics
from trainers.evaluate.robustness import (
    measure_robustness,
    robustness_rows,
    robustness_table,
)
from trainers.evaluate.robustness_plots import robustness as draw_robustness
from trainers.runs.finished import Run, load_run
from trainers.tables import class_table, error_sentence, write_csv

# Ours: minutes on two cores.
ROBUSTNESS_IMAGES = 2000

FILES = (
    "evaluation.json", "per_class.csv", "confusion.png", "mistakes.png",
    "capsules.png", "robustness.csv", "robustness.png",
)  # fmt: skip


def define_flags() -> None:
    """Defines the flags of this program."""
    flags.DEFINE_string("run_dir", "runs/latest", "The run's folder.")
    flags.DEFINE_string("dataset", None, "Test on these data, not the run's.")
    flags.DEFINE_string("data_dir", None, "Folder with NAME.npz or tfds data.")
    flags.DEFINE_bool(
        "multi_crop", None, "Test on five crops too (ten where training "
        "mirrored); default: as the run was tested after training.",
    )  # fmt: skip
    flags.DEFINE_bool(
        "robustness", False, "Also rotate, scale, shift and attack the images."
    )
    flags.DEFINE_integer(
        "limit_test", None, "Use only so many test images; default: all, and "
        f"{ROBUSTNESS_IMAGES:,} for --robustness.",
    )  # fmt: skip
    flags.DEFINE_string(
        "compare", None, "Another run's folder, measured on the same images."
    )


def main(arguments: list[str]) -> int:
    """Evaluates the run that the flags name."""
    cli.take_no_arguments(arguments)
    values = flags.FLAGS
    evaluate(
        values.run_dir,
        dataset=values.dataset,
        data_dir=values.data_dir,
        multi_crop=values.multi_crop,
        robustness=values.robustness,
        limit_test=values.limit_test,
        compare=values.compare,
    )
    return 0


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
    crops = multi_crop
    if crops is None:
        crops = run.recipe.tests_crops()
    folder = run.folder.path / "evaluation"
    _test(runs, data, split, crops, folder)
    if robustness:
        limit = limit_test or ROBUSTNESS_IMAGES
        split = scoring.limited(data.test, limit, seed)
        _disturb(runs, split, folder)
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


def _test(runs, data, split, crops, folder):
    """Errors, classes, mistakes and capsules: prints, writes and draws."""
    run = next(iter(runs.values()))
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
    print(f"{data.name}, one view per image, as it is exported:")
    for name, found in errors.items():
        print(f"  {name}: {error_sentence(found)}")
    scores, labels, _ = tests[next(iter(tests))]
    matrix = scoring.confusion_matrix(scores, labels)
    classes = scoring.class_errors(matrix, data.class_names)
    print(class_table(classes))
    for name in FILES:
        # The folder tells of one evaluation, not of parts of several.
        (folder / name).unlink(missing_ok=True)
    summary = {
        "variant": run.recipe.variant,
        "dataset": data.name,
        "seed": run.recipe.seed,
        "runs": errors,
    }
    run.folder.write_json(folder / "evaluation.json", summary)
    write_csv(folder / "per_class.csv", [row._asdict() for row in classes])
    plots.confusion(matrix, data.class_names, folder / "confusion.png")
    _draw_mistakes(run, split, scores, labels, folder / "mistakes.png")
    _draw_capsules(run, split, folder / "capsules.png")


def _draw_mistakes(run, split, scores, labels, path):
    places = scoring.worst_mistakes(scores, labels)
    if run.scores == "logits":
        # Logits have no unit; probabilities can be read.
        scores = tf.nn.softmax(scores).numpy()
    captions = []
    for place in places:
        true, predicted = labels[place], scores[place].argmax()
        captions.append(
            (run.class_names[true], scores[place, true],
             run.class_names[predicted], scores[place, predicted])
        )  # fmt: skip
    images = scoring.images_at(run.model, split, places)
    plots.mistakes(images, captions, path)


def _draw_capsules(run, split, path):
    if run.scores == "logits":
        print(f"No capsules.png: {run.recipe.variant} has no class capsules.")
        return
    statistics = capsule_statistics(run.model, split, run.recipe.augmentation)
    draw_capsules(statistics, run.class_names, path)


def _disturb(runs, split, folder):
    """Robustness: measures, prints, writes and draws."""
    count = split.num_examples
    print(
        f"Robustness on {count:,} test images, one view each "
        "(more or fewer: --limit_test):",
        flush=True,
    )
    seed = next(iter(runs.values())).recipe.seed
    measured = {
        name: measure_robustness(
            run.model,
            split,
            run.recipe.augmentation,
            seed,
            _progress(name, count),
        )
        for name, run in runs.items()
    }
    print(robustness_table(measured))
    write_csv(folder / "robustness.csv", list(robustness_rows(measured)))
    draw_robustness(measured, folder / "robustness.png")


def _progress(name, count):
    """Shows on a terminal how far a run's robustness is."""

    def show(done):
        if sys.stderr.isatty():
            end = "\n" if done == count else ""
            print(
                f"\r  {name}: {done:,} of {count:,} images",
                end=end, file=sys.stderr, flush=True,
            )  # fmt: skip

    return show


if __name__ == "__main__":
    define_flags()
    cli.run(main)
