"""A copy of a finished run, or of most of it."""

import shutil
from collections.abc import Container
from pathlib import Path

from kgcf.runs.folder import RunFolder
from kgcf.storage import make_folder, replacing, writing


def copy_run(folder: RunFolder, target: Path, without: Container[str] = ()) -> None:
    """Copy what a run.json has the checksum of, and nothing else; run.json, if all is copied, comes last."""
    make_folder(target)
    names = folder.sealed_names()
    kept = [name for name in names if name not in without]
    copied = kept + ["run.json"] * (len(kept) == len(names))
    try:
        for name in copied:
            with replacing(target / name) as temporary:
                shutil.copyfile(folder.file(name), temporary)
    except BaseException:  # Ctrl-C too: half a run is none
        with writing(target):
            for name in copied:
                (target / name).unlink(missing_ok=True)
        raise
