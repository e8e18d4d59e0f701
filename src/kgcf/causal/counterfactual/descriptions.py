"""Counterfactuals as people say them: names in, names out."""

from collections.abc import Callable, Iterator

import numpy as np

from kgcf.causal.counterfactual.table import CounterfactualTable
from kgcf.data.vocabulary import Vocabulary


def _of_relation(name: Callable[[int], str], count: int, relation: int) -> str:
    """The name or label of a relation, or of the inverse of one."""
    text = name(relation % count)
    return f"inverse of {text}" if relation >= count else text


def describe(table: CounterfactualTable, row: int, entities: Vocabulary, relations: Vocabulary) -> str:
    """For example: For (Portugal, borders, Spain), of the same neighbourhood role (T = 1) and known, the nearest …"""
    h, r, t = (int(value) for value in table.triples[row])
    relation = _of_relation(relations.shown, len(relations), r)
    own = bool(table.factual_treatments[row])
    treated = f"of {'the same neighbourhood role' if own else 'different neighbourhood roles'} (T = {int(own)})"
    known = "known" if table.factual_outcomes[row] else "not known"
    start = f"For ({entities.shown(h)}, {relation}, {entities.shown(t)}), {treated} and {known},"
    if not table.matched[row]:
        return f"{start} there is no pair with the other treatment."
    a, b = (entities.shown(int(value)) for value in table.substitutes[row])
    outcome = "is known too" if table.factual_outcomes[row] else "is known"
    if not table.counterfactual_outcomes[row]:
        outcome = "is not known" if table.factual_outcomes[row] else "is not known either"
    return (
        f"{start} the nearest pair with the other treatment is ({a}, {b}), at distance {table.distances[row]:.4g}: "
        f"({a}, {relation}, {b}) {outcome}."
    )


def row_json(table: CounterfactualTable, row: int, entities: Vocabulary, relations: Vocabulary) -> dict[str, object]:
    """One row as plain values, labels and names; the substitute and its distance are null where there is none."""
    h, r, t = (int(value) for value in table.triples[row])
    a, b = (int(value) for value in table.substitutes[row])
    matched = bool(table.matched[row])
    return {
        "head": entities.label(h),
        "relation": _of_relation(relations.label, len(relations), r),
        "tail": entities.label(t),
        "head_name": entities.display(h),
        "relation_name": _of_relation(relations.display, len(relations), r),
        "tail_name": entities.display(t),
        "matched": matched,
        "substitute_head": entities.label(a) if matched else None,
        "substitute_tail": entities.label(b) if matched else None,
        "substitute_head_name": entities.display(a) if matched else None,
        "substitute_tail_name": entities.display(b) if matched else None,
        "distance": float(table.distances[row]) if matched else None,
        "factual_treatment": bool(table.factual_treatments[row]),
        "counterfactual_treatment": bool(table.counterfactual_treatments[row]),
        "factual_outcome": bool(table.factual_outcomes[row]),
        "counterfactual_outcome": bool(table.counterfactual_outcomes[row]),
        "sentence": describe(table, row, entities, relations),
    }


def example_rows(table: CounterfactualTable, count: int, generator: np.random.Generator) -> Iterator[int]:
    """Matched rows at random, of different relations as long as there are more."""
    order = generator.permutation(np.flatnonzero(table.matched))
    _, first = np.unique(table.triples[order, 1], return_index=True)
    distinct = order[np.sort(first)]
    rest = order[~np.isin(order, distinct)]
    yield from np.concatenate([distinct, rest])[:count].tolist()
