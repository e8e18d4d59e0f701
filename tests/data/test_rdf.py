"""N-Triples and Turtle by the stated rule: links stay, literals are counted, labels become names."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from kgcf.data.reader import read_table
from kgcf.data.source import read
from kgcf.data.splitting import SplitSettings
from kgcf.errors import DataError

Write = Callable[[str, str | bytes], Path]

TURTLE = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:pt :borders :es ; rdfs:label "Portugal"@en , "Portogallo"@it ; :population 10300000 .
:es rdfs:label "Espagne"@fr .
:es :contains [ :borders :fr ] .
:borders rdfs:label "shares a border with" .
"""
NTRIPLES = """<http://e.org/a> <http://e.org/r> <http://e.org/b> .
# a comment
<http://e.org/b> <http://e.org/r> _:x .
<http://e.org/b> <http://e.org/size> "3" .
"""


def test_turtle(write: Write) -> None:
    table = read_table(write("g.ttl", TURTLE))
    assert len(table) == 3
    assert table.notes == ("g.ttl: RDF; 5 literals left out (3 used as names), 1 blank node kept as entities",)
    data = read(write("g.ttl", TURTLE), split=SplitSettings(valid=0, test=0))
    assert data.entities.id("Portugal") == data.entities.id("http://example.org/pt")
    assert data.entities.display(data.entities.id("http://example.org/es")) == "Espagne"
    assert data.relations.id("shares a border with") == data.relations.id("http://example.org/borders")


def test_an_empty_label_is_no_name(write: Write) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    table = read_table(write("g.nt", f'{NTRIPLES}<http://e.org/a> {label} " " .\n<http://e.org/b> {label} "B" .\n'))
    assert table.entity_names == {"http://e.org/b": "B"}


@pytest.mark.parametrize("packed", [False, True])
def test_ntriples(write: Write, packed: bool) -> None:
    path = write("g.nt.gz", gzip.compress(NTRIPLES.encode())) if packed else write("g.nt", NTRIPLES)
    table = read_table(path)
    assert list(zip(table.heads.to_pylist(), table.tails.to_pylist(), strict=True)) == [
        ("http://e.org/a", "http://e.org/b"),
        ("http://e.org/b", "_:x"),
    ]


def test_syntax_errors_name_the_line(write: Write) -> None:
    with pytest.raises(DataError, match=r"g.nt, line 2: not valid NT"):
        read_table(write("g.nt", "<http://e.org/a> <http://e.org/r> <http://e.org/b> .\nnonsense here .\n"))
    with pytest.raises(DataError, match="no links between resources"):
        read_table(write("g.nt", '<http://e.org/a> <http://e.org/r> "x" .\n'))
