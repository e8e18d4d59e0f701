"""Text files of every layout we claim to read, and every way they go wrong, with file and line."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgcf.data.parsing import TripleTable
from kgcf.data.reader import read_table
from kgcf.data.reading_options import Reading
from kgcf.errors import DataError

Write = Callable[[str, str | bytes], Path]


def rows(table: TripleTable) -> list[tuple[str, str, str]]:
    return list(zip(table.heads.to_pylist(), table.relations.to_pylist(), table.tails.to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("name", "content", "expected", "note"),
    [
        ("a.tsv", "a\tr\tb\nb\tr\tc\n", [("a", "r", "b"), ("b", "r", "c")], "tab separated, no header"),
        ("a.csv", "a,r,b\n", [("a", "r", "b")], "comma separated, no header"),
        ("a.csv", '"x, y",r,"say ""b"""\n', [("x, y", "r", 'say "b"')], "comma"),
        ("a.csv", '"two\nlines",r,b\n', [("two\nlines", "r", "b")], "comma"),
        ("a.csv", "a;r;b\nc;r;d\n", [("a", "r", "b"), ("c", "r", "d")], "semicolon"),
        ("a.txt", "a r b\nc r d\n", [("a", "r", "b"), ("c", "r", "d")], "space"),
        ("a.tsv", "head\trelation\ttail\na\tr\tb\n", [("a", "r", "b")], "with a header"),
        ("a.csv", "object,subject,predicate\nb,a,r\n", [("a", "r", "b")], "in columns 2, 3, 1"),
        ("a.csv", "id,head,relation,tail\n7,a,r,b\n", [("a", "r", "b")], "1 other column left out"),
        ("a.tsv", '"a\tr\tb"\n', [('"a', "r", 'b"')], "tab"),
        ("a.tsv", "\ufeffa\tr\tb\r\n\r\nc\tr\td\r\n", [("a", "r", "b"), ("c", "r", "d")], "tab"),
        ("a.tsv", "NA\tnull\t\u00e9t\u00e9\n", [("NA", "null", "été")], "tab"),
        ("a.tsv", "1\t0\t2\n", [("1", "0", "2")], "tab"),
        ("a.tsv", "a b\tr s\tc, d\n", [("a b", "r s", "c, d")], "tab"),
        ("a.tsv", "a\tr\tb", [("a", "r", "b")], "tab"),
    ],
)
def test_layouts(write: Write, name: str, content: str, expected: list[tuple[str, str, str]], note: str) -> None:
    plain = read_table(write(name, content))
    assert rows(plain) == expected
    assert note in plain.notes[0]
    packed = read_table(write(name + ".gz", gzip.compress(content.encode())))
    assert rows(packed) == expected


@pytest.mark.parametrize(
    "content",
    [
        "a\tr\tb\t0.5\nb\tr\tc\t2\n",
        "h\tr\tt\tweight\na\tr\tb\t0.5\nb\tr\tc\t2\n",
        "x\ty\tz\tstrength\na\tr\tb\t.5\nb\tr\tc\t2\n",
    ],
)
def test_a_fourth_numeric_column_is_a_weight(write: Write, content: str) -> None:
    table = read_table(write("a.tsv", content))
    assert table.weights is not None
    assert table.weights.tolist() == [0.5, 2.0]
    assert len(table) == 2


def test_header_can_be_said(write: Write) -> None:
    path = write("a.tsv", "drug\ttreats\tdisease\na\tr\tb\n")
    assert len(read_table(path)) == 2
    assert rows(read_table(path, Reading(header=True))) == [("a", "r", "b")]
    named = write("b.tsv", "head\trelation\ttail\na\tr\tb\n")
    assert len(read_table(named, Reading(header=False))) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "a\tr\tb\nb\tr\n", r"a.tsv, line 2: 2 columns where the first line has 3"),
        ("a.tsv", "a\tr\tb\n\nb\tr\tc\td\n", r"a.tsv, line 3: 4 columns where"),
        ("a.tsv", "a\tr\tb\nb\tr\t\n", r"a.tsv, line 2: the tail is empty"),
        ("a.tsv", "a\tr\tb\nb\t  \tc\n", r"a.tsv, line 2: the relation is empty"),
        ("a.csv", "head,relation,tail\n,r,b\n", r"a.csv, line 2: the head is empty"),
        ("a.tsv", b"a\tr\tb\nb\tr\tb\nb\tr\t\xe9\n", r"a.tsv, line 3: byte 0xe9 is not valid UTF-8"),
        ("a.tsv", "a\tr\tb".encode("utf-16"), r"encoded as UTF-16"),
        ("a.tsv", "", r"a.tsv is empty"),
        ("a.tsv", "\n \n", r"a.tsv is empty"),
        ("a.csv", "head,relation,tail\n", r"a.csv is empty"),
        ("a.txt", "hello\nworld\n", r"a.txt, line 1: cannot find three columns in 'hello'"),
        ("a.csv", "a,r,b,foo\nc,r,d,bar\n", r"line 1: 4 columns and no header"),
        ("a.csv", "a,r,b,1\nc,r,d,2\ne,r,f,x\n", r"line 3: the weight 'x' is not a number"),
        ("a.csv", '"two\nlines",r,b\nc,r\n', r"a.csv, line 3: 2 columns"),
        ("a.tsv.gz", gzip.compress(b"a\tr\tb\n" * 50_000, mtime=0)[:200], r"damaged or cut short"),
        ("a.tsv.gz", gzip.compress(b"a\tr\tb\n", mtime=0)[:12], r"damaged or cut short"),
        ("a.tsv.gz", b"a\tr\tb\n", r"named .gz but is not gzip"),
        ("a.parquet", b"PAR1 nonsense", r"not a readable Parquet file"),
    ],
)
def test_bad_files_get_a_sentence(write: Write, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_table(write(name, content))


def test_problems_far_into_a_large_file_are_located(write: Write) -> None:
    path = write("a.tsv", "a\tr\tb\n" * 300_000 + "a\tr\n" + "a\tr\tb\n" * 10)
    with pytest.raises(DataError, match="line 300001: 2 columns"):
        read_table(path)


def test_a_folder_or_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder where a file"):
        read_table(tmp_path)
    with pytest.raises(DataError, match="cannot be opened: No such file"):
        read_table(tmp_path / "none.tsv")


def test_parquet_by_name_by_position_and_with_integers(tmp_path: Path) -> None:
    named = pa.table({"object": ["b"], "subject": ["a"], "predicate": ["r"], "confidence": [0.25]})
    pq.write_table(named, tmp_path / "named.parquet")
    table = read_table(tmp_path / "named.parquet")
    assert rows(table) == [("a", "r", "b")]
    assert table.weights is not None
    assert table.weights.tolist() == [0.25]
    pq.write_table(pa.table({"x": [1, 2], "y": [0, 0], "z": [2, 3]}), tmp_path / "ids.parquet")
    assert rows(read_table(tmp_path / "ids.parquet")) == [("1", "0", "2"), ("2", "0", "3")]
    pq.write_table(pa.table({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "c"]}), tmp_path / "n.parquet")
    with pytest.raises(DataError, match="an empty label in at least one row"):
        read_table(tmp_path / "n.parquet")
    pq.write_table(pa.table({"x": ["a"], "y": ["b"]}), tmp_path / "two.parquet")
    with pytest.raises(DataError, match="needs head, relation and tail"):
        read_table(tmp_path / "two.parquet")
