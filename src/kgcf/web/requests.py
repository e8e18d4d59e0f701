"""What may be asked for, with its limits: shared by the pages and their JSON twins."""

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from kgcf.choices import Asked
from kgcf.web.asking import run_called
from kgcf.web.limits import LIMITS
from kgcf.web.models import Kind
from kgcf.web.review.store import Chosen, State, Verdict
from kgcf.web.served_run import ServedRun


def served_run(request: Request, run: Annotated[str, Path(max_length=200, description="Key of a run.")]) -> ServedRun:
    """The run of the address."""
    return run_called(request.app.state.runs, run)


Served = Annotated[ServedRun, Depends(served_run)]
Text = Annotated[str, Query(max_length=LIMITS.text, description="Label, name, or #number.")]
SearchText = Annotated[str, Query(max_length=LIMITS.text, description="Any part of a label or name.")]
KindOf = Annotated[Kind | None, Query(description="Only entities, or only relations.")]
Every = Annotated[bool, Query(description="Every fact, or the first of each relation.")]
Hits = Annotated[int, Query(ge=1, le=100, description="At most so many of each kind.")]
Top = Annotated[int, Query(ge=1, le=LIMITS.top, description="At most so many answers.")]
LinkNumber = Annotated[int, Path(ge=1, le=2**53, description="Number of the link.")]


def _part(default: Any) -> Any:  # noqa: ANN401
    """A part of a triple as people write it."""
    return Field(default, max_length=LIMITS.text, description="Label, name, or #number.")


class Asking(BaseModel):
    """A question with one part left out."""

    head: str = _part("")
    relation: str = _part("")
    tail: str = _part("")
    top: int = Field(default=10, ge=1, le=LIMITS.top, description="At most so many answers.")
    known: bool = Field(default=False, description="Also show answers that are known already.")
    min_probability: float = Field(default=0.0, ge=0, le=1, description="Only what is at least so likely.")

    @property
    def parts(self) -> tuple[str, str, str]:
        """Head, relation, tail."""
        return self.head, self.relation, self.tail


class Explaining(BaseModel):
    """A triple, and how much to say of it."""

    head: str = _part(...)
    relation: str = _part(...)
    tail: str = _part(...)
    paths: int = Field(default=5, ge=1, le=LIMITS.paths, description="At most so many paths.")
    asked: Asked = Field(default="tail", description="Which end of the triple was asked for.")

    @property
    def parts(self) -> tuple[str, str, str]:
        """Head, relation, tail."""
        return self.head, self.relation, self.tail


class Decide(BaseModel):
    """A verdict on a proposed link."""

    model_config = ConfigDict(extra="forbid")

    link: int = Field(ge=1, le=2**53, description="Number of the link.")
    verdict: Verdict
    reviewer: str = Field(min_length=1, max_length=100, pattern=r"\S", description="Who says so.")
    note: str = Field(default="", max_length=2000)
    seen: int | None = Field(
        default=None, ge=0, le=2**53, description="The decision that was shown, 0 for none; refused if another came."
    )


class Undo(BaseModel):
    """Take back the reviewer's last decision that still counts."""

    model_config = ConfigDict(extra="forbid")

    reviewer: str = Field(min_length=1, max_length=100, pattern=r"\S")


class Propose(BaseModel):
    """Complete the graph, in the background, for a review."""

    model_config = ConfigDict(extra="forbid")

    relation: str | None = Field(
        default=None, max_length=LIMITS.text, description="Label or name of one relation; all where it is left out."
    )
    top: int = Field(default=200, ge=1, le=LIMITS.proposals)
    min_probability: float = Field(default=0.0, ge=0, le=1)


class Choice(BaseModel):
    """Which links of a review."""

    state: State = Field(default="open", description="Not judged yet, judged so, judged at all, or all.")
    relation: str = Field(default="", max_length=LIMITS.text, description="Label or name of a relation.")
    min_probability: float = Field(default=0.0, ge=0, le=1)
    first: int = Field(default=0, ge=0, le=2**31)
    limit: int = Field(default=20, ge=1, le=LIMITS.shown)

    def of(self, label: str | None) -> Chosen:
        """As the store takes it."""
        return Chosen(self.state, label, self.min_probability)


Chosing = Annotated[Choice, Query()]
Questioned = Annotated[Asking, Query()]
Explained = Annotated[Explaining, Query()]
