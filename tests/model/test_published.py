"""The dense propagation in nbfnet semantics gives the scores of the published NBFNet code, with its weights."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from kgcf.data.graph import KnowledgeGraph
from kgcf.errors import StorageError
from kgcf.model.dense_scores import score_densely
from kgcf.propagation.dense.propagation import DenseEdges, propagate_densely
from tests.published import Direction, PublishedModel, take_published


def golden() -> dict[str, NDArray[np.generic]]:
    """The published code's scores: looked up in $KGCF_FACTS, then beside the repository."""
    folders = [Path(os.environ["KGCF_FACTS"])] if "KGCF_FACTS" in os.environ else []
    folders.append(Path(__file__).resolve().parents[2].parent / "shared" / "facts")
    for folder in folders:
        if (folder / "nbfnet_golden.npz").exists():
            with np.load(folder / "nbfnet_golden.npz", allow_pickle=False) as file:
                return dict(file)
    pytest.skip("nbfnet_golden.npz is neither in $KGCF_FACTS nor in ../shared/facts")


def state_dict(file: dict[str, NDArray[np.generic]], kind: str) -> dict[str, Tensor]:
    names = [n for n in file if n.startswith(f"{kind}/") and "scores" not in n]
    return {n.removeprefix(f"{kind}/"): torch.from_numpy(file[n]) for n in names}


def published_scores(model: PublishedModel, graph: KnowledgeGraph, queries: Tensor) -> Tensor:
    edges = DenseEdges.build(graph, model.encoder.query.weight)
    with torch.no_grad():
        states = propagate_densely(model.encoder, edges, queries[:, 0], queries[:, 1], semantics="nbfnet")
        return score_densely(model.decoder, states)


@pytest.mark.benchmark
@pytest.mark.parametrize("kind", ["free", "dependent"])
@pytest.mark.parametrize("direction", ["plain", "fused"])
def test_scores_agree_with_the_published_code(kind: str, direction: Direction) -> None:
    file = golden()
    graph = KnowledgeGraph.build(file["triples"], int(file["num_entities"]), int(file["num_relations"]))
    model = take_published(state_dict(file, kind), direction)
    scores = published_scores(model, graph, torch.from_numpy(file["queries"]))
    name = {"plain": "unfused", "fused": "fused"}[direction]
    torch.testing.assert_close(scores, torch.from_numpy(file[f"{kind}/scores_{name}"]), rtol=0, atol=1e-5)


def made_up(dependent: bool = False, width: int = 4, pna: bool = True) -> dict[str, Tensor]:
    """A state dict with the published names and shapes: two layers, two relations."""
    generator = torch.Generator().manual_seed(0)
    shapes: dict[str, tuple[int, ...]] = {"query.weight": (4, width)}
    for i in range(2):
        shapes[f"layers.{i}.layer_norm.weight"] = shapes[f"layers.{i}.layer_norm.bias"] = (width,)
        shapes[f"layers.{i}.linear.weight"] = (width, (13 if pna else 2) * width)
        shapes[f"layers.{i}.linear.bias"] = (width,)
        if dependent:
            shapes[f"layers.{i}.relation_linear.weight"] = (4 * width, width)
            shapes[f"layers.{i}.relation_linear.bias"] = (4 * width,)
        else:
            shapes[f"layers.{i}.relation.weight"] = (4, width)
    shapes |= {"mlp.0.weight": (2 * width, 2 * width), "mlp.0.bias": (2 * width,)}
    shapes |= {"mlp.2.weight": (1, 2 * width), "mlp.2.bias": (1,)}
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def test_settings_are_read_off_the_weights() -> None:
    settings = take_published(made_up(dependent=True)).encoder.settings
    assert (settings.layers, settings.width, settings.dependent, settings.layer_norm) == (2, 4, True, True)
    assert settings.context == "none"
    bare = {name: value for name, value in made_up(pna=False).items() if "layer_norm" not in name}
    model = take_published(bare, aggregate="sum", message="transe", residual=False)
    assert not model.encoder.settings.layer_norm
    assert (model.encoder.settings.message, model.encoder.settings.residual) == ("transe", False)
    assert torch.equal(model.encoder.steps()[1].linear.weight, bare["layers.1.linear.weight"])


def test_columns_are_put_into_our_order() -> None:
    state = made_up()
    ours = take_published(state).encoder.steps()[0].linear.weight
    theirs = state["layers.0.linear.weight"]
    assert torch.equal(ours[:, :4], theirs[:, :4])
    for scale in range(3):
        for statistic in range(4):
            for channel in range(4):
                column = 4 + (channel * 4 + statistic) * 3 + scale
                assert torch.equal(ours[:, 4 + (scale * 4 + statistic) * 4 + channel], theirs[:, column])


@pytest.mark.parametrize("dependent", [False, True])
def test_the_fused_direction_swaps_relations_with_their_inverses(dependent: bool) -> None:
    state = made_up(dependent)
    graph = KnowledgeGraph.build([[0, 0, 1], [1, 1, 2], [3, 0, 2], [2, 1, 2]], 5, 2)
    backwards = KnowledgeGraph.build(graph.triples[:, [2, 1, 0]], 5, 2)
    queries = torch.tensor([[0, 0], [2, 3]])
    fused = published_scores(take_published(state, "fused"), graph, queries)
    plain = published_scores(take_published(state, "plain"), graph, queries)
    turned = published_scores(take_published(state, "plain"), backwards, queries)
    torch.testing.assert_close(fused, turned)
    assert not torch.allclose(fused, plain)


def test_the_state_dict_is_copied() -> None:
    state = made_up()
    model = take_published(state)
    with torch.no_grad():
        model.encoder.query.weight.zero_()
        model.decoder.reached.output.bias.zero_()
    assert (state["query.weight"] != 0).all()
    assert (state["mlp.2.bias"] != 0).all()
    assert all(parameter.requires_grad for parameter in model.encoder.parameters())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"query.weight": None}, "lacks 'query.weight'. Give the state dict of an NBFNet model itself"),
        ({"query.weight": torch.zeros(5, 4)}, "'query.weight' has 5 rows"),
        ({"query.weight": torch.zeros(4)}, r"'query.weight' has shape \(4,\); it must be a matrix"),
        ({"mlp.0.weight": None}, "lacks 'mlp.0.weight'"),
        ({"layers.1.relation.weight": None}, "lacks 'layers.1.relation.weight'. Give"),
        ({"layers.0.linear.weight": torch.zeros(4, 8)}, r"shape \(4, 8\) where \(4, 52\) is needed for width 4, 2 rel"),
        ({"mlp.4.weight": torch.zeros(1)}, "has 'mlp.4.weight', which an NBFNet"),
        (
            {"layers.0.layer_norm.weight": None},
            "has 'layers.0.layer_norm.bias', 'layers.1.layer_norm.w",
        ),
        ({"layers.x.linear.bias": torch.zeros(4)}, "has 'layers.x.linear.bias', which an NBFNet"),
    ],
)
def test_bad_state_dicts_are_refused_with_a_sentence(change: dict[str, Tensor | None], sentence: str) -> None:
    state = made_up()
    for name, value in change.items():
        if value is None:
            del state[name]
        else:
            state[name] = value
    with pytest.raises(StorageError, match=sentence):
        take_published(state)


def test_a_state_dict_without_layers_is_refused() -> None:
    state = {name: value for name, value in made_up().items() if not name.startswith("layers.")}
    with pytest.raises(StorageError, match=r"lacks 'layers\.0\.relation\.weight', 'layers.0.linear.weight'"):
        take_published(state)
