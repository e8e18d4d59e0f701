import numpy as np
import pytest
import torch
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, hide_pairs, hide_triples
from kgcf.errors import SettingsError
from kgcf.model.decoder import Decoder
from kgcf.model.dense_scores import score_densely
from kgcf.propagation.dense.propagation import DenseEdges, propagate_densely
from kgcf.propagation.layers.encoder import Encoder, Semantics

from .dense_oracle import propagate_by_loops, score_by_loops
from .random_graphs import graph_of_own_relations, random_graph, random_model

HEADS, RELATIONS = [0, 3, 8, 0], [0, 3, 1, 2]  # a hub, any, an isolated one, the hub again


def hide_some(graph: KnowledgeGraph, heads: list[int] = HEADS) -> HiddenTriples:
    """The first triple at every head's own links: by pairs, so that several edges may go."""
    candidates = [[graph.edge_tails[graph.offsets[h]] if graph.degrees[h] else h, h] for h in heads]
    return hide_pairs(graph, heads, np.array(candidates))


def dense_logits(
    encoder: Encoder,
    decoder: Decoder,
    graph: KnowledgeGraph,
    hidden: HiddenTriples | None = None,
    treated: Tensor | None = None,
    semantics: Semantics = "grounded",
    edge_weights: Tensor | None = None,
    block_size: int = 5,
) -> Tensor:
    edges = DenseEdges.build(graph, encoder.query.weight, block_size)
    heads, relations = torch.tensor(HEADS), torch.tensor(RELATIONS)
    result = propagate_densely(encoder, edges, heads, relations, hidden, semantics, edge_weights)
    return score_densely(decoder, result, treated)


def loop_logits(
    encoder: Encoder,
    decoder: Decoder,
    graph: KnowledgeGraph,
    hidden: HiddenTriples | None = None,
    treated: Tensor | None = None,
    semantics: Semantics = "grounded",
    edge_weights: Tensor | None = None,
) -> Tensor:
    rows = []
    for b, (head, relation) in enumerate(zip(HEADS, RELATIONS, strict=True)):
        unseen = hidden.of(b).tolist() if hidden is not None else []
        extra = None if edge_weights is None else edge_weights[:, b]
        result = propagate_by_loops(encoder, graph, head, relation, unseen, semantics == "grounded", extra)
        marks = None if treated is None else treated[b].tolist()
        rows.append(score_by_loops(decoder, result, encoder.query.weight[relation], marks))
    return torch.stack(rows)


def gradients(logits: Tensor, wanted: list[Tensor]) -> list[Tensor]:
    weights = torch.linspace(-1, 2, logits.numel(), dtype=logits.dtype).view(logits.shape)
    found = torch.autograd.grad((weights * logits).sum(), wanted, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(wanted, found, strict=True)]


