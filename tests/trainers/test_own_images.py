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
            x, y = rng.integers(6, 14), rng.integers(14, 22)
            draw = ImageDraw.Draw(picture)
            color = tuple(int(c) for c in rng.integers(150, 256, 3))
            draw.rectangle((x, y - 2, x + 26, y + 2), color)
            tip, back = (x, x + 14) if name == "left" else (x + 26, x + 12)
            draw.polygon([(tip, y), (back, y - 12), (back, y + 12)], color)
            picture.save(root / name / f"{number}.png")
    return root


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
