"""Pictures of what the winning capsules hold."""

import pathlib

import matplotlib.pyplot as plt
import numpy as np

from trainers.evaluate.winners import STEPS
from trainers.pictures import save, style_for

_GAP = 2
_TILE = 0.46  # inches


def reconstructions(
    groups: dict[str, tuple[np.ndarray, np.ndarray]], path: pathlib.Path
) -> None:
    """Draws images above what the winning capsule recalls of them.

    Args:
        groups: By title, images and reconstructions `(N, H, W, C)`.
        path: The PNG.
    """
    columns = max(len(images) for images, _ in groups.values())
    with plt.rc_context(style_for(groups)):
        figure, axes = plt.subplots(
            len(groups), 1, layout="constrained", squeeze=False,
            figsize=(1.6 + 2 * _TILE * columns, 2.4 * len(groups)),
        )  # fmt: skip
        figure.get_layout_engine().set(h_pad=0.1)
        for axis, (title, pair) in zip(axes.flat, groups.items(), strict=True):
            show_tiles(axis, np.stack(pair), ("image", "recalled"))
            axis.set_title(title)
        save(figure, path)


def moved_entries(grids: dict[str, np.ndarray], path: pathlib.Path) -> None:
    """Draws how an image changes with each entry of its capsule.

    Args:
        grids: By class, images `(D, steps, H, W, C)`.
        path: The PNG.
    """
    dim, steps = next(iter(grids.values())).shape[:2]
    with plt.rc_context(style_for(grids)):
        figure, axes = plt.subplots(
            1, len(grids), layout="constrained", squeeze=False,
            figsize=(1 + _TILE * steps * len(grids), 0.8 + _TILE * dim),
        )  # fmt: skip
        figure.get_layout_engine().set(w_pad=0.1)
        figure.suptitle(
            "One entry of the winning capsule moved, all others kept: one row "
            "per entry",
            x=0.01, ha="left", fontsize=11, fontweight="bold",
        )  # fmt: skip
        for axis, (name, grid) in zip(axes.flat, grids.items(), strict=True):
            show_tiles(axis, grid, [str(entry) for entry in range(dim)])
            axis.set_title(name)
            places = np.arange(0, steps, (steps - 1) // 2)
            side = grid.shape[3] + _GAP
            axis.set_xticks(places * side + side / 2 - _GAP / 2)
            axis.set_xticklabels(
                [
                    f"{step:+.2f}" if step else "as it is"
                    for step in STEPS[places]
                ]
            )
        axes[0, 0].set_ylabel("entry")
        save(figure, path)


def neighbours(
    tiles: np.ndarray, class_names: list[str], path: pathlib.Path
) -> None:
    """Draws images and those with the most similar winning capsules.

    Args:
        tiles: `(R, 1 + K, H, W, C)`: an image, then its neighbours.
        class_names: What each row was taken for.
        path: The PNG.
    """
    rows, columns = tiles.shape[:2]
    with plt.rc_context(style_for(class_names)):
        figure, axis = plt.subplots(
            figsize=(1.8 + 1.4 * _TILE * columns, 1.0 + 1.4 * _TILE * rows),
            layout="constrained",
        )
        show_tiles(axis, tiles, class_names)
        side = tiles.shape[3] + _GAP
        axis.set_xticks([side / 2 - _GAP / 2, side * (1 + columns) / 2])
        axis.set_xticklabels(["image", "closest capsules, the closest first"])
        axis.set_title("Nearest neighbours in capsule space")
        save(figure, path)


def show_tiles(axis, tiles, row_names):
    """Shows images `(R, C, H, W, channels)` edge to edge, rows named."""
    rows, columns, height, width, _ = tiles.shape
    sheet = np.ones(
        (rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3)
    )
    for (row, column), _ in np.ndenumerate(tiles[..., 0, 0, 0]):
        top, left = row * (height + _GAP), column * (width + _GAP)
        sheet[top : top + height, left : left + width] = tiles[row, column]
    axis.imshow(np.clip(sheet, 0, 1), interpolation="nearest")
    for side in ("left", "bottom", "top", "right"):
        axis.spines[side].set_visible(False)
    axis.tick_params(length=0)
    axis.set_xticks([])
    centres = np.arange(rows) * (height + _GAP) + (height - 1) / 2
    axis.set_yticks(centres, row_names)
