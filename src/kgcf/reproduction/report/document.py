"""The whole document, made of the result files alone: the same files give the same bytes."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from kgcf.errors import StorageError
from kgcf.reproduction.report.accuracy import accuracy_section
from kgcf.reproduction.report.choosing import choosing_section
from kgcf.reproduction.report.claims import claims_section
from kgcf.reproduction.report.differences import differences_section
from kgcf.reproduction.report.frequency import frequency_section
from kgcf.reproduction.report.gathering import Gathered, gather
from kgcf.reproduction.report.others import distribution_section, inference_section, substitutes_section
from kgcf.reproduction.report.parts import parts_section
from kgcf.reproduction.report.weights import weights_section
from kgcf.reproduction.store import Store
from kgcf.reproduction.targets import TARGETS
from kgcf.storage import make_folder, write_text

_TITLE = (
    "# Results",
    "",
    "The paper's tables and figures, computed by this project. Written by `kgcf reproduce report` from the result "
    "files alone; do not edit. Every number has such a file, with its configuration, seed, commit, protocol and "
    "machine. All MRR, MR and H@k: filtered, both sides, realistic ties, test triples with unseen entities kept.",
    "",
)
_WIDTH = 118
_NEXT = "Next: [The engine](engine.md)"


def write_document(store: Store, path: Path) -> bool:
    """Write the document and the plots beside it; whether the text differs from what was there.

    A folder without a result is a mistake, and no reason to replace a document.
    """
    gathered = {target: gather(store, target) for target in TARGETS}
    if not any(gathered.values()):
        raise StorageError(
            f"{store.path} holds no finished cell, so there is nothing to report and {path} stays as it is. "
            "`kgcf reproduce table1 --quick` computes some; --results names the folder that has them."
        )
    folder = path.parent
    make_folder(folder)
    lines = [*_TITLE, *_sections(gathered, folder)]
    text = "\n".join(map(_wrapped, lines)).rstrip() + f"\n\n{_NEXT}\n"
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    write_text(path, text)
    return True


def _sections(gathered: Mapping[str, Gathered | None], folder: Path) -> list[str]:
    """What holds, then every target that is begun, then which are not."""
    lines = claims_section(gathered)
    if table1 := gathered["table1"]:
        lines += accuracy_section(table1)
    if table2 := gathered["table2"]:
        lines += substitutes_section(table2)
    if table3 := gathered["table3"]:
        lines += [*differences_section(table3), *choosing_section(table3), *frequency_section(table3, folder)]
    if table4 := gathered["table4"]:
        lines += inference_section(table4)
    if figure2 := gathered["figure2"]:
        lines += distribution_section(figure2, folder)
    if figure4 := gathered["figure4"]:
        lines += weights_section(figure4, gathered["ablations"], folder)
    if ablations := gathered["ablations"]:
        lines += parts_section(ablations)
    if absent := [target for target in TARGETS if gathered[target] is None]:
        listed = ", ".join(f"`kgcf reproduce {target}`" for target in absent)
        lines += [f"Not begun yet: {listed}.", ""]
    return lines


def _wrapped(line: str) -> str:
    """A line of prose at an ordinary width; tables, pictures and headings stay as they are."""
    if line.startswith(("|", "!", "#")):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
