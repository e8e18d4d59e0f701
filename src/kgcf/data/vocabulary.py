"""Labels ↔ ids, with display names beside the labels; both are accepted wherever a name is asked for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self, SupportsIndex

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kgcf.errors import UnknownNameError, unknown_name

_LISTED = 5  # labels of an ambiguous name


def name_and_label(name: str, label: str) -> str:
    """A name with the label behind it; a label that is its own name stands alone."""
    return name if name == label else f"{name} ({label})"


@dataclass(frozen=True)
class Named:
    """An entity or relation: its label in the data, and the name that people read."""

    label: str
    name: str
    ambiguous: bool = False  # whether others have the name too, so that only the label tells them apart

    @property
    def shown(self) -> str:
        """The name, followed by the label where the name is ambiguous."""
        return name_and_label(self.name, self.label) if self.ambiguous else self.name

    @property
    def full(self) -> str:
        """The name, followed by the label where that is something else."""
        return name_and_label(self.name, self.label)


class Vocabulary:
    """Ids 0 … n−1 for n distinct labels.

    A label is what stands in the user's file; a display name is what people read. Labels are kept in
    one Arrow array, so that millions of them stay compact; the lookup table is built when first needed.
    """

    def __init__(self, labels: Sequence[str] | pa.StringArray, names: Mapping[str, str] | None = None) -> None:
        self._labels = labels.cast(pa.large_string()) if isinstance(labels, pa.Array) else _arrow_strings(labels)
        self._names = dict(names or {})

    @classmethod
    def numbered(cls, count: int) -> Self:
        """The labels '0', '1', … for graphs that come as integers."""
        return cls([str(i) for i in range(count)])

    def __len__(self) -> int:
        return len(self._labels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and bool(self._labels.equals(other._labels))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} labels)"

    def label(self, index: int) -> str:
        """The label of one id."""
        return str(self._labels[index].as_py())

    def labels(self) -> list[str]:
        """All labels, in the order of their ids."""
        result: list[str] = self._labels.to_pylist()
        return result

    def displays(self) -> list[str]:
        """All display names, in the order of their ids; the label where there is none."""
        return [self._names.get(label, label) for label in self.labels()]

    def display(self, index: int) -> str:
        """The display name of an id where it has one, else its label."""
        label = self.label(index)
        return self._names.get(label, label)

    def ambiguous(self, index: int) -> bool:
        """Whether the display name of an id also stands for another one, so that only the label tells them apart."""
        label, name = self.label(index), self.display(index)
        return name != label and (name in self._index or len(self._by_name[name]) > 1)

    def named(self, index: int) -> Named:
        """An id as people read it."""
        return Named(self.label(index), self.display(index), self.ambiguous(index))

    def shown(self, index: int) -> str:
        """The display name of an id, followed by its label where the name is ambiguous."""
        return self.named(index).shown

    @property
    def names(self) -> Mapping[str, str]:
        """Display name by label, for those that have one."""
        return self._names

    def with_names(self, names: Mapping[str, str]) -> "Vocabulary":
        """The same labels with (more) display names; names of labels that are not here are left out."""
        added = {label: name for label, name in names.items() if label in self._index}
        return Vocabulary(self._labels, {**self._names, **added})

    def id(self, given: str | SupportsIndex, kind: str = "name") -> int:
        """The id of a label or of an unambiguous display name; a whole number stands for the label that it reads as.

        Raises `UnknownNameError` with suggestions, or with the labels that share an ambiguous name.
        """
        text = _as_text(given, kind)
        found = self._index.get(text)
        if found is not None:
            return found
        same = self._by_name.get(text, self._by_lower_name.get(text.lower(), []))
        if len(same) == 1:
            return same[0]
        if same:
            more = f" and {len(same) - _LISTED:,} more" if len(same) > _LISTED else ""
            labels = ", ".join(self.label(i) for i in same[:_LISTED]) + more
            raise UnknownNameError(f"The {kind} '{text}' is ambiguous: it names {labels}. Use one of these labels.")
        raise unknown_name(kind, text, [*self._by_name, *self._index])

    def ids(self, texts: Iterable[str | SupportsIndex], kind: str = "name") -> NDArray[np.int64]:
        """The ids of several labels or names."""
        return np.array([self.id(text, kind) for text in texts], dtype=np.int64)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels())}

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        table: dict[str, list[int]] = {}
        for label, name in self._names.items():
            table.setdefault(name, []).append(self._index[label])
        return table

    @cached_property
    def _by_lower_name(self) -> dict[str, list[int]]:
        table: dict[str, list[int]] = {}
        for name, ids in self._by_name.items():
            table.setdefault(name.lower(), []).extend(ids)
        for label, i in self._index.items():
            table.setdefault(label.lower(), []).append(i)
        return {name: sorted(set(ids)) for name, ids in table.items()}


def _as_text(given: object, kind: str) -> str:
    """A name as text: graphs that come as integers are asked about with integers."""
    if isinstance(given, str):
        return given
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return str(given)
    raise UnknownNameError(f"{given!r} is no {kind}: give its label or its name as text, or a whole number.")


def _arrow_strings(texts: Sequence[str]) -> pa.LargeStringArray:
    """What `pa.array(texts)` gives, without pandas, which that imports to see whether the texts are a frame's."""
    encoded = [text.encode() for text in texts]
    ends = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=ends[1:])
    return pa.LargeStringArray.from_buffers(len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))
