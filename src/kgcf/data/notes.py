"""What reading a dataset found, as sentences: repeats, overlaps, unseen entities, mirrored relations."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Dataset
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.mirrors import Mirror
from kgcf.data.vocabulary import Vocabulary

_LISTED = 4


def report_encoded(
    data: Dataset, train: NDArray[np.int32], queries: tuple[NDArray[np.int32], NDArray[np.int32]]
) -> list[str]:
    """Repeated triples, triples in two splits, and queries about entities that train does not have."""
    found: list[str] = []
    graph = data.graph
    if len(graph) < len(train):
        found.append(f"{count_of(len(train) - len(graph), 'repeated triple')} of train left out")
    for name, part in zip(("valid", "test"), queries, strict=True):
        if not len(part):
            continue
        repeats = len(part) - len(np.unique(part, axis=0))
        if repeats:
            found.append(f"{name} repeats {count_of(repeats, 'triple')}; they are counted as they stand")
        seen = int(graph.contains(part).sum())
        if seen:
            found.append(f"{count_of(seen, 'triple')} of {name} also in train: the answer can be looked up there")
        unseen = int(unseen_entities(graph, part).sum())
        if unseen:
            found.append(f"{unseen:,} of {len(part):,} {name} triples ask about an entity without a train triple")
    return found


def report_relations(data: Dataset) -> list[str]:
    """Relations that train lacks although valid or test asks about them, and those that valid or test lacks."""
    count = len(data.relations)
    train, valid, test = (np.bincount(split.queries[:, 1], minlength=count) for split in data.splits)
    asked = {
        "valid": (valid > 0) & (test == 0),
        "test": (test > 0) & (valid == 0),
        "valid and test": (valid * test > 0),
    }
    found = []
    for where, members in asked.items():
        unlearnt = np.flatnonzero(members & (train == 0))
        if len(unlearnt):
            listed = _listed(unlearnt, data.relations)
            found.append(f"only in {where}, with no train triple to learn from: {listed}")
    for where, counts in (("valid", valid), ("test", test)):
        lacking = np.flatnonzero((counts == 0) & (train > 0))
        if len(lacking) and counts.any():
            found.append(f"no triple in {where}, so that nothing is measured there: {_listed(lacking, data.relations)}")
    return found


def unseen_entities(graph: KnowledgeGraph, triples: NDArray[np.int32]) -> NDArray[np.bool_]:
    """[Q] whether head or tail of a triple has no edge in the graph."""
    lonely = graph.degrees == 0
    unseen: NDArray[np.bool_] = lonely[triples[:, 0]] | lonely[triples[:, 2]]
    return unseen


def describe_mirrors(mirrors: Iterable[Mirror], relations: Vocabulary, leak_allowed: bool) -> list[str]:
    """One sentence for each kind of mirrored relation that a split has to mind."""
    found: list[str] = []
    for kind in ("symmetric", "inverse", "duplicate"):
        same = sorted((m for m in mirrors if m.kind == kind), key=lambda m: -m.count)
        if not same:
            continue
        listed = ", ".join(_describe(m, relations) for m in same[:_LISTED])
        more = f" and {len(same) - _LISTED} more" if len(same) > _LISTED else ""
        kept = "may fall into different splits (inverse leak allowed)" if leak_allowed else "kept in one split"
        found.append(f"{kind} facts {kept}: {listed}{more}")
    return found


def count_of(count: int, what: str) -> str:
    """'1 triple', '2,345 triples'."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _describe(mirror: Mirror, relations: Vocabulary) -> str:
    first, second = relations.shown(mirror.first), relations.shown(mirror.second)
    names = f"'{first}'" if mirror.first == mirror.second else f"'{first}' and '{second}'"
    return f"{names} ({mirror.share:.0%})"


def _listed(ids: NDArray[np.int64], relations: Vocabulary) -> str:
    """'relation 'a'', 'relations 'a', 'b' and 12 more'."""
    shown = ", ".join(f"'{relations.display(int(i))}'" for i in ids[:_LISTED])
    more = f" and {len(ids) - _LISTED:,} more" if len(ids) > _LISTED else ""
    return f"relation{'s' if len(ids) > 1 else ''} {shown}{more}"
