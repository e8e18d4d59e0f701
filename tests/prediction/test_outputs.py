"""Completed files carry labels and names, read back as they were, and merge with the RDF that they came from."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pyoxigraph as ox
import pytest

from kgcf.data.reader import read_table
from kgcf.data.source import read
from kgcf.pipeline import fit
from kgcf.prediction.answers import Answer
from kgcf.prediction.outputs import write_answers
from tests.data.test_terms import AWKWARD
from tests.training.tiny import TINY, dataset

Triple = tuple[str, str, str]


def answers_about(triples: Sequence[Triple], names: dict[str, str] | None = None) -> list[Answer]:
    shown = names or {}
    return [
        Answer(
            head=h,
            relation=r,
            tail=t,
            head_name=shown.get(h, h),
            relation_name=shown.get(r, r),
            tail_name=shown.get(t, t),
            rank=rank,
            logit=0.5,
            probability=0.25,
            probability_from="platt",
            probability_given="nothing",
            known=False,
            reached=True,
            head_seen=True,
            tail_seen=False,
        )
        for rank, (h, r, t) in enumerate(triples, start=1)
    ]


def triples_in(path: Path) -> list[Triple]:
    table = read_table(path)
    return list(zip(table.heads.to_pylist(), table.relations.to_pylist(), table.tails.to_pylist(), strict=True))


PLAIN = [
    ("a", "likes", "b"),
    ('"c"', "l'ikes, a lot", "d;e|f"),
    (" spaced ", "likes", "Élysée"),
    ("[/x]", "likes", "#1"),
]
BROKEN = [*PLAIN, ("two\nlines", "a\ttab", "car\rriage"), ('"\n"', '""', 'x"')]


@pytest.mark.parametrize("triples", [PLAIN, BROKEN])
@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".parquet", ".nt"])
def test_our_own_reader_gets_the_labels_back(tmp_path: Path, suffix: str, triples: list[Triple]) -> None:
    path = tmp_path / f"out{suffix}"
    write_answers(
        answers_about(triples, {"a": 'Ann, "the" first', "b": "Bea\tor\nso"} if triples is BROKEN else None), path
    )
    assert triples_in(path) == triples


def test_plain_tsv_has_no_quotes(tmp_path: Path) -> None:
    write_answers(answers_about(PLAIN), tmp_path / "out.tsv")
    lines = (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("head\trelation\ttail\thead_name\trelation_name\ttail_name\trank\t")
    assert lines[2].startswith('"c"\tl\'ikes, a lot\td;e|f\t')


def test_namesakes_stay_apart_in_every_format(tmp_path: Path) -> None:
    names = {"Q1": "Georgia", "Q2": "Georgia", "P47": "borders"}
    answers = answers_about([("Q1", "P47", "Q9"), ("Q2", "P47", "Q9")], names)
    for suffix in (".tsv", ".csv", ".parquet", ".jsonl", ".nt"):
        write_answers(answers, tmp_path / f"out{suffix}")
    for suffix in (".tsv", ".csv", ".parquet", ".nt"):
        assert [t[0] for t in triples_in(tmp_path / f"out{suffix}")] == ["Q1", "Q2"]
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["head_name"].to_pylist() == ["Georgia", "Georgia"]
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(r["head"], r["head_name"], r["relation_name"], r["tail_name"]) for r in rows] == [
        ("Q1", "Georgia", "borders", "Q9"),
        ("Q2", "Georgia", "borders", "Q9"),
    ]
    first = (tmp_path / "out.nt").read_text(encoding="utf-8").splitlines()[0]
    assert first == "<urn:kgcf:Q1> <urn:kgcf:P47> <urn:kgcf:Q9> .  # Georgia —borders→ Q9"


def test_awkward_labels_are_distinct_resources_to_a_real_parser(tmp_path: Path) -> None:
    triples = [(label, "is in", "New York") for label in AWKWARD]
    names = {"O'Neil": "two\nlines .\n<a:b> <c:d> <e:f> ."}
    write_answers(answers_about(triples, names), tmp_path / "out.nt")
    quads = list(ox.parse(path=tmp_path / "out.nt", format=ox.RdfFormat.N_TRIPLES))
    assert len({str(quad.subject) for quad in quads}) == len(quads) == len(AWKWARD)
    assert triples_in(tmp_path / "out.nt") == triples


LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


def people_in_rdf() -> str:
    """The tiny family as N-Triples: IRIs beyond ASCII, blank nodes, namesakes, literals."""

    def person(i: int) -> str:
        return f"_:p{i}" if i % 5 == 0 else f"<http://ex.org/p%C3%A9/{i}>" if i % 2 else f"<http://ex.org/é#{i}>"

    lines = [
        f"{person(h)} <http://ex.org/rel/{r}> {person(t)} ."
        for split in dataset().splits
        for h, r, t in split.queries.tolist()
    ]
    lines += [f'{person(i)} {LABEL} "Person {i // 4}" .' for i in range(40)]
    return "\n".join([*lines, f'<http://ex.org/rel/1> {LABEL} "grandparent" .', ""])


def test_a_completed_rdf_file_merges_back(tmp_path: Path) -> None:
    original, completed, merged = (tmp_path / name for name in ("people.nt", "missing.nt", "merged.nt"))
    original.write_text(people_in_rdf(), encoding="utf-8")
    small = (*TINY, "objective.negatives=4", "training.threads=1", "training.epochs=1")
    data = read(original)
    run = fit(data, tmp_path / "run", preset="nbfnet", changes=small)
    answers = run.complete(["grandparent"], top=60)
    assert len({(a.head_name, a.tail_name) for a in answers}) < len({(a.head, a.tail) for a in answers}) == 60
    write_answers(answers, completed)
    before = list(ox.parse(path=original, format=ox.RdfFormat.N_TRIPLES))
    after = list(ox.parse(path=completed, format=ox.RdfFormat.N_TRIPLES))
    resources = {str(term) for quad in before for term in (quad.subject, quad.object)}
    assert {str(quad.predicate) for quad in after} == {"<http://ex.org/rel/1>"}
    assert {str(term) for quad in after for term in (quad.subject, quad.object)} <= resources
    assert any(str(quad.subject).startswith("_:") for quad in after)
    assert not {str(quad.triple) for quad in before} & {str(quad.triple) for quad in after}
    merged.write_text(original.read_text(encoding="utf-8") + completed.read_text(encoding="utf-8"), encoding="utf-8")
    both = read(merged)
    assert sorted(both.entities.labels()) == sorted(data.entities.labels())
    assert both.relations.labels() == data.relations.labels()
    assert len(both.test.known) == len(data.test.known) + 60


def test_completed_text_goes_through_rdf_and_back(tmp_path: Path) -> None:
    known = [("New York", "is in", "USA"), ("O'Neil", "lives in", "New York"), ("Élysée", "is in", "Paris [F]")]
    found = [("O'Neil", "lives in", "USA"), ("Paris [F]", "is in", "New York")]
    source = tmp_path / "facts.tsv"
    source.write_text("".join("\t".join(triple) + "\n" for triple in known), encoding="utf-8")
    write_answers(answers_about(found), tmp_path / "found.nt")
    labels = {label for triple in triples_in(source) for label in triple}
    assert triples_in(tmp_path / "found.nt") == found
    assert {label for triple in triples_in(tmp_path / "found.nt") for label in triple} <= labels
