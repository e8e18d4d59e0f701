"""A benchmark or a user's data: what may be seen, what is to be predicted, what is true."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.data.weights import Weights, join_weights
from kgcf.plain_tables import html_table
from kgcf.screen import inert


@dataclass(frozen=True, eq=False)
class Split:
    """One task: predict `queries` from `observed`, and filter the ranking by `known`.

    Transductive and inductive tasks are the same thing with another observed graph: in an inductive
    test split (and in a validation split of the same kind), `observed`, `known` and `entities` belong to the new graph.
    """

    name: str
    observed: KnowledgeGraph  # may be seen
    queries: NDArray[np.int32] = field(repr=False)  # [Q, 3] to predict
    known: KnowledgeGraph  # truths about these entities that filter the ranking; never those of a later split
    entities: Vocabulary

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Train, valid and test tasks over one set of relations.

    `train.observed` is the train graph, `train.queries` its triples. In a transductive dataset all
    three splits share entities and observed graph.
    """

    name: str
    relations: Vocabulary
    train: Split
    valid: Split
    test: Split
    notes: tuple[str, ...] = ()  # what the reader assumed, counted and found, as sentences
    benchmark: str | None = None  # the benchmark whose files these are, by their checksums; never by their name

    @property
    def graph(self) -> KnowledgeGraph:
        """The train graph."""
        return self.train.observed

    @property
    def entities(self) -> Vocabulary:
        """The entities of the train graph."""
        return self.train.entities

    @property
    def inductive(self) -> bool:
        """Whether the test task asks about a graph other than the train graph."""
        return self.test.observed is not self.train.observed

    @property
    def validated_elsewhere(self) -> bool:
        """Whether the validation task, too, asks about a graph other than the train graph."""
        return self.valid.observed is not self.train.observed

    @property
    def splits(self) -> tuple[Split, Split, Split]:
        """Train, valid, test."""
        return self.train, self.valid, self.test

    @property
    def summary(self) -> str:
        """Name and size on one line."""
        size = f"{len(self.entities):,} entities, {len(self.relations):,} relations"
        counts = ", ".join(f"{len(split):,} {split.name}" for split in self.splits)
        who = "valid and test ask" if self.validated_elsewhere else "test asks"
        new = f"; {who} about another graph of {len(self.test.entities):,} entities" if self.inductive else ""
        return inert(f"{self.name}: {size}; {counts} triples{new}")

    def __repr__(self) -> str:
        return f"Dataset({self.summary})"

    def _repr_html_(self) -> str:
        rows = [
            (split.name, f"{len(split):,}", f"{len(split.observed):,}", f"{len(split.entities):,}")
            for split in self.splits
        ]
        return html_table(("split", "triples", "observed", "entities"), rows, ("<", ">", ">", ">"), self.summary)

    def with_notes(self, *notes: str) -> "Dataset":
        """The same dataset with further notes."""
        return replace(self, notes=self.notes + notes)


def transductive(
    name: str,
    entities: Vocabulary,
    relations: Vocabulary,
    triples: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]],
    weights: tuple[Weights | None, Weights | None, Weights | None] = (None, None, None),
    notes: tuple[str, ...] = (),
) -> Dataset:
    """One vocabulary, train observed everywhere; a split is filtered with its own truths and those before it.

    Validation chooses the model, so it must not know what test asks: test truths filter test alone. `weights` has those
    of train, valid and test; the truths that filter test keep all of them, for whoever observes everything.
    """
    train, valid, test = triples
    graph = KnowledgeGraph.build(train, len(entities), len(relations), weights[0])
    before_test = KnowledgeGraph.build(np.concatenate([train, valid]), len(entities), len(relations))
    every = join_weights(weights, [len(part) for part in triples])
    known = KnowledgeGraph.build(np.concatenate(triples), len(entities), len(relations), every)
    return Dataset(
        name=name,
        relations=relations,
        train=Split("train", graph, graph.triples, graph, entities),
        valid=Split("valid", graph, valid, before_test, entities),
        test=Split("test", graph, test, known, entities),
        notes=notes,
    )
