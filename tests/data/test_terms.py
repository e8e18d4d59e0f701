"""Labels are RDF terms and back: checked against the parser that everybody else would use."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgcf.data.reader import read_table
from kgcf.data.terms import Position, is_iri, read_term, write_term

Write = Callable[[str, str | bytes], Path]

AWKWARD = (
    "Élysée",
    "O'Neil",
    "ratio 3://4",
    "two words",
    '<>"{}|^`\\',
    "line\nbreak\ttab\r",
    "[/x]",
    "\x1b[31m",
    "100%",
    "%41",
    "/m/0282x",
    "http://e.org/a b",
    "http://e.org/%zz",
    "http://[half",
    "urn:kgcf:Paris",
    "urn:kgcf:urn%3Akgcf%3AParis",
    "urn:kgcf:http%3A%2F%2Fe.org",
    "urn:kgcf:a/b",
    "_:b0",
    "_:",
    "_:no good",
    "<<( <http://e.org/a> <http://e.org/p> _:x )>>",
    "<<( <http://e.org/a> <http://e.org/p> nothing )>>",
    "🦔",
    "?",
    ":",
    "a:",
    "MONDO:0005148",
    "http://e.org/é?q=\ue000#f",
)


def parsed(line: str) -> Any:
    """The triple on a line of N-Triples."""
    (quad,) = ox.parse(io.BytesIO(line.encode()), format=ox.RdfFormat.N_TRIPLES)
    return quad.triple


def round_trip(label: str, position: Position) -> str:
    terms = {"subject": "<s:s>", "predicate": "<p:p>", "object": "<o:o>", position: write_term(label, position)}
    triple = parsed("{subject} {predicate} {object} .\n".format(**terms))
    return read_term(getattr(triple, position), position)


@pytest.mark.parametrize("position", ["subject", "predicate", "object"])
@pytest.mark.parametrize("label", AWKWARD)
def test_awkward_labels_come_back(label: str, position: Position) -> None:
    assert round_trip(label, position) == label


def test_awkward_labels_stay_apart() -> None:
    assert len({write_term(label, "subject") for label in AWKWARD}) == len(AWKWARD)


@given(st.text(min_size=1), st.sampled_from(["subject", "predicate", "object"]))
@settings(max_examples=400)
def test_any_label_comes_back(label: str, position: Position) -> None:
    assert round_trip(label, position) == label


@given(st.text(st.sampled_from("abAZ09:/?#[]@!$&'()*+,;=%-._~\u00e9\ue000\ufdd0 <>{|}\"^`\\\x7f\x85v\U000e0001")))
@settings(max_examples=1500)
@example("a://[::1]:8/x")
@example("a://[v1.x]")
@example("a://[1::%25en]")
@example("a:b#c#d")
@example("a://u@h:80?q")
@example("a://h:x/")
@example("http:x//y")
def test_what_is_an_iri_is_what_the_parser_takes(rest: str) -> None:
    for text in (rest, f"a:{rest}", f"a://{rest}"):
        try:
            accepted = "\\" not in text and parsed(f"<{text}> <p:p> <o:o> .").subject.value == text
        except (SyntaxError, ValueError):
            accepted = False
        assert is_iri(text) == accepted, text


@given(st.text(st.sampled_from("ab0_.-:·é\u0300\u203f \U000f0000"), min_size=1))
@settings(max_examples=400)
def test_what_is_a_blank_node_is_what_the_parser_takes(rest: str) -> None:
    try:
        accepted = str(parsed(f"_:{rest} <p:p> <o:o> .").subject) == f"_:{rest}"
    except (SyntaxError, ValueError):
        accepted = False
    assert (write_term(f"_:{rest}", "subject") == f"_:{rest}") == accepted


TERMS = """<http://e.org/a> <http://e.org/p> <http://e.org/\u00e9> .
_:x <urn:kgcf:is%20in> <urn:kgcf:New%20York> .
<urn:kgcf:a/b> <urn:isbn:123> <<( <http://e.org/a> <http://e.org/p> "say \\"so\\"\\n"@en )>> .
<http://e.org/a> <http://e.org/p> <<( _:x <http://e.org/p> <<( _:y <http://e.org/q> "1"^^<http://e.org/n> )>> )>> .
<urn:kgcf:http%3A%2F%2Fe.org%2Fa> <http://e.org/p> <MONDO:0005148> .
"""


def test_every_term_of_a_file_is_written_as_it_was_read(write: Write) -> None:
    table = read_table(write("g.nt", TERMS))
    columns = (table.heads.to_pylist(), table.relations.to_pylist(), table.tails.to_pylist())
    rows = list(zip(*columns, strict=True))
    assert rows[1] == ("_:x", "is in", "New York")
    lines = [
        " ".join((write_term(h, "subject"), write_term(r, "predicate"), write_term(t, "object"))) for h, r, t in rows
    ]
    assert [f"{line} ." for line in lines] == TERMS.splitlines()
