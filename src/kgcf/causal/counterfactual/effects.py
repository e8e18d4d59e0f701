"""The average treatment effect of every relation and overall, with two placebos (docs/counterfactuals.md).

Pairs are drawn from the candidate population itself, the observed pairs, r-linked or not: over positives alone the
sign would only be that of P(T = 1). Every drawn pair is matched with its nearest pair of the opposite treatment,
and the effect is the mean of (2T − 1)(A − A^CF). T of a pair is taken without what a training query about it hides,
always.

A placebo changes T *before* matching: with the matches kept, T and A − A^CF stay tied, and where few pairs
are treated the mean would be that of the real effect.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.counterfactual.candidates import LeftOut, ObservedPairs
from kgcf.causal.counterfactual.matching import run_searches
from kgcf.causal.counterfactual.nearest import Search, search_among
from kgcf.causal.embedding import EntitySpace
from kgcf.causal.treatment import Treatment
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove
from kgcf.progress import Advance, silent

KINDS = ("effect", "shuffled_treatment", "permuted_labels")  # the real one and the two placebos


@dataclass(frozen=True)
class Effect:
    """A mean of (2T − 1)(A − A^CF) over matched pairs; None where nothing matched, or one pair only."""

    estimate: float | None
    standard_error: float | None
    pairs: int  # matched
    drawn: int

    @property
    def vanishes(self) -> bool | None:
        """Whether zero lies within three standard errors."""
        if self.estimate is None or self.standard_error is None:
            return None
        return abs(self.estimate) <= 3 * self.standard_error


@dataclass(frozen=True)
class EffectWithPlacebos:
    """An effect beside what it becomes with T shuffled over the pairs and with labels permuted over the entities."""

    effect: Effect
    shuffled_treatment: Effect
    permuted_labels: Effect


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects per relation (those with a triple) and overall, the mean over all matched pairs of all relations."""

    overall: EffectWithPlacebos
    per_relation: dict[int, EffectWithPlacebos] = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Matched pairs: their contributions and the up to four entities each of them involves."""

    values: NDArray[np.int8]  # [n] −1, 0 or 1
    members: NDArray[np.int64]  # [n, 4] h, t, a, b
    donor_variance: float  # of Σ A^CF, if the outcomes of the substitutes were drawn from the population
    drawn: int


def estimate_effects(
    graph: KnowledgeGraph,
    space: EntitySpace,
    treatment: Treatment,
    seed: int = 0,
    pairs_per_relation: int = 10_000,
    threads: int | None = None,
    advance: Advance = silent,
    remove: Remove = "triple",
) -> Effects:
    """Draw at most `pairs_per_relation` pairs for every relation and estimate; one step per relation and kind."""
    pairs = ObservedPairs.of(graph)
    left_out = LeftOut.of(graph, treatment, remove)
    rows: dict[str, dict[int, _Rows]] = {kind: {} for kind in KINDS}
    for relation in np.unique(graph.triples[:, 1]).tolist():
        generator = np.random.default_rng([seed, relation])
        drawn = np.sort(generator.permutation(len(pairs))[:pairs_per_relation])
        labels = treatment.labels.dense(relation)
        real = pairs.treated(relation, labels, left_out)
        treatments = {
            "effect": real,
            "shuffled_treatment": generator.permutation(real),
            "permuted_labels": pairs.treated(relation, generator.permutation(labels)),
        }
        for kind, treated in treatments.items():
            rows[kind][relation] = _match_drawn(graph, space, pairs, relation, treated, drawn, threads)
            advance(1)
    per_relation = {
        relation: EffectWithPlacebos(*(_effect([rows[kind][relation]]) for kind in KINDS))
        for relation in rows["effect"]
    }
    overall = EffectWithPlacebos(*(_effect(list(rows[kind].values())) for kind in KINDS))
    return Effects(overall, per_relation)


def _match_drawn(
    graph: KnowledgeGraph,
    space: EntitySpace,
    pairs: ObservedPairs,
    relation: int,
    treated: NDArray[np.bool_],
    drawn: NDArray[np.int64],
    threads: int | None,
) -> _Rows:
    heads, tails = pairs.heads[drawn], pairs.tails[drawn]

    def tasks() -> Iterator[tuple[Search, NDArray[np.intp]]]:
        for wanted in (False, True):
            queries = np.flatnonzero(treated[drawn] != wanted)
            allowed = treated == wanted
            if len(queries) and allowed.any():
                yield search_among(space.vectors, pairs.heads[allowed], pairs.tails[allowed]), queries

    a, b, _ = run_searches(tasks(), heads, tails, threads)
    found = a >= 0
    substitutes = np.stack([a, np.full(len(a), relation), b], axis=1)[found]
    outcomes = pairs.outcomes(relation)
    difference = outcomes[drawn][found].astype(np.int8) - graph.contains(substitutes)
    values = np.where(treated[drawn][found], difference, -difference).astype(np.int8)
    uses = np.unique(substitutes, axis=0, return_counts=True)[1].astype(np.float64)
    donor_variance = float(outcomes.var() * (uses @ uses)) if len(uses) else 0.0
    return _Rows(values, np.stack([heads, tails, a, b], axis=1)[found], donor_variance, len(drawn))


def _effect(parts: list[_Rows]) -> Effect:
    drawn = sum(part.drawn for part in parts)
    values = np.concatenate([part.values for part in parts]) if parts else np.zeros(0, np.int8)
    if not len(values):
        return Effect(None, None, 0, drawn)
    error = shared_entity_error(
        values.astype(np.float64),
        np.concatenate([part.members for part in parts]),
        sum(part.donor_variance for part in parts),
    )
    return Effect(float(values.mean()), error, len(values), drawn)


def shared_entity_error(
    values: NDArray[np.float64], members: NDArray[np.int64], donor_variance: float = 0.0
) -> float | None:
    """The standard error of a mean whose terms depend on each other wherever they share an entity.

    The variance is (1/n²) Σ e_i e_j over all pairs of terms i, j with a common member, e = deviations from the mean
    (the dyadic-robust form, for up to four members). By inclusion and exclusion over the shared members this is
    Σ_S (−1)^{|S|+1} (Σ_{i ⊇ S} e_i)² over sets S of one to four entities. With few entities or few substitutes it
    can fall too low (ten substitutes, all with outcome 0, show no variance at all), so it is never taken smaller than
    the variance of independent terms plus that of the substitutes' outcomes, each counted as often as it is used
    (`donor_variance`). None for fewer than two terms.
    """
    count = len(values)
    if count < 2:
        return None
    deviations = values - values.mean()
    members = np.sort(members, axis=1)
    members[:, 1:][members[:, 1:] == members[:, :-1]] = -1  # an entity that a term involves twice counts once
    ranks = np.unique(members, return_inverse=True)[1].reshape(members.shape).astype(np.int64)
    present = members >= 0
    total = 0.0
    for size in range(1, members.shape[1] + 1):
        keys, weights = [], []
        for columns in itertools.combinations(range(members.shape[1]), size):
            whole = present[:, columns].all(axis=1)
            keys.append(ranks[whole][:, columns])
            weights.append(deviations[whole])
        sums = _sums_by_key(np.concatenate(keys), np.concatenate(weights))
        total += (-1) ** (size + 1) * float(sums @ sums)
    independent = float(deviations @ deviations) / (count - 1) / count
    return float(np.sqrt(max(total / count**2, independent + donor_variance / count**2)))


def _sums_by_key(keys: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the weights of equal rows; columns are folded one by one, so that no key overflows."""
    folded = keys[:, 0]
    for column in keys[:, 1:].T:
        folded = np.unique(folded, return_inverse=True)[1].astype(np.int64) * (int(keys.max(initial=0)) + 1) + column
    positions = np.unique(folded, return_inverse=True)[1]
    return np.bincount(positions, weights=weights).astype(np.float64)
