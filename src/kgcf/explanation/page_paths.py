"""The paths on the page: what each does for the answer, switches to take them away, and what speaks against it."""

from collections.abc import Iterator

from kgcf.explanation.explanation import Explanation
from kgcf.explanation.named_paths import NamedPath
from kgcf.explanation.page_html import SWATCH, escape_text, lane_style, paragraphs, path_line, track
from kgcf.explanation.words import carried_sentences, chance, missing_sentences


def list_paths(explanation: Explanation) -> str:
    """Every path with the width of its drop, and a switch where every subset was scored."""
    items = "".join(_items(explanation))
    listed = f'<ol class="paths">\n{items}</ol>\n' if items else ""
    against = "".join(f"<li>{path_line(path)} {_figures(path)}</li>\n" for path in explanation.against)
    if against:
        against = f'<h3>Speaking against it</h3>\n<ul class="against">\n{against}</ul>\n'
    said = paragraphs((*missing_sentences(explanation), *carried_sentences(explanation)))
    return f"{listed}{_switched(explanation)}{said}\n{against}"


def _items(explanation: Explanation) -> Iterator[str]:
    greatest = max((abs(strength(path)) for path in explanation.paths), default=0.0) or 1.0
    for number, path in enumerate(explanation.paths, start=1):
        width = round(70 * abs(strength(path)) / greatest)
        sign = " negative" if strength(path) < 0 else ""
        switch = ""
        if explanation.subsets:
            switch = f'<input type="checkbox" checked aria-label="path {number} is there">'
        note = "" if path in explanation.reasons else ' <span class="note">speaks against it</span>'
        yield (
            f'<li tabindex="0"{lane_style(number)}><span class="number">{switch}{SWATCH}{number}</span>'
            f'<span class="weight"><span class="bar{sign}" style="width:{width}px"></span></span>'
            f'<span class="line">{path_line(path)} {_figures(path)}{note}</span></li>\n'
        )


def strength(path: NamedPath) -> float:
    """How wide a path is drawn: what the score loses without it, or what its edges weigh."""
    return path.weight if path.effect is None else path.effect.drop


def _figures(path: NamedPath) -> str:
    if path.effect is None:
        return ""
    without, alone = chance(path.effect.without.probability), chance(path.effect.alone.probability)
    same = "" if path.effect.needed or path.effect.against else " · others say the same"
    return f'<span class="figures">without it {without} · alone {alone}{same}</span>'


def _switched(explanation: Explanation) -> str:
    """What the score is with the paths that are switched on; the script fills it in."""
    if not explanation.subsets:
        return ""
    return (
        '<div class="what-if"><p><strong>Take paths away</strong> with their boxes and see what is left: '
        f'<output id="what-if">{chance(explanation.probability)} with all paths</output></p>'
        f"{track(explanation.probability, 'what-if-bar')}</div>\n"
    )


def list_legend(explanation: Explanation) -> str:
    """Which line of the drawing is which path; a button singles it out."""
    buttons = (
        f'<button type="button" class="path"{lane_style(number)} title="{escape_text(str(path))}">'
        f"{SWATCH}{number}</button>"
        for number, path in enumerate(explanation.paths, start=1)
    )
    return "\n".join(buttons)
