"""Labels are compared where they exist."""

import numpy as np
import pytest

from kgcf.causal.treatment.labels import LabelChanges, LabelTable


@pytest.fixture
def table() -> LabelTable:
    """Six entities, three relations: the first has two labels, the second none, the third one entity."""
    return LabelTable(
        entity_count=6,
        groups=np.array([0, 1, 2], np.int32),
        offsets=np.array([0, 4, 4, 5]),
        entities=np.array([0, 2, 3, 5, 1], np.int32),
        labels=np.array([7, 7, 1, 7, 2], np.int32),
    )


def test_dense_and_of(table: LabelTable) -> None:
    assert table.dense(0).tolist() == [7, 0, 7, 1, 0, 7]
    assert table.dense(1).tolist() == [0] * 6
    assert table.dense(2 + 3).tolist() == [0, 2, 0, 0, 0, 0]
    assert [part.tolist() for part in table.of(0)] == [[0, 2, 3, 5], [7, 7, 1, 7]]
    assert [part.tolist() for part in table.of(1)] == [[], []]


def test_ids_outside_the_graph_have_no_label(table: LabelTable) -> None:
    assert table.compare([-1, 0], [0, 0], [[-1, 0, 6], [-1, 2, 6]], LabelChanges.none(2)).tolist() == [
        [False, False, False],
        [False, True, False],
    ]


def test_compare_with_changes(table: LabelTable) -> None:
    changes = LabelChanges(
        np.array([0, 2, 3]), np.array([0, 3, 0], np.int32), np.array([1, 7, 0], np.int32)
    )  # first query: 0 → 1, 3 → 7; second query: 0 loses its label
    every = table.compare([0, 0], [0, 3], None, changes)
    assert every.tolist() == [[True, False, False, False, False, False], [False] * 6]
    some = table.compare([2, 2], [0, 0], [[0, 3, 5, 2], [0, 3, 5, 2]], changes)
    assert some.tolist() == [[False, True, True, True], [False, False, True, True]]
    assert changes.of(0) == {0: 1, 3: 7}


def test_any_order_and_type_of_input(table: LabelTable) -> None:
    heads = np.arange(6, dtype=np.int32)
    candidates = np.asfortranarray(np.tile(np.arange(6, dtype=np.int32), (6, 1)))
    candidates.setflags(write=False)
    found = table.compare(heads, np.zeros(6, np.int8), candidates, LabelChanges.none(6))
    np.testing.assert_array_equal(found, table.compare(heads, [0] * 6, None, LabelChanges.none(6)))
    assert table.compare([], [], np.zeros((0, 4)), LabelChanges.none(0)).shape == (0, 4)
    assert table.compare([], [], None, LabelChanges.none(0)).shape == (0, 6)


def test_tables_cannot_be_written(table: LabelTable) -> None:
    with pytest.raises(ValueError, match="read-only"):
        table.labels[0] = 3


def test_shapes_that_do_not_fit(table: LabelTable) -> None:
    none = LabelChanges.none(2)
    with pytest.raises(ValueError, match="2 heads, 1 relations and 2 hidden sets"):
        table.compare([0, 1], [0], None, none)
    with pytest.raises(ValueError, match="2 heads, 2 relations and 3 hidden sets"):
        table.compare([0, 1], [0, 0], None, LabelChanges.none(3))
    for candidates in ([[0, 1]], [0, 1], [[[0]], [[1]]]):
        with pytest.raises(ValueError, match="a table of 2 rows"):
            table.compare([0, 1], [0, 0], candidates, none)
    for relation in (-1, 6):
        with pytest.raises(ValueError, match="outside 0 … 5"):
            table.dense(relation)
