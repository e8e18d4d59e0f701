"""The causal stage: entity space and counterfactuals of the train triples, kept from last time or computed."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.cache import Cache
from kgcf.causal.counterfactual.candidates import Candidates
from kgcf.causal.counterfactual.matching import match_pairs
from kgcf.causal.counterfactual.table import CounterfactualTable
from kgcf.causal.embedding import EntitySpace, SpaceSettings, count_steps, embed_entities
from kgcf.causal.treatment import Treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove
from kgcf.progress import Advance, silent

Showing = Callable[[str, int], AbstractContextManager[Advance]]  # a bar with a title and a total


def show_nothing(_title: str, _total: int) -> AbstractContextManager[Advance]:
    """No progress."""
    return nullcontext(silent)


@dataclass(frozen=True)
class CausalStage:
    """How to get the space and the table of a graph: where results are kept, how many threads, what is shown."""

    cache: Cache
    threads: int | None = None
    showing: Showing = show_nothing

    def space(self, graph: KnowledgeGraph, settings: SpaceSettings) -> EntitySpace:
        """The entity space, keyed by the triples and every setting."""
        inputs: dict[str, object] = {"graph": graph.fingerprint, **settings.model_dump()}
        if settings.engine == "gensim":
            inputs["gensim"] = version("gensim")

        def compute() -> dict[str, NDArray[np.generic]]:
            with self.showing("embedding", count_steps(graph, settings)) as advance:
                return {"vectors": embed_entities(graph, settings, self.threads, advance).vectors}

        vectors = self.cache.arrays("space", inputs, compute)["vectors"]
        return EntitySpace(vectors.astype(np.float32, copy=False), settings, graph.fingerprint)

    def table(
        self, space: EntitySpace, treatment: Treatment, candidates: Candidates, leave_one_out: bool, remove: Remove
    ) -> CounterfactualTable:
        """The counterfactuals of all train triples, keyed by the graph, the space, the labels and all switches."""
        graph = treatment.graph
        inputs: dict[str, object] = {
            "graph": graph.fingerprint,
            "space": space.fingerprint,
            "treatment": treatment.fingerprint,
            "candidates": candidates,
            "leave_one_out": leave_one_out,
            "remove": remove,
        }

        def compute() -> dict[str, NDArray[np.generic]]:
            with self.showing("matching", len(graph)) as advance:
                choices = (candidates, leave_one_out, self.threads, advance)
                return match_pairs(graph.triples, graph, space, treatment, *choices, remove=remove).arrays()

        kept = self.cache.arrays("counterfactuals", inputs, compute)
        return CounterfactualTable.from_arrays(kept, candidates, leave_one_out, remove)
