"""Saving a matplotlib figure: whole or not at all, by the ending of its name, the same bytes for the same figure."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kgcf.errors import SettingsError
from kgcf.screen import inert
from kgcf.storage import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # slow to import, and seldom needed

FORMATS = (".png", ".svg")
LENGTH = 96  # of a text from data in a picture


def drawable(text: str, length: int = LENGTH, *, keep: Literal["start", "end"] = "start", math: bool = True) -> str:
    """A text from data for a picture: control characters written out, and cut where it is very long.

    With `math`, matplotlib would look for formulas between dollar signs, so these are escaped.
    """
    safe = inert(text)
    if len(safe) > length:
        safe = f"{safe[: length - 1]}…" if keep == "start" else f"…{safe[1 - length :]}"
    return safe.replace("$", r"\$") if math else safe


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """A character that the font lacks is drawn as a box; that needs no warning for each of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*Glyph .* missing from")
        yield


def check_picture(path: Path, formats: tuple[str, ...] = FORMATS) -> None:
    """Refuse a file name that does not say which picture is wanted, before any work is done."""
    if path.suffix.lower() not in formats:
        raise SettingsError(f"{path} does not say which picture to draw: end the name in {' or '.join(formats)}.")


def save_picture(figure: "Figure", path: Path) -> None:
    """Write the figure as PNG or SVG."""
    check_picture(path)
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    kind = path.suffix.lower()[1:]
    canvas = FigureCanvasSVG(figure) if kind == "svg" else FigureCanvasAgg(figure)
    with mpl.rc_context({"svg.hashsalt": "kgcf"}), without_glyph_warnings(), replacing(path) as temporary:
        metadata = {"Date": None} if kind == "svg" else {"Software": "kgcf"}
        canvas.print_figure(temporary, format=kind, dpi=150, metadata=metadata)
