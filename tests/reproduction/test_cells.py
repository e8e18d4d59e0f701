"""Cells: named by what decides them, computed once, resumed, shared among processes; targets at three scales."""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kgcf.baselines.catalogue import BASELINES
from kgcf.config import configure
from kgcf.errors import KgcfError, StorageError, UnknownNameError
from kgcf.pipeline import Execution, fit
from kgcf.reproduction import work
from kgcf.reproduction.cells import SCALES, Cell, Scale
from kgcf.reproduction.published import PUBLISHED
from kgcf.reproduction.published_settings import STATED, published_settings
from kgcf.reproduction.store import Store
from kgcf.reproduction.targets import (
    ABLATED,
    ABLATIONS,
    CONTROL,
    DECISIVE,
    DEFAULT,
    LONG,
    PAPER,
    PATHS,
    PLAIN,
    TARGETS,
    WHOLE,
    WITHOUT,
    WITHOUT_CONTROL,
    cells_of,
)
from kgcf.runs.time_budget import is_given
from tests.baselines.test_runs import Interrupting
from tests.training.tiny import dataset

CELL = Cell("train", "tiny", "drum", "drum", changes=("training.epochs=2", "baseline.hidden=4"), ranks=True)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every name is the tiny graph."""
    monkeypatch.setattr(work, "read", lambda name: replace(dataset(), name=name))
    work._data.cache_clear()
    yield
    work._data.cache_clear()


def test_a_key_changes_with_everything_that_decides_the_outcome() -> None:
    others = [
        replace(CELL, seed=1),
        replace(CELL, changes=()),
        replace(CELL, seconds=3.0),
        replace(CELL, dataset="umls"),
        replace(CELL, preset="paper"),
        replace(CELL, limit=3),
    ]
    assert len({cell.key for cell in (CELL, *others)}) == 7
    assert replace(CELL, variant="another word for it").key == CELL.key


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_of_every_target_can_be_configured(scale: str) -> None:
    for target in TARGETS:
        cells = TARGETS[target](scale)  # type: ignore[arg-type]
        assert cells
        assert len({cell.key for cell in cells}) == len(cells), target
        for cell in cells:
            if cell.kind != "train":
                continue
            baseline = cell.model if cell.model in BASELINES else None
            configure(cell.preset, changes=cell.changes, seed=cell.seed, baseline=baseline)


def test_table1_has_all_systems_and_the_paper_prints_them() -> None:
    variants = {cell.variant for cell in TARGETS["table1"]("default")}
    assert {*BASELINES, "nbfnet", PAPER, PATHS, DEFAULT} == variants
    for printed in PUBLISHED.values():
        assert set(printed) == {*BASELINES, "nbfnet", "kgcf"} - {"frequency"}
    assert PUBLISHED["wn18rr"]["kgcf"].mrr == 0.553
    assert CONTROL in ABLATIONS


def test_full_trains_large_graphs_as_published() -> None:
    cells = {(cell.dataset, cell.model): cell for cell in TARGETS["table1"]("full") if cell.seed == 0}
    for graph, models in STATED.items():
        for name in models:
            stated = published_settings(graph, name)
            assert stated
            assert cells[graph, name].changes[-len(stated) :] == stated
            settings = configure(changes=cells[graph, name].changes, baseline=name)  # every setting exists, and fits
            assert settings.training.validate_triples == 500
    rotate = configure(changes=cells["wn18rr", "rotate"].changes, baseline="rotate").model_dump()
    assert rotate["baseline"]["dimension"] == 500
    assert (rotate["training"]["batch_size"], rotate["training"]["epochs"]) == (512, 472)  # 80,000 steps
    assert published_settings("wn18rr", "rgcn-conve") == published_settings("umls", "rotate") == ()
    default = {(cell.dataset, cell.model): cell for cell in TARGETS["table1"]("default") if cell.seed == 0}
    assert not any("baseline" in change for cell in default.values() for change in cell.changes)
    larger = {
        model for (graph, model), c in default.items() if graph == "wn18rr" and "training.batch_size=2048" in c.changes
    }
    assert larger == {
        f"{encoder}-{decoder}" for encoder in ("rgcn", "compgcn") for decoder in ("transe", "distmult", "conve")
    }


def test_ablations_name_every_discrepancy_and_control_what_asks_for_substitutes() -> None:
    for kind in ("frobenius", "mean", "none"):
        assert any(name.startswith(f"disc {kind}") for name in ABLATIONS)
    losses = {
        cell.variant: configure(cell.preset, changes=cell.changes, seed=cell.seed)
        for cell in TARGETS["ablations"]("default")
    }
    assert losses["disc none (only L_CF)"].objective.beta == 0
    assert losses["disc none (only L_CF)"].objective.alpha == 0.1
    assert losses["L_CF weighted by distance"].objective.cf_weight == "distance"
    assert losses["L_CF of the nearest quarter"].objective.cf_weight == 0.25
    asked = losses["L_CF asks for substitutes"]
    control = losses["L_CF asks for substitutes, shuffled (control)"]
    assert asked.objective == control.objective
    assert (asked.objective.cf_state, control.treatment.method) == ("substitute", "shuffled_core")
    assert losses["L_CF flips and asks"].objective.cf_state == "both"
    assert losses["losses of preset paper"].objective == configure("paper").objective
    assert losses["losses of preset paper"].treatment.leave_one_out  # all else as in preset default


def test_what_the_control_decides_has_several_seeds_and_the_full_scale_has_them_everywhere() -> None:
    seeds = defaultdict(set)
    for cell in TARGETS["ablations"]("default"):
        seeds[cell.variant].add(cell.seed)
    assert {variant for variant, found in seeds.items() if len(found) > 1} == DECISIVE
    assert {WHOLE, WITHOUT, CONTROL, WITHOUT_CONTROL} <= DECISIVE
    assert set(seeds) == set(ABLATIONS)
    full = TARGETS["ablations"]("full")
    assert len(full) == len(ABLATED) * len(ABLATIONS) * len({cell.seed for cell in full})


@pytest.mark.parametrize("scale", SCALES)
def test_what_is_compared_with_nbfnet_or_a_control_has_no_memory(scale: str) -> None:
    """A memory beside one of two variants would be the difference that the table then calls counterfactual."""
    for target in ("table3", "figure4", "ablations"):
        for cell in TARGETS[target](scale):  # type: ignore[arg-type]
            assert configure(cell.preset, changes=cell.changes, seed=cell.seed).memory.enabled == "off", cell
    own = {
        cell.variant: configure(cell.preset, changes=cell.changes)
        for cell in TARGETS["table1"]("default")
        if cell.model == "kgcf"
    }
    assert (own[PATHS].memory.enabled, own[DEFAULT].memory.enabled) == ("off", "auto")


@pytest.mark.parametrize("scale", ["default", "full"])
def test_variants_that_have_the_same_time_have_the_same_depth_and_negatives(scale: Scale) -> None:
    """A survey of a busy machine would choose them for every cell anew."""
    for target in ("table1",):
        shapes = defaultdict(set)
        for cell in TARGETS[target](scale):
            if cell.model != "kgcf" or cell.seconds is None:
                continue
            given = configure(benchmark=cell.dataset, changes=cell.changes)
            assert is_given(given, "encoder.layers")
            assert is_given(given, "objective.negatives")
            shapes[cell.dataset].add((given.encoder.layers, given.objective.negatives))
        own = {name: configure(benchmark=name) for name in shapes}  # as their own settings say
        assert shapes == {name: {(own[name].encoder.layers, own[name].objective.negatives)} for name in own}
        assert set(own) == ({"wn18rr", "fb15k-237"} if scale == "full" else set())


@pytest.mark.parametrize(("dataset", "layers"), [("wn18rr", 6), ("fb15k-237", 3)])
def test_on_large_graphs_our_own_have_the_same_passes_and_no_memory(dataset: str, layers: int) -> None:
    cells = [c for c in TARGETS["table1"]("default") if c.dataset == dataset and c.model == "kgcf"]
    assert [cell.variant for cell in cells] == ["nbfnet", PAPER, PATHS]
    for cell in cells:
        found = configure(cell.preset, cell.dataset, changes=cell.changes)
        assert (cell.seconds, found.encoder.layers, found.training.epochs) == (None, layers, 1)
        assert found.memory.enabled == "off"
    if dataset == "wn18rr":
        assert {cell.key for cell in cells} <= {cell.key for cell in TARGETS["table3"]("default")}  # trained once


def test_default_and_nothing_counterfactual_differ_in_what_is_counterfactual_alone() -> None:
    """Otherwise a schedule or a context would be taken for what the paper argues about."""
    cells = {cell.variant: cell for cell in TARGETS["table3"]("default") if cell.dataset == "umls" and cell.seed == 0}
    ours, plain = (
        configure(cells[name].preset, "umls", changes=cells[name].changes, seed=0).model_dump()
        for name in (PATHS, PLAIN)
    )
    differing = {f"{part}.{key}" for part in ours for key in ours[part] if ours[part][key] != plain[part][key]}
    assert differing == {"decoder.treatment", "objective.alpha"}


@pytest.mark.parametrize(("scale", "shorter"), [("default", {"wn18rr": 1, "drugmechdb": 2}), ("full", {})])
def test_variants_of_a_graph_are_trained_equally_long_in_table3(scale: Scale, shorter: dict[str, int]) -> None:
    epochs = defaultdict(set)
    for cell in TARGETS["table3"](scale):
        epochs[cell.dataset].add(configure(cell.preset, cell.dataset, changes=cell.changes).training.epochs)
    files = {name: configure(benchmark=name).training.epochs for name in epochs}
    assert epochs == {name: {shorter.get(name, files[name])} for name in files}
    assert all(files[name] > count for name, count in shorter.items())


def test_the_long_graph_is_cut_at_the_default_scale_alone() -> None:
    for scale, seeds, seconds in (("default", {0}, {300.0}), ("full", {0, 1, 2}, {None})):
        cells = [cell for cell in TARGETS["table1"](scale) if cell.dataset == LONG]  # type: ignore[arg-type]
        baselines = [cell for cell in cells if cell.model != "kgcf"]
        assert {cell.seed for cell in baselines} == seeds
        assert {cell.seconds for cell in baselines} == seconds
        assert {(cell.seed, cell.seconds) for cell in cells if cell.model == "kgcf"} == {(s, None) for s in range(3)}


def test_all_is_every_target_and_shared_cells_are_there_once() -> None:
    everything = cells_of("all", "default")
    assert len({cell.key for cell in everything}) == len(everything)
    assert {cell.key for target in TARGETS for cell in cells_of(target, "default")} == {c.key for c in everything}
    with pytest.raises(UnknownNameError, match="no target called 'tabel1'. Did you mean 'table1'"):
        cells_of("tabel1", "quick")


def test_a_cell_is_computed_once_with_everything_that_it_depends_on(tmp_path: Path) -> None:
    store, said = Store(tmp_path), list[str]()
    first = work.compute_cells(store, [CELL], said.append)
    assert first.computed == [CELL]
    result = store.read(CELL)
    assert result is not None
    assert result["cell"]["changes"] == list(CELL.changes)
    assert result["configuration"]["baseline"]["hidden"] == 4
    assert result["protocol"]["filter"].startswith("known truths of all splits")
    assert len(result["ranks"]) == 12
    assert sum(1 / rank for rank in result["ranks"]) / 12 == pytest.approx(result["metrics"]["mrr"])
    assert {"commit", "machine", "times", "dataset", "model", "preset", "seed"} <= set(result)
    assert result["times"]["epochs"] == 2
    assert not store.run_folder(CELL).exists()
    before = store.file(CELL).stat().st_mtime_ns
    again = work.compute_cells(store, [CELL], said.append)
    assert again.there == [CELL]
    assert store.file(CELL).stat().st_mtime_ns == before


def test_an_interrupted_cell_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fit(
            dataset(),
            store.run_folder(CELL),
            model="drum",
            changes=CELL.changes,
            seed=0,
            execution=Execution(Interrupting(1)),
        )
    monkeypatch.setattr(work, "fit", None)  # must not be needed: the run that was begun goes on
    assert work.compute_cells(store, [CELL], lambda text: None).computed == [CELL]


def test_a_cell_of_another_process_is_left_to_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        with store.claimed(CELL) as ours:
            os.write(ready[1], b"y" if ours else b"n")
            os.read(go[0], 1)
            os._exit(0)
    assert os.read(ready[0], 1) == b"y"
    assert work.compute_cells(store, [CELL], lambda text: None).elsewhere == [CELL]
    os.write(go[1], b"x")
    os.waitpid(child, 0)
    with store.claimed(CELL) as ours:
        assert ours  # a process that ended lets go of its cells


def test_a_cell_that_fails_is_told_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(cell: Cell, store: Store, say: work.Say) -> dict[str, object]:
        if cell.seed == 0:
            raise KgcfError("No such graph.")
        if cell.seed == 1:
            raise RuntimeError("shapes differ")  # of a library: nobody foresaw it, and the night goes on
        return {}

    monkeypatch.setattr(work, "compute", compute)
    said = list[str]()
    outcome = work.compute_cells(Store(tmp_path), [replace(CELL, seed=seed) for seed in (0, 1, 2)], said.append)
    assert [cell.seed for cell in outcome.computed] == [2]
    assert [told for _, told in outcome.failed] == ["No such graph.", "RuntimeError: shapes differ"]
    assert "No such graph." in said[0]


def test_damaged_results_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(CELL, {})
    store.file(CELL).write_text("{")
    with pytest.raises(StorageError, match="let `kgcf reproduce` compute its cell again"):
        store.read(CELL)
    store.file(CELL).write_text('{"format": 99}')
    with pytest.raises(StorageError, match="another version"):
        store.read(CELL)
