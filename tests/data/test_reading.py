"""Comments, spaces, empty splits, relations of one split only, and endings in capitals."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgcf.data.reading_options import Reading
from kgcf.data.source import read
from kgcf.data.splitting import SplitSettings
from kgcf.errors import DataError, SettingsError

Write = Callable[[str, str | bytes], Path]
WHOLE = SplitSettings(valid=0, test=0)


def triples(path: Path, **options: object) -> list[tuple[str, str, str]]:
    data = read(path, split=WHOLE, **options)  # type: ignore[arg-type]
    name = data.entities.label
    return [(name(h), data.relations.label(r), name(t)) for h, r, t in data.graph.triples.tolist()]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("# my data\na\tr\tb\nb\tr\tc\n", 1),
        ("# one, two, three\na\tr\tb\nb\tr\tc\n", 1),
        ("# made in 2020\na\tr\tb\nb\tr\tc\n", 1),
        ("\n#\na\tr\tb\nb\tr\tc\n", 2),
        ("a\tr\tb\n# my data\nb\tr\tc\n", 2),
        ("a,r,b\nb,r,c\n# my data\n", 3),
    ],
)
def test_a_comment_is_named_and_can_be_skipped(write: Write, content: str, line: int) -> None:
    path = write("g.txt", content)
    with pytest.raises(DataError, match=rf"g.txt, line {line}: .*looks like a comment: skip .* --comment '#'"):
        read(path)
    assert triples(path, comment="#") == [("a", "r", "b"), ("b", "r", "c")]


def test_a_comment_that_looks_like_a_triple_is_said(write: Write) -> None:
    path = write("g.tsv", "a\tr\tb\n#b\tr\tc\n")
    said = [note for note in read(path, split=WHOLE).notes if "--comment" in note]
    assert said == [
        "g.tsv: '#b' read as heads of triples; if these lines are comments, skip them with --comment '#' "
        "(in Python: comment='#')"
    ]
    assert triples(path, comment="#") == [("a", "r", "b")]
    assert not any("--comment" in note for note in read(path, split=WHOLE, comment="#").notes)


def test_comments_of_every_kind_are_skipped(write: Write) -> None:
    content = (
        b"\xef\xbb\xbf// first\nhead,relation,tail\n  // spaces before\na,r,b//\n//"
        + b"x" * 3_000_000
        + b"\nb,r,c\n// end"
    )
    expected = [("a", "r", "b//"), ("b", "r", "c")]
    assert triples(write("g.csv", content), comment="//") == expected
    assert triples(write("g.csv.gz", gzip.compress(content)), comment="//") == expected
    long = "# x\n" * 100_000 + "a\tr\tb\n"
    assert triples(write("long.tsv", long), comment="#") == [("a", "r", "b")]


def test_errors_count_skipped_lines(write: Write) -> None:
    path = write("g.tsv", "# one\nhead\trelation\ttail\n# two\na\tr\tb\nc\tr\n")
    with pytest.raises(DataError, match="g.tsv, line 5: 2 columns where the first line has 3"):
        read(path, comment="#")
    with pytest.raises(DataError, match="only.tsv is empty"):
        read(write("only.tsv", "# one\n#two\n"), comment="#")
    with pytest.raises(SettingsError, match="mark of comment lines is empty"):
        Reading(comment=" ")


def test_spaces_are_said_and_stripped_on_demand(write: Write) -> None:
    path = write("g.csv", "a, r,b\nb,r, c\nc,r,a\n")
    assert triples(path) == [("a", " r", "b"), ("b", "r", " c"), ("c", "r", "a")]
    kept = "g.csv: spaces around ' c' and 1 more label kept as part of the label; --strip "
    assert any(note.startswith(kept) for note in read(path, split=WHOLE).notes)
    stripped = read(path, split=WHOLE, strip=True)
    assert "g.csv: spaces around ' c' and 1 more label stripped" in stripped.notes
    assert (len(stripped.entities), len(stripped.relations)) == (3, 1)
    assert triples(path, strip=True) == [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "a")]
    assert read([("a ", "r", "b"), ("b", "r", "a")], split=WHOLE, strip=True).entities.labels() == ["a", "b"]
    assert not any("spaces" in note for note in read(write("h.tsv", "New York\tr\tb\n"), split=WHOLE).notes)


def test_relations_of_one_split_are_said(write: Write) -> None:
    write("g/train.txt", "a\tr\tb\nb\ts\tc\nc\tu\ta\n")
    write("g/valid.txt", "a\tr\tc\na\tboth\tc\n")
    folder = write("g/test.txt", "b\ts\ta\na\tboth\tb\nc\tnew\ta\n").parent
    notes = read(folder).notes
    assert "only in test, with no train triple to learn from: relation 'new'" in notes
    assert "only in valid and test, with no train triple to learn from: relation 'both'" in notes
    assert "no triple in valid, so that nothing is measured there: relations 's', 'u'" in notes
    assert "no triple in test, so that nothing is measured there: relations 'r', 'u'" in notes
    single = read(write("one.tsv", "".join(f"e{i}\tr\te{i + 1}\n" for i in range(40)) + "e0\trare\te1\n")).notes
    assert any(note.startswith("no triple in test") and "'rare'" in note for note in single)


def test_relations_of_a_pair_are_those_of_its_own_test(write: Write) -> None:
    for name in ("train", "valid", "test"):
        write(f"g/{name}.txt", "a\tr\tb\n" if name == "test" else "a\tr\tb\na\ts\tb\n")
        folder = write(f"g_ind/{name}.txt", "x\ts\ty\n")
    notes = read(folder.parent.parent / "g").notes
    assert [note for note in notes if "no triple in" in note] == [
        "no triple in test, so that nothing is measured there: relation 'r'"
    ]


@pytest.mark.parametrize("content", ["", "\n\n", "head\trelation\ttail\n"])
def test_an_empty_split_is_like_a_missing_one(write: Write, content: str) -> None:
    write("g/train.txt", "a\tr\tb\nb\tr\tc\n")
    write("g/test.txt", "a\tr\tc\n")
    missing = read(write("g/valid.txt", content).parent)
    assert (len(missing.graph), len(missing.valid), len(missing.test)) == (2, 0, 1)
    assert "valid.txt has no triples: taken as if it were not there" in missing.notes
    assert "no valid triples: that split is empty" in missing.notes
    both = read(write("g/test.txt", content).parent, split=WHOLE)
    assert any(note.startswith("split by kgcf") for note in both.notes)
    write("g/train.txt", content)
    folder = write("g/test.txt", "a\tr\tc\n").parent
    with pytest.raises(DataError, match="train.txt is empty"):
        read(folder)


def test_empty_files_of_other_formats(write: Write, tmp_path: Path) -> None:
    write("g/train.txt", "http://x/a\tr\thttp://x/b\nb\tr\tc\n")
    write("g/valid.nt", "")
    pq.write_table(pa.table({name: pa.array([], pa.string()) for name in ("h", "r", "t")}), tmp_path / "g/test.parquet")
    notes = read(tmp_path / "g", split=WHOLE).notes
    assert {"valid.nt has no triples: taken as if it were not there"} <= set(notes)
    assert {"test.parquet has no triples: taken as if it were not there"} <= set(notes)


def test_endings_in_capitals(write: Write, tmp_path: Path) -> None:
    expected = [("a", "r", "b"), ("b", "r", "c")]
    text = "a\tr\tb\nb\tr\tc\n"
    assert triples(write("g.TSV", text)) == expected
    assert triples(write("g.CSV", text.replace("\t", ","))) == expected
    assert triples(write("g.TSV.GZ", gzip.compress(text.encode()))) == expected
    columns = {"head": ["a", "b"], "relation": ["r", "r"], "tail": ["b", "c"]}
    pq.write_table(pa.table(columns), tmp_path / "g.PARQUET")
    assert triples(tmp_path / "g.PARQUET") == expected
    lines = "<http://x/a> <http://x/r> <http://x/b> .\n"
    assert triples(write("g.NT", lines)) == [("http://x/a", "http://x/r", "http://x/b")]
    assert triples(write("g.TTL", lines)) == [("http://x/a", "http://x/r", "http://x/b")]


def test_a_folder_in_capitals(write: Write) -> None:
    write("g/TRAIN.TXT", "a\tr\tb\nb\tr\tc\n")
    folder = write("g/Test.TSV", "a\tr\tc\n").parent
    assert (len(read(folder).graph), len(read(folder).test)) == (2, 1)
    write("g/test.txt", "a\tr\tc\n")
    with pytest.raises(DataError, match=r"has both test.txt and Test.TSV"):
        read(folder)
