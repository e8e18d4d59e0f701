"""What a user can choose about the treatment."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kgcf.choices import MethodName as MethodName

# Which method each option belongs to; the others refuse a value that they would ignore.
_OWNERS: dict[str, tuple[str, ...]] = {
    "k": ("core_component",),
    "resolution": ("louvain",),
    "seed": ("louvain", "shuffled_core"),
    "path": ("file",),
}
SEEDED = _OWNERS["seed"]  # the methods that draw anything at random


class TreatmentSettings(BaseModel):
    """How entities are labelled: T(h, r, t) = 1 iff h and t have the same label under r."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: MethodName = Field(default="core_number", description="what the labels are made of")
    leave_one_out: bool = Field(
        default=True, description="take T of a training query on the graph without its hidden triples"
    )
    k: int = Field(
        default=2, ge=1, le=2**31 - 1, description="core_component: label the connected components of the k-core"
    )
    resolution: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="louvain: above 1 gives smaller communities"
    )
    seed: int = Field(
        default=0, ge=0, description="louvain: the order in which entities are visited; shuffled_core: of the draw"
    )
    path: Path | None = Field(
        default=None, description="file: lines 'entity<TAB>label' or 'entity<TAB>relation<TAB>label'"
    )

    @model_validator(mode="after")
    def _refuse_what_would_be_ignored(self) -> Self:
        for option, owners in _OWNERS.items():
            if self.method not in owners and getattr(self, option) != type(self).model_fields[option].default:
                named = "' or '".join(owners)
                raise ValueError(f"'{option}' belongs to the treatment '{named}', but the method is '{self.method}'.")
        if self.method == "file" and self.path is None:
            raise ValueError("The treatment 'file' needs 'path': a file with lines 'entity<TAB>label'.")
        return self
