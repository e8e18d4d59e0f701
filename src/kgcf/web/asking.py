"""From what was asked to what is shown: search, entity, question, answer."""

import numpy as np

from kgcf.choices import Asked
from kgcf.data.vocabulary import Named
from kgcf.errors import UnknownNameError
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.how import How
from kgcf.prediction.answers import UNKNOWN, Question, predict
from kgcf.prediction.calibration.completed_links import MEANING
from kgcf.prediction.entity_links import missing_links
from kgcf.web.addresses import address
from kgcf.web.lane import Attend
from kgcf.web.models import (
    EntityFacts,
    FactGroup,
    Hit,
    Kind,
    MissingLinks,
    Part,
    QuestionAnswers,
    RunSummary,
    SearchResult,
)
from kgcf.web.name_index import NameIndex
from kgcf.web.refusals import RefusalError, Suggestion
from kgcf.web.served_run import ServedRun

_SUGGESTED = 5
_PER_GROUP = 12  # entities shown of one relation
_ALL = 1_000  # where all are wanted
_PARTS: tuple[Part, Part, Part] = ("head", "relation", "tail")


def summarise_run(served: ServedRun) -> RunSummary:
    """The run in a line."""
    observed, facts = served.observed, served.run.folder.facts()
    return RunSummary(
        key=served.key,
        name=served.run.folder.path.resolve().name,
        dataset=served.run.data.name,
        preset=str(facts["preset"]),
        entities=len(observed.entities),
        relations=len(observed.relations),
        facts=len(observed.graph),
    )


def search(served: ServedRun, text: str, kind: Kind | None, limit: int) -> SearchResult:
    """Entities and relations whose label or name has the text; relations first, for they are few."""
    found: list[Hit] = []
    for each, index in _indexes(served).items():
        if kind in (None, each):
            found += [hit(index, each, i) for i in index.search(text, limit)]
    return SearchResult(text, tuple(found[:limit] if kind else found))


def hit(index: NameIndex, kind: Kind, i: int) -> Hit:
    """One entity or relation as a search shows it."""
    named = index.named(i)
    return Hit(kind, named.label, named.name, named.ambiguous, index.count(i), index.reference(i))


def find(served: ServedRun, kind: Kind, text: str) -> int:
    """The id of a name; refused with suggestions where there is none, or several."""
    index = _indexes(served)[kind]
    found = index.resolve(text)
    if len(found) == 1:
        return found[0]
    shown = f"“{text[:80]}…”" if len(text) > 80 else f"“{text}”"
    if found:
        choices = tuple(_suggestion(served, kind, i) for i in found[:_SUGGESTED])
        raise RefusalError(409, f"{len(found)} {_plural(kind)} are called {shown}. Which one is meant?", choices)
    near = index.search(text, _SUGGESTED) or (index.search(text[:3], _SUGGESTED) if text else [])
    choices = tuple(_suggestion(served, kind, i) for i in near)
    also = " Did you mean one of these?" if choices else " Search for a part of its name."
    raise RefusalError(404, f"There is no {kind} called {shown} in this graph.{also}", choices)


def entity_facts(served: ServedRun, text: str, every: bool = False) -> EntityFacts:
    """What the graph knows of an entity, by relation and side, the largest group first; `every` fact, or some."""
    entity, graph = find(served, "entity", text), served.observed.graph
    begin, end = graph.offsets[entity : entity + 2]
    relations, tails = graph.edge_relations[begin:end], graph.edge_tails[begin:end]
    groups = []
    for relation in np.unique(relations).tolist():
        others = tails[relations == relation].tolist()
        others.sort(key=lambda i: -served.entities.count(i))
        groups.append(
            FactGroup(
                relation=served.relations.named(relation % graph.relation_count),
                side="head" if relation < graph.relation_count else "tail",
                count=len(others),
                others=tuple(served.entities.named(i) for i in others[: _ALL if every else _PER_GROUP]),
            )
        )
    groups.sort(key=lambda group: (group.side, -group.count, group.relation.name))
    named = served.entities.named(entity)
    return EntityFacts(named, served.entities.reference(entity), int(end - begin), tuple(groups))


def missing(served: ServedRun, text: str, top: int, attend: Attend) -> MissingLinks:
    """The likeliest missing triples of an entity."""
    entity = find(served, "entity", text)
    calibration = served.completion
    found = missing_links(served.observed, entity, calibration, top, attend)
    meaning = MEANING if calibration.curve is not None else calibration.reason
    return MissingLinks(served.entities.named(entity), tuple(found), meaning)


def ask(
    served: ServedRun, parts: tuple[str, str, str], top: int, known: bool, min_probability: float
) -> QuestionAnswers:
    """The best answers to a question; an empty part, or `?`, is the one that is asked for."""
    given = [None if part.strip() in ("", UNKNOWN) else part for part in parts]
    if given.count(None) != 1:
        raise RefusalError(
            422, "Give two of head, relation and tail, and leave the third one empty: it is what is asked for."
        )
    head, relation, tail = (_named(served, part, text) for part, text in zip(_PARTS, given, strict=True))
    question = Question(*(None if part is None else part.label for part in (head, relation, tail)))
    found = predict(served.observed, question, top, known)
    shown = tuple(answer for answer in found if answer.probability >= min_probability)
    return QuestionAnswers(
        head=head,
        relation=relation,
        tail=tail,
        asked=_PARTS[given.index(None)],
        top=top,
        known=known,
        min_probability=min_probability,
        answers=shown,
        hidden_by_probability=len(found) - len(shown),
    )


def explain(served: ServedRun, parts: tuple[str, str, str], top: int, asked: Asked) -> Explanation:
    """Why a triple is predicted, or is not."""
    head, relation, tail = (_named(served, kind, text) for kind, text in zip(_PARTS, parts, strict=True))
    assert head is not None
    assert relation is not None
    assert tail is not None
    return served.explainer.explain(head.label, relation.label, tail.label, How(top=top, asked=asked))


def _named(served: ServedRun, part: Part, text: str | None) -> Named | None:
    if text is None:
        return None
    kind: Kind = "relation" if part == "relation" else "entity"
    return _indexes(served)[kind].named(find(served, kind, text))


def _indexes(served: ServedRun) -> dict[Kind, NameIndex]:
    return {"relation": served.relations, "entity": served.entities}


def _suggestion(served: ServedRun, kind: Kind, i: int) -> Suggestion:
    index = _indexes(served)[kind]
    named, reference = index.named(i), index.reference(i)
    leads_to = {"entity": ("entity", {"name": reference}), "relation": ("question", {"relation": reference})}
    page, values = leads_to[kind]
    return Suggestion(kind, named.label, named.name, address(served.key, page, **values))


def _plural(kind: Kind) -> str:
    return {"entity": "entities", "relation": "relations"}[kind]


def run_called(runs: dict[str, ServedRun], key: str) -> ServedRun:
    """The run of an address."""
    if key not in runs:
        raise UnknownNameError(f"There is no run called “{key[:80]}” here. Choices: {', '.join(runs)}.")
    return runs[key]
