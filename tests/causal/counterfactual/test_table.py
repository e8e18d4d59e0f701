"""Tables travel through Parquet and arrays unharmed, and say on what they stand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from kgcf.causal.counterfactual import CounterfactualTable, match_pairs
from kgcf.causal.counterfactual.table import COLUMNS
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import StorageError

from .oracles import random_case


def make_table(candidates: str = "observed") -> tuple[CounterfactualTable, int, int]:
    graph, space, treatment = random_case(6, lattice=False)
    queries = np.concatenate([graph.triples, graph.triples[:, ::-1]])
    queries[len(graph) :, 1] += graph.relation_count
    table = match_pairs(queries, graph, space, treatment, candidates, threads=1)  # type: ignore[arg-type]
    assert table.remove == "triple"
    return table, graph.entity_count, graph.relation_count


@pytest.mark.parametrize("candidates", ["all", "observed"])
def test_parquet_round_trip(candidates: str, tmp_path: Path) -> None:
    table, n, r = make_table(candidates)
    table = replace(table, remove="pair")
    table.to_parquet(tmp_path / "ids.parquet")
    table.to_parquet(tmp_path / "names.parquet", Vocabulary.numbered(n), Vocabulary([f"r{i}" for i in range(r)]))
    for file in ("ids.parquet", "names.parquet"):
        again = CounterfactualTable.from_parquet(tmp_path / file)
        for name in COLUMNS:
            assert getattr(again, name).dtype == getattr(table, name).dtype
            assert (getattr(again, name) == getattr(table, name)).all()
        assert (again.candidates, again.leave_one_out, again.remove) == (candidates, True, "pair")
    labels = pq.read_table(tmp_path / "names.parquet").to_pylist()
    assert [row["head_label"] for row in labels] == [str(h) for h in table.triples[:, 0]]
    assert labels[-1]["relation_label"] == f"inverse of r{table.triples[-1, 1] - r}"
    assert all((row["substitute_head_label"] is None) == (not row["matched"]) for row in labels)


def test_names_stand_beside_labels(tmp_path: Path) -> None:
    table, n, r = make_table()
    entities = Vocabulary.numbered(n).with_names({str(i): "same" for i in range(0, n, 2)})
    table.to_parquet(tmp_path / "t.parquet", entities, Vocabulary([f"r{i}" for i in range(r)], {"r0": "likes"}))
    assert (CounterfactualTable.from_parquet(tmp_path / "t.parquet").triples == table.triples).all()
    for row in pq.read_table(tmp_path / "t.parquet").to_pylist():
        for part in ("head", "tail", "substitute_head", "substitute_tail"):
            label = row[f"{part}_label"]
            assert row[f"{part}_name"] == (None if label is None else entities.display(int(label)))
        likes = {0: "likes", r: "inverse of likes"}
        assert row["relation_name"] == likes.get(row["relation"], row["relation_label"])


def test_the_swapped_query_has_the_swapped_substitute() -> None:
    table, _, _ = make_table()
    half = len(table) // 2
    assert table.matched.any()
    assert (table.substitutes[:half] == table.substitutes[half:, ::-1]).all()
    assert (table.distances[:half] == table.distances[half:]).all()
    assert (table.counterfactual_outcomes[:half] == table.counterfactual_outcomes[half:]).all()


def test_arrays_round_trip_and_notes() -> None:
    table, _, _ = make_table("all")
    again = CounterfactualTable.from_arrays(table.arrays(), "all", True, "triple")
    assert (again.substitutes == table.substitutes).all()
    assert "treatment on the full graph" in table.note
    observed = make_table("observed")[0]
    assert "without its own edge where it is a train triple" in observed.note
    assert "each with its treatment without any link between its ends" in replace(observed, remove="pair").note


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    table, _, _ = make_table()
    path = tmp_path / "t.parquet"
    table.to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StorageError, match="Write it again"):
        CounterfactualTable.from_parquet(path)
