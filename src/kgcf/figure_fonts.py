"""Which installed fonts can draw the characters of a text, so that names in any script are seen in a picture."""

from collections.abc import Iterable
from functools import cache
from unicodedata import category

# The first one comes with matplotlib. Fonts of coloured bitmaps, as most emoji have, cannot be drawn by it.
FAMILIES = (
    "DejaVu Sans",
    "Noto Sans",
    "Liberation Sans",
    *(f"Noto Sans CJK {region}" for region in ("SC", "TC", "JP", "KR")),
    *(
        f"Noto Sans {script}"
        for script in ("SC", "TC", "JP", "KR", "Arabic", "Hebrew", "Devanagari", "Bengali", "Tamil", "Thai")
    ),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback", "IPAGothic", "Hiragino Sans", "PingFang SC"),
    *("Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "AppleGothic", "Noto Naskh Arabic", "Geeza Pro", "FreeSans"),
    *("Noto Emoji", "Symbola", "Noto Sans Symbols", "Noto Sans Symbols2", "Segoe UI Emoji", "Segoe UI Symbol"),
    *("Unifont", "Arial Unicode MS"),
)
MISSING = "\N{REPLACEMENT CHARACTER}"


@cache
def installed() -> dict[str, frozenset[int]]:
    """The families of the list that this machine has, with the characters of each."""
    from matplotlib.font_manager import findfont, fontManager, get_font

    there = {font.name for font in fontManager.ttflist}
    return {family: frozenset(get_font(findfont(family)).get_charmap()) for family in FAMILIES if family in there}


def families_for(texts: Iterable[str]) -> list[str]:
    """The families that these texts need, the usual one first: matplotlib asks them in turn for every character."""
    usual, *others = installed()
    missing = {ord(character) for text in texts for character in text} - installed()[usual]
    chosen = [usual]
    for family in others:
        if missing & installed()[family]:
            chosen.append(family)
            missing -= installed()[family]
    return chosen


def visible(text: str) -> str:
    """The text with � for every character that no installed font has; marks without a shape are left out."""
    characters = frozenset().union(*installed().values())
    return "".join(
        character if ord(character) in characters or character == "\n" else "" if _has_no_shape(character) else MISSING
        for character in text
    )


def _has_no_shape(character: str) -> bool:
    """Joiners and variation selectors change the character beside them, and show nothing themselves."""
    return category(character) in ("Cf", "Mn")
