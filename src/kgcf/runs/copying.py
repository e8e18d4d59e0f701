"""A new run made of finished ones: copied and completed out of sight, then put in its place in one step."""

import shutil
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

from kgcf.runs.folder import LOCK, RunFolder
from kgcf.runs.lock import held
from kgcf.storage import make_folder, replacing, writing


@contextmanager
def assembled(target: Path) -> Iterator[Path]:
    """A hidden folder to fill, which becomes `target` when the block ends; half a run is never found there.

    It stands beside the target. A block that fails deletes it; what a kill leaves is emptied by the next attempt.
    """
    RunFolder(target).check_free()
    hidden = target.parent / f".{target.name}.unfinished"
    make_folder(hidden)
    with held(hidden / LOCK, f"Another process is making {target}. Wait until it ends, and try again."):
        _empty(hidden)
        try:
            yield hidden
            with writing(target):
                if target.exists():
                    shutil.rmtree(target)  # empty, or the leftovers of a creation that was stopped
                hidden.rename(target)
        except BaseException:  # Ctrl-C too
            with writing(hidden):
                shutil.rmtree(hidden, ignore_errors=True)
            raise


def copy_run(folder: RunFolder, target: Path, without: Container[str] = ()) -> None:
    """Copy what a run.json has the checksum of, and nothing else; run.json, if all is copied, comes last."""
    make_folder(target)
    names = folder.sealed_names()
    kept = [name for name in names if name not in without]
    for name in kept + ["run.json"] * (len(kept) == len(names)):
        with replacing(target / name) as temporary:
            shutil.copyfile(folder.file(name), temporary)


def _empty(folder: Path) -> None:
    """Delete everything but the lock."""
    with writing(folder):
        for entry in folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != LOCK:
                entry.unlink()
