"""How pictures look here, and how they are written."""

import pathlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from trainers.files import written_atomically  # noqa: E402

# Okabe and Ito's colours: apart for colour-blind eyes too.
BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
SKY, YELLOW, GREY, INK = "#56b4e9", "#e69f00", "#6b7280", "#1f2937"
COLORS = (BLUE, ORANGE, GREEN, PINK, SKY, YELLOW)

DPI = 130

STYLE = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9ca3af",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": False,
    "grid.color": "#e5e7eb",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
}


def save(figure: plt.Figure, path: pathlib.Path) -> None:
    """Writes a figure as PNG, the same bytes every time, and closes it."""
    with written_atomically(path) as temporary:
        figure.savefig(
            temporary, dpi=DPI, format="png", metadata={"Software": None}
        )
    plt.close(figure)
