"""How the memory of a run is trained, and when there is one."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Enabled = Literal["auto", "on", "off"]


class MemorySettings(BaseModel):
    """ComplEx with N3, reciprocal relations, 1-vs-all cross-entropy and relation prediction, by Adagrad."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: Enabled = Field(
        default="auto",
        description="auto: on transductive data, used if cross-validation on validation finds a gain; on: used anyway.",
    )
    rank: int = Field(default=200, ge=1, description="Complex numbers per entity and per relation.")
    epochs: int = Field(default=30, ge=1, description="Passes over the train triples, both directions.")
    batch_size: int = Field(default=1000, ge=1, description="Answers per gradient step.")
    answers: int = Field(default=8, ge=1, description="Answers of one question that share a row of scores, at most.")
    learning_rate: float = Field(default=0.1, gt=0, description="Of Adagrad.")
    n3: float = Field(default=0.05, ge=0, description="Weight of the nuclear 3-norm of what a step touches.")
    relation_weight: float = Field(default=1.0, ge=0, description="Weight of predicting the relation of two entities.")
    init: float = Field(default=1e-3, gt=0, description="Standard deviation of the initial numbers.")
    share: float = Field(
        default=0.25, gt=0, lt=1, description="Of the time that a run is given, what its memory may take."
    )
    validate_triples: int | None = Field(
        default=4000,
        ge=1,
        description="Validation triples, drawn at random, that choose the best epoch and the weights of the blend.",
    )
    seed: int = Field(default=0, ge=0, description="Of initial numbers, order, draws.")
