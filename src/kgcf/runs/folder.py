"""A run is a folder, complete and portable: data, configuration, stages, model, results. No pickle anywhere."""

import hashlib
import json
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from kgcf import __version__
from kgcf.config import Settings, read_values, settings_from, write_toml
from kgcf.data.dataset import Dataset
from kgcf.errors import NothingLearnedError, StorageError
from kgcf.runs.data_files import DATA_FILES, data_facts, read_data, write_data
from kgcf.runs.lock import held
from kgcf.storage import TEMPORARY, make_folder, write_json, write_text, writing

FORMAT = 1
LOCK = ".kgcf.lock"  # held by the process that trains; its presence also says that a folder without run.json is ours
CONFIG = "config.toml"
HISTORY = "history.json"
SURVEY = "survey.json"  # where training was given a time
CREATED = (
    "run.json",
    CONFIG,
    *DATA_FILES,
    "data.json",
    SURVEY,
)  # what is known before training; run.json makes it a run, so it is written last and deleted first
_MINUTE = '{"stage": '  # how a line of the log begins that is not about an epoch
_OF_SAFETENSORS = re.compile(r"\.tmp\w{6}")  # what the library writes and then renames to our temporary file
_LONG_AGO = 600.0  # seconds; nobody writes a file for so long
_EVALUATED = ("results.json", "calibration.json", "reliability.png")
_BEFORE_THE_MODEL = (
    "checkpoint.safetensors",
    "log.jsonl",
    "counterfactuals.parquet",
    "space.safetensors",
    "treatment.safetensors",
    "treatment_labels.*",
)  # what a training has made of itself when its first epoch ends
REVIEW = "review.sqlite"  # what reviewers said; SQLite keeps its log beside it while it is open
MEMORY_CHECKPOINT = "memory_checkpoint.safetensors"
_CHANGING = (
    "checkpoint.safetensors",
    MEMORY_CHECKPOINT,
    "log.jsonl",
    *_EVALUATED,
    *(f"{REVIEW}{part}" for part in ("", "-wal", "-shm")),
)  # not part of what is checked when opening


