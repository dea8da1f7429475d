"""How pictures look here, and how they are written."""

import functools
import pathlib
from collections.abc import Iterable
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib import font_manager  # noqa: E402

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


FONT = STYLE["font.family"]


def style_for(texts: Iterable[str]) -> dict[str, Any]:
    """Returns the style, with fonts for whatever script the texts are in."""
    wanted = set("".join(texts)) - _characters(FONT)
    fonts = [FONT]
    for name in _other_fonts() if wanted else ():
        if found := wanted & _characters(name):
            fonts.append(name)
            wanted -= found
    return STYLE | {"font.family": fonts}


def readable(text: str) -> str:
    r"""Returns a text as pictures can show it.

    Characters that no font here has become their numbers; a dollar sign
    starts no formula.

    Example:
        >>> readable("5 $")
        '5 \\$'
    """
    fonts = style_for([text])["font.family"]
    known = set.union(*(_characters(name) for name in fonts))
    shown = "".join(
        character if character in known else f"\\u{ord(character):04x}"
        for character in text
    )
    return shown.replace("$", "\\$")


@functools.cache
def _characters(name):
    """Returns what a font can draw; nothing if it is broken or of bitmaps."""
    try:
        path = font_manager.findfont(name, fallback_to_default=False)
        font = font_manager.get_font(path)
    except (OSError, RuntimeError, ValueError):
        return set()
    # Matplotlib cannot scale bitmap fonts, such as coloured emoji.
    return set(map(chr, font.get_charmap())) if font.scalable else set()


def _other_fonts():
    """Upright fonts of this machine; no symbols, no stand-ins."""
    names = {
        entry.name
        for entry in font_manager.fontManager.ttflist
        if entry.style == "normal"
        and not entry.name.startswith(("Last Resort", "cm", "STIX", "DejaVu"))
    }
    return sorted(names)


def save(figure: plt.Figure, path: pathlib.Path) -> None:
    """Writes a figure as PNG, the same bytes every time, and closes it."""
    with written_atomically(path) as temporary:
        figure.savefig(
            temporary, dpi=DPI, format="png", metadata={"Software": None}
        )
    plt.close(figure)
