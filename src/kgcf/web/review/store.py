"""Proposed links and what reviewers said of them, in one SQLite file: nothing that was acknowledged is ever lost.

Decisions are only added; the last one that was not undone counts. A write is acknowledged after it is on the disk
(write-ahead log, synchronous = FULL), so that a killed process or a power cut loses none. Several reviewers, and
several servers, may write at the same time: SQLite lets one after the other.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from kgcf.errors import SettingsError, StorageError
from kgcf.prediction.answers import Answer
from kgcf.storage import make_folder

Verdict = Literal["accept", "reject", "leave"]
State = Literal["open", "accept", "reject", "leave", "decided", "all"]
_FORMAT = 1
_PATIENCE = 10.0  # seconds that a writer waits for another one
_TABLES = """
CREATE TABLE IF NOT EXISTS links (
    id INTEGER PRIMARY KEY, head TEXT NOT NULL, relation TEXT NOT NULL, tail TEXT NOT NULL,
    probability REAL NOT NULL, answer TEXT NOT NULL, UNIQUE (head, relation, tail));
CREATE INDEX IF NOT EXISTS likely ON links (probability DESC, id);
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, link INTEGER NOT NULL REFERENCES links (id),
    verdict TEXT NOT NULL CHECK (verdict IN ('accept', 'reject', 'leave')), probability REAL NOT NULL,
    note TEXT NOT NULL, reviewer TEXT NOT NULL, at TEXT NOT NULL, undone TEXT);
