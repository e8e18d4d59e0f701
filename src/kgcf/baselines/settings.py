"""What can be set about each baseline: one small class per kind. Imports nothing large, so that help stays quick."""

import math
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

TRAINING_KEYS = (
    "epochs",
    "batch_size",
    "learning_rate",
    "patience",
    "validate_triples",
    "checkpoint_seconds",
    "memory_gb",
    "seed",
)  # what of the section `training` a baseline reads; the rest is about KGCF's own way of training


class BaselineSettings(BaseModel):
    """The name of the model; every kind adds what it reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    trains: ClassVar[bool] = True  # whether anything is learned in epochs

    model: str = Field(description="The model's name, as `kgcf models` lists it.")
    seconds: float | None = Field(
        default=None,
        gt=0,
        description="For training and what follows it, as --time says; none given: all epochs are trained.",
    )


class FrequencySettings(BaselineSettings):
    """Counting has nothing to set."""

    trains: ClassVar[bool] = False


class SampledSettings(BaselineSettings):
    """Embeddings trained against sampled negatives with self-adversarial weights."""

    dimension: int = Field(default=100, ge=1, description="Width of an entity vector (complex numbers, pairs).")
    negatives: int = Field(default=32, ge=1, description="Corrupted triples per train triple.")
    margin: float = Field(default=6.0, gt=0, description="γ: the score of a distance 0.")
    temperature: float = Field(default=1.0, gt=0, description="Of the self-adversarial weights.")


class HakeSettings(SampledSettings):
    """HAKE weighs moduli and phases."""

    modulus_weight: float = Field(default=1.0, gt=0, description="First weight of the distance of moduli; learned.")
    phase_weight: float = Field(default=0.5, gt=0, description="First weight of the distance of phases; learned.")


class OneToAllSettings(BaselineSettings):
    """Embeddings that score all entities at once (1-N), reciprocal relations added."""

    dimension: int = Field(default=100, ge=1, description="Width of an entity vector (complex numbers, pairs).")
    loss: Literal["bce", "ce"] = Field(default="bce", description="Binary or softmax cross-entropy over all entities.")
    label_smoothing: float = Field(default=0.1, ge=0, lt=1, description="Share of the target spread over all entities.")


class ComplexSettings(OneToAllSettings):
    """ComplEx."""

    loss: Literal["bce", "ce"] = Field(default="ce", description="Binary or softmax cross-entropy over all entities.")
    label_smoothing: float = Field(default=0.0, ge=0, lt=1, description="Share of the target spread over all entities.")


class DistmultSettings(ComplexSettings):
    """DistMult."""

    dropout: float = Field(default=0.2, ge=0, lt=1, description="Of entity and relation vectors.")


class TuckerSettings(OneToAllSettings):
    """TuckER: a core tensor between the vectors."""

    relation_dimension: int = Field(default=30, ge=1, description="Width of a relation vector.")
    head_dropout: float = Field(default=0.2, ge=0, lt=1, description="Of the head's vector.")
    relation_dropout: float = Field(default=0.2, ge=0, lt=1, description="Of the core tensor times the relation.")
    output_dropout: float = Field(default=0.3, ge=0, lt=1, description="Of head and relation together.")


class LowferSettings(OneToAllSettings):
    """LowFER: factorised bilinear pooling."""

    relation_dimension: int = Field(default=30, ge=1, description="Width of a relation vector.")
    rank: int = Field(default=30, ge=1, description="k: factors that are summed for each output.")
    head_dropout: float = Field(default=0.2, ge=0, lt=1, description="Of the head's vector.")
    product_dropout: float = Field(default=0.2, ge=0, lt=1, description="Of the products before they are summed.")
    output_dropout: float = Field(default=0.3, ge=0, lt=1, description="Of head and relation together.")


class ConvolutionSettings(OneToAllSettings):
    """ConvE: a convolution over the stacked vectors."""

    filters: int = Field(default=32, ge=1, description="Feature maps of the convolution.")
    kernel: int = Field(default=3, ge=1, description="Height and width of a filter.")
    input_dropout: float = Field(default=0.2, ge=0, lt=1, description="Of the stacked vectors.")
    feature_dropout: float = Field(default=0.2, ge=0, lt=1, description="Of feature maps.")
    hidden_dropout: float = Field(default=0.3, ge=0, lt=1, description="Of the projection.")

    @property
    def image(self) -> tuple[int, int]:
        """Height and width of one vector as an image, as nearly square as its width allows."""
        height = max(h for h in range(1, math.isqrt(self.dimension) + 1) if self.dimension % h == 0)
        return height, self.dimension // height

    @model_validator(mode="after")
    def _filter_fits(self) -> Self:
        height, width = self.image
        if self.kernel > min(2 * height, width):
            raise ValueError(
                f"A filter of {self.kernel} × {self.kernel} does not fit into the image of {2 * height} × {width} that "
                f"two vectors of {self.dimension} make. Choose a smaller baseline.kernel, or a baseline.dimension with "
                "more factors."
            )
        return self


class TranslationDecoder(OneToAllSettings):
    """γ − ‖h + r − t‖₁ on encoded entities."""

    margin: float = Field(default=9.0, gt=0, description="γ: the score of a distance 0.")


class ProductDecoder(OneToAllSettings):
    """⟨h, r, t⟩ on encoded entities."""


class RgcnFields(BaseModel):
    """The encoder RGCN."""

    dimension: int
    layers: int = Field(default=1, ge=1, description="Rounds of message passing.")
    blocks: int = Field(default=5, ge=1, description="Blocks on the diagonal of a relation's matrix.")
    edge_dropout: float = Field(default=0.1, ge=0, lt=1, description="Share of edges left out of a training step.")

    @model_validator(mode="after")
    def _blocks_fit(self) -> Self:
        if self.dimension % self.blocks:
            raise ValueError(f"baseline.dimension={self.dimension} cannot be divided into {self.blocks} equal blocks.")
        return self


class CompgcnFields(BaseModel):
    """The encoder CompGCN."""

    layers: int = Field(default=1, ge=1, description="Rounds of message passing.")
    encoder_dropout: float = Field(default=0.1, ge=0, lt=1, description="Of the messages' sums.")


class LteFields(BaseModel):
    """The encoder LTE: a linear transformation of entity vectors, no graph."""

    operations: Literal["p", "p.b", "p.b.d"] = Field(
        default="p.b.d", description="p: projection, b: batch normalisation, d: dropout."
    )
    encoder_dropout: float = Field(default=0.2, ge=0, lt=1, description="Of d, where the operations have it.")


class RgcnTranse(TranslationDecoder, RgcnFields):
    """RGCN + TransE."""


class RgcnDistmult(ProductDecoder, RgcnFields):
    """RGCN + DistMult."""


class RgcnConve(ConvolutionSettings, RgcnFields):
    """RGCN + ConvE."""


class CompgcnTranse(TranslationDecoder, CompgcnFields):
    """CompGCN + TransE."""


class CompgcnDistmult(ProductDecoder, CompgcnFields):
    """CompGCN + DistMult."""


class CompgcnConve(ConvolutionSettings, CompgcnFields):
    """CompGCN + ConvE."""


class LteTranse(TranslationDecoder, LteFields):
    """LTE + TransE."""

    operations: Literal["p", "p.b", "p.b.d"] = Field(
        default="p", description="p: projection, b: batch normalisation, d: dropout."
    )


class LteDistmult(ProductDecoder, LteFields):
    """LTE + DistMult."""


class LteConve(ConvolutionSettings, LteFields):
    """LTE + ConvE."""


class PraSettings(BaselineSettings):
    """Path Ranking: chosen path types, one logistic regression per relation."""

    length: int = Field(default=3, ge=1, le=3, description="Most relations in a path.")
    paths: int = Field(default=100, ge=1, description="Path types kept for each relation.")
    walks: int = Field(default=100, ge=1, description="Random walks from each end of a sampled triple.")
    sample: int = Field(default=200, ge=1, description="Train triples of a relation that paths are looked for between.")
    negatives: int = Field(default=100, ge=1, description="Reached wrong tails per question of the regression.")
    penalty: float = Field(default=1e-3, gt=0, description="Of the squared weights.")


class RuleSettings(BaselineSettings):
    """NeuralLP: soft rules from attention over relations."""

    length: int = Field(default=3, ge=1, description="Relations in the body of a rule, at most.")
    hidden: int = Field(default=64, ge=1, description="Width of the recurrent network and of its inputs.")
    gradient_limit: float = Field(default=5.0, gt=0, description="Largest entry of a gradient.")


class DrumSettings(RuleSettings):
    """DRUM: a sum of several chains."""

    rank: int = Field(default=3, ge=1, description="Chains whose scores are added.")
