"""Weights of all three splits are kept, also in a run folder; impossible ones are refused with their place."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgcf.config import configure
from kgcf.data.dataset import Dataset
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.source import read
from kgcf.data.splitting import SplitSettings
from kgcf.errors import DataError
from kgcf.runs.folder import RunFolder
from kgcf.runs.model_file import new_model
from kgcf.runs.run import Run
from kgcf.storage import map_arrays, save_arrays

Write = Callable[[str, str | bytes], Path]
WEIGHTS = {("e0", "e1"): 0.5, ("e1", "e2"): 2.0, ("e2", "e3"): 0.25, ("e3", "e0"): 4.0}
LINES = {pair: f"{pair[0]}\tr\t{pair[1]}\t{weight}\n" for pair, weight in WEIGHTS.items()}
PAIRS = list(WEIGHTS)


def by_pair(graph: KnowledgeGraph, data: Dataset) -> dict[tuple[str, str], float]:
    assert graph.weights is not None
    label = data.test.entities.label
    rows = zip(graph.triples.tolist(), graph.weights.tolist(), strict=True)
    return {(label(h), label(t)): weight for (h, _, t), weight in rows}


def weighted_folder(write: Write, name: str = "g") -> Path:
    write(f"{name}/train.txt", LINES[PAIRS[0]] + LINES[PAIRS[1]])
    write(f"{name}/valid.txt", LINES[PAIRS[2]])
    return write(f"{name}/test.txt", LINES[PAIRS[3]]).parent


def saved(data: Dataset, path: Path) -> Run:
    """A run of the data as it comes back from its folder, untrained."""
    settings = configure("nbfnet", changes=["encoder.layers=2", "encoder.width=8"])
    folder = RunFolder(path)
    folder.create(data, settings, "nbfnet")
    return Run(folder, new_model(settings, len(data.relations)), folder.dataset(), settings)


def test_observing_all_observes_the_weights_of_valid_and_test(write: Write, tmp_path: Path) -> None:
    run = saved(read(weighted_folder(write)), tmp_path / "run")
    assert by_pair(run.observe().graph, run.data) == WEIGHTS
    assert by_pair(run.observe(observed="train").graph, run.data) == {pair: WEIGHTS[pair] for pair in PAIRS[:2]}


def test_a_file_that_kgcf_splits_keeps_every_weight(write: Write, tmp_path: Path) -> None:
    rows = [(f"e{a}", "r", f"e{b}", 1 + a / 10 + b / 100) for a in range(8) for b in range(8) if a < b]
    path = write("g.tsv", "".join("\t".join(map(str, row)) + "\n" for row in rows))
    run = saved(read(path, split=SplitSettings(valid=0.2, test=0.2)), tmp_path / "run")
    assert min(len(run.data.valid), len(run.data.test)) > 0
    expected = {(h, t): pytest.approx(weight) for h, _, t, weight in rows}
    assert by_pair(run.observe().graph, run.data) == expected


def test_the_new_graph_of_a_pair_keeps_every_weight(write: Write, tmp_path: Path) -> None:
    weighted_folder(write, "g_ind")
    data = read(weighted_folder(write))
    assert data.inductive
    run = saved(data, tmp_path / "run")
    assert by_pair(run.observe().graph, run.data) == WEIGHTS


def test_a_split_without_weights_weighs_one(write: Write) -> None:
    folder = weighted_folder(write)
    write("g/train.txt", "e0\tr\te1\ne1\tr\te2\n")
    data = read(folder)
    assert data.graph.weights is None
    assert by_pair(data.test.known, data) == {**WEIGHTS, PAIRS[0]: 1, PAIRS[1]: 1}


def test_runs_from_before_still_open(write: Write, tmp_path: Path) -> None:
    run = saved(read(weighted_folder(write)), tmp_path / "run")
    path = run.folder.file("splits.safetensors")
    save_arrays(path, {name: np.array(a) for name, a in map_arrays(path).items() if name in ("valid", "test")})
    data = run.folder.dataset()
    assert by_pair(data.test.known, data) == {**WEIGHTS, PAIRS[2]: 1, PAIRS[3]: 1}
    weighted_folder(write, "g_ind")
    pair = saved(read(tmp_path / "g"), tmp_path / "pair")
    path = pair.folder.file("splits.safetensors")
    kept = {name: np.array(a) for name, a in map_arrays(path).items() if not name.endswith("_weights")}
    save_arrays(path, kept)
    data = pair.folder.dataset()
    assert by_pair(data.test.known, data) == {**WEIGHTS, PAIRS[2]: 1, PAIRS[3]: 1}


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("-1", "'-1' is not above 0"),
        ("0", "'0' is not above 0"),
        ("1e-60", "'1e-60' is not above 0"),
        ("nan", "'nan' is not a finite number"),
        ("inf", "'inf' is not a finite number"),
        ("1e60", "'1e60' is not a finite number"),
        ("much", "'much' is not a number"),
        ("", "'' is not a number"),
    ],
)
@pytest.mark.parametrize("separator", ["\t", ","])
def test_impossible_weights_in_text(write: Write, weight: str, message: str, separator: str) -> None:
    rows = [("a", "r", "b", "1"), ("b", "r", "c", "2"), ("c", "r", "d", weight), ("d", "r", "e", "1")]
    path = write("g.txt", "".join(separator.join(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=rf"g.txt, line 3: the weight {message}\. A weight multiplies"):
        read(path)


def test_impossible_weights_elsewhere(tmp_path: Path) -> None:
    columns = {"head": ["a", "b"], "relation": ["r", "r"], "tail": ["b", "c"]}
    with pytest.raises(DataError, match="frame, row 2: the weight '-1.0' is not above 0"):
        read(pd.DataFrame({**columns, "weight": [1.0, -1.0]}))
    with pytest.raises(DataError, match="frame, row 2: the weight 'x' is not a number"):
        read(pd.DataFrame({**columns, "weight": ["1", "x"]}))
    with pytest.raises(DataError, match="frame, item 1: the weight 'None' is not a number"):
        read([("a", "r", "b", 1), ("b", "r", "c", None)])
    with pytest.raises(DataError, match="frame, item 0: the weight 'nan' is not a finite number"):
        read([("a", "r", "b", float("nan"))])
    pq.write_table(pa.table({**columns, "weight": [0.0, 1.0]}), tmp_path / "g.parquet")
    with pytest.raises(DataError, match=r"g.parquet, row 1: the weight '0.0' is not above 0"):
        read(tmp_path / "g.parquet")
