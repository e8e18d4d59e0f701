"""Judged links as files: TSV, N-Triples, RDF-star with confidence; and as facts, together with the graph.

N-Triples have the links alone. RDF-star (Turtle, `.ttl`) adds to every link how likely the model found it, who judged
it and when. The facts are a file of triples that `kgcf predict --graph` and `kgcf train` read.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Literal

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.terms import Position, write_term
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import SettingsError
from kgcf.screen import inert
from kgcf.web.review.store import ReviewedLink

ExportFormat = Literal["tsv", "nt", "ttl"]
MEDIA = {"tsv": "text/tab-separated-values", "nt": "application/n-triples", "ttl": "text/turtle"}
_COLUMNS = ("head", "relation", "tail", "probability", "verdict", "reviewer", "at", "note")
_PREFIXES = "@prefix kgcf: <urn:kgcf:vocabulary#> .\n@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n\n"
_POSITIONS: tuple[Position, ...] = ("subject", "predicate", "object")


def export_links(links: Iterable[ReviewedLink], form: ExportFormat) -> Iterator[str]:
    """The links, line by line."""
    if form == "tsv":
        yield "\t".join(_COLUMNS) + "\n"
        yield from map(_row, links)
    elif form == "nt":
        yield from (f"{_triple(link)} .\n" for link in links)
    else:
        yield _PREFIXES
        yield from map(_statements, links)


def export_facts(
    graph: KnowledgeGraph,
    entities: Vocabulary,
    relations: Vocabulary,
    accepted: Iterable[ReviewedLink],
    form: Literal["tsv", "nt"],
) -> Iterator[str]:
    """Every triple of the observed graph and the accepted ones, as kgcf reads them.

    TSV cannot hold a label with a tab or a line break; N-Triples can, and need the extra 'rdf' to be read.
    """
    links = ((link.answer.head, link.answer.relation, link.answer.tail) for link in accepted)
    nodes, kinds = entities.labels(), relations.labels()
    if form == "tsv" and any(c in label for label in (*nodes, *kinds) for c in "\t\r\n"):
        raise SettingsError("A label has a tab or a line break, which TSV cannot hold. Take the facts as N-Triples.")
    triples = ((nodes[h], kinds[r], nodes[t]) for h, r, t in graph.triples.tolist())
    for labels in itertools.chain(triples, links):
        yield "\t".join(labels) + "\n" if form == "tsv" else f"{_terms(labels)} .\n"


def _terms(labels: tuple[str, str, str]) -> str:
    return " ".join(write_term(label, position) for label, position in zip(labels, _POSITIONS, strict=True))


def _triple(link: ReviewedLink) -> str:
    return _terms((link.answer.head, link.answer.relation, link.answer.tail))


def _row(link: ReviewedLink) -> str:
    """Labels as they are; what would break a line of TSV is written out."""
    answer, decision = link.answer, link.decision
    said = (decision.verdict, decision.reviewer, decision.at, decision.note) if decision else ("", "", "", "")
    cells = (answer.head, answer.relation, answer.tail, f"{answer.probability:.6f}", *said)
    return "\t".join(map(inert, cells)) + "\n"


def _statements(link: ReviewedLink) -> str:
    """A link, and what is known about it."""
    triple, decision = _triple(link), link.decision
    facts = [f"kgcf:confidence {link.answer.probability:.6f}"]
    if decision is not None:
        facts += [
            f"kgcf:verdict {_literal(decision.verdict)}",
            f"kgcf:reviewer {_literal(decision.reviewer)}",
            f'kgcf:at "{decision.at}"^^xsd:dateTime',
        ]
        facts += [f"kgcf:note {_literal(decision.note)}"] if decision.note else []
    claimed = f"{triple} .\n" if decision is not None and decision.verdict == "accept" else ""
    return f"{claimed}<< {triple} >> {' ; '.join(facts)} .\n"


def _literal(text: str) -> str:
    """A string of Turtle, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
