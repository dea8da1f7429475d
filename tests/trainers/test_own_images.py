"""People's own images, as they come to `trainers.fit`."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from encapnet_tf.data import load
from tests.trainers.conftest import LEAST
from trainers.recipe import make_recipe
from trainers.runs.folder import RunFolder
from trainers.training.finishing import finish_run
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
            x, y = rng.integers(10, 20), rng.integers(12, 24)
            draw = ImageDraw.Draw(picture)
            color = tuple(int(c) for c in rng.integers(150, 256, 3))
            draw.line((x, y, x + 18, y), color, 3)
            tip, back = (x, x + 8) if name == "left" else (x + 18, x + 10)
            draw.polygon([(tip, y), (back, y - 7), (back, y + 7)], color)
            picture.save(root / name / f"{number}.png")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("augmentation", ["mild", "strong"])
def test_arrows_are_told_apart_by_every_view(arrows, tmp_path, augmentation):
    fields = {
        "variant": "encapnet_tiny", "override": LEAST, "epochs": 15,
        "dataset": f"folder:{arrows}", "learning_rate": 0.01,
        "augmentation": augmentation,
    }  # fmt: skip
    recipe = make_recipe(fields)
    folder = RunFolder(tmp_path)
    loop = Loop(recipe, load(recipe.dataset), folder, quiet=True)
    assert loop.run()
    summary = finish_run(loop, folder)
    assert loop.validation_error == 0
    assert summary["multi_crop_views"] == 5
    assert summary["test_error"] == summary["multi_crop_error"] == 0
