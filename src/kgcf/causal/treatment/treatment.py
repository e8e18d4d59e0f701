"""The treatment T(h, r, t) of a triple (paper sec. 4.2): one abstract class, one final class per method."""

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgcf.causal.treatment.hidden_edges import find_hidden_edges
from kgcf.causal.treatment.labels import LabelChanges, LabelTable
from kgcf.causal.treatment.relabelling import Relabelling, StoredChanges
from kgcf.causal.treatment.settings import TreatmentSettings
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, Remove, hide_known
from kgcf.data.vocabulary import Vocabulary
from kgcf.storage import save_arrays

FORMAT = "kgcf treatment 1"


@dataclass(frozen=True, eq=False)
class Sources:
    """What labels can be made from: the graph, and the vocabularies if names have to be understood."""

    graph: KnowledgeGraph
    entities: Vocabulary | None = None
    relations: Vocabulary | None = None
    threads: int = 1


@dataclass(frozen=True, eq=False)
class Labelling:
    """The labels a method gives, how they change, and sentences about what was left out."""

    table: LabelTable
    rule: Relabelling | None  # None: labels never change
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Treatment(ABC):
    """T(h, r, t) = 1 iff c_r(h) = c_r(t), where c_r labels entities by the graph A_r of relation r.

    A_r is undirected and simple, without self-loops, of observed triples only. T is symmetric in its ends, so the
    inverse relation r + R has the treatment of r. An entity without a label is treated with nobody.
    """

    graph: KnowledgeGraph
    settings: TreatmentSettings
    labels: LabelTable
    stored: StoredChanges | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    rule: Relabelling | None = field(default=None, repr=False)  # where it is at hand already

    @classmethod
    @abstractmethod
    def label(cls, sources: Sources, settings: TreatmentSettings) -> Labelling:
        """c_r of every relation."""

    @abstractmethod
    def make_rule(self) -> Relabelling | None:
        """How the labels change when edges are hidden; None if they never do."""

    def labels_on(self, part: KnowledgeGraph) -> LabelTable | None:
        """The labels on a part of the graph where the method does not label it anew; None: it does."""
        return None

    def treated(
        self,
        heads: ArrayLike,
        relations: ArrayLike,
        candidates: ArrayLike | None = None,
        hidden: HiddenTriples | None = None,
    ) -> NDArray[np.bool_]:
        """T of heads [B] and relations [B] with candidates [B, K], or with all N entities: [B, K] or [B, N].

        `hidden` gives each query the triples that it must not see: T of all its candidates is then that of the
        graph without them.
        """
        changes = LabelChanges.none(np.size(heads)) if hidden is None else self.changes(relations, hidden)
        return self.labels.compare(heads, relations, candidates, changes)

    def treated_triples(
        self, triples: ArrayLike, leave_one_out: bool = False, remove: Remove = "triple"
    ) -> NDArray[np.bool_]:
        """[Q] T of triples [Q, 3]; with `leave_one_out` one that the graph has is taken without what it hides."""
        heads, relations, tails = np.asarray(triples).reshape(-1, 3).T
        hidden = hide_known(self.graph, heads, relations, tails, remove) if leave_one_out else None
        return self.treated(heads, relations, tails[:, None], hidden)[:, 0]

    def changes(self, relations: ArrayLike, hidden: HiddenTriples) -> LabelChanges:
        """The labels under relations [B] that differ once each query's hidden triples are gone."""
        groups = self.labels.group_of(relations)
        if len(groups) != len(hidden):
            raise ValueError(f"There are {len(groups)} queries but hidden triples for {len(hidden)}.")
        rule = self._relabelling
        if rule is None:
            return LabelChanges.none(len(groups))
        edges = find_hidden_edges(rule.graphs, groups, hidden)
        return rule.relabel(edges).changes if self.stored is None else self.stored.changes_of(edges, rule)

    @cached_property
    def _relabelling(self) -> Relabelling | None:
        return self.make_rule() if self.rule is None else self.rule

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the graph, the settings and the labels; what is derived from a treatment is keyed by it."""
        settings = self.settings.model_dump_json(exclude={"path"})  # the labels say what was in the file
        digest = hashlib.sha256(f"{FORMAT} {self.graph.fingerprint} {settings} ".encode())
        for part in (self.labels.groups, self.labels.offsets, self.labels.entities, self.labels.labels):
            digest.update(part.tobytes())
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        """Write labels and label changes to one `.safetensors` file, atomically."""
        arrays = {**self.labels.arrays(), **({} if self.stored is None else self.stored.arrays())}
        settings = self.settings
        if settings.path is not None:  # the labels are here; where they came from says nothing elsewhere
            settings = settings.model_copy(update={"path": Path(settings.path.name)})
        about = {"graph": self.graph.fingerprint, "settings": settings.model_dump_json(), "notes": self.notes}
        save_arrays(path, arrays, {FORMAT: json.dumps(about)})  # one entry: the library writes several in any order
