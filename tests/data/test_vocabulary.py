"""Labels and display names are interchangeable; unknown and ambiguous ones get a sentence."""

import numpy as np
import pyarrow as pa
import pytest

from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import UnknownNameError


@pytest.fixture
def countries() -> Vocabulary:
    return Vocabulary(["Q45", "Q29", "Q142", "Q1", "Q2"]).with_names(
        {"Q45": "Portugal", "Q29": "Spain", "Q142": "France", "Q1": "Georgia", "Q2": "Georgia", "Q9": "Nowhere"}
    )


def test_labels_and_names_lead_to_the_same_id(countries: Vocabulary) -> None:
    assert countries.id("Q29") == countries.id("Spain") == countries.id("spain") == 1
    assert countries.ids(["France", "Q45"]).tolist() == [2, 0]
    assert [countries.display(i) for i in range(2)] == ["Portugal", "Spain"]
    assert countries.label(0) == "Q45"
    assert "Q9" not in countries.names


def test_a_label_without_a_name_displays_itself() -> None:
    assert Vocabulary(["a", "b"]).display(1) == "b"


def test_unknown_names_get_suggestions(countries: Vocabulary) -> None:
    with pytest.raises(UnknownNameError, match=r"no entity called 'Portugla'. Did you mean 'Portugal'"):
        countries.id("Portugla", "entity")


def test_ambiguous_names_list_their_labels(countries: Vocabulary) -> None:
    with pytest.raises(UnknownNameError, match="'Georgia' is ambiguous: it names Q1, Q2"):
        countries.id("Georgia", "entity")


def test_ambiguous_names_are_told_apart(countries: Vocabulary) -> None:
    assert [countries.shown(i) for i in (0, 3, 4)] == ["Portugal", "Georgia (Q1)", "Georgia (Q2)"]
    assert countries.displays() == [countries.display(i) for i in range(5)]
    borrowed = Vocabulary(["Paris", "Q90"], {"Q90": "Paris"})
    assert [borrowed.shown(i) for i in range(2)] == ["Paris", "Paris (Q90)"]
    many = Vocabulary([f"Q{i}" for i in range(9)], {f"Q{i}": "Springfield" for i in range(9)})
    with pytest.raises(UnknownNameError, match="it names Q0, Q1, Q2, Q3, Q4 and 4 more. Use one of these labels"):
        many.id("springfield", "entity")


def test_whole_numbers_stand_for_their_labels() -> None:
    numbered = Vocabulary(["7", "8", "eight"], {"8": "seven"})
    assert (numbered.id(7), numbered.id(np.int64(8)), numbered.ids([8, "7"]).tolist()) == (0, 1, [1, 0])
    with pytest.raises(UnknownNameError, match="There is no entity called '9'"):
        numbered.id(9, "entity")
    for wrong in (7.0, None, True, ["7"]):
        with pytest.raises(UnknownNameError, match="is no entity: give its label or its name as text"):
            numbered.id(wrong, "entity")  # type: ignore[arg-type]


def test_exact_label_wins_over_another_entitys_name() -> None:
    vocabulary = Vocabulary(["a", "b"], {"a": "b"})
    assert vocabulary.id("b") == 1


def test_equality_is_by_labels() -> None:
    assert Vocabulary(["a", "b"]) == Vocabulary(["a", "b"], {"a": "x"})
    assert Vocabulary(["a", "b"]) != Vocabulary(["b", "a"])
    assert Vocabulary.numbered(3).labels() == ["0", "1", "2"]


@pytest.mark.parametrize(
    "texts", [[], [""], ["", "a", ""], ["São Tomé", "東京", "🦉"], ["a\0b", "\t", "\n", "a" * 70_000]]
)
def test_labels_of_a_list_are_those_of_arrow(texts: list[str]) -> None:
    vocabulary = Vocabulary(texts)
    assert vocabulary.labels() == texts
    assert vocabulary == Vocabulary(pa.array(texts, type=pa.string()))
    assert [vocabulary.label(i) for i in range(len(vocabulary))] == texts
