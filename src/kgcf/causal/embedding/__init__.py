"""The entity space M: random walks on every relation's own graph, skip-gram, ψ-weighted sum (paper sec. 4.3)."""

from kgcf.causal.embedding.entity_space import EntitySpace, count_steps, embed_entities, open_space, relation_weights
from kgcf.causal.embedding.settings import Engine, Psi, SpaceSettings

__all__ = [
    "Engine",
    "EntitySpace",
    "Psi",
    "SpaceSettings",
    "count_steps",
    "embed_entities",
    "open_space",
    "relation_weights",
]
