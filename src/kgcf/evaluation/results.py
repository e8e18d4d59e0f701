"""`evaluate`: ranks → one results object, with every breakdown and the protocol that makes it comparable."""

import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.data.dataset import Dataset, Split
from kgcf.data.statistics import relation_categories
from kgcf.errors import DataError
from kgcf.evaluation.bootstrap import Interval, bootstrap
from kgcf.evaluation.metrics import SHORT_NAMES, TIE_POLICIES, Hits, summarise
from kgcf.evaluation.ranks import HEAD, TAIL, Ranks, rank_answers, rank_parts
from kgcf.machine import memory_bound as bound
from kgcf.machine.provenance import provenance
from kgcf.plain_tables import html_table, text_table
from kgcf.progress import Advance, silent
from kgcf.scoring import PartedScorer, Scorer
from kgcf.screen import inert

Metrics = dict[str, float]
_FILTERS = {
    "train": "train truths, except the answer",
    "valid": "truths of train and valid, except the answer; test truths stay candidates, for validation chooses",
    "test": "known truths of all splits of this graph, except the answer",
}
CATEGORIES = ("1-1", "1-N", "N-1", "N-N")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What a scorer achieves on a split; the headline breaks ties realistically."""

    ranks: Ranks = field(repr=False)
    metrics: dict[str, dict[str, Metrics]]  # side (both, tail, head) → tie policy → metric
    per_relation: dict[str, dict[str, Metrics]]  # relation → side → metric, realistic
    per_category: dict[str, dict[str, Metrics]]  # 1-1 … N-N → side → metric, realistic
    intervals: dict[str, Interval]  # of the headline metrics, by bootstrap over queries
    protocol: dict[str, Any]
    parts: dict[str, "Evaluation"] = field(default_factory=dict, repr=False)  # each part of the scorer alone, by name

    def __getitem__(self, name: str) -> float:
        """A headline metric by its short or long name: `evaluation["mrr"]`."""
        return self.metrics["both"]["realistic"][SHORT_NAMES.get(name, name)]

    @property
    def mrr(self) -> float:
        """The mean reciprocal rank over both sides."""
        return self["mrr"]

    @cached_property
    def hits(self) -> Hits:
        """The share of answers among the first k, by k: `evaluation.hits[10]`."""
        return Hits(self.ranks)

    def __repr__(self) -> str:
        return f"{self._title}\n{text_table(*self._table())}"

    def _repr_html_(self) -> str:
        return html_table(*self._table(), caption=self._title)

    @property
    def _title(self) -> str:
        about = self.protocol
        size = f"{about['triples']:,} triples, both sides, filtered, realistic ties"
        return inert(f"{about['model']} on {about['dataset']}, {about['split']}: {size}")

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]], tuple[str, ...]]:
        """The headline as titles, one row (and one for each part) and where the columns stand."""
        if self.parts:
            rows = {**self.parts, self.together: self}
            titles = next(iter(rows.values()))._headline()
            return (
                ("", *titles),
                [(name, *found._headline().values()) for name, found in rows.items()],
                ("<", *(">" for _ in titles)),
            )
        shown = self._headline()
        return tuple(shown), [tuple(shown.values())], (">",) * len(shown)

    @property
    def together(self) -> str:
        """What the whole is called beside its parts."""
        return "both" if len(self.parts) == 2 else "all"

    def _headline(self) -> dict[str, str]:
        """The headline by title."""
        spread = self.intervals["mrr"]
        shares = {f"H@{k}": f"{self.hits[k]:.3f}" for k in (1, 3, 10)}
        return {
            "MRR": f"{self.mrr:.3f}",
            "95 % interval": f"{spread.low:.3f} – {spread.high:.3f}",
            "MR": f"{self['mr']:,.1f}",
            **shares,
        }

    def to_json(self) -> dict[str, Any]:
        """PyKEEN's nesting, our breakdowns, the protocol, and short aliases at the top."""
        aliases = {short: self[short] for short in SHORT_NAMES}
        parts = {name: {short: part[short] for short in SHORT_NAMES} for name, part in self.parts.items()}
        return {
            **aliases,
            **({"parts": parts} if parts else {}),
            "metrics": self.metrics,
            "intervals": {name: vars(interval) for name, interval in self.intervals.items()},
            "per_relation": self.per_relation,
            "per_category": self.per_category,
            "protocol": self.protocol,
        }


