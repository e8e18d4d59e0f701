"""How a model is trained."""

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from kgcf.choices import RemoveRule
from kgcf.machine.memory_bound import DEFAULT_GB

if TYPE_CHECKING:  # with compiled kernels, which settings do without
    from kgcf.data.hiding import Remove


class TrainingSettings(BaseModel):
    """Epochs, batches, optimiser, validation and stopping."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(default=20, ge=1, description="Sweeps over the train triples, or over `batches_per_epoch`.")
    batch_size: int = Field(default=32, ge=1, description="Passes per gradient step.")
    batches_per_epoch: int | None = Field(default=None, ge=1, description="Steps per epoch instead of all triples.")
    budget: int | None = Field(default=None, ge=1, description="Stop the epochs' steps after this many passes in all.")
    accumulate: int = Field(default=1, ge=1, description="Batches whose gradients are joined into one step.")
    learning_rate: float = Field(default=5e-3, gt=0, description="Of Adam.")
    schedule: Literal["constant", "cosine"] = Field(default="cosine", description="How the learning rate develops.")
    average: Literal["none", "exponential", "last"] = Field(
        default="none",
        description="Keep the mean of the weights over the last part of training: of all steps, the late ones counting "
        "more (exponential), or of snapshots that count the same (last).",
    )
    average_share: float = Field(default=0.25, gt=0, le=1, description="The part of training that the mean is over.")
    average_snapshots: int = Field(default=10, ge=1, description="Sets of weights in the mean `last`.")
    remove: RemoveRule = Field(
        default="auto", description="What a query must not see: its triple, or all links between head and candidates."
    )
    skip_unreached: bool = Field(default=True, description="Leave out queries whose answer no visible path reaches.")
    fan_in: int | None = Field(
        default=None,
        ge=1,
        description="In training an update aggregates at most so many edges, drawn anew every time; none given: all.",
    )
    patience: int | None = Field(
        default=None, ge=1, description="Stop after this many validations without improvement; none given: never."
    )
    validate_triples: int | None = Field(
        default=None, ge=1, description="Validate on so many triples drawn at random; none given: on all."
    )
    checkpoint_seconds: float = Field(default=60.0, ge=0, description="Least time between two checkpoints in an epoch.")
    memory_gb: float = Field(
        default=DEFAULT_GB,
        gt=0,
        description="What one thread may hold to compute, in training and in everything the run is asked later.",
    )
    threads: int | None = Field(
        default=None, ge=1, description="Parts of a training batch computed at once; ranking uses every core."
    )
    seed: int = Field(default=0, ge=0, description="Of initial weights, order, negatives.")

    @property
    def hides(self) -> "Remove":
        """The rule in use; where nothing settled `auto`, as for another model than KGCF, a triple is hidden alone."""
        return "pair" if self.remove == "pair" else "triple"
