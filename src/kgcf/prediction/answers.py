"""`predict`: the most likely tails, heads or relations of a question, with what is known about each."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove, hide_known
from kgcf.data.vocabulary import name_and_label
from kgcf.errors import MissingExtraError, SettingsError
from kgcf.plain_tables import html_table, text_table
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.calibration.fitting import Method
from kgcf.prediction.calibration.sampling import best_first

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = "?"
_SHOWN = 20  # answers in a repr
_TITLES = ("rank", "head", "relation", "tail", "probability", "logit", "note")
_PLACES = (">", "<", "<", "<", ">", ">", "<")


@dataclass(frozen=True)
class Answer:
    """One proposed triple: labels as the data have them, and the names that people read."""

    head: str
    relation: str
    tail: str
    head_name: str  # the label again where there is no display name
    relation_name: str
    tail_name: str
    rank: int  # among the answers that are not known yet
    logit: float | None  # None: neither path nor memory speaks for it, and it ranks behind all for which one does
    probability: float  # calibrated where the run has a calibration, else the sigmoid of the logit
    probability_from: Method  # `platt`, `isotonic` or `relation`, `completion` for a completed link, or `sigmoid`
    probability_given: str  # what the probability is conditional on
    known: bool  # already in the observed graph
    reached: bool  # whether any path of at most L edges supports it
    head_seen: bool  # whether train has any triple (head, relation, ·)
    tail_seen: bool  # whether train has any triple (·, relation, tail)

    @property
    def note(self) -> str:
        """What to keep in mind about it: known already, no path, an entity unseen on its side of the relation."""
        notes = {
            "known": self.known,
            "no path": not self.reached,
            "head unseen": not self.head_seen,
            "tail unseen": not self.tail_seen,
        }
        return ", ".join(note for note, holds in notes.items() if holds)


class Answers(list[Answer]):
    """A list of answers, best first, that shows itself as a table; `to_pandas()` makes a frame of it."""

    def to_pandas(self) -> "pd.DataFrame":
        """A row per answer, a column per field; `pd.DataFrame(answers)` gives the same where there are answers."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("to_pandas()", "pandas") from error
        return pd.DataFrame(map(asdict, self), columns=[field.name for field in fields(Answer)])

    @overload
    def __getitem__(self, position: SupportsIndex) -> Answer: ...

    @overload
    def __getitem__(self, position: slice) -> "Answers": ...

    def __getitem__(self, position: SupportsIndex | slice) -> "Answer | Answers":
        return Answers(super().__getitem__(position)) if isinstance(position, slice) else super().__getitem__(position)

    def __repr__(self) -> str:
        return f"{text_table(_TITLES, self._rows(), _PLACES)}{self._more()}" if self else "no answers"

    def _repr_html_(self) -> str:
        return html_table(_TITLES, self._rows(), _PLACES) + self._more() if self else "no answers"

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                str(answer.rank),
                name_and_label(answer.head_name, answer.head),
                name_and_label(answer.relation_name, answer.relation),
                name_and_label(answer.tail_name, answer.tail),
                f"{answer.probability:.4f}",
                "" if answer.logit is None else f"{answer.logit:.3f}",
                answer.note,
            )
            for answer in self[:_SHOWN]
        ]

    def _more(self) -> str:
        return f"\n… and {len(self) - _SHOWN:,} more" if len(self) > _SHOWN else ""


@dataclass(frozen=True, eq=False)
class Found:
    """Triples that answer something, as ids and numbers; A of them, best first."""

    triples: NDArray[np.int64]  # [A, 3]
    asked: NDArray[np.int64]  # [A] the relation of the question, the inverse one where heads were asked for
    ranks: NDArray[np.int64]  # [A]
    logits: NDArray[np.float64]  # [A] of unsupported ones those of a head of their own, by which they do not rank
    known: NDArray[np.bool_]  # [A]
    reached: NDArray[np.bool_]  # [A]
    heard: NDArray[np.bool_]  # [A] whether memory has a say

    @property
    def supported(self) -> NDArray[np.bool_]:
        """[A] whether there is any evidence: a path, or memory."""
        return self.reached | self.heard


def name_answers(observed: AnsweringGraph, found: Found) -> Answers:
    """Answers with probability, labels and names."""
    entities, relations = observed.entities, observed.relations
    probabilities = observed.probabilities(found.asked, found.logits, found.reached, found.heard)
    calibrations = [observed.calibration_of(heard) for heard in found.heard.tolist()]
    head_seen, tail_seen = observed.half_links(*found.triples.T)
    return Answers(
        Answer(
            head=entities.label(h),
            relation=relations.label(r),
            tail=entities.label(t),
            head_name=entities.display(h),
            relation_name=relations.display(r),
            tail_name=entities.display(t),
            rank=int(found.ranks[i]),
            logit=float(found.logits[i]) if found.supported[i] else None,
            probability=float(probabilities[i]),
            probability_from=calibrations[i].method,
            probability_given=calibrations[i].given,
            known=bool(found.known[i]),
            reached=bool(found.reached[i]),
            head_seen=bool(head_seen[i]),
            tail_seen=bool(tail_seen[i]),
        )
        for i, (h, r, t) in enumerate(found.triples.tolist())
    )


