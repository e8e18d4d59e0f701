"""Verdicts: kept whatever happens, by whoever at the same time; counted, taken back, exported, used."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kgcf.errors import SettingsError, StorageError
from kgcf.prediction.answers import Answer
from kgcf.web.review.export import export_links
from kgcf.web.review.precision import measure_precision, wilson
from kgcf.web.review.store import Chosen, ConflictError, ReviewStore

SOME = Answer("a", "r", "b", "a", "r", "b", 1, 1.0, 0.7, "completion", "proposed by complete", False, True, True, True)


def answers(count: int) -> list[Answer]:
    return [replace(SOME, tail=f"b{i}", tail_name=f"B {i}", probability=round(0.9 - 0.1 * i, 3)) for i in range(count)]


@pytest.fixture
def store(tmp_path: Path) -> ReviewStore:
    found = ReviewStore(tmp_path / "review.sqlite")
    found.add(answers(5))
    return found


def test_links_are_kept_once_and_the_likeliest_come_first(store: ReviewStore) -> None:
    assert store.add([replace(SOME, tail="b4", probability=0.95), replace(SOME, tail="new")]) == 1
    assert [link.answer.tail for link in store.links(Chosen("open"))] == ["b4", "b0", "b1", "b2", "new", "b3"]
    assert [link.answer.tail for link in store.links(Chosen(min_probability=0.85))] == ["b4", "b0"]
    assert store.count(Chosen(relation="other")) == 0
    assert ReviewStore(store.path).count() == 6


def test_the_last_verdict_counts_and_can_be_taken_back(store: ReviewStore) -> None:
    first = store.decide(1, "accept", "Ann", "sure")
    assert first.decision is not None
    assert (first.decision.verdict, first.decision.note, first.decision.probability) == ("accept", "sure", 0.9)
    store.decide(1, "reject", "Bea")
    store.decide(2, "leave", "Ann")
    assert [d.reviewer for d in store.history(1)] == ["Bea", "Ann"]
    assert store.count(Chosen("reject")) == 1
    undone = store.undo("Bea")
    assert undone is not None
    assert undone.decision == first.decision
    assert store.undo("Bea") is None
    assert {store.undo("Ann").id, store.undo("Ann").id} == {1, 2}  # type: ignore[union-attr]
    assert store.count(Chosen("open")) == 5
    with pytest.raises(SettingsError, match="no proposed link number 77"):
        store.decide(77, "accept", "Ann")


def test_who_saw_something_else_looks_again(store: ReviewStore) -> None:
    store.decide(1, "accept", "Ann", seen=0)
    with pytest.raises(ConflictError, match="Ann said accept"):
        store.decide(1, "reject", "Bea", seen=0)
    assert store.count(Chosen("accept")) == 1


def test_many_at_once_lose_nothing(store: ReviewStore) -> None:
    def judge(reviewer: str) -> None:
        own = ReviewStore(store.path)
        for link, verdict in itertools.product((1, 2, 3), ("accept", "reject")):
            own.decide(link, verdict, reviewer)  # type: ignore[arg-type]

    threads = [threading.Thread(target=judge, args=(f"reviewer {i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(store.history(link)) for link in (1, 2, 3)] == [12, 12, 12]


JUDGE = """
import sys
from pathlib import Path
from kgcf.web.review.store import ReviewStore
store = ReviewStore(Path(sys.argv[1]))
for number in range(100_000):
    store.decide(1, "accept", "Ann", str(number))
    sys.stdout.write(f"{number}\\n")  # acknowledged
    sys.stdout.flush()
"""


def test_a_kill_loses_no_acknowledged_verdict(store: ReviewStore) -> None:
    process = subprocess.Popen([sys.executable, "-c", JUDGE, str(store.path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = [process.stdout.readline() for _ in range(20)]
    os.kill(process.pid, signal.SIGKILL)
    acknowledged += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    complete = [int(line) for line in acknowledged if line.endswith("\n")]
    kept = sorted(int(decision.note) for decision in store.history(1))
    assert kept[: len(complete)] == complete
    assert len(kept) - len(complete) <= 1  # kept, and killed before it could be said
    assert store.decide(1, "reject", "Bea").decision is not None


def test_a_newer_or_damaged_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "rubbish.sqlite").write_text("this is no database, and long enough to be looked at" * 40)
    with pytest.raises(StorageError, match="cannot be used"):
        ReviewStore(tmp_path / "rubbish.sqlite")


def test_precision_by_relation_and_probability(store: ReviewStore) -> None:
    store.add([replace(SOME, relation="s", relation_name="S", probability=0.03)])
    for link, verdict in ((1, "accept"), (2, "accept"), (3, "reject"), (4, "leave"), (6, "reject")):
        store.decide(link, verdict, "Ann")  # type: ignore[arg-type]
    found = measure_precision(store.links(Chosen("decided")))
    assert found.overall is not None
    assert (found.overall.accepted, found.overall.rejected) == (2, 2)
    assert found.overall.said == pytest.approx((0.9 + 0.8 + 0.7 + 0.03) / 4)
    assert [(g.name, g.accepted, g.judged) for g in found.by_relation] == [("r", 2, 3), ("S", 0, 1)]
    assert [(g.name, g.share) for g in found.by_probability] == [
        ("0% – 5%", 0.0),
        ("60% – 80%", 0.5),
        ("80% – 100%", 1.0),
    ]
    assert measure_precision([]).overall is None
    assert wilson(0, 1) == pytest.approx((0.0, 0.7935), abs=1e-4)
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_exports_read_back(store: ReviewStore) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph")
    odd = replace(SOME, head="http://example.org/x", tail='tab\t"quoted"\nline', probability=0.99)
    store.add([odd])
    store.decide(6, "accept", 'Ann "the judge"', "because\nof \x1b that \\ this")
    store.decide(1, "reject", "Bea")
    accepted, decided = store.links(Chosen("accept")), store.links(Chosen("decided"))
    (line,) = "".join(export_links(accepted, "nt")).splitlines()
    (triple,) = pyoxigraph.parse(line.encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    assert triple.subject.value == "http://example.org/x"
    quads = list(pyoxigraph.parse("".join(export_links(decided, "ttl")).encode(), format=pyoxigraph.RdfFormat.TURTLE))
    claimed = [quad for quad in quads if quad.subject.__class__.__name__ == "NamedNode"]
    assert [quad.subject.value for quad in claimed] == ["http://example.org/x"]
    said = {quad.predicate.value.rpartition("#")[2]: getattr(quad.object, "value", "") for quad in quads[:7]}
    assert float(said["confidence"]) == 0.99
    assert said["note"] == "because\nof \x1b that \\ this"
    header, *rows = "".join(export_links(decided, "tsv")).splitlines()
    assert header.split("\t")[:4] == ["head", "relation", "tail", "probability"]
    assert rows[0].split("\t")[2] == 'tab\\t"quoted"\\nline'
    assert len(rows) == 2


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)
