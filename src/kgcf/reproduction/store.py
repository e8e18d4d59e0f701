"""Where results lie: one JSON per finished cell, replaced only by a finished one; several processes may work on it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgcf.errors import StorageError
from kgcf.reproduction.cells import Cell
from kgcf.runs.lock import tried
from kgcf.storage import make_folder, write_json, writing

FORMAT = 1
_AGAIN = "Delete it, or let `kgcf reproduce` compute its cell again."
Result = dict[str, Any]
_HELD: dict[str, dict[str, type]] = {
    "train": {"metrics": dict, "times": dict, "per_relation": dict, "train_triples": dict},
    "inference": {"seconds": dict, "questions": int, "test_questions": int},
    "distribution": {"relations": dict},
    "substitutes": {"rows": list},
}  # what the report reads of every kind of cell
_ALWAYS = {"commit": str, "machine": dict}


class Store:
    """A folder of results, and of the runs of cells that are not finished."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, cell: Cell) -> Path:
        """Where a cell's result is, or will be."""
        return self.path / f"{cell.name}.json"

    def run_folder(self, cell: Cell) -> Path:
        """Where a cell trains; an interrupted one goes on there."""
        return self.path / "unfinished" / cell.name

    def read(self, cell: Cell) -> Result | None:
        """The result of a cell; None where there is none yet."""
        path = self.file(cell)
        if not path.is_file():
            return None
        try:
            found: Result = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StorageError(f"{path} is damaged: {error}. {_AGAIN}") from error
        if not isinstance(found, dict):
            raise StorageError(f"{path} is damaged: it holds no result. {_AGAIN}")
        if found.get("format") != FORMAT:
            raise StorageError(f"{path} was written by another version of kgcf. {_AGAIN}")
        if flaw := _flaw(cell, found):
            raise StorageError(f"{path} is damaged: {flaw}. {_AGAIN}")
        return found

    def finished(self) -> Iterator[tuple[Cell, Result]]:
        """Every result that can be read, whatever target it belongs to; the others are passed over."""
        for path in sorted(self.path.glob("*.json")):
            try:
                found: Result = json.loads(path.read_text(encoding="utf-8"))
                cell = _cell_of(found)
            except (OSError, ValueError, TypeError, KeyError):
                continue
            if not _flaw(cell, found):
                yield cell, found

    def write(self, cell: Cell, result: Result) -> None:
        """Keep a result for good."""
        write_json(self.file(cell), {"format": FORMAT, "cell": cell.to_json(), **result})

    @contextmanager
    def claimed(self, cell: Cell) -> Iterator[bool]:
        """Keep a cell for this process; yields False where another process works on it."""
        make_folder(self.path / "unfinished")
        lock = self.path / "unfinished" / f".{cell.name}.lock"
        with tried(lock) as free:
            yield free
            if free:
                with writing(lock):
                    lock.unlink(missing_ok=True)


def _cell_of(result: Result) -> Cell:
    """The cell that a result says it is of."""
    return Cell(**result["cell"] | {"changes": tuple(result["cell"]["changes"])})


def _flaw(cell: Cell, result: Result) -> str:
    """What is wrong with a result as that of a cell: another one's, or not whole; empty if nothing."""
    try:
        recorded = _cell_of(result)
    except (TypeError, KeyError):
        return "it does not say which cell it is of"
    if recorded.key != cell.key:
        return f"it is the result of another cell, {recorded.name}"
    needed = _ALWAYS | _HELD[cell.kind] | ({"ranks": list} if cell.ranks else {})
    missing = [name for name, kind in needed.items() if not isinstance(result.get(name), kind)]
    if cell.kind == "train" and not missing:
        missing = [name for name in ("mrr", "mr", "hits@10") if name not in result["metrics"]]
        missing += [] if "training_seconds" in result["times"] else ["training_seconds"]
    if not isinstance(result.get("configuration", {}), dict):
        missing.append("configuration")
    return f"it has no {', '.join(missing)}" if missing else ""
