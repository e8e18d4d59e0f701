import pytest
import torch
from torch import Tensor

from kgcf.model.decoder import Decoder, rank_reached_first
from kgcf.propagation.layers.encoder import EncoderSettings


def make_decoder(context: str, treatment: bool = False, seed: int = 0) -> Decoder:
    settings = EncoderSettings.model_validate({"width": 4, "context": context})
    return Decoder(settings, 3, torch.Generator().manual_seed(seed), hidden=7, treatment=treatment).double()


def draw(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("context", ["none", "layers", "decoder", "unreached"])
@pytest.mark.parametrize("treatment", [False, True])
def test_equals_an_mlp_of_the_concatenated_parts(context: str, treatment: bool) -> None:
    decoder = make_decoder(context, treatment)
    states, q, k = draw(6, 4), draw(6, 4, seed=2), draw(6, 6, seed=3).abs()
    treated = torch.tensor([0, 1, 1, 0, 1, 0]) > 0 if treatment else None
    reached = torch.tensor([1, 1, 0, 0, 1, 0]) > 0
    given = decoder.project_context(k) if context in ("decoder", "unreached") else None
    logits = decoder(states, q, treated, given, reached if context == "unreached" else None)
    for i in range(6):
        own_head = context == "unreached" and not reached[i]
        parts = [q[i]] if own_head else [states[i], q[i]]
        if treated is not None:
            parts.append(treated[i : i + 1].double())
        if own_head or context == "decoder":
            parts.append(k[i])
        head = decoder.unreached if own_head else decoder.reached
        assert head is not None
        hidden = (head.hidden.weight @ torch.cat(parts) + head.hidden.bias).clamp(min=0)
        torch.testing.assert_close(logits[i], (head.output.weight @ hidden + head.output.bias)[0])


def test_default_shape_is_two_layers_of_64() -> None:
    decoder = Decoder(EncoderSettings(context="none"), 11, torch.Generator(), treatment=True)
    shapes = {name: tuple(p.shape) for name, p in decoder.named_parameters()}
    assert shapes == {
        "reached.hidden.weight": (64, 32 + 32 + 1),
        "reached.hidden.bias": (64,),
        "reached.output.weight": (1, 64),
        "reached.output.bias": (1,),
    }


def test_queries_and_contexts_broadcast() -> None:
    decoder = make_decoder("unreached", treatment=True)
    q, k = draw(2, 4), draw(5, 6, seed=2)
    treated = draw(2, 5, seed=3) > 0
    grid = decoder.background(q.unsqueeze(1), treated, decoder.project_context(k).unsqueeze(0))
    for b in range(2):
        for u in range(5):
            one = decoder.background(q[b], treated[b, u], decoder.project_context(k[u]))
            torch.testing.assert_close(grid[b, u], one)


def test_flipping_the_treatment_matters_and_nothing_else_reads_it() -> None:
    states, q = draw(3, 4), draw(3, 4, seed=2)
    zeros, ones = torch.zeros(3), torch.ones(3)
    decoder = make_decoder("none", treatment=True)
    assert (decoder(states, q, zeros) != decoder(states, q, ones)).all()
    with torch.no_grad():
        decoder.reached.hidden.weight[:, 8] = 0
    assert torch.equal(decoder(states, q, zeros), decoder(states, q, ones))


@pytest.mark.parametrize("treatment", [False, True])
def test_the_treatment_is_given_iff_there_is_one(treatment: bool) -> None:
    decoder = make_decoder("none", treatment)
    with pytest.raises(ValueError, match="if and only if it was built with one"):
        decoder(draw(3, 4), draw(3, 4), None if treatment else torch.ones(3))


def test_the_context_is_given_iff_the_head_reads_it() -> None:
    with pytest.raises(ValueError, match="if and only if it has a context part"):
        make_decoder("decoder")(draw(3, 4), draw(3, 4))
    with pytest.raises(ValueError, match="if and only if it has a context part"):
        make_decoder("none")(draw(3, 4), draw(3, 4), None, draw(3, 7))


def test_the_generator_alone_decides_the_parameters() -> None:
    def weights(seed: int) -> Tensor:
        return torch.cat([p.detach().flatten() for p in make_decoder("unreached", True, seed).parameters()])

    state = torch.get_rng_state()
    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))
    assert torch.equal(torch.get_rng_state(), state), "the global generator was used"


def order(scores: Tensor) -> list[int]:
    return [int(i) for i in torch.argsort(scores, descending=True, stable=True)]


def test_reached_candidates_rank_before_unreached_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        logits = 10 * torch.randn(2, 40, generator=generator)
        logits[:, 3] = logits[:, 5]  # ties stay ties
        reached = torch.rand(2, 40, generator=generator) < 0.3
        reached[:, 3] = reached[:, 5]
        scores = rank_reached_first(logits, reached)
        for b in range(2):
            keys = [(not reached[b, i], -float(logits[b, i]), i) for i in range(40)]
            assert order(scores[b]) == [i for _, _, i in sorted(keys)]
            assert scores[b, 3] == scores[b, 5]
            assert torch.equal(scores[b][reached[b]], logits[b][reached[b]]), "reached scores stay"
            assert torch.equal(scores[b], rank_reached_first(logits[b], reached[b])), "queries are independent"


def test_logits_that_are_already_in_order_stay() -> None:
    logits = torch.tensor([3.0, -1.0, -2.0, -2.5])
    reached = torch.tensor([True, True, False, False])
    assert torch.equal(rank_reached_first(logits, reached), logits)
    equal = torch.tensor([3.0, -1.0, -1.0, -2.5])  # a tie across the border is decided for the reached one
    assert rank_reached_first(equal, reached).tolist() == [3.0, -1.0, -2.0, -3.5]


def test_rounding_at_the_border_does_not_make_scores_jump() -> None:
    """A reached candidate of state zero has the logit of an unreached one: either may be larger by the last bit."""
    reached = torch.tensor([True, True, False])
    above = rank_reached_first(torch.tensor([3.0, -1.0, -1.0 + 1e-7]), reached)
    below = rank_reached_first(torch.tensor([3.0, -1.0, -1.0 - 1e-7]), reached)
    torch.testing.assert_close(above, below, rtol=0, atol=1e-6)


@pytest.mark.parametrize("everybody", [True, False])
def test_one_group_alone_stays(everybody: bool) -> None:
    logits = torch.tensor([[3.0, -1.0, 5.0]])
    assert torch.equal(rank_reached_first(logits, torch.full((1, 3), everybody)), logits)