def evaluate(
    scorer: Scorer,
    data: Dataset,
    split: str = "test",
    *,
    model: str,
    limit: int | None = None,
    seed: int = 0,
    memory: float = bound.DEFAULT,
    advance: Advance = silent,
) -> Evaluation:
    """Rank both sides of the split's triples, or of `limit` of them drawn at random for a quick look.

    Where the scorer is made of parts, each of them is ranked alone too, in the same pass.
    """
    task: Split = getattr(data, split)
    if not len(task):
        raise DataError(f"{data.name} has no {split} triples, so there is nothing to evaluate.")
    generator = np.random.default_rng(seed)
    triples = _drawn(task.queries, limit, generator)
    started = time.perf_counter()
    parts = scorer.parts if isinstance(scorer, PartedScorer) else ()
    if isinstance(scorer, PartedScorer):
        *ranked, whole = rank_parts(scorer, task, triples, memory, advance)
    else:
        ranked, whole = [], rank_answers(scorer, task, triples, memory, advance)
    seconds = time.perf_counter() - started
    protocol = partial(_protocol, data, task, len(triples), limit, seed)
    result = _evaluation(whole, data, task, generator, protocol(model, seconds))
    for name, ranks in zip(parts, ranked, strict=True):
        result.parts[name] = _evaluation(ranks, data, task, generator, protocol(f"{model}, {name}", seconds))
    return result


def _evaluation(
    ranks: Ranks, data: Dataset, task: Split, generator: np.random.Generator, protocol: dict[str, Any]
) -> Evaluation:
    """All numbers that are made of ranks."""
    return Evaluation(
        ranks=ranks,
        metrics={side: {p: summarise(ranks, p, rows) for p in TIE_POLICIES} for side, rows in _sides(ranks).items()},
        per_relation=_per_relation(ranks, data),
        per_category=_per_category(ranks, task),
        intervals={
            "mrr": bootstrap(1 / ranks.realistic, generator),
            "hits@1": bootstrap((ranks.realistic <= 1).astype(float), generator),
            "hits@10": bootstrap((ranks.realistic <= 10).astype(float), generator),
        },
        protocol=protocol,
    )


def _drawn(queries: NDArray[np.int32], limit: int | None, generator: np.random.Generator) -> NDArray[np.int32]:
    if limit is None or limit >= len(queries):
        return queries
    return queries[np.sort(generator.choice(len(queries), size=limit, replace=False))]


def _sides(ranks: Ranks, chosen: NDArray[np.bool_] | None = None) -> dict[str, NDArray[np.bool_]]:
    keep = np.ones(len(ranks.side), dtype=bool) if chosen is None else chosen
    return {"both": keep, "tail": keep & (ranks.side == TAIL), "head": keep & (ranks.side == HEAD)}


def _per_relation(ranks: Ranks, data: Dataset) -> dict[str, dict[str, Metrics]]:
    return {
        data.relations.label(r): {
            side: summarise(ranks, "realistic", rows) for side, rows in _sides(ranks, ranks.relations == r).items()
        }
        for r in np.unique(ranks.relations).tolist()
    }


def _per_category(ranks: Ranks, split: Split) -> dict[str, dict[str, Metrics]]:
    category = np.array(relation_categories(split.known))[ranks.relations]
    return {
        name: {side: summarise(ranks, "realistic", rows) for side, rows in _sides(ranks, category == name).items()}
        for name in CATEGORIES
        if (category == name).any()
    }


def _protocol(
    data: Dataset, split: Split, asked: int, limit: int | None, seed: int, model: str, seconds: float
) -> dict[str, Any]:
    """Everything that must be equal for two numbers to be comparable."""
    drawn = limit is not None and asked < len(split)
    return {
        "dataset": data.name,
        "split": split.name,
        "model": model,
        "setting": "transductive" if split.observed is data.graph else "inductive",
        "triples": asked,
        "queries": 2 * asked,
        "drawn": f"{asked} of {len(split)} triples at random, seed {seed}" if drawn else "all",
        "seed": seed,
        "sides": "both",
        "ties": "realistic (optimistic and pessimistic beside it)",
        "candidates": f"all {split.observed.entity_count} entities of the observed graph's vocabulary",
        "filter": _FILTERS[split.name],
        "observed": f"{len(split.observed)} train triples of the graph asked about",
        "unseen_entities": "kept",
        "categories": "1.5 tails per head and heads per tail over the known truths",
        "hits@10_50": "estimated from full ranks, 49 negatives with replacement; not comparable with hits@10",
        "intervals": "95 % bootstrap over queries, 1000 resamples",
        "seconds": round(seconds, 3),
        **provenance(),
    }
