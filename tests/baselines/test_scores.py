"""Every score function and encoder against one written out by hand, on a small graph with awkward places."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kgcf.baselines.building import build_baseline
from kgcf.baselines.catalogue import BASELINES
from kgcf.baselines.embeddings.pykeen_model import PykeenBaseline
from kgcf.config import configure
from kgcf.data.graph import KnowledgeGraph
from tests.baselines import oracles

TRIPLES = [(0, 0, 1), (1, 0, 2), (2, 1, 2), (0, 1, 3), (3, 0, 0), (0, 2, 1), (4, 1, 0), (1, 1, 3)]
GRAPH = KnowledgeGraph.build(TRIPLES, 6, 3)  # a self-loop, parallel edges, an entity without any
SMALL = ("dimension=6", "relation_dimension=4", "rank=3", "filters=2", "kernel=2", "blocks=3")
SCORES: dict[str, oracles.Score] = {
    "transe": oracles.transe,
    "distmult": oracles.distmult,
    "complex": oracles.complex_,
    "rotate": oracles.rotate,
    "hake": oracles.hake,
    "lowfer": oracles.lowfer,
    "tucker": oracles.tucker,
    "conve": oracles.conve,
}
DECODERS: dict[str, oracles.Score] = {
    "transe": oracles.shifted,
    "distmult": oracles.distmult,
    "conve": oracles.conve,
}
EMBEDDED = [name for name, entry in BASELINES.items() if entry.needs_pykeen]


def small(name: str) -> PykeenBaseline:
    """A model with random weights and random running means, as training would leave them."""
    fields = BASELINES[name].settings.model_fields
    changes = [f"baseline.{change}" for change in SMALL if change.split("=")[0] in fields]
    settings = configure(baseline=name, changes=changes)
    assert settings.baseline is not None
    made = build_baseline(settings.baseline, GRAPH, 4, 0.1, seed=3)
    assert isinstance(made, PykeenBaseline)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for key, parameter in made.named_parameters():
            if "relation_representations" not in key or name != "rotate":
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
        for key, buffer in made.named_buffers():
            if key.endswith(("running_mean", "running_var")):
                buffer.add_(torch.rand(buffer.shape, generator=generator))
    made.refresh()
    return made


def expected(name: str, baseline: PykeenBaseline, head: int, relation: int, tail: int) -> float:
    score = SCORES[name] if name in SCORES else DECODERS[name.split("-")[1]]
    return score(baseline, head, relation, tail)


@pytest.mark.parametrize("name", EMBEDDED)
def test_scores_of_all_tails_are_those_written_out(name: str) -> None:
    baseline = small(name)
    heads, relations = np.array([0, 5, 2, 1]), np.array([0, 1, 4, 5])
    found = baseline.scorer(GRAPH, 1e3).score_tails(heads, relations)  # so little memory that it asks one by one
    baseline.eval()
    for row, (head, relation) in enumerate(zip(heads.tolist(), relations.tolist(), strict=True)):
        wanted = [expected(name, baseline, head, relation, tail) for tail in range(6)]
        assert found[row] == pytest.approx(wanted, rel=2e-4, abs=2e-4)


@pytest.mark.parametrize("decoder", ["transe", "distmult", "conve"])
@pytest.mark.parametrize("encoder", ["rgcn", "compgcn", "lte"])
def test_encoders_are_those_written_out(encoder: str, decoder: str) -> None:
    baseline = small(f"{encoder}-{decoder}")
    baseline.eval()
    baseline.refresh()
    found = oracles.plain(baseline.model.entity_representations[0]())
    if encoder == "compgcn":
        wanted, relations = oracles.compgcn(baseline, GRAPH)
        shown = oracles.plain(baseline.model.relation_representations[0]())
        assert shown == pytest.approx(relations, abs=1e-5)
    else:
        wanted = oracles.rgcn(baseline, GRAPH) if encoder == "rgcn" else oracles.lte(baseline)
    assert found == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("name", ["transe", "tucker", "compgcn-conve"])
def test_new_weights_make_new_vectors(name: str) -> None:
    baseline = small(name)
    asked = np.array([0]), np.array([1])
    before = baseline.scorer(GRAPH, 1e9).score_tails(*asked)
    with torch.no_grad():
        for parameter in baseline.parameters():
            parameter.mul_(1.5)
    baseline.refresh()
    assert not np.allclose(before, baseline.scorer(GRAPH, 1e9).score_tails(*asked))


def test_the_same_seed_draws_the_same_weights_and_leaves_torch_alone() -> None:
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    settings = configure(baseline="tucker").baseline
    assert settings is not None
    first, second, other = (build_baseline(settings, GRAPH, 4, 0.1, seed) for seed in (7, 7, 8))
    assert torch.equal(torch.rand(3), wanted)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert any(not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers how many numbers the largest tensor has that was computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.size = max(self.size, found.numel() if isinstance(found, torch.Tensor) else 0)
        return found


@pytest.mark.parametrize("name", ["distmult", "tucker", "conve"])
def test_all_tails_at_once_are_pykeens_scores_without_its_table_of_products(name: str) -> None:
    interaction = small(name).model.interaction.eval().double()
    random = np.random.default_rng(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.from_numpy(random.random(shape)).requires_grad_()

    heads, vectors, relations = draw(5, 1, 6), draw(1, 400, 6), draw(5, 1, 4 if name == "tucker" else 6)
    tails = (vectors, draw(1, 400)) if name == "conve" else vectors
    with Largest() as largest:
        ours = interaction(heads, relations, tails)
    assert largest.size < 5 * 400 * 6
    pykeens: Any = type(interaction).__bases__[0]
    with Largest() as largest:
        theirs = pykeens.forward(interaction, heads, relations, tails)
    assert largest.size == 5 * 400 * 6
    assert torch.allclose(ours, theirs)
    for found, wanted in zip(*(torch.autograd.grad(s.sum(), (heads, vectors)) for s in (ours, theirs)), strict=True):
        assert torch.allclose(found, wanted)


@pytest.mark.parametrize("side", ["tail", "head"])
@pytest.mark.parametrize("name", ["transe", "rotate", "hake"])
def test_distances_to_all_entities_are_those_of_the_table_without_one(name: str, side: str) -> None:
    """More entities than the kernels take at a time; what is asked with gradients goes by the table."""
    interaction = small(name).model.interaction.eval()
    generator = torch.Generator().manual_seed(2)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    def entity(*shape: int) -> Any:
        if name == "rotate":
            return torch.complex(draw(*shape), draw(*shape))
        return (draw(*shape), draw(*shape)) if name == "hake" else draw(*shape)

    relations: dict[str, Any] = {
        "transe": draw(5, 1, 11),
        "rotate": torch.polar(torch.ones(5, 1, 11), draw(5, 1, 11)),
        "hake": tuple(draw(5, 1, 11) for _ in range(3)),
    }
    asked, others = entity(5, 1, 11), entity(1, 150, 11)
    given = (asked, relations[name], others) if side == "tail" else (others, relations[name], asked)
    wanted = interaction(*given)
    with torch.no_grad(), Largest() as largest:
        found = interaction(*given)
    assert wanted.shape == (5, 150)
    assert torch.allclose(found, wanted, rtol=1e-5, atol=1e-4)
    assert largest.size <= 2 * 150 * 11  # the entities, as real numbers; no table of 5 × 150 × 11


def test_only_models_that_need_a_table_ask_a_few_questions_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, list[int]] = {"complex": [], "distmult": [], "rotate": []}
    for name, counts in asked.items():
        baseline = small(name)
        scores = baseline.scores

        def counted(heads: Any, relations: Any, counts: list[int] = counts, scores: Any = scores) -> torch.Tensor:
            counts.append(len(heads))
            return scores(heads, relations)  # type: ignore[no-any-return]

        monkeypatch.setattr(baseline, "scores", counted)
        baseline.scorer(GRAPH, 6 * 4 * 4 * 5).score_tails(np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64))
    assert asked == {"complex": [1] * 5, "distmult": [5], "rotate": [5]}
