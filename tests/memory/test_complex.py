"""ComplEx: PyKEEN's scores, autograd's gradient, torch's Adagrad, every fact once an epoch."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from kgcf.memory.complex_model import ComplEx, relate
from kgcf.memory.gradients import Rows, differentiate
from kgcf.memory.questions import Questions
from kgcf.memory.settings import MemorySettings
from kgcf.memory.trainer import MemoryTrainer
from tests.training.tiny import family


def model(entities: int = 11, relations: int = 3, rank: int = 4) -> ComplEx:
    generator = torch.Generator().manual_seed(0)
    sizes = ((entities, 2 * rank), (2 * relations, 2 * rank))
    return ComplEx(*(torch.randn(size, generator=generator, dtype=torch.double) for size in sizes))


def complexes(numbers: Tensor) -> Tensor:
    real, imaginary = numbers.chunk(2, dim=1)
    return torch.complex(real, imaginary)


def test_scores_are_those_of_pykeen() -> None:
    from pykeen.nn.modules import ComplExInteraction

    found = model()
    h, r = torch.tensor([0, 3, 5]), torch.tensor([1, 5, 0])
    every = complexes(found.entities)
    heads, relations = every[h].unsqueeze(1), complexes(found.relations)[r].unsqueeze(1)
    wanted = ComplExInteraction()(heads, relations, every.unsqueeze(0))
    assert torch.allclose(found.score_tails(h, r), wanted, atol=1e-12)
    t = torch.tensor([7, 2, 2])
    wanted = ComplExInteraction()(every[h].unsqueeze(1), complexes(found.relations).unsqueeze(0), every[t].unsqueeze(1))
    assert torch.allclose(relate(found.entities[h], found.entities[t]) @ found.relations.T, wanted, atol=1e-12)


@pytest.mark.parametrize(("n3", "relation_weight"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.7), (0.3, 0.7)])
def test_the_gradient_is_that_of_the_formula(n3: float, relation_weight: float) -> None:
    found = model()
    questions, tails = torch.tensor([0, 0, 1, 2, 2, 2, 3]), torch.tensor([3, 1, 2, 4, 5, 6, 5])
    rows = Rows(torch.tensor([1, 2, 1, 5]), torch.tensor([0, 4, 2, 5]), questions, tails)
    gradient = differentiate(found, rows, n3, relation_weight)
    entities, relations = (part.clone().requires_grad_() for part in (found.entities, found.relations))
    same = ComplEx(entities, relations)
    h, r = rows.heads[questions], rows.relations[questions]
    by_tail = functional.cross_entropy(same.score_tails(h, r), tails)
    by_relation = functional.cross_entropy(relate(entities[h], entities[tails]) @ relations.T, r)
    norm = sum(complexes(part).abs().pow(3).sum() for part in (entities[h], relations[r], entities[tails]))
    loss = by_tail + relation_weight * by_relation + n3 * norm / len(tails)
    by_entities, by_relations = torch.autograd.grad(loss, (entities, relations))
    assert torch.allclose(gradient.entities, by_entities, atol=1e-12)
    assert torch.allclose(gradient.relations, by_relations, atol=1e-12)
    assert gradient.tail_loss == pytest.approx(by_tail.item() * len(tails))
    assert gradient.relation_loss == pytest.approx(by_relation.item() * len(tails) * (relation_weight > 0))


def test_a_step_is_that_of_adagrad() -> None:
    trainer = MemoryTrainer(family(np.random.default_rng(0)), MemorySettings(rank=3, epochs=1))
    numbers = torch.nn.Parameter(torch.randn(5, 4))
    mine, squares = numbers.detach().clone(), torch.zeros(5, 4)
    optimiser = torch.optim.Adagrad([numbers], lr=0.1)
    for seed in range(3):
        gradient = torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))
        numbers.grad = gradient.clone()
        optimiser.step()
        trainer._move(mine, squares, gradient)
    assert torch.allclose(mine, numbers, atol=1e-7)


@pytest.mark.parametrize("answers", [1, 2, 8])
def test_an_epoch_has_every_fact_in_both_directions_once(answers: int) -> None:
    graph = family(np.random.default_rng(1))
    questions = Questions.of(graph)
    pairs, largest = [], 0
    steps = list(questions.steps(answers, 16, np.random.default_rng(2)))
    for rows in steps:
        h, r = rows.heads[rows.questions], rows.relations[rows.questions]
        pairs += list(zip(*(part.tolist() for part in (h, r, rows.tails)), strict=True))
        largest = max(largest, int(torch.bincount(rows.questions).max()))
    assert len(steps) == questions.step_count(answers, 16)
    known = questions.known
    wanted = {(int(h), int(r), int(t)) for h, r, t in graph.triples}
    wanted |= {(t, r + graph.relation_count, h) for h, r, t in wanted}
    assert sorted((int(known[h]), r, int(known[t])) for h, r, t in pairs) == sorted(wanted)
    assert largest == min(answers, int(np.bincount(questions.groups).max()))
    later = list(questions.steps(answers, 16, np.random.default_rng(2), first=2))
    assert [rows.tails.tolist() for rows in later] == [rows.tails.tolist() for rows in steps[2:]]


def test_entities_without_an_edge_do_not_exist_for_a_memory() -> None:
    graph = family(np.random.default_rng(0))
    larger = type(graph).build(graph.triples, graph.entity_count + 7, graph.relation_count)
    settings = MemorySettings(rank=3, epochs=1, batch_size=32)
    one, two = (MemoryTrainer(each, settings).run() for each in (graph, larger))
    assert one.entities.equal(two.entities)
    assert one.relations.equal(two.relations)