CREATE INDEX IF NOT EXISTS of_link ON decisions (link, id DESC) WHERE undone IS NULL;
"""
_NEWEST = "SELECT max(id) FROM decisions WHERE link = links.id AND undone IS NULL"
_JOINED = f"links LEFT JOIN decisions ON decisions.id = ({_NEWEST})"
_WANTED = {
    "open": "decisions.id IS NULL",
    "decided": "decisions.id IS NOT NULL",
    "all": "1",
    **{verdict: f"decisions.verdict = '{verdict}'" for verdict in get_args(Verdict)},
}


@dataclass(frozen=True)
class Decision:
    """What a reviewer said of a link."""

    id: int
    verdict: Verdict
    probability: float  # that the link had when it was judged
    note: str
    reviewer: str
    at: str  # ISO 8601, UTC


@dataclass(frozen=True)
class ReviewedLink:
    """A proposed link, and the decision that counts."""

    id: int
    answer: Answer
    decision: Decision | None


@dataclass(frozen=True)
class Chosen:
    """Which links are asked for."""

    state: State = "open"
    relation: str | None = None  # label
    min_probability: float = 0.0


class ConflictError(SettingsError):
    """Somebody else has decided in the meantime."""


class ReviewStore:
    """The file of one run's review."""

    def __init__(self, path: Path) -> None:
        self.path = path
        make_folder(path.parent)
        with self._open() as database:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version > _FORMAT:
                raise StorageError(f"{path} was written by a newer kgcf. Upgrade kgcf.")
            database.executescript(f"BEGIN IMMEDIATE;{_TABLES}PRAGMA user_version = {_FORMAT};COMMIT;")

    def add(self, answers: Sequence[Answer]) -> int:
        """Keep proposed links; one that is there already gets its new probability. How many are new."""
        rows = [(a.head, a.relation, a.tail, a.probability, json.dumps(asdict(a))) for a in answers]
        with self._writing() as database:
            before = database.execute("SELECT count(*) FROM links").fetchone()[0]
            database.executemany(
                "INSERT INTO links (head, relation, tail, probability, answer) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (head, relation, tail) DO UPDATE SET probability = excluded.probability, "
                "answer = excluded.answer",
                rows,
            )
            return int(database.execute("SELECT count(*) FROM links").fetchone()[0]) - int(before)

    def decide(
        self, link: int, verdict: Verdict, reviewer: str, note: str = "", seen: int | None = None
    ) -> ReviewedLink:
        """Add a decision. `seen` is the decision that the reviewer saw, 0 for none: refused if it is no longer so."""
        with self._writing() as database:
            now = self._link(database, link)
            newest = 0 if now.decision is None else now.decision.id
            if seen is not None and seen != newest:
                by = "undid it" if now.decision is None else f"{now.decision.reviewer} said {now.decision.verdict}"
                raise ConflictError(f"Somebody was faster: {by}. Look again, then decide.")
            database.execute(
                "INSERT INTO decisions (link, verdict, probability, note, reviewer, at) VALUES (?, ?, ?, ?, ?, ?)",
                (link, verdict, now.answer.probability, note, reviewer, _now()),
            )
            return self._link(database, link)

    def undo(self, reviewer: str) -> ReviewedLink | None:
        """Take back the last decision of a reviewer that still counts; None where there is none."""
        with self._writing() as database:
            newest_of_link = "SELECT max(id) FROM decisions AS other WHERE link = decisions.link AND undone IS NULL"
            row = database.execute(
                f"SELECT id, link FROM decisions WHERE reviewer = ? AND undone IS NULL AND id = ({newest_of_link}) "
                "ORDER BY id DESC LIMIT 1",
                (reviewer,),
            ).fetchone()
            if row is None:
                return None
            database.execute("UPDATE decisions SET undone = ? WHERE id = ?", (_now(), row[0]))
            return self._link(database, row[1])

    def links(self, chosen: Chosen = Chosen(), limit: int = 50, first: int = 0) -> list[ReviewedLink]:  # noqa: B008
        """Links with their decisions, the likeliest first."""
        where, values = _where(chosen)
        with self._open() as database:
            rows = database.execute(
                f"SELECT links.id, links.answer, decisions.* FROM {_JOINED} WHERE {where} "
                "ORDER BY links.probability DESC, links.id LIMIT ? OFFSET ?",
                (*values, limit, first),
            ).fetchall()
        return [_reviewed(row) for row in rows]

    def count(self, chosen: Chosen = Chosen()) -> int:  # noqa: B008
        """How many links these are."""
        where, values = _where(chosen)
        with self._open() as database:
            found = database.execute(f"SELECT count(*) FROM {_JOINED} WHERE {where}", values).fetchone()
        return int(found[0])

    def history(self, link: int) -> list[Decision]:
        """Every decision about a link that was not undone, newest first."""
        with self._open() as database:
            rows = database.execute(
                "SELECT * FROM decisions WHERE link = ? AND undone IS NULL ORDER BY id DESC", [link]
            )
            return [_decision(row) for row in rows]

    def _link(self, database: sqlite3.Connection, link: int) -> ReviewedLink:
        row = database.execute(
            f"SELECT links.id, links.answer, decisions.* FROM {_JOINED} WHERE links.id = ?", (link,)
        ).fetchone()
        if row is None:
            raise SettingsError(f"There is no proposed link number {link}.")
        return _reviewed(row)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for every call: threads share nothing."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                database.execute("PRAGMA foreign_keys = ON")
                yield database
        except sqlite3.Error as error:
            raise StorageError(
                f"The review in {self.path} cannot be used: {error}. Nothing of this was kept. "
                "Choose a folder that you may write to with --reviews."
            ) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is on the disk when the block is left, or leaves no trace."""
        with self._open() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")


def _where(chosen: Chosen) -> tuple[str, list[object]]:
    """The condition and the values that it takes."""
    conditions, values = [_WANTED[chosen.state], "links.probability >= ?"], [chosen.min_probability]
    bound: list[object] = list(values)
    if chosen.relation is not None:
        conditions.append("links.relation = ?")
        bound.append(chosen.relation)
    return " AND ".join(conditions), bound


def _reviewed(row: Sequence[object]) -> ReviewedLink:
    number, answer, *decision = row
    known = {field.name for field in fields(Answer)}
    kept = {name: value for name, value in json.loads(str(answer)).items() if name in known}
    return ReviewedLink(int(str(number)), Answer(**kept), None if decision[0] is None else _decision(decision))


def _decision(row: Sequence[object]) -> Decision:
    number, _, verdict, probability, note, reviewer, at, _ = row
    return Decision(int(str(number)), verdict, float(str(probability)), str(note), str(reviewer), str(at))  # type: ignore[arg-type]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
