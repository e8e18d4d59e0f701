"""`read` with the user's own splits: files, frames, arrays and lists; and what it says to nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kgcf.data.source import read
from kgcf.data.splitting import SplitSettings
from kgcf.errors import DataError, KgcfError, SettingsError
from tests.data.test_reader import facts

Write = Callable[[str, str | bytes], Path]
COLUMNS = ["head", "relation", "tail"]
TRAIN = [("a", "r", "b"), ("b", "s", "c")]


@pytest.mark.parametrize("kind", [list, np.array, pd.DataFrame, pl.DataFrame, "file", "path"])
def test_splits_of_one_kind(kind: Any, write: Write) -> None:
    def made(rows: list[tuple[str, str, str]], name: str) -> Any:
        if isinstance(kind, str):
            path = write(f"{name}.tsv", "".join("\t".join(row) + "\n" for row in rows))
            return str(path) if kind == "file" else path
        if kind is pl.DataFrame:
            return pl.DataFrame(rows, schema=COLUMNS, orient="row")
        return pd.DataFrame(rows, columns=COLUMNS) if kind is pd.DataFrame else kind(rows)

    data = read(train=made(TRAIN, "mine"), valid=made([("a", "s", "c")], "v"), test=made([("c", "r", "a")], "t"))
    assert facts(data, data.train) == TRAIN
    assert facts(data, data.valid) == [("a", "s", "c")]
    assert facts(data, data.test) == [("c", "r", "a")]
    assert len(data.valid.known) == 3
    assert len(data.test.known) == 4
    assert data.name == ("mine" if isinstance(kind, str) else "frame")


def test_absent_and_empty_splits_are_empty_and_nothing_is_split_again(write: Write) -> None:
    data = read(train=TRAIN * 30, test=write("empty.tsv", ""))
    assert [len(split) for split in data.splits] == [2, 0, 0]
    assert "no valid triples: that split is empty" in data.notes
    assert "no test triples: that split is empty" in data.notes


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({}, DataError, "There is nothing to read: give a benchmark's name, a folder, a file"),
        ({"source": None}, DataError, "There is nothing to read"),
        ({"source": "world", "valid": TRAIN}, SettingsError, r"either one source or splits of your own \(valid=\)"),
        ({"test": TRAIN, "valid": TRAIN}, SettingsError, "There is valid= and test= but no train="),
        ({"train": TRAIN, "split": SplitSettings()}, SettingsError, "train=, valid= and test= are taken as they are"),
        ({"train": "no/such.tsv"}, DataError, "train='no/such.tsv' is no file"),
        ({"train": TRAIN, "valid": 5}, DataError, "valid: expected a frame, .*, found a value of type int"),
        ({"source": 5}, DataError, "found a value of type int"),
    ],
)
def test_mistakes(given: dict[str, Any], error: type[KgcfError], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        read(**given)
