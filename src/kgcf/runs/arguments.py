"""What may be asked of a run: a mistake is answered with the choices, in Python's words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from kgcf.errors import SettingsError, closest, unknown_name
from kgcf.explanation.how import How
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.answers import UNKNOWN, Question

SPLITS = ("train", "valid", "test")


def check_split(split: str, choices: Sequence[str] = SPLITS) -> None:
    """Refuse what is no split."""
    if split not in choices:
        raise unknown_name("split", str(split), choices)


def check_choice(argument: str, value: object, choices: object) -> None:
    """Refuse a value that is none of a `Literal`'s choices; the nearest one is suggested."""
    known: tuple[str, ...] = get_args(choices)
    if value in known:
        return
    near = closest(str(value), known)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise SettingsError(f"{argument} cannot be {value!r}.{hint} Choices: {', '.join(map(repr, known))}.")


def check_count(argument: str, value: object) -> None:
    """Refuse a number of things to show or to draw that is no positive integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise SettingsError(f"{argument} cannot be {value!r}: give a whole number of at least 1.")


def check_saved(split: str, limit: int | None, own: bool) -> None:
    """Refuse to keep as the results of a run what is not all of the test split of its own data."""
    if not own or split != "test" or limit is not None:
        only = "Only the whole test split of the run's own data is saved as its results; nothing was ranked. "
        raise SettingsError(only + "Leave out save=True and write result.to_json() to a file of your own.")


def check_share(argument: str, value: float) -> None:
    """Refuse what is no probability."""
    if not 0 <= value <= 1:
        raise SettingsError(f"{argument} cannot be {value!r}: give a number from 0 to 1.")


def as_how(how: How | None, choices: Mapping[str, object]) -> How:
    """The choices of an explanation, each checked; what is not chosen is as `how` has it."""
    hints = get_type_hints(How)
    for name, value in choices.items():
        if name not in hints:
            raise unknown_name("argument of explain", name, hints)
        if get_args(hints[name]):
            check_choice(name, value, hints[name])
        elif name in ("top", "candidates"):
            check_count(name, value)
    return replace(how or How(), **choices)  # type: ignore[arg-type]


def as_question(head: str | None, relation: str | None, tail: str | None) -> Question:
    """A question with one part left out: None or '?'."""
    parts = [None if part == UNKNOWN else part for part in (head, relation, tail)]
    if parts.count(None) != 1:
        raise SettingsError(
            "Give two of head, relation and tail; the third is predicted: predict('Portugal', 'speaks'), "
            "predict(relation='speaks', tail='Portuguese'), predict('Portugal', tail='Spain')."
        )
    return Question(*parts)


def as_names(names: str | Iterable[str] | None) -> list[str] | None:
    """Several names; a plain string, or a number that stands for a label, is one."""
    if names is None:
        return None
    return [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)


def as_triples(bound: AnsweringGraph, triples: Iterable[Sequence[str]]) -> NDArray[np.int64]:
    """[Q, 3] the ids of triples of names or labels."""
    rows = [list(row) if not isinstance(row, str) else [row] for row in triples]
    wrong = next((row for row in rows if len(row) != 3), None)
    if wrong is not None:
        raise SettingsError(
            f"score takes a list of triples, such as [('Portugal', 'speaks', 'Portuguese')]; {wrong!r} is none."
        )
    entities, relations = bound.entities, bound.relations
    found = [(entities.id(h, "entity"), relations.id(r, "relation"), entities.id(t, "entity")) for h, r, t in rows]
    return np.array(found, dtype=np.int64).reshape(-1, 3)
