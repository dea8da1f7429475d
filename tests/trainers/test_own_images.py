"""People's own images, as they come to `trainers.fit`."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from encapnet_tf.data import load
from tests.trainers.conftest import LEAST
from trainers.recipe import make_recipe
from trainers.runs.folder import RunFolder
from trainers.scoring import measure_test
from trainers.training.finishing import finish_run, generalization_note
from trainers.training.loop import Loop


@pytest.fixture(scope="module")
def arrows(tmp_path_factory):
    """600 arrows, half to the left and half to the right: mirror images."""
    root = tmp_path_factory.mktemp("arrows")
    rng = np.random.default_rng(0)
    for name in ("left", "right"):
        (root / name).mkdir()
        for number in range(300):
            picture = Image.new("RGB", (48, 36), tuple(rng.integers(0, 80, 3)))
            x, y = rng.integers(6, 14), rng.integers(14, 22)
            draw = ImageDraw.Draw(picture)
            color = tuple(int(c) for c in rng.integers(150, 256, 3))
            draw.rectangle((x, y - 2, x + 26, y + 2), color)
            tip, back = (x, x + 14) if name == "left" else (x + 26, x + 12)
            draw.polygon([(tip, y), (back, y - 12), (back, y + 12)], color)
            picture.save(root / name / f"{number}.png")
    return root


def photo(kind, rng):
    """A sunset, a forest or the sea, 40 by 30."""
    rows, columns = np.mgrid[0:30, 0:40]
    horizon = int(rng.uniform(0.35, 0.65) * 30)
    if kind == "sunset":
        share = (rows / 30)[..., None]
        image = (1 - share) * (250, 120, 40) + share * (90, 30, 80)
        image[horizon:] *= 0.4
        x, y = rng.uniform(5, 35), rng.uniform(4, horizon)
        image[(columns - x) ** 2 + (rows - y) ** 2 < 12] = (255, 240, 160)
    elif kind == "forest":
        image = np.full((30, 40, 3), (40.0, 90.0, 35.0))
        for x in rng.integers(0, 37, 6):
            image[:, x : x + 2] = (70, 45, 25)
    else:
        image = np.full((30, 40, 3), (60.0, 130.0, 200.0))
        image[:horizon] = (170, 210, 240)
        image += 12 * np.sin(rows / rng.uniform(0.5, 1.5))[..., None]
    image = image * rng.uniform(0.7, 1.2) + rng.normal(0, 10, image.shape)
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """300 photos of three classes that a person tells apart at a glance."""
    root = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for kind in ("sunset", "forest", "sea"):
        (root / kind).mkdir()
        for number in range(100):
            photo(kind, rng).save(root / kind / f"{number}.png")
    return root


@pytest.mark.slow
def test_a_dozen_steps_on_300_photos_are_enough_to_tell_them_apart(photos):
    """Moving averages lagged behind: 0% in training, 67% in validation."""
    recipe = make_recipe({"dataset": f"folder:{photos}", "epochs": 4})
    loop = Loop(recipe, load(recipe.dataset), None, quiet=True)
    assert loop.steps == 3
    assert loop.run()
    assert loop.state.history[-1]["error"] <= 0.02
    assert loop.validation_error <= 0.02
    _, _, errors = measure_test(
        loop.model, loop.test, augmentation="mild", crops=False, mirrored=False
    )
    assert errors["test_error"] <= 0.02


def test_a_short_epoch_makes_a_default_run_longer(photos):
    recipe = make_recipe({"dataset": f"folder:{photos}"})
    loop = Loop(recipe, load(recipe.dataset), None, quiet=True)
    assert (loop.steps, loop.epochs) == (3, 60)


@pytest.mark.parametrize(
    ("error", "val_error", "images", "said"),
    [(0.03, 0.66, 26, True), (0.03, 0.12, 500, False), (0.2, 0.5, 6, False)],
)
def test_a_wide_gap_to_the_validation_error_is_said(
    error, val_error, images, said
):
    row = {"error": error, "val_error": val_error}
    note = generalization_note(row, images)
    assert (note is not None) == said
    if said:
        assert note.startswith("Training error 3.00%, validation error 66.00%")
        assert "--augmentation=strong" in note


@pytest.mark.slow
def test_arrows_are_told_apart_in_every_view(arrows, tmp_path):
    fields = {
        "variant": "encapnet_tiny", "dataset": f"folder:{arrows}",
        "override": LEAST | {"stem": ((8, 2),), "num_capsules": 4},
        "epochs": 20, "learning_rate": 0.01,
    }  # fmt: skip
    recipe = make_recipe(fields)
    assert recipe.augmentation == "mild"
    folder = RunFolder(tmp_path)
    loop = Loop(recipe, load(recipe.dataset), folder, quiet=True)
    assert loop.run()
    summary = finish_run(loop, folder)
    assert loop.validation_error <= 0.02
    assert summary["multi_crop_views"] == 5
    # Mirrored views made this 42%.
    assert summary["multi_crop_error"] <= 0.02
    assert summary["test_error"] <= 0.02
