"""Textbook rules of the `family` benchmark: is the first path of an answer such a rule?

Written down before it was measured on test, but after a list of frequent first paths on validation had been seen: the
textbook rules would be the same without it, of the derived ones nobody can tell. In this graph (x, uncle, z) reads "x
is the uncle of z": the heads of `husband` are heads of `father`. A rule is a sequence of kinds of steps from x to z,
each of which may be written as a relation or as the inverse of another.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from kgcf.explanation.case import Case
from kgcf.explanation.paths import Path
from kgcf.explanation.patterns import pattern_of
from kgcf.progress import Advance, silent
from rivals import RIVALS, removal_paths, rival_paths

Step = tuple[str, bool]  # a relation, and whether it is travelled backwards


def _steps(forward: str, backward: str) -> tuple[Step, ...]:
    return (*((name, False) for name in forward.split()), *((name, True) for name in backward.split()))


KINDS = {
    "sibling": _steps("brother sister", "brother sister"),
    "spouse": _steps("husband wife", "husband wife"),
    "parent": _steps("father mother", "son daughter"),  # x is a parent of z
    "child": _steps("son daughter", "father mother"),
    "uncle or aunt": _steps("uncle aunt", "nephew niece"),
    "nephew or niece": _steps("nephew niece", "uncle aunt"),
}
# The definition, by blood and by marriage, and the converse relation; then what follows from these and siblings.
TEXTBOOK = {
    "uncle or aunt": ("sibling parent", "spouse sibling parent", "uncle or aunt"),
    "nephew or niece": ("child sibling", "child sibling spouse", "nephew or niece"),
}
DERIVED = {
    "uncle or aunt": ("uncle or aunt,sibling", "sibling,uncle or aunt", "spouse,uncle or aunt"),
    "nephew or niece": ("nephew or niece,sibling", "sibling,nephew or niece", "nephew or niece,spouse"),
}
RELATIONS = {"uncle": "uncle or aunt", "aunt": "uncle or aunt", "nephew": "nephew or niece", "niece": "nephew or niece"}


def _words(kind: str, rules: Mapping[str, tuple[str, ...]]) -> set[tuple[Step, ...]]:
    """All ways to write the rules of a kind of relation."""
    found = set()
    for rule in rules[kind]:
        parts = rule.split(",") if "," in rule or rule in KINDS else rule.split()
        found |= {*product(*(KINDS[part] for part in parts))}
    return found


WORDS = {name: (_words(kind, TEXTBOOK), _words(kind, DERIVED)) for name, kind in RELATIONS.items()}


def judge(case: Case, path: Path | None) -> str:
    """`textbook`, `derived` or `other`."""
    relations, count = case.observed.relations, case.observed.graph.relation_count
    textbook, derived = WORDS[relations.label(case.relation)]
    word = () if path is None else tuple((relations.label(r % count), r >= count) for r in pattern_of(path))
    return "textbook" if word in textbook else "derived" if word in derived else "other"


def measure_textbook(cases: Iterable[Case], advance: Advance = silent) -> dict[str, Any]:
    """The shares for the paths shown and for their rivals; answers that no path reaches are left out."""
    found = {name: Counter[str]() for name in ("removal", *RIVALS)}
    asked = 0
    for case in cases:
        advance(1)
        if not case.importance.reached:
            continue
        asked += 1
        for name, counted in found.items():
            paths = removal_paths(case, 1) if name == "removal" else rival_paths(case, name, 1)
            counted[judge(case, next(iter(paths), None))] += 1
    kinds = ("textbook", "derived", "other")
    shares = {name: {kind: counted[kind] / max(asked, 1) for kind in kinds} for name, counted in found.items()}
    return {"relations": [*RELATIONS], "asked": asked, **shares}
