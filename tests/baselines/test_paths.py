"""Path methods against dense matrices and single walks: products, gradients, hidden triples, chances, regressions."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.baselines.paths.drum import Drum
from kgcf.baselines.paths.neurallp import NeuralLP
from kgcf.baselines.paths.operators import Operators, move
from kgcf.baselines.paths.pra import PathRanking, Regression, penalised_loss, step_matrices, walk_chances
from kgcf.baselines.paths.rules import LEAST, RuleModel
from kgcf.baselines.paths.walks import find_paths
from kgcf.baselines.settings import DrumSettings, PraSettings, RuleSettings
from kgcf.data.graph import KnowledgeGraph

TRIPLES = [(0, 0, 1), (1, 0, 2), (2, 1, 2), (0, 1, 3), (3, 0, 0), (0, 2, 1), (4, 1, 0), (1, 1, 3)]
GRAPH = KnowledgeGraph.build(TRIPLES, 6, 3)  # a self-loop, parallel edges, an entity without any


def dense(graph: KnowledgeGraph) -> Tensor:
    """[2R, N, N] M_k[t, h] = 1 for every edge (h, k, t)."""
    table = torch.zeros(2 * graph.relation_count, graph.entity_count, graph.entity_count)
    for h, r, t in graph.triples.tolist():
        table[r, t, h] = 1
        table[r + graph.relation_count, h, t] = 1
    return table


def test_a_product_and_its_gradients_are_those_of_dense_matrices() -> None:
    generator = torch.Generator().manual_seed(0)
    weights, state, back = (torch.rand(shape, generator=generator) for shape in ((6,), (6, 4), (6, 4)))
    found = []
    for way in ("sparse", "dense"):
        w, s = weights.clone().requires_grad_(), state.clone().requires_grad_()
        moved = move(Operators(GRAPH), w, s) if way == "sparse" else torch.einsum("k,kth,hb->tb", w, dense(GRAPH), s)
        moved.backward(back)  # type: ignore[no-untyped-call]
        found.append((moved.detach(), w.grad, s.grad))
    for one, other in zip(*found, strict=True):
        assert one is not None
        assert torch.allclose(one, other, atol=1e-5)


def rule_models() -> list[RuleModel]:
    settings = {"length": 3, "hidden": 8}
    return [
        NeuralLP(RuleSettings(model="neurallp", **settings), GRAPH, 4, 0.01, seed=1),
        Drum(DrumSettings(model="drum", rank=2, **settings), GRAPH, 4, 0.01, seed=1),
    ]


@pytest.mark.parametrize("model", rule_models(), ids=["neurallp", "drum"])
def test_a_question_does_not_see_its_own_triple(model: RuleModel) -> None:
    for h, r, t in TRIPLES:
        rest = Operators(GRAPH.without([(h, r, t)]))
        for head, relation, tail in ((h, r, t), (t, r + 3, h)):
            heads = torch.tensor([head])
            found = model.shares(Operators(GRAPH), relation, heads, torch.tensor([[head], [tail]]))
            assert torch.allclose(found, model.shares(rest, relation, heads), atol=1e-5)


def test_neurallp_is_the_one_written_out() -> None:
    model, matrices = rule_models()[0], dense(GRAPH)
    assert isinstance(model, NeuralLP)
    a, b = model.attention(4)
    assert torch.allclose(a.sum(dim=1), torch.ones(3))
    memories = [torch.eye(6)[0]]
    for step in range(3):
        read = sum(b[step][i] * memory for i, memory in enumerate(memories))
        assert isinstance(read, Tensor)
        moved = sum(a[step, k] * (matrices[k] @ read) for k in range(6))
        assert isinstance(moved, Tensor)
        memories.append(moved / moved.sum().clamp(min=LEAST))
    wanted = sum(b[3][i] * memory for i, memory in enumerate(memories))
    assert isinstance(wanted, Tensor)
    assert torch.allclose(model.shares(Operators(GRAPH), 4, torch.tensor([0]))[:, 0], wanted, atol=1e-6)


def test_drum_is_the_one_written_out() -> None:
    model, matrices = rule_models()[1], dense(GRAPH)
    assert isinstance(model, Drum)
    start, total = torch.eye(6)[0], torch.zeros(6)
    for chain in model.attention(4).detach():
        state, stayed = start, 1.0
        for a in chain:
            step = sum(a[k] * matrices[k] for k in range(6)) + a[6] * torch.eye(6)
            state, stayed = step @ state, stayed * float(a[6])
        total = total + state - stayed * start
    found = model.shares(Operators(GRAPH), 4, torch.tensor([0]))[:, 0]
    assert torch.allclose(found, total / total.sum(), atol=1e-6)


@pytest.mark.parametrize("model", rule_models(), ids=["neurallp", "drum"])
def test_one_step_lowers_the_loss_of_its_batch(model: RuleModel) -> None:
    operators, (heads, tails) = Operators(GRAPH), torch.tensor([[0, 1, 3], [1, 2, 0]])
    losses = [model._step(operators, 0, heads, tails) for _ in range(10)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("model", rule_models(), ids=["neurallp", "drum"])
def test_scores_come_question_by_question_and_say_what_is_reached(model: RuleModel) -> None:
    heads, relations = np.array([0, 5, 1, 0]), np.array([1, 1, 0, 4])
    scorer = model.scorer(GRAPH, 1.0)
    scores, reached = scorer.score_with_reach(heads, relations)
    for row in range(4):
        alone = scorer.score_tails(heads[row : row + 1], relations[row : row + 1])
        assert np.allclose(alone[0], scores[row])
    assert not reached[1, :5].any()  # entity 5 has no edge to walk along
    assert reached[0, :4].all()
    assert (scores[~reached] <= np.log(LEAST) + 1e-3).all()


def chance(graph: KnowledgeGraph, head: int, path: tuple[int, ...], tail: int) -> float:
    """P(head → tail | path) by walking along every edge."""
    if not path:
        return float(head == tail)
    nexts = graph.tails(head, path[0]).tolist()
    return sum(chance(graph, end, path[1:], tail) for end in nexts) / len(nexts) if nexts else 0.0


def test_chances_are_those_of_single_walks() -> None:
    paths = [(0,), (0, 0), (3, 1), (0, 3, 0), (1, 4, 2)]
    heads = np.array([0, 1, 4])
    tables = walk_chances(step_matrices(GRAPH), heads, paths)
    for path in paths:
        wanted = [[chance(GRAPH, head, path, tail) for tail in range(6)] for head in heads.tolist()]
        assert np.allclose(tables[path].toarray(), wanted)


def test_paths_join_their_triples_and_none_walks_along_the_triple_itself() -> None:
    generator = np.random.default_rng(0)
    asked = np.array([[0, 1], [1, 2], [3, 0]])  # the triples of relation 0
    found = find_paths(GRAPH, 0, asked, 3, 200, generator)
    assert found
    for path, count in found.items():
        joined = [chance(GRAPH.without([(head, 0, tail)]), head, path, tail) > 0 for head, tail in asked.tolist()]
        assert count == sum(joined), path
    assert found[(2,)] == 1  # 0 −2→ 1 stands beside 0 −0→ 1
    assert (0,) not in found


def test_the_regression_stands_where_its_gradient_vanishes() -> None:
    generator = np.random.default_rng(1)
    features = generator.random((200, 3)) * np.array([1.0, 0.01, 5.0])
    labels = (features @ [2.0, 300.0, -1.0] + generator.normal(size=200) > 0).astype(np.float64)
    theta, offset, loss = Regression(features, labels).fit(1e-3)
    scale = features.max(axis=0)
    scaled = np.column_stack([features / scale, np.ones(200)])
    at: NDArray[np.float64] = np.append(theta * scale, offset)
    value, gradient = penalised_loss(at, scaled, labels, 1e-3)
    assert np.abs(gradient).max() < 1e-3
    assert value == pytest.approx(loss)
    steps = np.eye(4) * 1e-6
    numeric = [(penalised_loss(at + s, scaled, labels, 1e-3)[0] - value) / 1e-6 for s in steps]
    assert numeric == pytest.approx(gradient, abs=1e-5)


def test_path_ranking_adds_weighted_chances() -> None:
    model = PathRanking(PraSettings(model="pra", paths=4), GRAPH, seed=0)
    model.paths[1, 0], model.paths[1, 1, :2] = torch.tensor([0, 3, 0]), torch.tensor([0, 0])
    model.theta[1, :2], model.offset[1] = torch.tensor([2.0, -3.0]), 0.5
    scores, reached = model.scorer(GRAPH, 1e9).score_with_reach(np.array([0, 5]), np.array([1, 1]))
    for tail in range(6):
        first, second = chance(GRAPH, 0, (0, 3, 0), tail), chance(GRAPH, 0, (0, 0), tail)
        assert scores[0, tail] == pytest.approx(0.5 + 2 * first - 3 * second)
        assert reached[0, tail] == (first + second > 0)
    assert np.allclose(scores[1], 0.5)
    assert not reached[1].any()


def test_examples_are_answers_and_reached_wrong_tails() -> None:
    asked = np.array([[0, 1], [3, 0]])
    paths = [(2,), (1, 0), (3, 3)]
    found = Regression.collect(
        GRAPH, step_matrices(GRAPH), 0, asked, paths, negatives=9, generator=np.random.default_rng(0)
    )
    assert found.labels[:2].tolist() == [1.0, 1.0]
    assert not found.labels[2:].any()
    rest = GRAPH.without([(0, 0, 1), (3, 0, 0)])
    for row, (head, tail) in enumerate(asked.tolist()):
        assert found.features[row] == pytest.approx([chance(rest, head, path, tail) for path in paths])
    assert (found.features[2:].sum(axis=1) > 0).all()
