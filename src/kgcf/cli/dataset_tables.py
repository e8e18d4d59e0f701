"""Facts about a dataset as tables for people."""

from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.text import Text

from kgcf.cli.tables import Column, DataTable, report_table
from kgcf.data.statistics import CATEGORIES, DatasetFacts, GraphFacts, QueryFacts


def facts_tables(facts: DatasetFacts, relations: int) -> Group:
    """Everything that `kgcf datasets info` prints; `relations` is how many relations to list."""
    parts: list[RenderableType] = [_counts(facts), _graphs(facts.graphs), _queries(facts.queries), _hops(facts)]
    parts.append(_categories(facts))
    if relations:
        parts.append(_relations(facts, relations))
    if facts.mirrors:
        parts.append(_mirrors(facts))
    spaced = [item for part in parts for item in (part, Text())]
    return Group(*spaced[:-1])


def _counts(facts: DatasetFacts) -> DataTable:
    table = report_table(facts.name, ("", "entities", "relations", "train", "valid", "test"), first_to_go=("valid",))
    counts = (facts.entities, facts.relations, facts.train, facts.valid, facts.test)
    table.add_row("inductive" if facts.inductive else "transductive", *(f"{count:,}" for count in counts))
    return table


def _graphs(graphs: tuple[GraphFacts, ...]) -> DataTable:
    table = report_table("observed graph", ("", *(graph.title for graph in graphs)))
    rows: dict[str, Callable[[GraphFacts], str]] = {
        "triples": lambda g: f"{g.triples:,}",
        "relations in use": lambda g: f"{g.relations:,}",
        "entities with a triple": lambda g: f"{g.connected_entities:,} of {g.entities:,}",
        "triples per entity, mean": lambda g: f"{g.degree_mean:.2f}",
        "median / 99th percentile / most": lambda g: f"{g.degree_median:g} / {g.degree_99:.0f} / {g.degree_max:,}",
        "components (largest)": lambda g: f"{g.components:,} ({g.largest_component:,})",
        "self-loops": lambda g: f"{g.self_loops:,}",
        "triples whose reverse is there too": lambda g: f"{g.symmetric_share:.1%}",
    }
    for title, shown in rows.items():
        table.add_row(title, *(shown(graph) for graph in graphs))
    return table


def _queries(queries: tuple[QueryFacts, ...]) -> DataTable:
    table = report_table("triples to predict", ("", *(query.split for query in queries)))
    rows: dict[str, Callable[[QueryFacts], int]] = {
        "triples": lambda q: q.triples,
        "with an entity unseen in the graph": lambda q: q.unseen_entity,
        "with a relation unseen in the graph": lambda q: q.unseen_relation,
        "reverse (t, r, h) in the graph": lambda q: q.reverse_observed,
        "mirrored by another relation": lambda q: q.mirror_observed,
        "inverse leakage, both": lambda q: q.leaked,
        "ends linked by any relation": lambda q: q.linked,
        "also in the graph": lambda q: q.in_observed,
        "repeated": lambda q: q.repeated,
        "self-loops": lambda q: q.self_loops,
    }
    for title, count in rows.items():
        table.add_row(title, *(_with_share(count(query), query.triples) for query in queries))
    return table


def _hops(facts: DatasetFacts) -> DataTable:
    columns = [f"entities, {graph.title}" for graph in facts.graphs] + [f"{q.split} positives" for q in facts.queries]
    table = report_table("within k hops (edges both ways)", ("k", *columns), first_to_go=columns[1:-1])
    for k in range(len(facts.graphs[0].within_hops)):
        sizes = [
            f"{g.within_hops[k]:,.1f} ({g.within_hops[k] / max(g.connected_entities, 1):.1%})" for g in facts.graphs
        ]
        table.add_row(str(k + 1), *sizes, *(f"{query.within_hops[k]:.1%}" for query in facts.queries))
    starts = "/".join(f"{graph.starts:,}" for graph in facts.graphs)
    pairs = "/".join(f"{query.pairs:,}" for query in facts.queries)
    table.caption = f"means over {starts} sampled entities, the start included; shares over {pairs} triples"
    return table


def _categories(facts: DatasetFacts) -> DataTable:
    table = report_table("relation categories", ("", "relations", "train", "valid", "test"))
    for category in CATEGORIES:
        members = [relation for relation in facts.per_relation if relation.category == category]
        sums = (sum(getattr(relation, part) for relation in members) for part in ("train", "valid", "test"))
        table.add_row(category, f"{len(members):,}", *(f"{total:,}" for total in sums))
    return table


def _relations(facts: DatasetFacts, count: int) -> DataTable:
    ordered = sorted(facts.per_relation, key=lambda relation: -relation.train)
    shown = ordered[:count]
    title = "relations" if len(shown) == len(ordered) else f"relations, {len(shown)} of {len(ordered)}"
    titles = ("", "kind", "train", "of train", "test", "of test", "tails/head", "heads/tail", "symmetric")
    least = ("symmetric", "of test", "heads/tail", "tails/head", "test", "of train", "kind")
    table = report_table(title, titles, first_to_go=least)
    for relation in shown:
        table.add_row(
            relation.name,
            relation.category,
            f"{relation.train:,}",
            f"{relation.train / max(facts.train, 1):.1%}",
            f"{relation.test:,}",
            f"{relation.test / max(facts.test, 1):.1%}",
            f"{relation.tails_per_head:.2f}",
            f"{relation.heads_per_tail:.2f}",
            f"{relation.symmetric_share:.0%}",
        )
    return table


def _mirrors(facts: DatasetFacts) -> DataTable:
    columns = [Column("", folds=True), Column("and", folds=True), Column("kind", spare=1), Column("share", right=True)]
    table = DataTable(columns, title="relations that mirror each other in train")
    for mirror in sorted(facts.mirrors, key=lambda m: -m.share)[:10]:
        table.add_row(mirror.first, mirror.second, mirror.kind, f"{mirror.share:.0%}")
    if len(facts.mirrors) > 10:
        table.caption = f"the first 10 of {len(facts.mirrors):,}"
    return table


def _with_share(count: int, total: int) -> str:
    return f"{count:,}" if not count or count == total else f"{count:,} ({count / total:.1%})"
