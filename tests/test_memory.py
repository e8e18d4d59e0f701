"""One memory bound: everything that plans more than one question divides it, and the numbers stay what they were."""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
from kgcf.data.source import read
from kgcf.data.vocabulary import Vocabulary
from kgcf.machine.memory_bound import DEFAULT, questions_at_once
from kgcf.model.kgcf import KGCF
from kgcf.model.scorer import GraphScorer
from kgcf.pipeline import fit
from kgcf.prediction.completion import estimate_seconds, plan_completion
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.propagation.layers.sparse import budget_for
from kgcf.propagation.plan.planner import Budget, Plan, Planner
from kgcf.runs.run import Run
from kgcf.training.batches import Batch, stream, triples_batch
from kgcf.training.objective import Discrepancy
from kgcf.training.step import GradientComputer
from kgcf.training.substitutes import Substitutes, differentiate_discrepancy, pick_pairs
from tests.training.tiny import TINY, dataset, family, model, step_context, write_folder

SMALL = (*TINY, "objective.negatives=4", "objective.beta=0.1", "space.walks=1", "space.length=4", "training.epochs=1")
BYTES = 1000.0


class Planned:
    """What was planned and ranked while a test watched."""

    def __init__(self) -> None:
        self.totals: set[float] = set()
        self.questions: list[int] = []  # of every plan
        self.ranked: list[int] = []  # of every table of scores

    @property
    def mostly_alone(self) -> bool:
        """Whether questions were planned one by one, but for those without a path, which cost next to nothing."""
        return 1 <= float(np.mean(self.questions)) < 1.5

    def forget(self) -> None:
        self.questions.clear()
        self.ranked.clear()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Refuse a plan of several questions that has no budget, or is over it."""
    seen, parts, score = Planned(), Planner.parts, GraphScorer.score_with_reach

    def watched(
        self: Planner,
        heads: Any,
        relations: Any,
        candidates: Any,
        hidden: Any = None,
        budget: Budget | None = None,
        thinning: Any = None,
    ) -> Iterator[Plan]:
        assert budget is not None or len(heads) == 1, "several questions were planned without the bound"
        seen.totals |= set() if budget is None else {budget.total}
        for plan in parts(self, heads, relations, candidates, hidden, budget, thinning):
            assert len(plan) == 1 or budget is None or budget.cost(plan) <= budget.total
            seen.questions.append(len(plan))
            yield plan

    def counted(self: GraphScorer, heads: Any, relations: Any) -> Any:
        seen.ranked.append(len(heads))
        return score(self, heads, relations)

    monkeypatch.setattr(Planner, "parts", watched)
    monkeypatch.setattr(GraphScorer, "score_with_reach", counted)
    return seen


def with_memory(run: Run, gigabytes: float) -> Run:
    """The same run under another bound."""
    training = run.settings.training.model_copy(update={"memory_gb": gigabytes})
    return Run(run.folder, run.model, run.data, run.settings.model_copy(update={"training": training}))


def test_training_and_every_question_to_a_run_obey_its_bound(planned: Planned, tmp_path: Path) -> None:
    data = read(write_folder(dataset(), tmp_path / "tiny"))
    run = fit(data, tmp_path / "run", changes=(*SMALL, f"training.memory_gb={BYTES / 1e9}"))
    assert planned.totals == {BYTES}
    assert planned.mostly_alone
    assert set(planned.ranked) == {1}, "an eighth of the bound holds no second row of scores"
    large = with_memory(run, 2.0)
    rows = data.graph.triples[data.graph.triples[:, 1] == data.relations.id("grandparent")]
    triple = (data.entities.label(rows[0, 0]), "grandparent", data.entities.label(rows[0, 2]))  # its parents link it
    asks: dict[str, Callable[[Run], list[float]]] = {
        "evaluate": lambda of: of.evaluate("test").ranks.realistic.tolist(),
        "tail": lambda of: [a.logit or 0 for a in of.predict(head="e0", relation="parent")],
        "relation": lambda of: [a.logit or 0 for a in of.predict(head="e0", tail="e3")],
        "complete": lambda of: [a.logit or 0 for a in of.complete(["friend"], top=9)],
        "score": lambda of: of.score([triple, ("e3", "friend", "e2"), ("e2", "grandparent", "e5")]).tolist(),
        "explain": lambda of: [o.logit for o in of.explain(*triple, attribution="gradient").subsets],
    }
    for name, ask in asks.items():
        planned.forget()
        found = ask(run)
        assert planned.totals == {BYTES}, name
        assert planned.mostly_alone, name
        assert max(planned.ranked, default=1) == 1, name
        planned.totals.clear()
        assert found == pytest.approx(ask(large), abs=1e-5), name
        assert planned.totals <= {2e9}, name
        planned.totals = {BYTES}


def test_the_share_of_the_scores() -> None:
    assert questions_at_once(1, 10) == questions_at_once(DEFAULT, 10**12) == 1
    assert questions_at_once(8e6, 500) == 400
    assert questions_at_once(DEFAULT, 10) == 512  # whoever waits hears of them
    assert questions_at_once(8e6, 0) > 0


def test_relation_vectors_of_every_query_count() -> None:
    """Dependent relations: [2R, D] for every query and layer, far more than the slots of a small cone."""
    graph = KnowledgeGraph.build([(0, 0, 1)], 2, 50)
    net = model(50)
    dependent = net.encoder.settings.model_copy(update={"dependent": True})
    heads, candidates = np.zeros(10, np.int64), np.ones((10, 1), np.int64)
    free, own = (budget_for(_with_settings(net, s), 60_000).limits for s in (net.encoder.settings, dependent))
    assert free.query_bytes == 0
    assert own.query_bytes == 2 * 2 * 100 * 8 * 8  # gradients too · layers · 2R · width · bytes
    budget = budget_for(_with_settings(net, dependent), 60_000)
    lengths = [len(plan) for plan in Planner(graph, 2).parts(heads, np.arange(10), candidates, None, budget)]
    assert lengths == [2, 2, 2, 2, 2]


def _with_settings(net: KGCF, settings: Any) -> Any:
    return SimpleNamespace(settings=settings, query=net.encoder.query)


def pairs_of(graph: KnowledgeGraph) -> Batch:
    generator = np.random.default_rng(5)
    heads, tails = generator.integers(0, graph.entity_count, (2, len(graph)))
    matched = np.ones(len(graph), dtype=bool)
    batch = triples_batch(graph, np.arange(30), 3, "triple", stream(0, 0))
    pairs = pick_pairs(batch, Substitutes(graph, heads, tails, matched, matched, matched), "all", "triple")
    assert pairs is not None
    return pairs


@pytest.mark.parametrize("kind", ["kl", "frobenius", "mean"])
@pytest.mark.parametrize("context", ["none", "layers"])
def test_the_discrepancy_in_parts_has_the_gradient_of_the_whole(kind: Discrepancy, context: str) -> None:
    graph = family(np.random.default_rng(1))
    net, pairs = model(3, context=context), pairs_of(graph)
    planner = Planner(graph, 2)
    whole, expected = differentiate_discrepancy(net, planner, pairs, kind, Budget())
    assert any(bool(gradient.any()) for gradient in expected)
    for total in (0.0, 60_000.0):
        budget = budget_for(net.encoder, total)
        parts = list(planner.parts(pairs.heads, pairs.relations, pairs.candidates, pairs.hidden, budget))
        assert len(parts) > 2
        loss, gradients = differentiate_discrepancy(net, planner, pairs, kind, budget)
        assert loss == pytest.approx(whole, rel=1e-12)
        for found, wanted in zip(gradients, expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


def test_a_step_gives_the_discrepancy_its_bound(planned: Planned) -> None:
    graph = family(np.random.default_rng(1))
    matched = np.ones(len(graph), dtype=bool)
    found = Substitutes(
        graph, graph.triples[::-1, 0].astype(np.int64), graph.triples[:, 2].astype(np.int64), matched, matched, matched
    )
    context = replace(step_context(model(3), graph, None, found, beta=0.5, disc_pairs="all"), memory=BYTES)
    batch = triples_batch(graph, np.arange(12), 5, "triple", stream(0, 0))
    _, apart = GradientComputer(context, 1).compute(batch)
    assert apart.terms["discrepancy"] > 0
    assert planned.totals == {BYTES}
    assert planned.questions == [1] * (12 + 2 * 24)  # the batch; both arms, for their states and for their gradients


class LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the largest tensor that any operation returns."""

    numbers = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self.numbers = max(self.numbers, leaf.numel())
        return result