@dataclass(frozen=True)
class Question:
    """A triple with one part unknown: None."""

    head: str | None
    relation: str | None
    tail: str | None

    def __post_init__(self) -> None:
        if [self.head, self.relation, self.tail].count(None) != 1:
            raise SettingsError(
                "Give two of --head, --relation and --tail; the third is predicted. "
                "For relations, give --head, --tail and --relation '?'."
            )

    @property
    def parts(self) -> tuple[str | None, str | None, str | None]:
        """Head, relation, tail."""
        return self.head, self.relation, self.tail


def predict(
    observed: AnsweringGraph,
    question: Question,
    top: int = 10,
    show_known: bool = False,
    allowed: Sequence[str] | None = None,
) -> Answers:
    """The `top` best answers; known ones are left out unless shown, others only if `allowed`."""
    return name_answers(observed, find_answers(observed, question, top, show_known, allowed))


def find_answers(
    observed: AnsweringGraph,
    question: Question,
    top: int = 10,
    show_known: bool = False,
    allowed: Sequence[str] | None = None,
) -> Found:
    """What `predict` finds, as ids."""
    if question.relation is None:
        return _find_relations(observed, question, top, show_known)
    given = question.head if question.head is not None else question.tail
    assert given is not None
    entity = observed.entities.id(given, "entity")
    relation = observed.relations.id(question.relation, "relation")
    asked = relation + (observed.graph.relation_count if question.head is None else 0)
    rows, reach = observed.scorer.score_with_reach(np.array([entity]), np.array([asked]))  # [1, N]
    scores, reached = rows[0], reach[0]
    known = np.zeros(len(scores), dtype=bool)
    known[observed.graph.tails(entity, asked)] = True
    possible = np.ones(len(scores), dtype=bool)
    if allowed is not None:
        possible[:] = False
        possible[observed.entities.ids(allowed, "entity")] = True
    leave_out_itself(observed.graph, entity, asked, possible)
    best = best_first(scores, possible & (show_known | ~known), top)
    ends = (np.full(len(best), entity), best)
    heads, tails = ends if question.head is not None else ends[::-1]
    return Found(
        np.stack([heads, np.full(len(best), relation), tails], axis=1),
        np.full(len(best), asked),
        _ranks(scores, possible & ~known, best),
        observed.logits_of_ranked(entity, asked, best, scores, reached),
        known[best],
        reached[best],
        np.full(len(best), observed.hears(np.array([entity]), np.array([asked]))[0]),
    )


def leave_out_itself(graph: KnowledgeGraph, entity: int, relation: int, possible: NDArray[np.bool_]) -> None:
    """Strike the asked entity from the candidates [N], unless the relation, turned round or not, has self-loops.

    Only lists of proposals do so. Evaluation and calibration rank among all entities, as is usual.
    """
    if not graph.has_self_loops[relation % graph.relation_count]:
        possible[entity] = False


@dataclass(frozen=True, eq=False)
class Scored:
    """What the model says about given triples; Q of them."""

    logits: NDArray[np.float64]  # [Q]
    reached: NDArray[np.bool_]  # [Q] whether any path leads from head to tail
    heard: NDArray[np.bool_]  # [Q] whether memory has a say


def score_triples(observed: AnsweringGraph, triples: NDArray[np.int64], remove: Remove) -> Scored:
    """Score triples as tail questions; of one that is in the graph its question does not see what training hid."""
    heads, relations, tails = triples.T
    logits, support = np.empty(len(triples)), np.empty((2, len(triples)), dtype=bool)
    for first in range(0, len(triples), 64):
        part = slice(first, first + 64)
        hidden = hide_known(observed.graph, heads[part], relations[part], tails[part], remove)
        found = observed.answer_logits(heads[part], relations[part], tails[part][:, None], hidden)
        logits[part] = found.logits[:, 0]
        support[:, part] = found.reached[:, 0], found.heard[:, 0]
    return Scored(logits, *support)


def _find_relations(observed: AnsweringGraph, question: Question, top: int, show_known: bool) -> Found:
    assert question.head is not None
    assert question.tail is not None
    head, tail = (observed.entities.id(name, "entity") for name in (question.head, question.tail))
    count = observed.graph.relation_count
    relations = np.arange(count)
    triples = np.stack([np.full(count, head), relations, np.full(count, tail)], axis=1)
    said = observed.answer_logits(triples[:, 0], relations, triples[:, 2:])  # [R, 1]
    logits, reached, heard = said.logits[:, 0], said.reached[:, 0], said.heard[:, 0]
    known = observed.graph.contains(triples)
    best = best_first(logits, show_known | ~known, top)
    ranks = _ranks(logits, ~known, best)
    return Found(triples[best], relations[best], ranks, logits[best], known[best], reached[best], heard[best])


def _ranks(scores: NDArray[np.floating], rivals: NDArray[np.bool_], answers: NDArray[np.int64]) -> NDArray[np.int64]:
    """[A] rank of each answer among its rivals, those not known yet (a known one: where it would stand)."""
    ordered = np.sort(scores[rivals])
    return len(ordered) - np.searchsorted(ordered, scores[answers], side="right") + 1
