"""Text on a screen: what comes from data is shown as it is, never obeyed.

Labels, names and paths may contain brackets that rich takes for markup, `:codes:` that it takes for emoji, and control
characters that a terminal obeys. All output for people goes through `Screen`, for programs through `print_json`.
"""

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, HighlighterType, JustifyMethod, OverflowMethod
from rich.style import StyleType
from rich.text import Text

# Control characters, line and paragraph separators, directional overrides and isolates, and halves of surrogate pairs.
_ACTIVE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}

_AS_WIDE_AS_NEEDED = 100_000


def inert(text: str, keep: str = "") -> str:
    r"""The text with all characters that a terminal or a page would obey written out, as \x1b; those to `keep` stay."""
    return _ACTIVE.sub(lambda found: found[0] if found[0] in keep else _written_out(found[0]), text)


def cell(text: str, style: StyleType = "") -> Text:
    """A text from data, on one line, for a table or a sentence."""
    return Text(inert(text), style)


class Screen(Console):
    """A console on which a string is only text: neither markup nor emoji codes nor control characters have effect.

    Styles are given by `style=` or by `Text`. Without `wrap`, lines are as long as they are. Where nobody looks,
    as in a pipe, nothing is cut or folded either, unless `COLUMNS` says how wide it is.
    """

    def __init__(self, *, stderr: bool = False, wrap: bool = True) -> None:
        looked_at = (sys.stderr if stderr else sys.stdout).isatty() or os.environ.get("COLUMNS")
        super().__init__(
            stderr=stderr, soft_wrap=not wrap, highlight=False, width=None if looked_at else _AS_WIDE_AS_NEEDED
        )

    def render_str(
        self,
        text: str,
        *,
        style: str | StyleType = "",
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        emoji: bool | None = None,
        markup: bool | None = None,
        highlight: bool | None = None,
        highlighter: HighlighterType | None = None,
    ) -> Text:
        """Every string becomes text here, whether printed or in a table; its line breaks are ours."""
        return Text(inert(text, keep="\n"), style, justify=justify, overflow=overflow)


def somebody_looks() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    return Screen(stderr=True).is_terminal


def print_json(value: object) -> None:
    """Print a value as JSON on standard output; what a terminal would obey is escaped, and reads back the same.

    Where standard output cannot show every character, those beyond ASCII are escaped too.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    plain = not encoding.lower().replace("-", "").startswith("utf")
    sys.stdout.write(json_text(value, plain) + "\n")
    sys.stdout.flush()


def print_rows(rows: Iterable[Iterable[str]]) -> None:
    """Print lines of cells between tabs on standard output; tabs and line breaks within a cell are written out."""
    sys.stdout.write("".join("\t".join(map(inert, row)) + "\n" for row in rows))
    sys.stdout.flush()


def json_text(value: Any, plain: bool = False) -> str:  # noqa: ANN401
    """Indented JSON, in which only our own line breaks are active characters; if `plain`, in ASCII."""
    text = json.dumps(value, indent=2, ensure_ascii=plain)
    return _ACTIVE.sub(lambda found: "\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def _written_out(character: str) -> str:
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
