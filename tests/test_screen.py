"""Strings are text on our screen, wherever they stand; JSON reads back what was printed."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from kgcf.screen import Screen, cell, inert, json_text, print_json

EVIL = "[/x] [bold]b[/bold] :smile: \x1b[31m\x07\x9b \u202e"
SHOWN = r"[/x] [bold]b[/bold] :smile: \x1b[31m\x07\x9b \u202e"


def printed(item: object, **options: object) -> str:
    screen = Screen(wrap=False)
    screen.file = io.StringIO()
    screen.print(item, **options)  # type: ignore[arg-type]
    return screen.file.getvalue()


def test_a_string_is_text() -> None:
    assert printed(EVIL) == SHOWN + "\n"
    assert printed(EVIL, style="bold") == SHOWN + "\n"
    assert printed("our own\nlines") == "our own\nlines\n"
    assert printed(cell("two\nlines\ttab\r")) == "two\\nlines\\ttab\\r\n"


def test_a_string_is_text_everywhere_in_a_table() -> None:
    table = Table(title=EVIL, caption=EVIL)
    table.add_column(EVIL, footer=EVIL)
    table.add_row(EVIL)
    table.add_row(cell(EVIL))
    table.show_footer = True
    assert printed(table).count(SHOWN) == 6


@pytest.mark.parametrize(
    "text",
    ["Élysée", "日本 語", "\U0001f469\u200d\U0001f467", "שלום\u200f", "می\u200cخواهم", "a\u00a0b"],
)
def test_ordinary_text_stays(text: str) -> None:
    assert inert(text) == text


@given(st.text(st.characters(codec="utf-8")))
def test_json_reads_back(text: str) -> None:
    shown = json_text({"name": text})
    assert json.loads(shown) == {"name": text}
    assert inert(shown, keep="\n") == shown


def test_halves_of_surrogate_pairs_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert inert("\ud83d").encode() == rb"\ud83d"
    print_json("\ud83d")
    assert capsys.readouterr().out == '"\\ud83d"\n'
