"""The entity space for explanations: the run's own where it knows the entities, else one for the graph at hand."""

from pathlib import Path

from kgcf.causal.cache import user_cache
from kgcf.causal.cached_stages import CausalStages
from kgcf.causal.embedding import EntitySpace, SpaceSettings, open_space
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary


def find_space(
    kept: Path, trained_on: Vocabulary, graph: KnowledgeGraph, entities: Vocabulary, settings: SpaceSettings
) -> EntitySpace:
    """The space kept in a run if the graph has the run's entities; otherwise from the cache or by walks.

    The kept space stands for the train graph. More triples between the same entities do not move it: distances stay
    those that training used.
    """
    if kept.is_file() and entities == trained_on:
        return open_space(kept)
    return CausalStages(user_cache()).space(graph, settings)
