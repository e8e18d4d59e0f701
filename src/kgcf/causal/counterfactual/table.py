"""What matching returns: for every triple its substitute, treatments and outcomes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kgcf.causal.counterfactual.candidates import Candidates
from kgcf.data.hiding import Remove
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import StorageError
from kgcf.storage import replacing

COLUMNS = (
    "triples",
    "substitutes",
    "distances",
    "factual_treatments",
    "counterfactual_treatments",
    "factual_outcomes",
    "counterfactual_outcomes",
)


@dataclass(frozen=True, eq=False)
class CounterfactualTable:
    """Q triples (h, r, t) and their substitutes (a, r, b); row by row in the order of the triples asked for.

    Unmatched rows have substitute (−1, −1), distance infinity, T^CF = T^F and A^CF = A^F.
    """

    triples: NDArray[np.int32] = field(repr=False)  # [Q, 3] as asked; inverse relations allowed
    substitutes: NDArray[np.int32] = field(repr=False)  # [Q, 2]
    distances: NDArray[np.float64] = field(repr=False)  # [Q] ‖m_h − m_a‖ + ‖m_t − m_b‖
    factual_treatments: NDArray[np.bool_] = field(repr=False)  # [Q] T^F
    counterfactual_treatments: NDArray[np.bool_] = field(repr=False)  # [Q] T^CF
    factual_outcomes: NDArray[np.bool_] = field(repr=False)  # [Q] A^F
    counterfactual_outcomes: NDArray[np.bool_] = field(repr=False)  # [Q] A^CF
    candidates: Candidates
    leave_one_out: bool
    remove: Remove  # what leaving one out takes away: the triple, or all links of its pair

    def __len__(self) -> int:
        return len(self.triples)

    @property
    def matched(self) -> NDArray[np.bool_]:
        """[Q] whether a pair with the opposite treatment exists."""
        result: NDArray[np.bool_] = self.substitutes[:, 0] >= 0
        return result

    @property
    def note(self) -> str:
        """On which graph the treatments stand, as a sentence."""
        pair = self.remove == "pair"
        without = "without any link between its ends" if pair else "without its own edge"
        query = f"T^F of a train triple is taken {without}" if self.leave_one_out else "T^F is taken on the full graph"
        if self.candidates == "all":
            return f"{query}; substitutes come from all pairs, with their treatment on the full graph."
        own = without if pair else f"{without} where it is a train triple"
        own = own if self.leave_one_out else "on the full graph"
        return f"{query}; substitutes come from the observed pairs, each with its treatment {own}."

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The columns by name, for the cache."""
        return {name: getattr(self, name) for name in COLUMNS}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[np.generic]], candidates: Candidates, leave_one_out: bool, remove: Remove
    ) -> "CounterfactualTable":
        """The table whose columns `arrays` gave."""
        columns: dict[str, Any] = {name: arrays[name] for name in COLUMNS}
        return cls(**columns, candidates=candidates, leave_one_out=leave_one_out, remove=remove)

    def to_parquet(self, path: Path, entities: Vocabulary | None = None, relations: Vocabulary | None = None) -> None:
        """Write one row per triple, atomically; with vocabularies, labels and names stand beside the ids."""
        table = pa.table(self._columns(entities, relations))
        settings = {"candidates": self.candidates, "leave_one_out": json.dumps(self.leave_one_out)}
        settings["remove"] = self.remove
        with replacing(path) as temporary:
            pq.write_table(table.replace_schema_metadata(settings), temporary)

    @classmethod
    def from_parquet(cls, path: Path) -> "CounterfactualTable":
        """Read what `to_parquet` wrote."""
        try:
            table = pq.read_table(path)
            column = {
                name: table[name].to_numpy() for name in table.column_names if not name.endswith(("_label", "_name"))
            }
            settings = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
            return cls(
                np.stack([column[n] for n in ("head", "relation", "tail")], axis=1).astype(np.int32),
                np.stack([column[n] for n in ("substitute_head", "substitute_tail")], axis=1).astype(np.int32),
                column["distance"],
                column["factual_treatment"],
                column["counterfactual_treatment"],
                column["factual_outcome"],
                column["counterfactual_outcome"],
                "all" if settings["candidates"] == "all" else "observed",
                bool(json.loads(settings["leave_one_out"])),
                "pair" if settings.get("remove") == "pair" else "triple",  # tables without the entry hid triples
            )
        except (OSError, pa.ArrowException, KeyError) as error:
            raise StorageError(
                f"Could not read {path} as a table of counterfactuals: {error}. Write it again."
            ) from error

    def _columns(self, entities: Vocabulary | None, relations: Vocabulary | None) -> dict[str, Any]:
        heads, relation_ids, tails = self.triples.T
        columns: dict[str, Any] = {"head": heads, "relation": relation_ids, "tail": tails}
        columns |= {"substitute_head": self.substitutes[:, 0], "substitute_tail": self.substitutes[:, 1]}
        columns |= {"distance": self.distances, "matched": self.matched}
        columns |= {name[:-1]: getattr(self, name) for name in COLUMNS[3:]}
        if entities is not None:
            for name in ("head", "tail", "substitute_head", "substitute_tail"):
                columns[f"{name}_label"] = _texts(columns[name], entities.labels())
                columns[f"{name}_name"] = _texts(columns[name], entities.displays())
        if relations is not None:
            for kind, texts in (("label", relations.labels()), ("name", relations.displays())):
                columns[f"relation_{kind}"] = _texts(relation_ids, texts + [f"inverse of {text}" for text in texts])
        return columns


def _texts(ids: NDArray[np.int32], texts: list[str]) -> pa.DictionaryArray:
    """The text of every id, null where there is none; a text that several ids have stands in the dictionary once."""
    distinct = {text: position for position, text in enumerate(dict.fromkeys(texts))}
    positions = np.array([distinct[text] for text in texts], dtype=np.int32)
    known = pa.array(positions[ids], mask=ids < 0)
    return pa.DictionaryArray.from_arrays(known, pa.array(list(distinct), type=pa.string()))
