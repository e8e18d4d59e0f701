import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from kgcf.propagation.layers.encoder import Encoder, EncoderLayer, EncoderSettings


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_encoder(seed: int = 0, relation_count: int = 3, **choices: object) -> Encoder:
    settings = EncoderSettings.model_validate({"layers": 2, "width": 6, **choices})
    return Encoder(settings, relation_count, seeded(seed)).double()


def concatenated_update(
    layer: EncoderLayer, own: Tensor, statistics: Tensor, scale: Tensor, context: Tensor | None
) -> Tensor:
    """The update as the formula is written: one long row per state."""
    rows = []
    for i in range(len(own)):
        f = torch.cat(list(statistics[i]))
        parts = [own[i], f]
        if layer.settings.aggregate == "pna":
            parts += [scale[i] * f, f / max(float(scale[i]), 0.01)]
        row = layer.linear.weight @ torch.cat(parts) + layer.linear.bias
        if context is not None:
            row = row + context[i]
        if layer.layer_norm is not None:
            variance = ((row - row.mean()) ** 2).mean()
            row = (row - row.mean()) / torch.sqrt(variance + layer.layer_norm.eps)
            row = row * layer.layer_norm.weight + layer.layer_norm.bias
        row = row.clamp(min=0)
        rows.append(row + own[i] if layer.settings.residual else row)
    return torch.stack(rows)


@pytest.mark.parametrize("aggregate", ["pna", "sum", "mean", "max", "min"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("context", ["none", "layers"])
def test_update_equals_the_concatenated_form(aggregate: str, residual: bool, layer_norm: bool, context: str) -> None:
    encoder = make_encoder(aggregate=aggregate, residual=residual, layer_norm=layer_norm, context=context)
    layer, generator = encoder.steps()[0], seeded(1)
    if layer.layer_norm is not None:
        torch.nn.init.normal_(layer.layer_norm.weight, generator=generator)
        torch.nn.init.normal_(layer.layer_norm.bias, generator=generator)
    own = torch.randn(7, 6, generator=generator, dtype=torch.float64)
    statistics = torch.randn(7, encoder.settings.statistics, 6, generator=generator, dtype=torch.float64)
    scale = torch.tensor([0.0, 0.005, 0.01, 0.5, 1.0, 2.0, 7.0], dtype=torch.float64)
    added = None
    if context == "layers":
        histograms = torch.rand(7, 6, generator=generator, dtype=torch.float64)
        added = layer.project_context(histograms)
        assert layer.context_linear is not None
        torch.testing.assert_close(added, histograms @ layer.context_linear.weight.T)
    expected = concatenated_update(layer, own, statistics, scale, added)
    torch.testing.assert_close(layer.update(own, statistics, scale, added), expected, rtol=1e-12, atol=1e-12)
    assert layer.update(own[:0], statistics[:0], scale[:0]).shape == (0, 6)


def test_free_relation_vectors_do_not_depend_on_the_query() -> None:
    layer = make_encoder().steps()[0]
    assert layer.relation is not None
    assert layer.relation_vectors(torch.zeros(5, 6, dtype=torch.float64)) is layer.relation.weight
    assert layer.relation.weight.shape == (6, 6)


def test_dependent_relation_vectors_are_projected_query_by_query() -> None:
    encoder = make_encoder(dependent=True)
    q = encoder.queries(torch.tensor([0, 5, 0]))
    vectors = encoder.steps()[1].relation_vectors(q)
    linear = encoder.steps()[1].relation_linear
    assert linear is not None
    assert vectors.shape == (3, 6, 6)
    for b in range(3):
        for r in range(6):
            for d in range(6):
                expected = linear.weight[r * 6 + d] @ q[b] + linear.bias[r * 6 + d]
                torch.testing.assert_close(vectors[b, r, d], expected)
    assert encoder.steps()[0].relation_vectors(q[:0]).shape == (0, 6, 6), "a batch may be empty"


def test_queries_are_rows_of_the_query_table() -> None:
    encoder = make_encoder()
    torch.testing.assert_close(encoder.queries(torch.tensor([4, 1])), encoder.query.weight[[4, 1]])


def test_the_generator_alone_decides_the_parameters() -> None:
    def parameters(seed: int) -> list[Tensor]:
        return [p.detach() for p in make_encoder(seed, dependent=True, context="layers").parameters()]

    state = torch.get_rng_state()
    first, again, other = parameters(0), parameters(0), parameters(1)
    assert torch.equal(torch.get_rng_state(), state), "the global generator was used"
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True) if a.std() > 0)


def test_initial_ranges() -> None:
    encoder = make_encoder(width=64, dependent=True)
    layer = encoder.steps()[0]
    assert layer.relation_linear is not None
    for linear, inputs in ((layer.linear, 13 * 64), (layer.relation_linear, 64)):
        largest = float(linear.weight.detach().abs().max())
        assert 0.95 * inputs**-0.5 < largest <= inputs**-0.5
        assert float(linear.bias.detach().abs().max()) <= inputs**-0.5
    assert 0.9 < float(encoder.query.weight.detach().std()) < 1.1


def test_every_setting_has_one_line_of_help() -> None:
    for name, field in EncoderSettings.model_fields.items():
        assert field.description, name
        assert "\n" not in field.description


@pytest.mark.parametrize(
    "bad",
    [{"layers": 0}, {"width": 0}, {"message": "complex"}, {"aggregate": "median"}, {"context": "all"}, {"depth": 6}],
)
def test_impossible_settings_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EncoderSettings.model_validate(bad)


def test_rotations_need_an_even_width() -> None:
    with pytest.raises(ValidationError, match="even width, not 5; choose 6"):
        EncoderSettings(message="rotate", width=5)
    assert EncoderSettings(message="rotate", width=4).width == 4


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        EncoderSettings().layers = 3  # type: ignore[misc]
