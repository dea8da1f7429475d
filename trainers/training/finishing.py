"""The end of a run: one test, and what it leaves."""

from typing import Any

from trainers.cost.step_cost import count_parameters
from trainers.files import write_json, written_atomically
from trainers.runs.agreement import summarise_units
from trainers.runs.finished import versions
from trainers.runs.folder import RunFolder
from trainers.scoring import interval, measure_test
from trainers.training.loop import Loop

# Of the least likely validation error over the training error.
_WIDE_GAP = 0.15


def finish_run(loop: Loop, folder: RunFolder) -> dict[str, Any]:
    """Tests a trained network, once, and leaves a finished run.

    Args:
        loop: A loop that has run to its end.
        folder: The run's folder.

    Returns:
        The content of `summary.json`.
    """
    model = loop.single_model()
    with written_atomically(folder.model) as path:
        model.save(path)
    summary = _summarise(loop, model)
    write_json(folder.summary, summary)
    folder.clean_checkpoints()
    return summary


def generalization_note(row: dict[str, Any], images: int) -> str | None:
    """Says so when a network knows its training images, not the classes.

    Args:
        row: The last epoch, as in `metrics.csv`.
        images: How many images the validation error was measured on.
    """
    train, validation = row["error"], row["val_error"]
    if interval(validation, images)[0] < train + _WIDE_GAP:
        return None
    return (
        f"Training error {train:.2%}, validation error {validation:.2%}: the "
        "network knows its training images better than the classes. What "
        "helps, in this order: more images, --augmentation=strong, "
        "--init_from=RUN of a larger data set, --weight_decay=1e-3."
    )


def _summarise(loop, model):
    recipe, dataset = loop.recipe, loop.dataset
    _, _, errors = measure_test(
        model,
        loop.test,
        augmentation=recipe.augmentation,
        crops=recipe.tests_crops(),
        mirrored=recipe.mirrors(dataset.flip),
    )
    seconds = sum(row["seconds"] for row in loop.state.history)
    images = loop.steps * recipe.batch_size * loop.state.epoch
    parameters = count_parameters(model)
    return errors | {
        "validation_error": loop.validation_error,
        "epochs": loop.state.epoch,
        "images_seen": images,
        "train_seconds": round(seconds, 1),
        "images_per_second": round(images / max(seconds, 1e-9), 1),
        "parameters": parameters.trainable,
        "inference_parameters": parameters.inference,
        "seed": recipe.seed,
        "agreement": summarise_units(loop.state.history),
        "class_names": list(dataset.class_names),
        "image_shape": list(dataset.image_shape),
        "versions": versions(),
    }
