"""Facts about a dataset that decide what a number on it means: size, reach, categories, leaks."""

from collections import Counter
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Dataset, Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hops import count_within, distances
from kgcf.data.mirrors import find_mirrors
from kgcf.data.notes import unseen_entities
from kgcf.data.vocabulary import Vocabulary

CATEGORIES = ("1-1", "1-N", "N-1", "N-N")
MANY = 1.5  # mean tails per head (heads per tail) from which a relation has many
HOPS = 6
_STARTS = 200
_PAIRS = 5000


@dataclass(frozen=True)
class GraphFacts:
    """An observed graph: what a model may see."""

    title: str  # train graph, or test graph of an inductive pair
    entities: int  # of the vocabulary
    connected_entities: int  # with at least one triple
    relations: int  # with at least one triple
    triples: int
    self_loops: int
    symmetric_share: float  # of the triples without self-loops: the reverse is there too
    components: int
    largest_component: int
    degree_mean: float  # over connected entities, both directions
    degree_median: float
    degree_99: float
    degree_max: int
    within_hops: tuple[float, ...]  # mean entities within 1, 2, … hops of sampled entities, the start included
    starts: int  # entities sampled for it


@dataclass(frozen=True)
class QueryFacts:
    """The triples of valid or test against the graph that may be seen when they are predicted."""

    split: str
    triples: int
    repeated: int
    in_observed: int  # stand there word for word
    unseen_entity: int  # head or tail without a triple
    unseen_relation: int
    self_loops: int
    reverse_observed: int  # (t, r, h) is observed
    mirror_observed: int  # a triple of an inverse or duplicate relation between the same ends is observed
    leaked: int  # reverse or mirror
    linked: int  # head and tail are linked by any relation, in any direction
    within_hops: tuple[float, ...]  # share whose ends lie within 1, 2, … hops
    pairs: int  # triples sampled for it


@dataclass(frozen=True)
class RelationFacts:
    """One relation of the train graph."""

    label: str
    name: str  # the label, where several relations have the same display name
    category: str
    train: int
    valid: int
    test: int
    tails_per_head: float
    heads_per_tail: float
    symmetric_share: float


@dataclass(frozen=True)
class MirrorFacts:
    """Two relations of the train graph that say the same, in the same or in the other direction."""

    kind: str
    first: str
    second: str
    share: float


