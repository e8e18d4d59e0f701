"""Every way kgcf refuses to continue; each message says what, where, and what the user can change."""

import difflib
from collections.abc import Iterable


class KgcfError(Exception):
    """A problem that the user can act on; the command line prints it as a sentence, without a traceback."""


class KgcfWarning(UserWarning):
    """Something that works but will disappoint; the command line prints it as a sentence."""


class DataError(KgcfError):
    """The input could not be read as a knowledge graph."""


class UnknownNameError(KgcfError):
    """A name that stands for nothing we know: entity, relation, dataset, option."""


class StorageError(KgcfError):
    """A file we wrote, or were asked to write, is damaged, missing or in the way."""


class SettingsError(KgcfError):
    """A setting has an unknown name or an impossible value."""


class TrainingError(KgcfError):
    """Training cannot go on."""


class NothingLearnedError(TrainingError):
    """No query has contributed to the weights, and none will: there is nothing to keep, or to go on with."""


class MissingExtraError(KgcfError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the optional extra '{extra}'. Install it with: pip install 'kgcf[{extra}]'")


def closest(name: str, choices: Iterable[str], count: int = 3) -> list[str]:
    """The choices whose spelling is nearest to the name, best first; case does not matter."""
    by_lower: dict[str, str] = {}
    for choice in choices:
        by_lower.setdefault(choice.lower(), choice)
    found = difflib.get_close_matches(name.lower(), by_lower, n=count, cutoff=0.6)
    return [by_lower[key] for key in found]


def unknown_name(kind: str, name: str, choices: Iterable[str], listed: int = 12) -> UnknownNameError:
    """An error that lists the choices where they are few, and suggests the nearest where they are many."""
    known = list(choices)
    near = closest(name, known)
    message = f"There is no {kind} called '{name}'."
    if near:
        message += " Did you mean " + " or ".join(f"'{n}'" for n in near) + "?"
    if len(known) <= listed:
        message += " Choices: " + ", ".join(known) + "."
    return UnknownNameError(message)
