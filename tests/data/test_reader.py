"""Folders, inductive pairs, dictionaries, frames and lists become datasets, and say what was found."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kgcf.data.dataset import Dataset, Split
from kgcf.data.mirrors import Mirror
from kgcf.data.notes import describe_mirrors
from kgcf.data.reader import read_path
from kgcf.data.source import read
from kgcf.data.splitting import SplitSettings
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError, UnknownNameError

Write = Callable[[str, str | bytes], Path]


def facts(data: Dataset, split: Split) -> list[tuple[str, str, str]]:
    return [
        (split.entities.label(h), data.relations.label(r), split.entities.label(t))
        for h, r, t in split.queries.tolist()
    ]


def test_a_folder_with_three_splits(write: Write) -> None:
    write("g/train.txt", "a\tr\tb\nb\ts\tc\na\tr\tb\n")
    write("g/valid.txt", "a\ts\tc\n")
    folder = write("g/test.txt", "b\tr\tz\na\tr\tb\n").parent
    data = read_path(folder)
    assert facts(data, data.train) == [("a", "r", "b"), ("b", "s", "c")]
    assert facts(data, data.valid) == [("a", "s", "c")]
    assert facts(data, data.test) == [("b", "r", "z"), ("a", "r", "b")]
    assert not data.inductive
    assert data.test.observed is data.graph
    assert len(data.test.known) == 4
    said = "\n".join(data.notes)
    assert "1 repeated triple of train left out" in said
    assert "1 triple of test also in train" in said
    assert "1 of 2 test triples ask about an entity without a train triple" in said
    assert "train.txt: tab separated, no header" in said


def test_facts_join_train_and_a_missing_split_is_empty(write: Write) -> None:
    write("g/facts.txt", "a\tr\tb\n")
    write("g/train.txt", "b\tr\tc\n")
    folder = write("g/test.txt", "a\tr\tc\n").parent
    data = read_path(folder)
    assert len(data.graph) == 2
    assert len(data.valid) == 0
    assert "no valid triples: that split is empty" in data.notes


def test_weights_reach_the_graph(write: Write) -> None:
    write("g/train.tsv", "a\tr\tb\t0.5\nb\tr\tc\t2\n")
    folder = write("g/valid.tsv", "a\tr\tc\n").parent
    weights = read_path(folder).graph.weights
    assert weights is not None
    assert weights.tolist() == [0.5, 2.0]


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_dictionaries_fix_the_ids(write: Write, numbers: bool, turned: bool) -> None:
    entities, relations = ["z", "y", "x"], ["q", "p"]

    def dictionary(labels: list[str]) -> str:
        return "".join(f"{label}\t{i}\n" if turned else f"{i}\t{label}\n" for i, label in enumerate(labels))

    write("g/entities.dict", dictionary(entities))
    write("g/relations.dict", dictionary(relations))
    write("g/train.txt", "0\t1\t2\n" if numbers else "z\tp\tx\n")
    folder = write("g/valid.txt", "1\t0\t2\n" if numbers else "y\tq\tx\n").parent
    data = read_path(folder)
    assert data.entities.labels() == entities
    assert data.relations.labels() == relations
    assert data.graph.triples.tolist() == [[0, 1, 2]]
    assert data.valid.queries.tolist() == [[1, 0, 2]]


def test_a_label_missing_from_the_dictionary_is_an_error(write: Write) -> None:
    write("g/entities.dict", "0\ta\n1\tb\n")
    write("g/relations.dict", "0\tr\n")
    write("g/train.txt", "a\tr\tb\n")
    folder = write("g/valid.txt", "a\tr\tmissing\n").parent
    with pytest.raises(DataError, match="used by a triple but not in entities.dict"):
        read_path(folder)
    write("g/entities.dict", "0\ta\n2\tb\n")
    with pytest.raises(DataError, match="count the labels from 0 to 1 without gaps"):
        read_path(folder)


def test_an_inductive_pair(write: Write) -> None:
    for name, rows in {
        "g/train": "a\tr\tb\nb\ts\tc\n", "g/valid": "a\ts\tc\n", "g/test": "c\tr\ta\n",
        "g_ind/train": "u\ts\tv\n", "g_ind/valid": "v\tr\tu\n", "g_ind/test": "u\tr\tv\n",
    }.items():  # fmt: skip
        path = write(name + ".txt", rows)
    data = read_path(path.parent.parent / "g")
    assert data.inductive
    assert facts(data, data.valid) == [("a", "s", "c")]
    assert facts(data, data.test) == [("u", "r", "v")]
    assert data.test.observed.triples.tolist() == [[0, data.relations.id("s"), 1]]
    assert len(data.test.known) == 3
    assert len(data.test.entities) == 2
    write("g_ind/test.txt", "u\tnew\tv\n")
    with pytest.raises(DataError, match="uses the relation 'new'"):
        read_path(path.parent.parent / "g")


def test_folders_without_train_or_with_two_are_refused(write: Write, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="without a train file"):
        read_path(tmp_path)
    write("g/train.txt", "a\tr\tb\n")
    folder = write("g/train.tsv.gz", b"").parent
    with pytest.raises(DataError, match="both train.txt and train.tsv.gz"):
        read_path(folder)


def test_a_single_file_is_split_and_says_what_it_found(write: Write) -> None:
    lines = [f"{a}\tborders\t{b}\n" for i in range(40) for a, b in [(i, (i + 1) % 40), ((i + 1) % 40, i)]]
    data = read_path(write("borders.tsv", "".join(lines) + lines[0]), SplitSettings(seed=4))
    assert data.name == "borders"
    assert [len(s) for s in data.splits] == [64, 8, 8]
    assert "1 repeated triple left out" in data.notes
    assert "symmetric facts kept in one split: 'borders' (100%)" in data.notes
    assert any("seed 4: 64 / 8 / 8" in note for note in data.notes)


ROWS = [(f"e{i}", f"r{i % 2}", f"e{(i * 7 + 1) % 30}") for i in range(60)]
FRAME = {"head": [r[0] for r in ROWS], "relation": [r[1] for r in ROWS], "tail": [r[2] for r in ROWS]}


@pytest.mark.parametrize("source", [ROWS, pd.DataFrame(FRAME), pl.DataFrame(FRAME), np.array(ROWS)])
def test_objects_in_memory_are_read_alike(source: object) -> None:
    data = read(source)
    assert sorted(fact for split in data.splits for fact in facts(data, split)) == sorted(set(ROWS))


def test_integer_arrays_and_weighted_tuples() -> None:
    data = read(np.array([[5, 0, 7], [7, 0, 9], [5, 1, 9]]), split=SplitSettings(valid=0, test=0))
    assert facts(data, data.train) == [("5", "0", "7"), ("7", "0", "9"), ("5", "1", "9")]
    weighted = read([("a", "r", "b", 0.5), ("b", "r", "c", 3)], split=SplitSettings(valid=0, test=0))
    assert weighted.graph.weights is not None
    assert weighted.graph.weights.tolist() == [0.5, 3.0]


@pytest.mark.parametrize("source", [[("a", "b")], ["abc"], [("a", "r", "b"), ("a", "r")], [1, 2, 3]])
def test_lists_of_something_else_are_refused(source: object) -> None:
    with pytest.raises(DataError, match=r"item \d: expected"):
        read(source)


@pytest.mark.parametrize("nothing", [None, float("nan"), ""])
def test_missing_values_in_tuples_are_no_labels(nothing: object) -> None:
    with pytest.raises(DataError, match=r"frame, item 1: \('c', 'r', .*\) has an empty label"):
        read([("a", "r", "b"), ("c", "r", nothing)])
    assert read([("None", "r", "nan")], split=SplitSettings(valid=0, test=0)).entities.labels() == ["None", "nan"]


def test_names_are_attached_and_accepted(write: Write) -> None:
    path = write("g.tsv", "Q45\tP47\tQ29\n")
    data = read(path, names=write("names.tsv", "Q45\tPortugal\nP47\tborders\nQ1\tuniverse\n"))
    assert data.entities.id("Portugal") == data.entities.id("Q45")
    assert data.relations.display(0) == "borders"
    assert "names.tsv: names for 2 of 3 entities and relations" in data.notes
    with pytest.raises(DataError, match="line 2: expected a label, a tab and a name"):
        read(path, names=write("bad.tsv", "Q45\tPortugal\nQ29\n"))


def test_an_unknown_source_gets_suggestions() -> None:
    with pytest.raises(UnknownNameError, match="no file, folder or benchmark called 'wn18r'. Did you mean 'wn18rr'"):
        read("wn18r")


def test_mirrored_relations_with_one_name_are_told_apart() -> None:
    relations = Vocabulary(["r0", "r1"], {"r0": "wed", "r1": "wed"})
    (note,) = describe_mirrors([Mirror(0, 1, True, 9, 1.0)], relations, leak_allowed=False)
    assert "'wed (r0)' and 'wed (r1)'" in note
