"""Completion equals scoring every admissible triple; outputs read back."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from kgcf.data.reader import read_table
from kgcf.data.source import read
from kgcf.errors import SettingsError
from kgcf.pipeline import fit
from kgcf.prediction.completion import complete, estimate_seconds, plan_completion
from kgcf.prediction.outputs import write_answers
from kgcf.runs.run import Run
from tests.training.tiny import TINY, dataset, write_folder

SMALL = (*TINY, "objective.negatives=4", "training.threads=1", "training.epochs=1")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return fit(read(write_folder(dataset(), folder / "tiny")), folder / "run", preset="nbfnet", changes=SMALL)


@pytest.mark.parametrize("every_entity", [False, True])
def test_completion_equals_scoring_everything(run: Run, every_entity: bool) -> None:
    observed = run.observe(observed="train")
    graph = observed.graph
    found = complete(observed, plan_completion(observed, ["parent", "friend"], every_entity), top=25)
    expected = []
    for relation in observed.relations.ids(["parent", "friend"]).tolist():
        rows = graph.triples[graph.triples[:, 1] == relation]
        heads = range(graph.entity_count) if every_entity else sorted(set(rows[:, 0].tolist()))
        tails = range(graph.entity_count) if every_entity else sorted(set(rows[:, 2].tolist()))
        for h in heads:
            scores, reached = observed.scorer.score_with_reach(np.array([h]), np.array([relation]))
            for t in tails:
                if t != h and reached[0, t] and not graph.contains([[h, relation, t]])[0]:
                    expected.append((float(scores[0, t]), h, relation, t))
    best = sorted(expected, key=lambda row: (-row[0], row[1], row[2], row[3]))[:25]
    ids = [
        (observed.entities.id(a.head), observed.relations.id(a.relation), observed.entities.id(a.tail)) for a in found
    ]
    assert [a.logit for a in found] == pytest.approx([row[0] for row in best], abs=1e-6)
    assert ids == [row[1:] for row in best]
    assert [a.rank for a in found] == list(range(1, 26))


def test_a_cost_estimate_and_a_threshold(run: Run) -> None:
    observed = run.observe()
    task = plan_completion(observed, None, False)
    assert estimate_seconds(observed, task) > 0
    assert task.question_count == sum(len(heads) for heads in task.heads)
    every = complete(observed, task, top=40)
    middle = every[20].probability
    assert all(a.probability >= middle for a in complete(observed, task, top=40, min_probability=middle))


def test_outputs_read_back(run: Run, tmp_path: Path) -> None:
    answers = run.complete(["grandparent"], top=7)
    for suffix in (".tsv", ".csv", ".parquet", ".jsonl", ".nt"):
        write_answers(answers, tmp_path / f"out{suffix}")
    triples = [(a.head, a.relation, a.tail) for a in answers]
    for suffix, delimiter in ((".tsv", "\t"), (".csv", ",")):
        with (tmp_path / f"out{suffix}").open() as file:
            rows = list(csv.DictReader(file, delimiter=delimiter))
        assert [(r["head"], r["relation"], r["tail"]) for r in rows] == triples
        assert [float(r["logit"]) for r in rows] == [a.logit for a in answers]
    assert pq.read_table(tmp_path / "out.parquet")["tail"].to_pylist() == [a.tail for a in answers]
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["head"] for line in lines] == [a.head for a in answers]
    table = read_table(tmp_path / "out.nt")
    assert table.heads.to_pylist() == [a.head for a in answers]
    with pytest.raises(SettingsError, match="must end in .tsv"):
        write_answers(answers, tmp_path / "out.xml")
