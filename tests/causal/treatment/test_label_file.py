"""Labels from a file, and what is said about rows that cannot be used."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from kgcf.causal.treatment import Treatment, TreatmentSettings, assign_treatment, open_treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError, SettingsError
from tests.causal.treatment.oracles import hide

ENTITIES = Vocabulary(["a", "b", "c", "d"], {"a": "Anna", "b": "Bob", "c": "Same", "d": "Same"})
RELATIONS = Vocabulary(["knows", "likes"])
GRAPH = KnowledgeGraph.build([(0, 0, 1), (1, 1, 2)], 4, 2)


def assign(path: Path) -> Treatment:
    settings = TreatmentSettings(method="file", path=path)
    return assign_treatment(GRAPH, settings, entities=ENTITIES, relations=RELATIONS)


def write(folder: Path, text: str, name: str = "labels.tsv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def dense(treatment: Treatment) -> list[list[int]]:
    return [treatment.labels.dense(r).tolist() for r in range(2)]


def test_labels_per_entity(tmp_path: Path) -> None:
    treatment = assign(write(tmp_path, "a\tx\nb\ty\nd\tx\n"))
    assert dense(treatment) == [[1, 2, 0, 1]] * 2
    assert treatment.treated([0, 0, 2], [0, 3, 0]).tolist() == [[True, False, False, True]] * 2 + [[False] * 4]
    assert treatment.notes == ()


def test_labels_per_entity_and_relation(tmp_path: Path) -> None:
    treatment = assign(write(tmp_path, "a\tlikes\tx\nb\tlikes\tx\na\tknows\tx\nb\tknows\ty\n"))
    assert dense(treatment) == [[1, 2, 0, 0], [1, 1, 0, 0]]
    assert treatment.treated_triples([(0, 0, 1), (0, 1, 1), (1, 3, 0)]).tolist() == [False, True, True]


def test_hidden_triples_change_nothing(tmp_path: Path) -> None:
    treatment = assign(write(tmp_path, "a\tx\nb\tx\n"))
    assert treatment.treated([0], [0], [[1]], hide([[0, 1]])).all()
    assert treatment.treated_triples(GRAPH.triples, leave_one_out=True).tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.txt", "entity\tlabel\r\na\tx\r\n\r\nb\ty\r\nd\tx\r\n"),
        ("names.tsv", "Anna\tx\nBob\ty\nd\tx\n"),
        ("with.csv", 'Entity,Label\na,x\n"b","y"\nd,x\n'),
        ("mark.tsv", "\ufeffa\tx\nb\ty\nd\tx\nd\tx\n"),
    ],
)
def test_formats(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, text, name)
    assert dense(assign(path))[0] == [1, 2, 0, 1]
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert dense(assign(packed))[0] == [1, 2, 0, 1]


def test_unknown_names_are_counted(tmp_path: Path) -> None:
    treatment = assign(write(tmp_path, "a\tknows\tx\nz\tknows\tx\nSame\tknows\tx\nb\thates\tx\n"))
    assert treatment.labels.dense(0).tolist() == [1, 0, 0, 0]
    entity, relation = treatment.notes
    assert "2 rows name an entity" in entity
    assert "'z' in line 2" in entity
    assert "1 rows name a relation" in relation
    assert "'hates' in line 4" in relation


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tx\nb\n", "line 2 has 1 columns"),
        ("a\tb\tc\td\n", "line 1 has 4 columns"),
        ("a\tx\n\na\tknows\tx\n", "line 3 has 3 columns where the lines before have 2"),
        ("a\tx\nb\t\n", "line 2 has an empty cell"),
        ("a\tx\nb\ty\na\ty\n", "line 3: 'a' has the label 'y' here but 'x' in line 1"),
        ("z\tx\n", "gives no entity of the graph a label. .*'z' in line 1"),
        ("", "gives no entity of the graph a label"),
    ],
)
def test_bad_rows(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=message) as caught:
        assign(path)
    assert str(path) in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        assign(tmp_path / "absent.tsv")
    latin = tmp_path / "latin.tsv"
    latin.write_bytes("é\tx\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        assign(latin)
    with pytest.raises(DataError, match="not a CSV file"):
        assign(write(tmp_path, 'a,"x\n', "open.csv"))
    cut = tmp_path / "cut.tsv.gz"
    cut.write_bytes(gzip.compress(b"a\tx\n" * 1000)[:-12])
    with pytest.raises(DataError, match="Could not read"):
        assign(cut)


def test_vocabularies_are_needed(tmp_path: Path) -> None:
    settings = TreatmentSettings(method="file", path=write(tmp_path, "a\tx\n"))
    with pytest.raises(SettingsError, match="needs the vocabularies"):
        assign_treatment(GRAPH, settings)


def test_the_fingerprint_follows_the_content_not_the_path(tmp_path: Path) -> None:
    first = assign(write(tmp_path, "a\tx\nb\tx\n", "one.tsv")).fingerprint
    assert assign(write(tmp_path, "a\tq\nb\tq\n", "two.tsv")).fingerprint == first
    assert assign(write(tmp_path, "a\tx\nb\ty\n", "one.tsv")).fingerprint != first


def test_a_saved_treatment_needs_no_file(tmp_path: Path) -> None:
    path = write(tmp_path, "a\tx\nb\tx\nz\tx\n")
    treatment = assign(path)
    treatment.save(tmp_path / "treatment.safetensors")
    path.unlink()
    opened = open_treatment(tmp_path / "treatment.safetensors", GRAPH)
    np.testing.assert_array_equal(opened.treated([0], [0]), treatment.treated([0], [0]))
    assert opened.notes == treatment.notes
