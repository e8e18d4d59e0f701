"""Rules for a relation: the patterns of the paths that carry its answers, and what they are worth by themselves."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.choices import PATHS
from kgcf.data.vocabulary import Named, Vocabulary
from kgcf.errors import DataError
from kgcf.explanation.explainer import Explainer, find_paths
from kgcf.explanation.how import How
from kgcf.explanation.named_paths import NamedPath, name_path
from kgcf.explanation.paths import Path
from kgcf.explanation.patterns import Pattern, count_pairs, pattern_of
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.progress import Advance, silent

EXAMPLES = 3  # shown for each rule
HOW = How(top=PATHS, check=False)
_BETWEEN = "ABCDEFGHIJKLMNOPQRSTUVW"  # variables of a rule with more than two steps; it begins at X and ends at Z


@dataclass(frozen=True)
class RuleStep:
    """One relation of a pattern; `inverse`: it is travelled against its direction."""

    relation: Named
    inverse: bool


@dataclass(frozen=True)
class Rule:
    """A pattern that carries answers of a relation."""

    relation: Named
    steps: tuple[RuleStep, ...]
    answers: int  # of those explained, so many have a path of this pattern among their reasons
    explained: int  # answers of the relation that were explained
    mean_drop: float  # of the logit without that path
    pairs: int  # of the observed graph that the pattern links
    true: int  # of these pairs, linked by the relation
    confidence: float  # true / pairs
    exact: bool  # False: pairs were counted over a random part of the heads
    examples: tuple[NamedPath, ...]  # paths of the pattern that carry answers, the greatest drop first

    @property
    def text(self) -> str:
        """The rule in words with variables: X —parent→ Y and Y —brother→ Z ⇒ X —uncle→ Z."""
        count = len(self.steps) - 1
        between = (
            ["Y"] if count == 1 else [_BETWEEN[i % len(_BETWEEN)] + str(i // len(_BETWEEN) or "") for i in range(count)]
        )
        names = ["X", *between, "Z"]
        body = []
        for i, step in enumerate(self.steps):
            head, tail = (names[i + 1], names[i]) if step.inverse else (names[i], names[i + 1])
            body.append(f"{head} —{step.relation.shown}→ {tail}")
        return f"{' and '.join(body)} ⇒ X —{self.relation.shown}→ Z"

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        return {"rule": self.text, **asdict(self)}


@dataclass(frozen=True, eq=False)
class _Carried:
    """An answer that a path of some pattern carries."""

    path: Path
    drop: float


def draw_answers(
    answers: NDArray[np.int32], relations: Vocabulary, relation: str | None, count: int, seed: int
) -> NDArray[np.int32]:
    """Some of the answers [Q, 3] at random, of one relation or of all."""
    if relation is not None:
        answers = answers[answers[:, 1] == relations.id(relation, "relation")]
    if not len(answers):
        of, other = ("", "Train") if relation is None else (f" of '{relation}'", "Choose another relation, or train")
        raise DataError(
            f"Validation has no answer{of}, so there is nothing to find rules in. {other} on data with a larger "
            f"validation split."
        )
    return answers[np.random.default_rng(seed).permutation(len(answers))[:count]]


def find_rules(
    explainer: Explainer,
    answers: NDArray[np.integer],
    top: int = 20,
    seed: int = 0,
    how: How = HOW,
    advance: Advance = silent,
) -> tuple[Rule, ...]:
    """Explain answers [Q, 3], gather the patterns of their reasons, and apply each pattern to the observed graph.

    The `top` patterns that carry most answers, of all relations together; at equal numbers the greater drop first.
    """
    found: dict[tuple[int, Pattern], list[_Carried]] = defaultdict(list)
    for h, r, t in answers.tolist():
        advance(1)
        for pattern, carried in _reasons(explainer, (h, r, t), how).items():
            found[r, pattern].append(carried)
    ranked = sorted(found.items(), key=lambda item: (-len(item[1]), -_mean_drop(item[1]), item[0]))[:top]
    counts = np.bincount(answers[:, 1], minlength=len(explainer.observed.relations)) if len(answers) else ()
    generator = np.random.default_rng(seed)
    return tuple(
        _rule(explainer.observed, r, pattern, carried, int(counts[r]), generator) for (r, pattern), carried in ranked
    )


def _reasons(explainer: Explainer, answer: tuple[int, int, int], how: How) -> dict[Pattern, _Carried]:
    """The patterns of an answer's reasons, each with the path of the greatest drop."""
    chosen = find_paths(explainer.case(*answer, how), how)
    best: dict[Pattern, _Carried] = {}
    for path, effect in zip(chosen.paths, chosen.effects, strict=True):
        pattern = pattern_of(path)
        if not effect.against and (pattern not in best or effect.drop > best[pattern].drop):
            best[pattern] = _Carried(path, effect.drop)
    return best


def _rule(
    observed: ObservedGraph,
    relation: int,
    pattern: Pattern,
    carried: list[_Carried],
    explained: int,
    generator: np.random.Generator,
) -> Rule:
    count = observed.graph.relation_count
    applied = count_pairs(observed.graph, pattern, relation, generator)
    best = sorted(carried, key=lambda item: -item.drop)[:EXAMPLES]
    return Rule(
        relation=observed.relations.named(relation),
        steps=tuple(RuleStep(observed.relations.named(r % count), r >= count) for r in pattern),
        answers=len(carried),
        explained=explained,
        mean_drop=_mean_drop(carried),
        pairs=applied.pairs,
        true=applied.true,
        confidence=applied.confidence,
        exact=applied.exact,
        examples=tuple(name_path(observed, item.path, {}) for item in best),
    )


def _mean_drop(carried: Iterable[_Carried]) -> float:
    return float(np.mean([item.drop for item in carried]))
