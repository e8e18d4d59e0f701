"""The losses against their formulas, term by term."""

import math

import pytest
import torch

from kgcf.training.objective import discrepancy, gaussian_divergence, query_losses


def bce(logit: float, target: float) -> float:
    p = 1 / (1 + math.exp(-logit))
    return -(target * math.log(p) + (1 - target) * math.log(1 - p))


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_query_losses_by_hand(temperature: float) -> None:
    logits = torch.tensor([[1.0, -0.5, 2.0, 0.3], [0.2, 0.1, -3.0, 1.5]], dtype=torch.double)
    found = query_losses(logits, torch.tensor([[1.0], [0.0]]), temperature)
    for row, target, value in zip(logits.tolist(), (1.0, 0.0), found[:, 0].tolist(), strict=True):
        negatives = row[1:]
        weights = [math.exp(x / temperature) if temperature else 1.0 for x in negatives]
        total = sum(weights)
        expected = bce(row[0], target) + sum(w / total * bce(x, 0) for w, x in zip(weights, negatives, strict=True))
        assert value == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [0.0, 0.5])
def test_negatives_that_do_not_count_are_as_if_absent(temperature: float) -> None:
    logits = torch.tensor([[1.0, -0.5, 2.0, 0.3], [0.2, 0.1, -3.0, 1.5]], dtype=torch.double, requires_grad=True)
    counted = torch.tensor([[True, False, True], [False, False, False]])
    found = query_losses(logits, torch.ones(2, 1), temperature, counted)
    assert float(found[0].detach()) == pytest.approx(
        float(query_losses(logits[:1, [0, 1, 3]], torch.ones(1, 1), temperature).detach())
    )
    assert float(found[1].detach()) == pytest.approx(bce(0.2, 1.0))
    (gradient,) = torch.autograd.grad(found.sum(), [logits])
    assert gradient[0, 2] == 0
    assert not gradient[1, 1:].any()


def test_answers_of_one_pass_share_its_negatives() -> None:
    logits = torch.tensor([[1.0, -0.2, 2.0, 0.3], [0.2, 0.1, -3.0, 1.5]], dtype=torch.double)
    targets = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    found = query_losses(logits, targets, 0.5)
    for answer in range(2):
        single = query_losses(logits[:, [answer, 2, 3]], targets[:, answer : answer + 1], 0.5)
        assert torch.allclose(found[:, answer], single[:, 0])


def test_weights_are_not_differentiated() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0]], dtype=torch.double, requires_grad=True)
    (gradient,) = torch.autograd.grad(query_losses(logits, torch.ones(1, 1), 1.0).sum(), [logits])
    weights = torch.softmax(logits.detach()[:, 1:], dim=1)
    assert torch.allclose(gradient[:, 1:], weights * torch.sigmoid(logits.detach()[:, 1:]))


def test_divergence_of_gaussians() -> None:
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(4000, 3, generator=generator, dtype=torch.double) * 2 + 1
    second = torch.randn(4000, 3, generator=generator, dtype=torch.double)
    expected = 3 * (math.log(1 / 2) + (4 + 1) / 2 - 0.5)
    assert float(gaussian_divergence(first, second)) == pytest.approx(expected, rel=0.05)
    assert float(gaussian_divergence(first, first)) == pytest.approx(0, abs=1e-12)
    assert float(gaussian_divergence(first[:1], second[:1])) == 0.0


def test_the_other_discrepancies() -> None:
    first, second = torch.tensor([[0.0, 0.0], [2.0, 0.0]]), torch.tensor([[0.0, 4.0], [2.0, 4.0]])
    assert float(discrepancy(first, second, "mean")) == pytest.approx(4.0)
    assert float(discrepancy(first, second, "frobenius")) == pytest.approx(math.sqrt(32) / math.sqrt(2))
    assert float(discrepancy(first, second, "kl")) > 0


@pytest.mark.parametrize("kind", ["kl", "frobenius", "mean"])
def test_equal_states_have_no_discrepancy_and_a_finite_gradient(kind: str) -> None:
    states = torch.ones(4, 3, requires_grad=True)
    value = discrepancy(
        states, states.detach().clone(), "kl" if kind == "kl" else "mean" if kind == "mean" else "frobenius"
    )
    (gradient,) = torch.autograd.grad(value, [states])
    assert float(value.detach()) == pytest.approx(0, abs=1e-6)
    assert torch.isfinite(gradient).all()
