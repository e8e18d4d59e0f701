"""Saving a matplotlib figure: whole or not at all, by the ending of its name, the same bytes for the same figure."""

from pathlib import Path
from typing import TYPE_CHECKING

from kgcf.errors import SettingsError
from kgcf.storage import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure  # slow to import, and seldom needed

FORMATS = (".png", ".svg")


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
    with mpl.rc_context({"svg.hashsalt": "kgcf"}), replacing(path) as temporary:
        metadata = {"Date": None} if kind == "svg" else {"Software": "kgcf"}
        canvas.print_figure(temporary, format=kind, dpi=150, metadata=metadata)