def assert_equal_to_loops(
    encoder: Encoder,
    decoder: Decoder,
    graph: KnowledgeGraph,
    hidden: HiddenTriples | None = None,
    treated: Tensor | None = None,
    semantics: Semantics = "grounded",
    edge_weights: Tensor | None = None,
) -> None:
    """Logits and the gradients of all parameters, and of the edge weights where given."""
    wanted: list[Tensor] = [*encoder.parameters(), *decoder.parameters()]
    if edge_weights is not None:
        wanted.append(edge_weights)
    fast = dense_logits(encoder, decoder, graph, hidden, treated, semantics, edge_weights)
    slow = loop_logits(encoder, decoder, graph, hidden, treated, semantics, edge_weights)
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-10)
    for mine, theirs in zip(gradients(fast, wanted), gradients(slow, wanted), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("aggregate", ["pna", "sum", "mean", "max", "min"])
@pytest.mark.parametrize("message", ["distmult", "transe", "rotate"])
def test_equals_plain_loops(message: str, aggregate: str, ties: bool) -> None:
    graph = random_graph(int(ties))
    encoder, decoder = random_model(3, message=message, aggregate=aggregate, layer_norm=not ties, ties=ties)
    assert_equal_to_loops(encoder, decoder, graph, hide_some(graph))


@pytest.mark.parametrize("context", ["none", "unreached", "decoder", "layers"])
@pytest.mark.parametrize("dependent", [False, True])
def test_contexts_treatments_and_dependent_relations_equal_plain_loops(context: str, dependent: bool) -> None:
    graph = random_graph(2, triple_count=9)
    encoder, decoder = random_model(
        4, layers=2, dependent=dependent, context=context, treatment=True, residual=dependent
    )
    treated = torch.tensor(np.random.default_rng(0).random((len(HEADS), 9)) < 0.5)
    assert_equal_to_loops(encoder, decoder, graph, hide_some(graph), treated)


@pytest.mark.parametrize("message", ["distmult", "transe"])
@pytest.mark.parametrize("context", ["none", "layers", "decoder"])
def test_published_semantics_equal_plain_loops(message: str, context: str) -> None:
    graph = random_graph(5)
    encoder, decoder = random_model(5, layers=2, message=message, context=context)
    assert_equal_to_loops(encoder, decoder, graph, hide_some(graph), semantics="nbfnet")


@pytest.mark.parametrize("message", ["distmult", "transe", "rotate"])
def test_edge_weights_of_every_layer_have_gradients(message: str) -> None:
    graph = random_graph(6)
    encoder, decoder = random_model(6, layers=2, message=message)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(2, len(HEADS), graph.edge_count, generator=generator, dtype=torch.float64).requires_grad_()
    assert_equal_to_loops(encoder, decoder, graph, hide_some(graph), edge_weights=weights)


@pytest.mark.parametrize("triples", [[], [[0, 0, 0]], [[1, 0, 2]]])
def test_graphs_of_almost_nothing(triples: list[list[int]]) -> None:
    graph = KnowledgeGraph.build(np.array(triples).reshape(-1, 3), 9, 2)
    for context in ("unreached", "layers"):
        encoder, decoder = random_model(7, context=context)
        assert_equal_to_loops(encoder, decoder, graph)


@pytest.mark.parametrize("message", ["distmult", "transe", "rotate"])
def test_graphs_without_weights_equal_plain_loops(message: str) -> None:
    graph = graph_of_own_relations(8)
    encoder, decoder = random_model(8, graph.relation_count, message=message)
    assert_equal_to_loops(encoder, decoder, graph, hide_some(graph))


@pytest.mark.parametrize("aggregate", ["max", "min", "pna"])
def test_parallel_edges_tie_and_each_gets_the_gradient(aggregate: str) -> None:
    """Five relations with the same vector between the same entities: every extreme away from the boundary ties."""
    triples = [[head, r, head + 1] for head in range(3) for r in range(5)]
    graph = KnowledgeGraph.build(triples, 9, 5, np.repeat([0.7, -1.2, 0.9], 5))
    encoder, decoder = random_model(8, 5, aggregate=aggregate, ties=True)
    hidden = hide_triples(graph, HEADS, [0, 7, 0, 4], [1, 2, 0, 1])
    assert hidden.offsets.tolist() == [0, 1, 2, 2, 3]
    assert_equal_to_loops(encoder, decoder, graph, hidden)


def test_an_unreached_entity_has_no_state_and_no_voice() -> None:
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 0, 2], [4, 0, 2], [4, 0, 5]], 9, 1)
    encoder, _ = random_model(9, relation_count=1, message="transe", layers=2)
    edges = DenseEdges.build(graph, encoder.query.weight)
    result = propagate_densely(encoder, edges, torch.tensor([0]), torch.tensor([0]))
    assert result.reached[0].tolist() == [True, True, True, *[False] * 6]
    assert (result.states[0, 3:] == 0).all()
    assert (result.states[0, :3] != 0).any(1).all()
    published = propagate_densely(encoder, edges, torch.tensor([0]), torch.tensor([0]), semantics="nbfnet")
    assert published.reached.all()
    assert (published.states[0] != 0).any(1).all()


