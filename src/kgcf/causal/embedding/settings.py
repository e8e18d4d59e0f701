"""What can be set about the entity space, each with its check and one line of help."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from kgcf.choices import Psi as Psi

Engine = Literal["compiled", "gensim"]


class SpaceSettings(BaseModel):
    """Walks, skip-gram and the weights of the relations in the sum M = Σ_r ψ_r M_r."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dimension: int = Field(default=32, ge=1, le=1024, description="width of the entity space")
    walks: int = Field(default=10, ge=1, description="walks that start at every entity of a relation's graph")
    length: int = Field(default=80, ge=2, description="entities per walk")
    p: float = Field(default=1.0, gt=0, description="return parameter: large values avoid the entity just left")
    q: float = Field(
        default=1.0, gt=0, description="in-out parameter: small values lead away from the entity just left"
    )
    window: int = Field(default=10, ge=1, description="largest distance, in steps, between an entity and its context")
    negatives: int = Field(default=5, ge=1, description="random contexts for every true one")
    epochs: int = Field(default=1, ge=1, description="passes over the walks")
    rate: float = Field(default=0.025, gt=0, description="learning rate at the start, falling linearly to `final_rate`")
    final_rate: float = Field(default=0.0001, ge=0, description="learning rate at the end")
    psi: Psi = Field(
        default="frequency", description="weight of a relation: its share of the triples, equal, or inverse"
    )
    engine: Engine = Field(
        default="compiled", description="skip-gram by our compiled loop, or by gensim's Word2Vec (extra 'gensim')"
    )
    seed: int = Field(default=0, ge=0, description="seed of walks, initial vectors and negatives")