@pytest.mark.parametrize("context", ["unreached", "decoder", "layers"])
def test_no_table_of_entities_by_relations_is_built(context: str) -> None:
    generator = np.random.default_rng(0)
    entities, relations = 3000, 500
    ends, kinds = generator.integers(0, entities, (9000, 2)), generator.integers(0, relations, 9000)
    graph = KnowledgeGraph.build(np.stack([ends[:, 0], kinds, ends[:, 1]], axis=1), entities, relations)
    net = model(relations, context=context)
    scorer = GraphScorer(net, graph, None, threads=1)
    heads, asked = generator.integers(0, entities, 6), generator.integers(0, 2 * relations, 6)
    table = entities * 2 * relations
    batch = triples_batch(graph, np.arange(64), 40, "triple", stream(0, 0))
    computer = GradientComputer(step_context(net, graph), 1)
    scorer.score_tails(heads, asked)
    tracemalloc.start()
    with LargestTensor() as seen:  # type: ignore[no-untyped-call]
        scorer.score_tails(heads, asked)
        computer.compute(batch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < seen.numbers < table // 4
    assert peak < table  # bytes: an eighth of the table in double precision


def loop_questions(graph: KnowledgeGraph, relations: list[int], every_entity: bool) -> list[list[int]]:
    seen = {(r, h) for h, r, _ in graph.triples.tolist()}
    return [[h, r] for r in relations for h in range(graph.entity_count) if every_entity or (r, h) in seen]


def observe(graph: KnowledgeGraph, scorer: Any) -> Any:
    relations = Vocabulary.numbered(graph.relation_count)
    return SimpleNamespace(graph=graph, relations=relations, scorer=scorer)


@pytest.mark.parametrize("every_entity", [False, True])
def test_the_questions_of_a_completion_are_found_without_listing_them(every_entity: bool) -> None:
    graph = KnowledgeGraph.build([(5, 3, 1), (2, 0, 1), (5, 0, 2), (2, 0, 3), (0, 3, 0)], 6, 5)
    for names, ids in ((None, [0, 1, 2, 3, 4]), (["3", "1", "0"], [3, 1, 0])):
        task = plan_completion(observe(graph, None), names, every_entity)
        expected = loop_questions(graph, ids, every_entity)
        assert task.question_count == len(expected)
        assert task.questions(np.arange(len(expected))).tolist() == expected


def test_an_estimate_of_a_million_questions_holds_a_handful() -> None:
    asked: list[Any] = []
    scorer = SimpleNamespace(score_tails=lambda heads, relations: asked.append((heads, relations)))
    graph = KnowledgeGraph.build([(0, 0, 1)], 5000, 200)
    tracemalloc.start()
    task = plan_completion(observe(graph, scorer), None, True)
    estimate_seconds(observe(graph, scorer), task)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert task.question_count == 1_000_000
    assert [len(heads) for heads, _ in asked] == [2, 16]
    assert np.unique(asked[1][1]).size == 16, "drawn evenly over the relations"
    assert peak < 300_000


def test_given_treatments_overrule_those_of_the_graph() -> None:
    graph = family(np.random.default_rng(2))
    net = model(3, treatment=True)

    class Always:
        def treated(self, heads: Any, relations: Any, candidates: Any, hidden: HiddenTriples | None) -> Any:
            return np.ones(np.shape(candidates), dtype=bool)

    names = Vocabulary.numbered(40), Vocabulary.numbered(3)
    observed = ObservedGraph(net, graph, *names, Always(), memory=BYTES)  # type: ignore[arg-type]
    heads, relations, candidates = np.arange(4), np.zeros(4, np.int64), np.arange(8).reshape(4, 2)
    own = observed.logits(heads, relations, candidates)[0]
    same = observed.logits(heads, relations, candidates, None, np.ones((4, 2), dtype=bool))[0]
    other = observed.logits(heads, relations, candidates, None, np.zeros((4, 2), dtype=bool))[0]
    assert (own == same).all()
    assert (own != other).any()
