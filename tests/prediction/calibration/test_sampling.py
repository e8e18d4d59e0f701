"""The best answers of a question and of a split, against loops over every entity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.data.dataset import Dataset, Split, transductive
from kgcf.data.vocabulary import Vocabulary
from kgcf.prediction.calibration.sampling import best_first, collect_best, questions_of
from kgcf.prediction.observed_graph import ObservedGraph
from tests.oracles import random_graph
from tests.training.tiny import model


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0, -1.5]), st.booleans()), max_size=30), st.integers(1, 12))
def test_best_first_equals_sorting_everything(entries: list[tuple[float, bool]], top: int) -> None:
    scores, possible = np.array([s for s, _ in entries]), np.array([p for _, p in entries], dtype=bool)
    wanted = sorted((-score, place) for place, (score, fine) in enumerate(entries) if fine)[:top]
    assert best_first(scores, possible, top).tolist() == [place for _, place in wanted]


def split_graph(seed: int) -> Dataset:
    """An awkward graph, cut into train, valid and test; two entities are isolated, more are in train."""
    graph = random_graph(np.random.default_rng(seed), entities=20, relations=2, triples=40, isolated=4)
    rows = np.random.default_rng(seed).permutation(graph.triples)
    parts = rows[:-16], rows[-16:-8], rows[-8:]
    return transductive("awkward", Vocabulary.numbered(20), Vocabulary(["a", "b"]), parts)


def bound(data: Dataset, context: str, treated: bool) -> ObservedGraph:
    net = model(2, treatment=treated, context=context)
    treatment = assign_treatment(data.graph, TreatmentSettings()) if treated else None
    return ObservedGraph(net, data.graph, data.entities, data.relations, treatment, 1)


@pytest.mark.parametrize(("context", "treated"), [("none", False), ("unreached", True), ("decoder", False)])
@pytest.mark.parametrize("memory", [1, 64 << 20])
def test_collecting_equals_asking_every_question_alone(context: str, treated: bool, memory: int) -> None:
    data = split_graph(1)
    observed = bound(data, context, treated)
    found = collect_best(observed, data.valid, top=5, memory=memory)
    asked = set()
    for h, r, t in data.valid.queries.tolist():
        asked |= {(h, r), (t, r + 2)}
    truths = {tuple(row) for row in data.valid.queries.tolist()}
    wanted = []
    for number, (head, relation) in enumerate(sorted(asked)):
        new = np.array([e for e in range(20) if e not in data.graph.tails(head, relation)])
        logits, reached = observed.logits(np.array([head]), np.array([relation]), new[None, :])
        order = sorted(range(len(new)), key=lambda i: (not reached[0, i], -round(logits[0, i], 6), new[i]))
        for i in order[:5]:
            triple = (head, relation, int(new[i])) if relation < 2 else (int(new[i]), relation - 2, head)
            wanted.append((number, logits[0, i], reached[0, i], triple in truths))
    assert found.questions.tolist() == [row[0] for row in wanted]
    assert found.logits == pytest.approx([row[1] for row in wanted], abs=1e-5)
    assert found.reached.tolist() == [row[2] for row in wanted]
    assert found.labels.tolist() == [row[3] for row in wanted]
    assert not found.reached.all()
    assert found.reached.any()


@pytest.mark.parametrize("name", ["valid", "test"])
def test_true_answers_are_the_split_s_own_and_those_of_earlier_splits_are_left_out(name: str) -> None:
    data = split_graph(2)
    task: Split = getattr(data, name)
    found = collect_best(bound(data, "none", False), task, top=20)
    questions = [tuple(q) for q in questions_of(task.queries, 2).tolist()]
    own = task.queries.tolist()
    wanted = sum((h, r) in questions for h, r, _ in own) + sum((t, r + 2) in questions for _, r, t in own)
    assert found.labels.sum() == wanted == 2 * len(own)
    earlier = [data.graph] if name == "valid" else [data.graph, data.valid.known]
    known = sum(len({t for graph in earlier for t in graph.tails(*question).tolist()}) for question in questions)
    assert len(found) == 20 * len(questions) - known


def test_a_limit_draws_triples_with_the_seed() -> None:
    data = split_graph(3)
    observed = bound(data, "none", False)
    first, again, other = (collect_best(observed, data.valid, limit=2, seed=seed) for seed in (0, 0, 5))
    assert first.question_count <= 4
    assert (first.logits == again.logits).all()
    assert first.logits.shape != other.logits.shape or (first.logits != other.logits).any()


def test_an_empty_split_has_no_answers() -> None:
    data = split_graph(4)
    parts = (data.graph.triples, data.valid.queries[:0], data.test.queries)
    empty = transductive("no validation", data.entities, data.relations, parts)
    assert len(collect_best(bound(empty, "none", False), empty.valid)) == 0