@pytest.mark.parametrize(
    ("semantics", "context"),
    [("grounded", c) for c in ("none", "unreached", "decoder", "layers")]
    + [("nbfnet", c) for c in ("none", "decoder", "layers")],
)
def test_hiding_equals_rebuilding_without(semantics: Semantics, context: str) -> None:
    for seed in range(4):
        graph = random_graph(seed, 30, 3, 45, weighted=seed % 2 == 0)
        encoder, decoder = random_model(seed, 3, context=context, message=["distmult", "transe", "rotate"][seed % 3])
        for hidden in (hide_some(graph), hide_triples(graph, *graph.triples[[0, 5, 9, 0]].T)):
            together = dense_logits(encoder, decoder, graph, hidden, semantics=semantics, block_size=50)
            for b in range(len(HEADS)):
                rebuilt = graph.without(graph.triples[hidden.of(b)])
                alone = dense_logits(encoder, decoder, rebuilt, semantics=semantics, block_size=50)
                torch.testing.assert_close(together[b], alone[b], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("message", ["distmult", "transe"])
def test_the_size_of_blocks_does_not_matter(message: str) -> None:
    graph = random_graph(2, 30, 3, 60)
    encoder, decoder = random_model(2, 3, message=message, context="layers")
    hidden = hide_some(graph)
    whole = dense_logits(encoder, decoder, graph, hidden, block_size=1000)
    wanted: list[Tensor] = list(encoder.parameters())
    expected = gradients(whole, wanted)
    for size in (1, 2, 7, 40):
        parts = dense_logits(encoder, decoder, graph, hidden, block_size=size)
        torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-12)
        for one, other in zip(gradients(parts, wanted), expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_blocks_are_bounded_and_complete() -> None:
    graph = random_graph(4, 40, 2, 80)
    edges = DenseEdges.build(graph, torch.zeros(1), block_size=6)
    assert [b.entities.start for b in edges.blocks] == [0] + [b.entities.stop for b in edges.blocks[:-1]]
    assert edges.blocks[-1].entities.stop == 40
    for block in edges.blocks:
        entities = range(40)[block.entities]
        assert block.edges == slice(graph.offsets[entities[0]], graph.offsets[entities[-1] + 1])
        assert len(entities) <= 6
        assert len(block.sources) <= 6 or len(entities) == 1
    assert len(edges.blocks) > 10


def test_one_parameter_may_be_trained_alone() -> None:
    graph = random_graph(2)
    encoder, decoder = random_model(2)
    for parameter in encoder.parameters():
        parameter.requires_grad_(False)
    bias = encoder.steps()[0].linear.bias.requires_grad_()
    free, _ = random_model(2)
    found = gradients(dense_logits(encoder, decoder, graph), [bias])
    expected = gradients(dense_logits(free, decoder, graph), [free.steps()[0].linear.bias])
    torch.testing.assert_close(found, expected)


def test_relabelling_entities_permutes_the_scores() -> None:
    graph = random_graph(1, 30, 3, 45)
    permutation = np.random.default_rng(0).permutation(30)
    triples = graph.triples.copy()
    triples[:, [0, 2]] = permutation[triples[:, [0, 2]]]
    renamed = KnowledgeGraph.build(triples, 30, 3, graph.weights)
    encoder, decoder = random_model(1, 3, context="unreached")
    logits = []
    for g, heads in ((graph, np.array(HEADS)), (renamed, permutation[HEADS])):
        edges = DenseEdges.build(g, encoder.query.weight)
        result = propagate_densely(encoder, edges, torch.from_numpy(heads), torch.tensor(RELATIONS))
        logits.append(score_densely(decoder, result))
    torch.testing.assert_close(logits[0], logits[1][:, permutation], rtol=1e-10, atol=1e-10)


def test_gradients_equal_finite_differences() -> None:
    graph = random_graph(3, 7, 2, 9)
    encoder, decoder = random_model(3, layers=2)
    edges = DenseEdges.build(graph, encoder.query.weight)
    parameters = dict(encoder.named_parameters())

    def score(weights: Tensor, *values: Tensor) -> Tensor:
        heads, relations = torch.tensor([0, 2]), torch.tensor([1, 3])
        for name, value in zip(parameters, values, strict=True):
            _replace(encoder, name, value)
        return score_densely(decoder, propagate_densely(encoder, edges, heads, relations, edge_weights=weights))

    weights = torch.linspace(0.6, 1.4, 2 * 2 * graph.edge_count, dtype=torch.float64).view(2, 2, -1).requires_grad_()
    inputs = [value.detach().clone().requires_grad_() for value in parameters.values()]
    assert torch.autograd.gradcheck(score, (weights, *inputs), fast_mode=True)


def _replace(module: torch.nn.Module, name: str, value: Tensor) -> None:
    """Put a plain tensor where a parameter was, so that gradients flow to the tensor."""
    path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(path)
    owner._parameters.pop(leaf, None)
    setattr(owner, leaf, value)


def test_published_semantics_has_no_unreached_candidates() -> None:
    encoder, decoder = random_model(0, context="unreached")
    with pytest.raises(SettingsError, match="choose a context other than 'unreached'"):
        dense_logits(encoder, decoder, random_graph(0), semantics="nbfnet")
