"""The causal stages: treatment, entity space and substitutes of a graph, taken from the cache or computed."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from kgcf.causal.cache import Arrays, Cache
from kgcf.causal.counterfactual.candidates import Candidates
from kgcf.causal.counterfactual.matching import match_pairs
from kgcf.causal.counterfactual.table import CounterfactualTable
from kgcf.causal.embedding import EntitySpace, SpaceSettings, count_steps, embed_entities
from kgcf.causal.embedding.gensim_trainer import gensim_version
from kgcf.causal.treatment import Treatment, TreatmentSettings, assign_treatment, treatment_of_labels
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove
from kgcf.data.vocabulary import Vocabulary
from kgcf.progress import Advance, silent

Say = Callable[[str], None]
Showing = Callable[[str, int], AbstractContextManager[Advance]]  # a bar with a title and a total


def quiet(_: str) -> None:
    """Say nothing."""


def show_nothing(_title: str, _total: int) -> AbstractContextManager[Advance]:
    """No progress."""
    return nullcontext(silent)


@dataclass(frozen=True)
class CausalStages:
    """How to get what is derived from a graph before training; every result is keyed by all that it depends on."""

    cache: Cache
    threads: int | None = None
    showing: Showing = show_nothing
    say: Say = quiet  # hears what begins; what need not be done again is said by the cache

    def treatment(
        self,
        graph: KnowledgeGraph,
        settings: TreatmentSettings,
        entities: Vocabulary | None = None,
        relations: Vocabulary | None = None,
        store_changes: bool = True,
    ) -> Treatment:
        """c_r of every entity (paper sec. 4.2), with what each edge changes if `store_changes`.

        Without the changes only labels are made, and these are kept: reading them is faster than assigning them. A
        treatment with its changes belongs into a run; labels from a file are read from their file.
        """
        if store_changes or settings.method == "file":
            self.say(f"treatment: {settings.method}")
            return assign_treatment(
                graph,
                settings,
                entities=entities,
                relations=relations,
                threads=self.threads,
                store_changes=store_changes,
            )
        inputs: dict[str, object] = {"graph": graph.fingerprint, **settings.model_dump(mode="json", exclude={"path"})}

        def compute() -> Arrays:
            self.say(f"treatment: {settings.method}")
            return assign_treatment(graph, settings, threads=self.threads, store_changes=False).labels.arrays()

        return treatment_of_labels(graph, settings, self.cache.arrays("treatment", inputs, compute))

    def space(self, graph: KnowledgeGraph, settings: SpaceSettings) -> EntitySpace:
        """M, the ψ-weighted sum of one space per relation (sec. 4.3), keyed by the triples and every setting."""

        def compute() -> Arrays:
            self.say("entity space: random walks and skip-gram per relation")
            with self.showing("entity space", count_steps(graph, settings)) as advance:
                return {"vectors": embed_entities(graph, settings, self.threads, advance).vectors}

        vectors = self.cache.arrays("entity space", _space_inputs(graph, settings), compute)["vectors"]
        return EntitySpace(vectors.astype(np.float32, copy=False), settings, graph.fingerprint)

    def has_space(self, graph: KnowledgeGraph, settings: SpaceSettings) -> bool:
        """Whether the entity space is kept from earlier."""
        return self.cache.holds("entity space", _space_inputs(graph, settings))

    def table(
        self, space: EntitySpace, treatment: Treatment, candidates: Candidates, leave_one_out: bool, remove: Remove
    ) -> CounterfactualTable:
        """The nearest pair with the other treatment for every train triple; keyed by graph, space, labels, switches."""
        graph, inputs = treatment.graph, _table_inputs(space, treatment, candidates, leave_one_out, remove)

        def compute() -> Arrays:
            self.say(f"matching {len(graph):,} triples with their nearest pair of the other treatment")
            with self.showing("matching", len(graph)) as advance:
                choices = (candidates, leave_one_out, self.threads, advance)
                return match_pairs(graph.triples, graph, space, treatment, *choices, remove=remove).arrays()

        kept = self.cache.arrays("counterfactuals", inputs, compute)
        return CounterfactualTable.from_arrays(kept, candidates, leave_one_out, remove)

    def has_table(
        self, space: EntitySpace, treatment: Treatment, candidates: Candidates, leave_one_out: bool, remove: Remove
    ) -> bool:
        """Whether these pairs are kept from earlier."""
        inputs = _table_inputs(space, treatment, candidates, leave_one_out, remove)
        return self.cache.holds("counterfactuals", inputs)


def _space_inputs(graph: KnowledgeGraph, settings: SpaceSettings) -> dict[str, object]:
    """Everything that an entity space depends on."""
    version = {"gensim": gensim_version()} if settings.engine == "gensim" else {}
    return {"graph": graph.fingerprint, **settings.model_dump(), **version}


def _table_inputs(
    space: EntitySpace, treatment: Treatment, candidates: Candidates, leave_one_out: bool, remove: Remove
) -> dict[str, object]:
    """Everything that the nearest pairs depend on."""
    return {
        "graph": treatment.graph.fingerprint,
        "space": space.fingerprint,
        "treatment": treatment.fingerprint,
        "candidates": candidates,
        "leave_one_out": leave_one_out,
        "remove": remove,
    }
