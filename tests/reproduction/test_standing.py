"""Outdated and damaged cells: listed, told of in the report, computed again; new settings outdate nothing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgcf.config import PRESETS, configure, settings_from, write_toml
from kgcf.errors import KgcfError, StorageError
from kgcf.reproduction import work
from kgcf.reproduction.cells import Cell
from kgcf.reproduction.report.gathering import gather
from kgcf.reproduction.standing import changed_settings, standing_of
from kgcf.reproduction.store import Store
from kgcf.reproduction.targets import PATHS, TARGETS
from tests.reproduction.test_report import pretended, reproduce

CELL = TARGETS["table3"]("quick")[0]
TIMED = Cell("train", "fb15k-237", "x", seconds=60.0)


def recorded(cell: Cell, **other: Any) -> dict[str, Any]:
    """A result whose configuration is the present one, but for some settings (`section__key`)."""
    found = configure(cell.preset, cell.dataset, changes=cell.changes, seed=cell.seed).model_dump(mode="json")
    for name, value in other.items():
        section, key = name.split("__")
        found[section][key] = value
    return {**pretended(cell, {}), "configuration": found}


def test_a_setting_that_changed_outdates_a_cell_and_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(CELL, recorded(CELL))
    assert standing_of(store, CELL).word == "done"
    store.write(CELL, recorded(CELL, training__batch_size=99))
    found = standing_of(store, CELL)
    assert (found.word, found.why) == ("outdated", "training.batch_size: 99 → 32")


def test_a_preset_that_changes_outdates_what_was_made_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.write(CELL, recorded(CELL))
    monkeypatch.setitem(PRESETS, CELL.preset, {**PRESETS[CELL.preset], "objective": {"alpha": 0.5}})
    assert "objective.alpha" in standing_of(store, CELL).why


def test_settings_that_are_new_or_gone_and_what_others_settle_outdate_nothing() -> None:
    cell = replace(CELL, dataset="unknown")
    now = recorded(cell, training__threads=7, training__remove="pair", encoder__gone=1)["configuration"]
    del now["encoder"]["semantics"]
    assert changed_settings(cell, now) == ()
    without, with_memory = (replace(cell, changes=(f"memory.enabled={word}",)) for word in ("off", "on"))
    assert changed_settings(without, recorded(without, memory__rank=7)["configuration"]) == ()
    assert changed_settings(with_memory, recorded(with_memory, memory__rank=7)["configuration"])
    deeper = recorded(TIMED, encoder__layers=5, training__budget=77, memory__enabled="off", objective__negatives=9)
    free = replace(TIMED, dataset="unknown")
    free_recorded = recorded(free, encoder__layers=5, training__budget=77, memory__enabled="off")["configuration"]
    assert changed_settings(free, free_recorded) == ()
    said = changed_settings(replace(TIMED, seconds=None), deeper["configuration"])
    assert any("training.budget" in each for each in said)  # nobody else chooses it without a given time


def test_only_what_substitutes_depend_on_outdates_a_table_of_them() -> None:
    cell = TARGETS["table2"]("quick")[0]
    assert changed_settings(cell, recorded(cell, objective__alpha=0.7, training__epochs=3)["configuration"]) == ()
    for name in ("treatment__method", "space__dimension", "matching__candidates", "training__remove"):
        assert name.split("__")[1] in str(changed_settings(cell, recorded(cell, **{name: 9})["configuration"]))


def test_reports_and_lists_say_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second, third = TARGETS["table3"]("quick")[:3]
    store.write(first, recorded(first))
    store.write(second, recorded(second, training__batch_size=99))
    found = gather(store, "table3")
    assert found is not None
    assert "**1 of these cells is outdated**" in found.line
    assert "training.batch_size: 99 → 32" in found.line
    store.file(third).write_text("{")
    listed = reproduce("table3", "--quick", "--list", "--results", tmp_path).stdout
    assert f"done      {first.name}" in listed
    assert f"outdated  {second.name}" in listed
    assert f"damaged   {third.name}" in listed
    with pytest.raises(KgcfError, match="is damaged"):
        reproduce("report", "--results", tmp_path, "--document", tmp_path / "r.md")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ({"metrics": None}, "it has no metrics"),
        ({"metrics": {"mrr": 0.5}}, "it has no mr, hits@10"),
        ({"times": {}}, "it has no training_seconds"),
        ({"ranks": None}, "it has no ranks"),
        ({"configuration": []}, "it has no configuration"),
        ({"machine": "mine"}, "it has no machine"),
        ({"cell": {}}, "it does not say which cell it is of"),
        ({"cell": replace(CELL, dataset="world").to_json()}, "it is the result of another cell, train-world"),
    ],
)
def test_a_file_that_is_no_whole_result_of_its_cell_is_damaged(harm: dict[str, Any], said: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(CELL, recorded(CELL))
    assert [cell for cell, _ in store.finished()] == [CELL]
    found = json.loads(store.file(CELL).read_text()) | harm
    store.file(CELL).write_text(json.dumps({key: value for key, value in found.items() if value is not None}))
    standing = standing_of(store, CELL)
    assert standing.word == "damaged"
    assert said in standing.why
    assert not [cell for cell, _ in store.finished() if cell == CELL]
    with pytest.raises(StorageError, match="is damaged"):
        gather(store, "table3")


def test_outdated_cells_are_computed_when_asked_and_damaged_ones_always(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, said = Store(tmp_path), list[str]()
    store.write(CELL, recorded(CELL, training__batch_size=99))
    before = store.file(CELL).read_bytes()

    def fails(*given: object) -> dict[str, Any]:
        raise RuntimeError("stopped")

    monkeypatch.setattr(work, "compute", fails)
    assert work.compute_cells(store, [CELL], said.append).outdated == [CELL]
    assert len(work.compute_cells(store, [CELL], said.append, again=True).failed) == 1
    assert store.file(CELL).read_bytes() == before  # replaced only by what is finished
    monkeypatch.setattr(work, "compute", lambda *given: recorded(CELL))
    assert work.compute_cells(store, [CELL], said.append, again=True).computed == [CELL]
    assert standing_of(store, CELL).word == "done"
    assert work.compute_cells(store, [CELL], said.append, again=True).there == [CELL]
    store.file(CELL).write_text(json.dumps({"format": 99}))
    assert work.compute_cells(store, [CELL], said.append).computed == [CELL]
    assert "computed again" in said[-2]
    assert "another version" in said[-2]


def test_only_reads_the_words_of_a_variant() -> None:
    listed = reproduce("ablations", "--only", "disc frobenius,semantics nbfnet", "--list").stdout.splitlines()
    assert len(listed) == 6  # two variants, three graphs, one seed
    assert PATHS not in "".join(listed)


def test_a_run_that_cannot_go_on_is_told_of_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may be full, or the network away: hours of training are not thrown away for that."""
    store = Store(tmp_path)
    folder = store.run_folder(CELL)
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    (folder / "config.toml").write_text(write_toml(settings_from(recorded(CELL)["configuration"])))

    def full(*_: object) -> None:
        raise StorageError("No space is left.")

    monkeypatch.setattr(work, "resume", full)
    outcome = work.compute_cells(store, [CELL], print)
    assert [told for _, told in outcome.failed] == [f"No space is left. To train this cell anew, delete {folder}."]
    assert (folder / "run.json").is_file()
