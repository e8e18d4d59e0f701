"""Names as people type them: search as you type, whatever the case and the accents, in milliseconds.

Labels and display names are folded (no case, no accents) once. What begins with the text is found by bisection in the
sorted names, what has it inside by one pass over all names joined into one string.
"""

import bisect
import itertools
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kgcf.data.vocabulary import Named, Vocabulary
from kgcf.screen import inert

_END = "\n"  # between names in the joined text; folded names have none
_LOOKED_AT = 2_000  # places where the text occurs inside a name that are compared
_LONGEST = 200  # characters of a name that are searched, and of a label that stands in a link
_NUMBER = re.compile(r"#(\d{1,10})")


@lru_cache(maxsize=4096)
def fold(text: str) -> str:
    """A text without case and accents, its white space single: `Côte  d’Ivoire` → `cote d’ivoire`."""
    if text.isascii():
        return " ".join(text.casefold().split())
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(unicodedata.normalize("NFKD", plain.casefold()).split())


class NameIndex:
    """Finds the entities or relations of a vocabulary; the more facts one has, the earlier it comes."""

    def __init__(self, vocabulary: Vocabulary, counts: NDArray[np.int64]) -> None:
        labels, names = vocabulary.labels(), vocabulary.displays()
        self._vocabulary = vocabulary
        self._counts = counts
        self._by_label = {label: i for i, label in enumerate(labels)}
        self._by_name: dict[str, list[int]] = {}
        texts: list[str] = []
        owners: list[int] = []
        for i, (label, name) in enumerate(zip(labels, names, strict=True)):
            self._by_name.setdefault(name, []).append(i)
            for text in {label, name}:
                texts.append(fold.__wrapped__(text[:_LONGEST]))
                owners.append(i)
        order = sorted(range(len(texts)), key=texts.__getitem__)
        self._texts = [texts[i] for i in order]  # ascending
        self._owners = np.array([owners[i] for i in order], dtype=np.int64)
        self._joined = _END + _END.join(self._texts) + _END
        lengths = (len(text) + len(_END) for text in self._texts)
        self._starts = list(itertools.accumulate(lengths, initial=len(_END)))  # of every text in the joined one

    def __len__(self) -> int:
        return len(self._vocabulary)

    def search(self, text: str, limit: int = 10) -> list[int]:
        """Ids, best first: what begins with the text, then where a word begins with it, then where it is inside."""
        asked = fold(text[:_LONGEST])
        if not asked:
            return []
        low = bisect.bisect_left(self._texts, asked)
        high = bisect.bisect_left(self._texts, asked + "\U0010ffff")
        equal = bisect.bisect_right(self._texts, asked)
        found = dict.fromkeys(self._by_count(self._owners[low:equal], limit))
        found.update(dict.fromkeys(self._by_count(self._owners[equal:high], limit + len(found))))
        if len(found) < limit:
            inside = np.array(list(self._inside(asked)), dtype=np.int64).reshape(-1, 2)
            for rank in (0, 1):
                found.update(dict.fromkeys(self._by_count(inside[inside[:, 0] == rank, 1], limit + len(found))))
        return list(found)[:limit]

    def resolve(self, text: str) -> list[int]:
        """The ids that a text stands for: a label, a display name, a number in a link (#12), else by folded name."""
        exact = self._by_label.get(text)
        if exact is not None:
            return [exact]
        if text in self._by_name:
            return self._by_name[text]
        number = _NUMBER.fullmatch(text)
        if number and int(number[1]) < len(self):
            return [int(number[1])]
        asked = fold(text[:_LONGEST])
        low, high = bisect.bisect_left(self._texts, asked), bisect.bisect_right(self._texts, asked)
        same = {int(owner) for owner in self._owners[low:high]} if len(text) < _LONGEST else set()
        return sorted(same)

    def reference(self, index: int) -> str:
        """What stands for an id in a link: its label, or a number where the label is long or has active characters."""
        label = self._vocabulary.label(index)
        plain = len(label) <= _LONGEST and inert(label) == label and label.strip() == label and label != ""
        number = f"#{index}"
        return label if plain or number in self._by_label else number

    def id_of(self, label: str) -> int:
        """The id of a label."""
        return self._by_label[label]

    def named(self, index: int) -> Named:
        """An id as people read it."""
        return self._vocabulary.named(index)

    def count(self, index: int) -> int:
        """How many facts it stands in."""
        return int(self._counts[index])

    def most_frequent(self, limit: int) -> list[int]:
        """The ids with the most facts."""
        return self._by_count(np.arange(len(self), dtype=np.int64), limit)

    def _by_count(self, ids: NDArray[np.int64], limit: int) -> list[int]:
        """Some ids, those with the most facts first."""
        distinct = np.unique(ids)
        if len(distinct) > limit:
            distinct = distinct[np.argpartition(-self._counts[distinct], limit)[:limit]]
        return [int(i) for i in distinct[np.argsort(-self._counts[distinct], kind="stable")]]

    def _inside(self, asked: str) -> Iterator[tuple[int, int]]:
        """(0 where a word begins so, else 1, id) of the names that have the text inside, every word of it somewhere."""
        words = sorted(asked.split(), key=len, reverse=True)
        place, looked_at = self._joined.find(words[0]), 0
        while place >= 0 and looked_at < _LOOKED_AT:
            looked_at += 1
            row = bisect.bisect_right(self._starts, place) - 1
            text = self._texts[row]
            if all(word in text for word in words):
                yield int(self._joined[place - 1].isalnum()), int(self._owners[row])
            place = self._joined.find(words[0], self._starts[row] + len(text))
