"""The review as pages and programs use it: lists, verdicts, proposals, exports."""

from collections.abc import Iterator
from typing import Literal, get_args

from kgcf.errors import StorageError
from kgcf.prediction.answers import UNKNOWN
from kgcf.web.asking import find
from kgcf.web.models import ReviewList
from kgcf.web.refusals import RefusalError
from kgcf.web.requests import Choice, Decide, Propose
from kgcf.web.review.export import ExportFormat, export_facts, export_links
from kgcf.web.review.precision import measure_precision
from kgcf.web.review.store import Chosen, ReviewedLink, ReviewStore, State, Verdict
from kgcf.web.served_run import ServedRun

FactFormat = Literal["tsv", "nt"]
_PIECE = 5_000  # links that are read at once


def review(served: ServedRun, choice: Choice) -> ReviewList:
    """Links to judge, how many there are of each kind, and the precision so far."""
    store, label = served.reviews, relation_label(served, choice.relation)
    chosen = choice.of(label)
    states: tuple[State, ...] = ("open", *get_args(Verdict))
    return ReviewList(
        state=choice.state,
        relation=label,
        min_probability=choice.min_probability,
        first=choice.first,
        total=store.count(chosen),
        links=tuple(store.links(chosen, choice.limit, choice.first)),
        counts={state: store.count(Chosen(state, label, choice.min_probability)) for state in states},
        precision=measure_precision(list(every_link(store, Chosen("decided")))),
        progress=served.background.progress,
    )


def relation_label(served: ServedRun, text: str) -> str | None:
    """The label of a relation that was named; None for all of them."""
    if text.strip() in ("", UNKNOWN):
        return None
    return served.relations.named(find(served, "relation", text)).label


def decide(served: ServedRun, wanted: Decide) -> ReviewedLink:
    """Keep a verdict."""
    return served.reviews.decide(wanted.link, wanted.verdict, wanted.reviewer.strip(), wanted.note.strip(), wanted.seen)


def undo(served: ServedRun, reviewer: str) -> ReviewedLink:
    """Take back the reviewer's last verdict."""
    found = served.reviews.undo(reviewer.strip())
    if found is None:
        raise RefusalError(404, f"There is nothing of {reviewer.strip()} to undo.")
    return found


def propose(served: ServedRun, wanted: Propose) -> None:
    """Start to look for links to judge."""
    label = relation_label(served, wanted.relation or "")
    served.propose(None if label is None else [label], wanted.top, wanted.min_probability)


def export(served: ServedRun, form: ExportFormat, verdict: State) -> Iterator[str]:
    """Judged links, the accepted ones by default."""
    return export_links(every_link(served.reviews, Chosen(verdict)), form)


def facts(served: ServedRun, form: FactFormat) -> Iterator[str]:
    """The observed graph and the accepted links, to be observed or trained on."""
    observed = served.observed
    accepted = [link for link in every_link(served.reviews, Chosen("accept")) if _is_new(served, link)]
    return export_facts(observed.graph, observed.entities, observed.relations, accepted, form)


def every_link(store: ReviewStore, chosen: Chosen) -> Iterator[ReviewedLink]:
    """All links of a choice, read piece by piece."""
    first = 0
    while piece := store.links(chosen, _PIECE, first):
        yield from piece
        first += len(piece)


def _is_new(served: ServedRun, link: ReviewedLink) -> bool:
    """Whether the graph lacks an accepted link; one about other data is refused."""
    answer = link.answer
    try:
        ids = (
            served.entities.id_of(answer.head),
            served.relations.id_of(answer.relation),
            served.entities.id_of(answer.tail),
        )
    except KeyError as error:
        raise StorageError(f"The review has a link about {error}, which this run does not know.") from error
    return not bool(served.observed.graph.contains([ids])[0])