class RunFolder:
    """Reads and writes the parts of a run; each file is written under a temporary name and renamed.

    `run.json` is where a change takes hold: nothing that it has the checksum of is ever written again, so a stop at
    any moment leaves the run as it was before or as it is after.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path:
        """The path of one part."""
        return self.path / name

    @contextmanager
    def alone(self, new: bool = False) -> Iterator[None]:
        """Keep the folder for this process while it trains; a second one is refused, a killed one lets go by itself.

        A training that learned nothing leaves the folder free for another one.
        """
        if new:
            self.check_free()
            make_folder(self.path)
        else:
            self._check_is_run()
        busy = f"Another process is training in {self.path}. Wait until it ends, or stop it, and try again."
        with held(self.file(LOCK), busy):
            self._tidy()
            try:
                yield
            except NothingLearnedError as error:
                self._withdraw()
                raise NothingLearnedError(f"{error} Nothing was kept: another training may use {self.path}.") from error

    def create(
        self, data: Dataset, settings: Settings, preset: str, survey: Mapping[str, object] | None = None
    ) -> None:
        """Make the folder with everything that is known before training; refuse one that is in use."""
        self.check_free()
        make_folder(self.path)
        self._clear()
        try:
            if survey is not None:
                write_json(self.file(SURVEY), survey)
            self._write(data, settings, preset)
        except StorageError:
            self._clear()
            raise

    def check_free(self) -> None:
        """Refuse a folder that has anything in it but the leftovers of a creation that was stopped."""
        with writing(self.path):
            if not self.path.exists():
                return
            names = [entry.name for entry in self.path.iterdir()] if self.path.is_dir() else [self.path.name]
        stopped = LOCK in names and "run.json" not in names
        if not names or (stopped and all(n == LOCK or n in CREATED or _is_temporary(n) for n in names)):
            return
        raise StorageError(
            f"{self.path} exists already. Nothing was changed: choose another --output, "
            f"or continue the run in it with: kgcf resume {shlex.quote(str(self.path))}"
        )

    def _clear(self) -> None:
        """Delete what a creation that was stopped has left."""
        with writing(self.path):
            for name in CREATED:
                self.file(name).unlink(missing_ok=True)

    def _withdraw(self) -> None:
        """Delete what a training without a model has made; a stop on the way leaves a run that was just created."""
        with writing(self.path):
            for entry in (path for pattern in _BEFORE_THE_MODEL for path in self.path.glob(pattern)):
                entry.unlink()
        self._clear()

    def _tidy(self) -> None:
        """Delete half-written files that a kill has left; young ones of an evaluation may be somebody's right now."""
        evaluated = tuple(f".{name}." for name in _EVALUATED)
        with writing(self.path):
            for entry in self.path.iterdir():
                if not _is_temporary(entry.name):
                    continue
                with suppress(FileNotFoundError):  # an evaluation that has just finished
                    if not entry.name.startswith(evaluated) or time.time() - entry.stat().st_mtime > _LONG_AGO:
                        entry.unlink()

    def _write(self, data: Dataset, settings: Settings, preset: str) -> None:
        write_text(self.file(CONFIG), write_toml(settings))
        write_data(self.path, data)
        write_json(self.file("data.json"), {"preset": preset, **data_facts(data)})
        self.seal()

    def seal(self) -> None:
        """Write run.json: versions and the sha256 of every file that must not change behind our back."""
        names = sorted(p.name for p in self.path.iterdir() if p.is_file() and not p.name.startswith("."))
        kept = [name for name in names if name != "run.json" and name not in _CHANGING]
        sums = {name: _sha256(self.file(name)) for name in kept}
        write_json(self.file("run.json"), {"format": FORMAT, "kgcf": __version__, "sha256": sums})

    def sealed_names(self) -> list[str]:
        """The parts that are there for good."""
        return list(self._sums())

    def check(self) -> None:
        """Refuse a folder that is no run, was written by a newer version, or has missing or damaged files."""
        for name, wanted in self._sums().items():
            if not self.file(name).is_file():
                raise StorageError(f"{self.path} lacks {name}. Restore it from a copy of the run, or train again.")
            if _sha256(self.file(name)) != wanted:
                raise StorageError(f"{self.file(name)} is damaged: its checksum differs. Restore it, or train again.")

    def sealed(self, name: str) -> bool:
        """Whether a part is there for good: written, and known to run.json."""
        return name in self._sums()

    def _sums(self) -> dict[str, str]:
        """The checksums in run.json."""
        self._check_is_run()
        try:
            facts = json.loads(self.file("run.json").read_text(encoding="utf-8"))
            version, sums = int(facts["format"]), dict(facts["sha256"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{self.file('run.json')} is damaged. Restore it from a copy of the run.") from error
        if version > FORMAT:
            raise StorageError(
                f"{self.path} was written by kgcf {facts.get('kgcf')} in format {version}; this is kgcf {__version__}, "
                f"which reads format {FORMAT}. Upgrade kgcf."
            )
        return sums

    def _check_is_run(self) -> None:
        if self.file("run.json").is_file():
            return
        if self.file(LOCK).is_file():
            raise StorageError(
                f"{self.path} is not a run yet: it was stopped before its training began, or learned nothing. "
                f"Start it again with: kgcf train … --output {self.path}"
            )
        raise StorageError(f"{self.path} is not a run: it has no run.json. A run is what `kgcf train` writes.")

    def settings(self) -> Settings:
        """The effective configuration."""
        return settings_from(read_values(self.file(CONFIG)))

    def facts(self) -> dict[str, object]:
        """Dataset name, preset, notes; once trained, the history of the training."""
        found: dict[str, object] = json.loads(self.file("data.json").read_text(encoding="utf-8"))
        if self.file(HISTORY).is_file():
            found["history"] = json.loads(self.file(HISTORY).read_text(encoding="utf-8"))
        return found

    def survey(self) -> dict[str, object] | None:
        """What the settings were chosen by, where training was given a time."""
        path = self.file(SURVEY)
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def history(self) -> list[dict[str, float]]:
        """One entry per epoch of a run that is trained."""
        found = self.facts().get("history")
        return list(found["epochs"]) if isinstance(found, dict) else []

    def dataset(self) -> Dataset:
        """The data the run was trained on, with its splits; graphs are mapped, not loaded."""
        return read_data(self.path, self.facts())

    def log(self, entry: Mapping[str, object]) -> None:
        """Append one line to log.jsonl."""
        path = self.file("log.jsonl")
        with writing(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def rewrite_log(self, history: Iterable[dict[str, float]]) -> None:
        """Let log.jsonl say what the checkpoint says: a kill may have cut its last line, or come before it.

        Lines that say where the run was at some minute stay, as long as those of the epochs are right.
        """
        path, wanted = self.file("log.jsonl"), "".join(json.dumps(entry) + "\n" for entry in history)
        found = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) if path.is_file() else []
        kept = "".join(line for line in found if not line.startswith(_MINUTE))
        if not path.is_file() or kept != wanted or (found and not found[-1].endswith("\n")):
            write_text(path, wanted)


def _is_temporary(name: str) -> bool:
    """Whether a file was being written when its process was stopped, by us or, on our behalf, by safetensors."""
    return (name.startswith(".") and name.endswith(TEMPORARY)) or _OF_SAFETENSORS.fullmatch(name) is not None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
