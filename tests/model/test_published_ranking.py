import numpy as np
import pytest
import torch
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import SettingsError
from kgcf.model.decoder import Decoder
from kgcf.model.dense_scores import score_densely
from kgcf.model.published_ranking import BackgroundRanker
from kgcf.propagation.dense.propagation import DenseEdges, propagate_background, propagate_densely
from kgcf.propagation.layers.encoder import Encoder
from tests.propagation.random_graphs import random_graph, random_model

HEADS, RELATIONS = [0, 3, 29, 0, 7, 7], [0, 3, 1, 2, 0, 5]  # a hub, any, an isolated one; relation 0 twice


def dense_scores(encoder: Encoder, decoder: Decoder, graph: KnowledgeGraph) -> Tensor:
    edges = DenseEdges.build(graph, encoder.query.weight)
    with torch.no_grad():
        heads, relations = torch.tensor(HEADS), torch.tensor(RELATIONS)
        return score_densely(decoder, propagate_densely(encoder, edges, heads, relations, semantics="nbfnet"))


@pytest.mark.parametrize("width", [4, 6])
@pytest.mark.parametrize("dependent", [False, True])
@pytest.mark.parametrize("message", ["distmult", "transe", "rotate"])
@pytest.mark.parametrize("aggregate", ["pna", "sum", "max"])
def test_equals_the_dense_scores(message: str, aggregate: str, dependent: bool, width: int) -> None:
    for seed, triples in ((0, 20), (1, 60)):
        graph = random_graph(seed, 30, 3, triples, weighted=seed == 1)
        encoder, decoder = random_model(
            seed, 3, residual=seed == 0, message=message, aggregate=aggregate, dependent=dependent, width=width
        )
        ranker = BackgroundRanker(encoder, decoder, graph)
        expected = dense_scores(encoder, decoder, graph)
        for together in (1, 4):  # the second time from what the ranker remembers
            found = ranker.score_tails(HEADS, RELATIONS, together)
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_without_edges_everything_but_the_head_is_background() -> None:
    graph = KnowledgeGraph.build(np.zeros((0, 3)), 30, 3)
    encoder, decoder = random_model(0, 3)
    found = BackgroundRanker(encoder, decoder, graph).score_tails(HEADS, RELATIONS)
    torch.testing.assert_close(found, dense_scores(encoder, decoder, graph), rtol=1e-10, atol=1e-10)
    assert BackgroundRanker(encoder, decoder, graph).score_tails([], []).shape == (0, 30)


def test_the_background_is_what_a_far_head_leaves_alone() -> None:
    """On a path 0 – 1 – … – 9 the head 0 cannot be felt at entity l + 1 after l layers, and is felt at l."""
    graph = KnowledgeGraph.build([[i, 0, i + 1] for i in range(9)], 10, 1)
    encoder, _ = random_model(2, 1, layers=4)
    edges = DenseEdges.build(graph, encoder.query.weight)
    with torch.no_grad():
        background = propagate_background(encoder, edges, torch.tensor([0]))
        assert len(background) == 5
        for layers in range(1, 5):
            shallow, _ = random_model(2, 1, layers=layers)
            shallow.load_state_dict({k: v for k, v in encoder.state_dict().items() if k in shallow.state_dict()})
            result = propagate_densely(shallow, edges, torch.tensor([0]), torch.tensor([0]), semantics="nbfnet")
            same = (result.states[0] - background[layers][:, 0]).abs().amax(1) < 1e-12
            assert same.tolist() == [False] * (layers + 1) + [True] * (9 - layers)


@pytest.mark.parametrize("choice", [{"context": "layers"}, {"context": "unreached"}, {"treatment": True}])
def test_models_with_context_or_treatment_are_refused(choice: dict[str, object]) -> None:
    encoder, decoder = random_model(0, 2, **choice)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="no context and no treatment"):
        BackgroundRanker(encoder, decoder, random_graph(0))
