"""What the counterfactuals of a graph look like: shares, matches, distances, outcomes, effects, in one object."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.counterfactual.candidates import groups
from kgcf.causal.counterfactual.effects import EffectWithPlacebos, estimate_effects
from kgcf.causal.counterfactual.shares import TreatmentShares, treatment_shares
from kgcf.causal.counterfactual.table import CounterfactualTable
from kgcf.causal.embedding import EntitySpace
from kgcf.causal.treatment import Treatment
from kgcf.data.dataset import Dataset
from kgcf.progress import Advance, silent

QUANTILES = tuple(round(0.05 * step, 2) for step in range(21))


@dataclass(frozen=True)
class MatchSummary:
    """Matched triples, their distances and the outcomes of their substitutes."""

    triples: int
    matched: int
    treated: float | None  # mean T^F
    distances: tuple[float, ...] | None  # at QUANTILES
    outcome_untreated: float | None  # P(A^CF = 1 | T^CF = 0)
    outcome_treated: float | None  # P(A^CF = 1 | T^CF = 1)

    def distance(self, quantile: float) -> float | None:
        """The distance below which this share of the matched triples lies, for one of QUANTILES."""
        return None if self.distances is None else self.distances[QUANTILES.index(quantile)]


@dataclass(frozen=True)
class RelationDiagnostics:
    """The summary and the effects of one relation."""

    relation: int
    label: str
    name: str  # with the label behind it where others have the name too
    matches: MatchSummary
    effects: EffectWithPlacebos


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Everything `kgcf counterfactuals` reports about the train triples of a graph."""

    name: str
    method: str
    candidates: str
    leave_one_out: bool
    remove: str
    note: str
    shares: TreatmentShares
    matches: MatchSummary
    effects: EffectWithPlacebos
    relations: tuple[RelationDiagnostics, ...] = field(repr=False)  # by number of triples, most first

    @property
    def left_out(self) -> str:
        """What a treatment is taken without, in two words."""
        return "own links" if self.remove == "pair" else "own edge"

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json` and for files; missing figures are null."""
        result = dataclasses.asdict(self)
        result["quantiles"] = list(QUANTILES)
        for entry, relation in zip(result["relations"], self.relations, strict=True):
            del entry["relation"]
            entry["effects"] = _effects_json(relation.effects)
        result["effects"] = _effects_json(self.effects)
        return result


def diagnose(
    data: Dataset,
    table: CounterfactualTable,
    space: EntitySpace,
    treatment: Treatment,
    seed: int = 0,
    pairs_per_relation: int = 10_000,
    threads: int | None = None,
    advance: Advance = silent,
) -> Diagnostics:
    """Describe the table of the train triples; `advance` hears three steps for every relation with a triple."""
    effects = estimate_effects(data.graph, space, treatment, seed, pairs_per_relation, threads, advance, table.remove)
    relations = [
        RelationDiagnostics(
            relation,
            data.relations.label(relation),
            data.relations.shown(relation),
            summarise(table, rows),
            effects.per_relation[relation],
        )
        for relation, rows in groups(table.triples[:, 1], data.graph.relation_count)
    ]
    return Diagnostics(
        name=data.name,
        method=treatment.settings.method,
        candidates=table.candidates,
        leave_one_out=table.leave_one_out,
        remove=table.remove,
        note=table.note,
        shares=treatment_shares(data, treatment, seed, table.remove),
        matches=summarise(table, np.arange(len(table))),
        effects=effects.overall,
        relations=tuple(sorted(relations, key=lambda part: -part.matches.triples)),
    )


def summarise(table: CounterfactualTable, rows: NDArray[np.intp]) -> MatchSummary:
    """Summarise some rows of a table."""
    matched = rows[table.matched[rows]]
    treated = table.counterfactual_treatments[matched]
    outcomes = table.counterfactual_outcomes[matched]
    quantiles = np.quantile(table.distances[matched], QUANTILES) if len(matched) else None
    return MatchSummary(
        triples=len(rows),
        matched=len(matched),
        treated=_mean(table.factual_treatments[rows]),
        distances=None if quantiles is None else tuple(map(float, quantiles)),
        outcome_untreated=_mean(outcomes[~treated]),
        outcome_treated=_mean(outcomes[treated]),
    )


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None


def _effects_json(effects: EffectWithPlacebos) -> dict[str, Any]:
    parts = {part.name: getattr(effects, part.name) for part in dataclasses.fields(effects)}
    return {name: {**dataclasses.asdict(part), "vanishes": part.vanishes} for name, part in parts.items()}
