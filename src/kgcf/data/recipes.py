"""From a public home to the files of a graph: copy, join, unpack, put names for numbers; always checked by sha256.

A step of a recipe says what it can make and how. A file counts as made when its content has the
checksum we know, as it came or with CRLF line ends turned into LF. Steps are tried in order until
nothing is missing, so that later ones serve as mirrors.
"""

import gzip
import hashlib
import io
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kgcf.data.download import DownloadError, fetch
from kgcf.data.locations import digest, find_file
from kgcf.data.manifest import SPLIT_FILES, GraphFacts
from kgcf.errors import DataError
from kgcf.progress import Advance, silent
from kgcf.storage import replacing

Made = Iterator[tuple[str, bytes]]
Get = Callable[[str], bytes]


def obtain(graph: GraphFacts, root: Path, advance: Advance = silent) -> list[str]:
    """Fetch what is missing of a graph into `root`/NAME; returns notes about name files that could not be had.

    Raises `DownloadError` when a split is still missing after every public home was tried.
    """
    folder = root / graph.name
    missing = [name for name in graph.files if not _is_whole(folder, name, graph)]
    problems: list[str] = []
    for step in graph.download:
        wanted = [name for name in _makes(step) if name in missing]
        if wanted and not (step["kind"] == "aligned" and any(name in missing for name in SPLIT_FILES)):
            made = _run(step, graph, folder, wanted, advance, problems)
            missing = [name for name in missing if name not in made]
    reasons = " ".join(dict.fromkeys(problems))
    if any(name in missing for name in SPLIT_FILES):
        raise DownloadError(f"{graph.name} could not be downloaded. {reasons or 'It has no public home.'}")
    return [f"{graph.name}: without {name}. {reasons}".rstrip() for name in missing]


def _run(
    step: Mapping[str, Any], graph: GraphFacts, folder: Path, wanted: list[str], advance: Advance, problems: list[str]
) -> list[str]:
    """Carry out one step; what goes wrong is added to the problems, what was made is returned."""
    received: list[Path] = []

    def get(url: str) -> bytes:
        download = folder / f".{hashlib.sha256(url.encode()).hexdigest()[:12]}-{url.rsplit('/', 1)[-1]}"
        if not download.exists():
            fetch(url, download, advance=advance)
        received.append(download)
        return download.read_bytes()

    made: list[str] = []
    try:
        for name, content in _STEPS[step["kind"]](step, get, wanted, folder):
            if (right := _right_content(content, graph.files[name].sha256)) is not None:
                _store(folder / f"{name}.gz", right)
                made.append(name)
            else:
                problems.append(f"{name} from {_home(step)} does not have the expected sha256; try again later.")
    except DownloadError as error:
        problems.append(str(error))
    except (ValueError, LookupError, EOFError, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        problems.append(f"What {_home(step)} sent could not be unpacked ({type(error).__name__}: {error}).")
    for download in received:
        download.unlink(missing_ok=True)
    return made


def _makes(step: Mapping[str, Any]) -> list[str]:
    return [step["file"]] if "file" in step else list(step["files"])


def _home(step: Mapping[str, Any]) -> str:
    return next(_urls(step)).rsplit("/", 1)[0]


def _urls(value: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, str) and "://" in value:
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _urls(part)
    elif isinstance(value, list):
        for part in value:
            yield from _urls(part)


def _files(step: Mapping[str, Any], get: Get, wanted: list[str], _: Path) -> Made:
    """`files`: for each file the URLs whose contents are joined."""
    for name in wanted:
        yield name, b"".join(get(url) for url in step["files"][name])


def _archive(step: Mapping[str, Any], get: Get, wanted: list[str], _: Path) -> Made:
    """`archive`: the members called like the files, wherever they lie in a tar or zip file."""
    for path, content in _members(io.BytesIO(get(step["url"]))):
        name = path.rsplit("/", 1)[-1]
        if name in wanted:
            yield name, content


def _members(packed: io.BytesIO) -> Made:
    if zipfile.is_zipfile(packed):
        with zipfile.ZipFile(packed) as archive:
            for member in archive.namelist():
                yield member, archive.read(member)
        return
    packed.seek(0)
    with tarfile.open(fileobj=packed) as tar:
        for entry in tar:
            if entry.isfile() and (stream := tar.extractfile(entry)) is not None:
                yield entry.name, stream.read()


def _numbered(step: Mapping[str, Any], get: Get, wanted: list[str], _: Path) -> Made:
    """`numbered`: OpenKE's `head tail relation` numbers, joined with the names of entity2id and relation2id."""
    entities, relations = (_names_by_number(get(step[kind])) for kind in ("entities", "relations"))
    for name in wanted:
        rows = (line.split() for line in get(step["files"][name]).decode().splitlines()[1:])
        lines = (f"{entities[h]}\t{relations[r]}\t{entities[t]}\n" for h, t, r in rows)
        yield name, "".join(lines).encode()


def _names_by_number(content: bytes) -> dict[str, str]:
    rows = (line.rsplit("\t", 1) for line in content.decode().splitlines()[1:])
    return {number.strip(): name for name, number in rows}


def _aligned(step: Mapping[str, Any], get: Get, _: list[str], folder: Path) -> Made:
    """`aligned`: a name file from splits that have names where ours have labels, line by line."""
    found: dict[str, set[str]] = defaultdict(set)
    for split, url in step["texts"].items():
        ours = find_file(folder, split)
        if ours is None:
            raise LookupError(f"{split} is needed first")
        with gzip.open(ours, "rt", encoding="utf-8") as lines:
            for line, named in zip(lines, get(url).decode().splitlines(), strict=True):
                ids, names = line.rstrip("\n").split("\t"), named.split("\t")
                found[ids[0]].add(names[0])
                found[ids[2]].add(names[2])
    lines_out = (f"{label}\t{'|'.join(sorted(names))}\n" for label, names in sorted(found.items()))
    yield step["file"], "".join(lines_out).encode()


_STEPS: dict[str, Callable[[Mapping[str, Any], Get, list[str], Path], Made]] = {
    "files": _files,
    "archive": _archive,
    "numbered": _numbered,
    "aligned": _aligned,
}


def _right_content(content: bytes, sha256: str) -> bytes | None:
    for candidate in (content, content.replace(b"\r\n", b"\n")):
        if hashlib.sha256(candidate).hexdigest() == sha256:
            return candidate
    return None


def _store(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(content, compresslevel=6, mtime=0))
    path.with_suffix("").unlink(missing_ok=True)  # a damaged plain file of the same name


def _is_whole(folder: Path, name: str, graph: GraphFacts) -> bool:
    path = find_file(folder, name)
    if path is None:
        return False
    try:
        return digest(path)[0] == graph.files[name].sha256
    except DataError:
        return False
