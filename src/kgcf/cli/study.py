"""The memory of a search: which trials are done, and everything that they depend on, in an optuna database."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgcf import __version__
from kgcf.config import Settings
from kgcf.data.dataset import Dataset
from kgcf.durations import AUTO
from kgcf.errors import MissingExtraError, SettingsError, StorageError
from kgcf.storage import check_writable, make_folder

Space = Mapping[str, tuple[str, ...]]
_NAME, _ABOUT = "kgcf search", "about"


@dataclass(frozen=True)
class Trial:
    """One combination of values and what came of it; `score` None: training could not go on, `reason` says why."""

    values: dict[str, str]
    folder: str
    score: float | None
    reason: str = ""


class Study:
    """Trials of one search. Another search into the same folder is refused: their numbers could not be compared."""

    def __init__(self, folder: Path, space: Space, about: Mapping[str, object]) -> None:
        self._space = space
        self._file = folder / "study.db"
        self._study = _open(self._file)
        with _sentences(self._file):
            known = self._study.user_attrs.get(_ABOUT)
            if known is None:
                self._study.set_user_attr(_ABOUT, dict(about))
        if known is not None and known != about:
            raise SettingsError(
                f"{folder} holds another search, and trials of two searches cannot be ranked together: "
                f"{_difference(known, about)}. Choose another --output."
            )

    def trials(self) -> list[Trial]:
        """Everything that was tried to its end."""
        with _sentences(self._file):
            return [
                Trial(dict(t.params), t.user_attrs["folder"], t.value, t.user_attrs["reason"])
                for t in self._study.trials
            ]

    def add(self, trial: Trial) -> None:
        """Note a trial that has come to its end; one that was stopped leaves no trace and is taken up again."""
        from optuna.distributions import CategoricalDistribution
        from optuna.trial import TrialState, create_trial

        done = create_trial(
            state=TrialState.FAIL if trial.score is None else TrialState.COMPLETE,
            params=trial.values,
            distributions={key: CategoricalDistribution(list(values)) for key, values in self._space.items()},
            value=trial.score,
            user_attrs={"folder": trial.folder, "reason": trial.reason},
        )
        with _sentences(self._file):
            self._study.add_trial(done)


def describe_search(
    data: Dataset, preset: str, settings: Settings, space: Space, seed: int, time: str = AUTO
) -> dict[str, object]:
    """Everything that a trial depends on, as it is stored and compared."""
    digest = hashlib.sha256(data.graph.fingerprint.encode())
    digest.update(data.valid.queries.tobytes())
    for vocabulary in (data.entities, data.relations):
        digest.update("\0".join(vocabulary.labels()).encode())
    labels = settings.treatment.path
    return {
        "kgcf": __version__,
        "data": f"{data.name}, {len(data.graph):,} train and {len(data.valid):,} validation triples",
        "data checksum": digest.hexdigest(),
        "label file checksum": "" if labels is None else _checksum(labels),
        "preset": preset,
        "seed": seed,
        "time": time,
        "search": {key: list(values) for key, values in space.items()},
        **{
            f"{section}.{key}": v
            for section, part in settings.model_dump(mode="json").items()
            for key, v in part.items()
        },
    }


def _open(file: Path) -> Any:  # noqa: ANN401
    try:
        import optuna
    except ImportError as error:
        raise MissingExtraError("kgcf tune", "tune") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    make_folder(file.parent)
    check_writable(file)
    storage = f"sqlite:///{file}"
    with _sentences(file):
        if file.exists() and set(optuna.get_all_study_names(storage)) - {_NAME}:
            raise SettingsError(
                f"{file.parent} holds a search that was not made by this kgcf. Choose another --output."
            )
        return optuna.create_study(study_name=_NAME, storage=storage, direction="maximize", load_if_exists=True)


@contextmanager
def _sentences(file: Path) -> Iterator[None]:
    """Turn the errors of the database, which has its own kinds, into sentences."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        reason = getattr(error, "orig", None) or str(error).splitlines()[0]
        raise StorageError(
            f"The search could not be kept in {file}: {reason}. Trials that were finished are in it; repeat the "
            "command to go on, or choose another --output."
        ) from error


def _difference(known: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    """The values that differ, there and here; the data are named where only their checksum tells."""
    keys = [key for key in {**known, **wanted} if known.get(key) != wanted.get(key)]
    shown = [f"{key} is {wanted.get(key)!r} here and was {known.get(key)!r}" for key in keys if "checksum" not in key]
    shown += [f"the content of the {key.removesuffix(' checksum')} is another" for key in keys if "checksum" in key]
    return "; ".join(shown)


def _checksum(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise SettingsError(f"Could not read the labels in {path}: {error.strerror or error}.") from error