@dataclass(frozen=True)
class DatasetFacts:
    """Everything `kgcf datasets info` says."""

    name: str
    inductive: bool
    entities: int  # of the train graph's vocabulary
    relations: int
    train: int
    valid: int
    test: int
    graphs: tuple[GraphFacts, ...]  # train graph; for an inductive pair also the test graph
    queries: tuple[QueryFacts, ...]  # valid, test
    per_relation: tuple[RelationFacts, ...]
    mirrors: tuple[MirrorFacts, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """The same as plain dictionaries and lists."""
        return asdict(self)


def describe(data: Dataset, rng: np.random.Generator) -> DatasetFacts:
    """Measure a dataset; the generator draws the entities and triples that hops are counted from."""
    graphs = [describe_graph(data.graph, "train graph", rng)]
    if data.inductive:
        graphs.append(describe_graph(data.test.observed, "test graph", rng))
    mirrors = [m for m in find_mirrors(data.graph) if m.first != m.second]
    pairs = [(m.first, m.second, m.turned) for m in mirrors]
    shown = distinct_names(data.relations)
    return DatasetFacts(
        name=data.name,
        inductive=data.inductive,
        entities=len(data.entities),
        relations=len(data.relations),
        train=len(data.graph),
        valid=len(data.valid),
        test=len(data.test),
        graphs=tuple(graphs),
        queries=tuple(describe_queries(split, pairs, rng) for split in (data.valid, data.test)),
        per_relation=_describe_relations(data),
        mirrors=tuple(MirrorFacts(m.kind, shown[m.first], shown[m.second], m.share) for m in mirrors),
        notes=data.notes,
    )


def distinct_names(vocabulary: Vocabulary) -> list[str]:
    """The display name of every id, or its label where several ids share the name."""
    names = vocabulary.displays()
    counts = Counter(names)
    return [name if counts[name] == 1 else vocabulary.label(i) for i, name in enumerate(names)]


def relation_categories(graph: KnowledgeGraph) -> list[str]:
    """[R] 1-1, 1-N, N-1 or N-N by mean tails per head and heads per tail; without a triple 1-1."""
    tails, heads = relation_fans(graph)
    return [f"{'N' if h >= MANY else '1'}-{'N' if t >= MANY else '1'}" for t, h in zip(tails, heads, strict=True)]


def relation_fans(graph: KnowledgeGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[R], [R]: mean tails per head and mean heads per tail of every relation, 0 without a triple."""
    counts = np.bincount(graph.triples[:, 1], minlength=graph.relation_count)
    fans = []
    for end in (0, 2):
        keys = np.unique(graph.triples[:, 1].astype(np.int64) * graph.entity_count + graph.triples[:, end])
        distinct = np.bincount(keys // max(graph.entity_count, 1), minlength=graph.relation_count)
        fans.append(counts / np.maximum(distinct, 1))
    return fans[0], fans[1]


def symmetric_triples(graph: KnowledgeGraph) -> NDArray[np.bool_]:
    """[E] whether (t, r, h) is in the graph too; never for self-loops."""
    proper: NDArray[np.bool_] = graph.triples[:, 0] != graph.triples[:, 2]
    return proper & graph.contains(graph.triples[:, ::-1])


def describe_graph(graph: KnowledgeGraph, title: str, rng: np.random.Generator) -> GraphFacts:
    """Size, degrees, components and reach of one graph."""
    connected = np.flatnonzero(graph.degrees)
    degrees = graph.degrees[connected] if len(connected) else np.zeros(1, dtype=np.int64)
    proper = graph.triples[:, 0] != graph.triples[:, 2]
    starts = rng.choice(connected, size=min(_STARTS, len(connected)), replace=False)
    within = count_within(graph, starts, HOPS).mean(axis=0) if len(starts) else np.zeros(HOPS)
    sizes = _component_sizes(graph, connected)
    return GraphFacts(
        title=title,
        entities=graph.entity_count,
        connected_entities=len(connected),
        relations=len(np.unique(graph.triples[:, 1])),
        triples=len(graph),
        self_loops=int((~proper).sum()),
        symmetric_share=float(symmetric_triples(graph).sum() / max(int(proper.sum()), 1)),
        components=len(sizes),
        largest_component=int(sizes.max(initial=0)),
        degree_mean=float(degrees.mean()),
        degree_median=float(np.median(degrees)),
        degree_99=float(np.percentile(degrees, 99)),
        degree_max=int(degrees.max()),
        within_hops=tuple(float(value) for value in within),
        starts=len(starts),
    )


def describe_queries(split: Split, mirrors: list[tuple[int, int, bool]], rng: np.random.Generator) -> QueryFacts:
    """What the observed graph gives away about the triples of a split, and how far apart their ends are."""
    graph, triples = split.observed, split.queries
    reverse = graph.contains(triples[:, ::-1])
    mirrored = np.zeros(len(triples), dtype=bool)
    for first, second, turned in mirrors:
        for here, there in ((first, second), (second, first)):
            rows = np.flatnonzero(triples[:, 1] == here)
            ends = triples[rows][:, ::-1] if turned else triples[rows]
            facts = np.stack([ends[:, 0], np.full(len(rows), there), ends[:, 2]], axis=1)
            mirrored[rows] |= graph.contains(facts)
    relation_seen = np.bincount(graph.triples[:, 1], minlength=graph.relation_count) > 0
    chosen = rng.choice(len(triples), size=min(_PAIRS, len(triples)), replace=False)
    hops = distances(graph, triples[chosen][:, [0, 2]], HOPS)
    return QueryFacts(
        split=split.name,
        triples=len(triples),
        repeated=len(triples) - len(np.unique(triples, axis=0)),
        in_observed=int(graph.contains(triples).sum()),
        unseen_entity=int(unseen_entities(graph, triples).sum()),
        unseen_relation=int((~relation_seen[triples[:, 1]]).sum()),
        self_loops=int((triples[:, 0] == triples[:, 2]).sum()),
        reverse_observed=int(reverse.sum()),
        mirror_observed=int(mirrored.sum()),
        leaked=int((reverse | mirrored).sum()),
        linked=int(_linked(graph, triples).sum()),
        within_hops=tuple(float((hops <= k).mean()) if len(hops) else 0.0 for k in range(1, HOPS + 1)),
        pairs=len(chosen),
    )


def _linked(graph: KnowledgeGraph, triples: NDArray[np.int32]) -> NDArray[np.bool_]:
    """[Q] whether any triple joins head and tail, in any direction."""

    def keys(array: NDArray[np.int32]) -> NDArray[np.int64]:
        ends = np.sort(array[:, [0, 2]].astype(np.int64), axis=1)
        joined: NDArray[np.int64] = ends[:, 0] * graph.entity_count + ends[:, 1]
        return joined

    return np.isin(keys(triples), keys(graph.triples))


def _describe_relations(data: Dataset) -> tuple[RelationFacts, ...]:
    graph, count = data.graph, len(data.relations)
    tails, heads = relation_fans(graph)
    categories = relation_categories(graph)
    numbers = [
        np.bincount(part[:, 1], minlength=count) for part in (graph.triples, data.valid.queries, data.test.queries)
    ]
    proper = graph.triples[graph.triples[:, 0] != graph.triples[:, 2], 1]
    symmetric = np.bincount(graph.triples[symmetric_triples(graph), 1], minlength=count)
    shown = distinct_names(data.relations)
    shares = symmetric / np.maximum(np.bincount(proper, minlength=count), 1)
    return tuple(
        RelationFacts(
            label=data.relations.label(r),
            name=shown[r],
            category=categories[r],
            train=int(numbers[0][r]),
            valid=int(numbers[1][r]),
            test=int(numbers[2][r]),
            tails_per_head=float(tails[r]),
            heads_per_tail=float(heads[r]),
            symmetric_share=float(shares[r]),
        )
        for r in range(count)
    )


def _component_sizes(graph: KnowledgeGraph, connected: NDArray[np.intp]) -> NDArray[np.int64]:
    from scipy.sparse import csr_matrix  # slow to import, and only needed to describe a graph
    from scipy.sparse.csgraph import connected_components

    shape = (graph.entity_count, graph.entity_count)
    matrix = csr_matrix((np.ones(graph.edge_count, dtype=np.int8), graph.edge_tails, graph.offsets), shape=shape)
    labels = connected_components(matrix, directed=False)[1][connected]
    return np.unique(labels, return_counts=True)[1]
