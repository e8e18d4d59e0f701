"""What memory has to do with an answer: its part of the logit, and the known facts that it finds most alike."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data.vocabulary import Named
from kgcf.explanation.case import Case
from kgcf.memory.memory import Memory

ALIKE = 3  # facts shown


@dataclass(frozen=True)
class SimilarFact:
    """A known fact of the same relation, between entities that memory finds near."""

    head: Named
    tail: Named
    head_similarity: float  # cosine of the entities' vectors; 1 for the same entity
    tail_similarity: float


@dataclass(frozen=True)
class MemoryEvidence:
    """logit = paths + unreached + memory."""

    asked: bool  # whether memory had a say
    silence: str  # why it had none, as a sentence; empty where it had
    path_logit: float
    unreached: float  # what the answer loses because no path reaches it
    memory_logit: float
    alike: tuple[SimilarFact, ...]  # most alike first

    @property
    def logit(self) -> float:
        """Of the answer: by this it is ranked."""
        return self.path_logit + self.unreached + self.memory_logit


def find_memory_evidence(case: Case, alike: int = ALIKE) -> MemoryEvidence | None:
    """The part of memory in the answer of a case; None for a run without memory, or on another graph."""
    recall = case.observed.recall
    if recall is None:
        return None
    part, heard = case.memory_part
    reached = np.array([case.importance.reached])
    return MemoryEvidence(
        asked=heard,
        silence="" if heard else _silence(case),
        path_logit=case.importance.logit,
        unreached=float(case.observed.moved(np.array([heard]), reached)[0]),
        memory_logit=part,
        alike=_most_alike(case, recall.memory, alike) if heard else (),
    )


def _silence(case: Case) -> str:
    """Why memory has no say."""
    recall = case.observed.recall
    assert recall is not None
    if case.known and recall.speaks(np.array([case.head]), np.array([case.relation]))[0]:
        return "Memory was trained on this very fact, so it is not asked about it."
    if not recall.memory.speaks(np.array([case.head]), np.array([case.relation]))[0]:
        return "Memory never saw the entity or the relation that is asked about, so the score is that of the paths."
    return "On validation memory did not help with this relation, so the score is that of the paths."


def _most_alike(case: Case, memory: Memory, count: int) -> tuple[SimilarFact, ...]:
    """The train facts (a, r, b) with the largest cosine(h, a) + cosine(t, b); the fact itself is none of them."""
    head, relation, tail = case.triple
    rows = case.observed.train.triples
    facts = rows[(rows[:, 1] == relation) & ~((rows[:, 0] == head) & (rows[:, 2] == tail))].astype(np.int64)
    near_head, near_tail = _cosines(memory, head, facts[:, 0]), _cosines(memory, tail, facts[:, 2])
    order = np.argsort(-(near_head + near_tail), kind="stable")[:count]
    entities = case.observed.entities
    return tuple(
        SimilarFact(
            entities.named(int(facts[i, 0])),
            entities.named(int(facts[i, 2])),
            float(near_head[i]),
            float(near_tail[i]),
        )
        for i in order.tolist()
    )


def _cosines(memory: Memory, entity: int, others: NDArray[np.int64]) -> NDArray[np.float64]:
    """[F] cosine between the vectors of an entity and of others; 0 where memory does not know the entity."""
    place, places = int(memory.places(np.array([entity]))[0]), memory.places(others)
    if place < 0:
        return np.zeros(len(others))
    vectors, sizes = memory.model.entities.numpy(), memory.sizes
    cosines = (vectors @ vectors[place]) / np.maximum(sizes * sizes[place], 1e-12)  # with everybody: no copy of vectors
    near: NDArray[np.float64] = cosines[places].astype(np.float64)
    return near


def memory_sentences(evidence: MemoryEvidence | None, relation: Named) -> Iterator[str]:
    """How much of the score is paths and how much memory, and what memory knows that is alike; nothing without one."""
    if evidence is None:
        return
    if not evidence.asked:
        yield evidence.silence
        return
    lost = f", {evidence.unreached:+.3f} because no path leads to it" if evidence.unreached else ""
    yield (
        f"Paths and memory: of the score {evidence.logit:.3f}, paths give {evidence.path_logit:+.3f}{lost} and memory "
        f"{evidence.memory_logit:+.3f}."
    )
    if evidence.alike:
        yield "Known facts that memory finds most alike (similarity of the heads, of the tails):"
    for fact in evidence.alike:
        shown = f"{fact.head.shown} —{relation.shown}→ {fact.tail.shown}"
        yield f"  {shown} ({fact.head_similarity:.2f}, {fact.tail_similarity:.2f})"


def run_sentences(names: tuple[str, ...]) -> Iterator[str]:
    """Of a blend of runs: whose paths are shown, and who else answers, unexplained; nothing for a single run."""
    if not names:
        return
    shown, *others = names
    if others:
        yield f"Paths and memory are those of {shown}; what {', '.join(others)} adds to the answer is not explained."
    else:
        yield f"Paths and memory are those of {shown}; the other runs of the blend have no weight."


def about_paths_sentences(evidence: MemoryEvidence | None) -> Iterator[str]:
    """That taking paths away leaves memory as it is; nothing without one that has a say."""
    if evidence is not None and evidence.asked:
        yield "Taking paths away is about the paths: memory's part of the score stays what it is."
