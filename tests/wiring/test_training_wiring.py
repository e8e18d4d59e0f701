"""What training is given and what it keeps: treatments, substitutes, skipped queries, the best weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import kgcf
from kgcf.causal.treatment import Treatment, TreatmentSettings, assign_treatment
from kgcf.data.hiding import HiddenTriples
from kgcf.pipeline import Execution
from kgcf.runs.run import Run
from kgcf.storage import map_arrays
from kgcf.training.batches import stream, triples_batch
from kgcf.training.distributed import World
from kgcf.training.loop import Listener, Trainer
from kgcf.training.settings import TrainingSettings
from kgcf.training.step import Sums
from kgcf.training.substitutes import Substitutes, pick_pairs
from tests.training.tiny import dataset, model, step_context
from tests.wiring.conftest import CHANGES, Town
from tests.wiring.raw import Oracle, Triple

QUICK = (*CHANGES, "training.epochs=1")


def weights(run: Run, file: str = "model.safetensors") -> dict[str, list[Any]]:
    return {name: np.array(array).tolist() for name, array in map_arrays(run.folder.file(file)).items()}


def history(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run.evaluate("valid").protocol["training"]
    return found


@pytest.mark.parametrize("left_out", [True, False])
def test_training_asks_for_treatments_without_the_query(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: bool
) -> None:
    """A spy between training and treatment: which graph the treatments of candidates are asked for on."""
    asked: list[HiddenTriples | None] = []
    queries: list[tuple[int, int, int]] = []
    original = Treatment.treated

    def treated(
        self: Treatment, heads: Any, relations: Any, candidates: Any = None, hidden: HiddenTriples | None = None
    ) -> NDArray[np.bool_]:
        if candidates is not None and np.shape(candidates)[1] == 5:  # the answer and 4 negatives
            asked.append(hidden)
            rows = zip(np.asarray(heads), np.asarray(relations), np.asarray(candidates)[:, 0], strict=True)
            queries.extend((int(h), int(r), int(t)) for h, r, t in rows)
        return original(self, heads, relations, candidates, hidden)

    monkeypatch.setattr(Treatment, "treated", treated)
    switch = f"treatment.leave_one_out={str(left_out).lower()}"
    run = kgcf.fit(town.raw.folder, tmp_path / "run", changes=(*QUICK, switch, "objective.answers=1"))
    assert len(queries) >= len(town.raw.train)
    if not left_out:
        assert asked == [None] * len(asked)
        return
    graph, place = run.data.graph, 0
    for hidden in asked:
        assert hidden is not None
        for query in range(len(hidden)):
            h, r, t = queries[place]
            wanted = [h, r, t] if r < graph.relation_count else [t, r - graph.relation_count, h]
            assert graph.triples[hidden.of(query)].tolist() == [wanted]
            place += 1
    assert place == len(queries)


def read_table(run: Run) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(run.folder.file("counterfactuals.parquet")).to_pylist()
    return rows


def without(town: Town, triple: Triple) -> Oracle:
    return Oracle(town.run, [row for row in town.raw.train if row != triple])


def test_matching_leaves_every_triple_out_of_its_own_treatment(town: Town) -> None:
    rows = read_table(town.run)
    assert len(rows) == len(town.raw.train)
    betrayed = 0
    for row in rows:
        triple = row["head_label"], row["relation_label"], row["tail_label"]
        own = without(town, triple).treated(triple)
        assert row["factual_treatment"] == own
        betrayed += town.train.treated(triple) != own
    assert betrayed > 3  # so that the test can tell


def test_without_leave_one_out_matching_uses_the_whole_graph(town: Town, tmp_path: Path) -> None:
    run = kgcf.fit(town.raw.folder, tmp_path / "run", changes=(*QUICK, "treatment.leave_one_out=false"))
    for row in read_table(run):
        assert row["factual_treatment"] == town.train.treated(
            (row["head_label"], row["relation_label"], row["tail_label"])
        )


def test_substitutes_come_from_the_pairs_that_the_settings_allow(town: Town, tmp_path: Path) -> None:
    """Among all pairs there is a nearer one for some triple; among observed pairs every substitute is linked."""
    linked = {(h, t) for h, _, t in town.raw.train} | {(t, h) for h, _, t in town.raw.train}
    everything = kgcf.fit(town.raw.folder, tmp_path / "run", changes=(*QUICK, "matching.candidates=all"))
    pairs = [
        {(row["substitute_head_label"], row["substitute_tail_label"]) for row in read_table(run) if row["matched"]}
        for run in (town.run, everything)
    ]
    assert pairs[0] <= linked
    assert not pairs[1] <= linked


@pytest.mark.parametrize("skip", [True, False])
def test_unreached_queries_are_skipped_if_the_settings_say_so(town: Town, tmp_path: Path, skip: bool) -> None:
    switch = f"training.skip_unreached={str(skip).lower()}"
    run = kgcf.fit(town.raw.folder, tmp_path / "run", changes=(*QUICK, switch))
    (epoch,) = history(run)["epochs"]
    assert epoch["queries"] + epoch["unreached"] == 2 * len(town.raw.train), "every triple is asked from both ends"
    assert (epoch["unreached"] > 0) == skip


class Interrupting(Listener):
    """Notes the epochs, and presses Ctrl-C after one of them."""

    def __init__(self, after: int) -> None:
        self._after = after
        self.epochs: list[int] = []

    def epoch(self, entry: dict[str, float]) -> None:
        self.epochs.append(int(entry["epoch"]))
        if entry["epoch"] == self._after:
            raise KeyboardInterrupt


def test_a_resumed_run_remembers_the_best_weights(town: Town, tmp_path: Path) -> None:
    """Steps so long that validation falls after the best epoch: whoever stops there must still end with the best."""
    steep = (*CHANGES, "training.epochs=5", "training.learning_rate=0.5", "training.schedule=constant")
    whole = kgcf.fit(town.raw.folder, tmp_path / "whole", changes=steep)
    best = history(whole)["best_epoch"]
    assert best < 4  # so that the stop comes after it
    for after in (best, best + 1):
        with pytest.raises(KeyboardInterrupt):
            kgcf.fit(town.raw.folder, tmp_path / f"{after}", changes=steep, execution=Execution(Interrupting(after)))
        heard = Interrupting(0)
        resumed = kgcf.resume(tmp_path / f"{after}", Execution(heard))
        assert heard.epochs == list(range(after + 1, 6))  # what was done is not done again
        assert weights(resumed) == weights(whole)
        assert weights(resumed) != weights(resumed, "checkpoint.safetensors")
        assert resumed.evaluate("valid")["mrr"] == history(whole)["best_validation_mrr"]
        assert history(resumed)["best_epoch"] == best
        assert [e["epoch"] for e in history(resumed)["epochs"]] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("remove", ["triple", "pair"])
def test_a_head_query_has_its_substitute_turned(remove: Any) -> None:
    """(t, r⁻¹, h) has the substitute (b, r⁻¹, a): read forward, it is the pair that matching found."""
    graph = dataset().graph
    ends = np.roll(graph.triples, 3, axis=0).astype(np.int64)
    matched = np.arange(len(graph)) % 3 > 0
    found = Substitutes(graph, ends[:, 0], ends[:, 2], matched, matched, matched)
    batch = triples_batch(graph, np.arange(20, 41), 5, remove, stream(0, 0, 0))
    pairs = pick_pairs(batch, found, "all", remove)
    assert pairs is not None
    half = len(pairs) // 2
    assert half == int(matched[batch.asked.triples[:, 0]].sum())
    turned = 0
    for i in range(half):
        for place, wanted in (
            (i, graph.triples[pairs.asked.triples[i, 0]]),
            (
                half + i,
                [
                    ends[pairs.asked.triples[i, 0], 0],
                    graph.triples[pairs.asked.triples[i, 0], 1],
                    ends[pairs.asked.triples[i, 0], 2],
                ],
            ),
        ):
            h, r, t = int(pairs.heads[place]), int(pairs.relations[place]), int(pairs.candidates[place, 0])
            inverse = r >= graph.relation_count
            forward = (t, r - graph.relation_count, h) if inverse else (h, r, t)
            assert forward == tuple(int(part) for part in wanted)
            turned += inverse
    assert 0 < turned < len(pairs)


class Listening(World):
    """One of two processes, whose partner says nothing; notes what this one gives."""

    given: list[dict[str, float]]

    def share(self, sums: Sums) -> None:
        self.given.append(dict(sums.terms))


def test_one_process_gives_the_discrepancy_of_a_batch() -> None:
    data = dataset()
    graph = data.graph
    ends = np.roll(graph.triples, 3, axis=0).astype(np.int64)
    every = np.ones(len(graph), dtype=bool)
    found = Substitutes(graph, ends[:, 0], ends[:, 2], every, every, every)
    treatment = assign_treatment(graph, TreatmentSettings())
    settings = TrainingSettings(epochs=1, batch_size=16, threads=1)
    gives: list[list[bool]] = []
    for rank in range(2):
        world = Listening(rank, 2)
        object.__setattr__(world, "given", [])
        context = step_context(model(3, treatment=True), graph, treatment, found, alpha=0.3, beta=0.2)
        Trainer(context, settings, None, world).run()
        shared = world.given
        gives.append([any("discrepancy" in terms for terms in shared[i : i + 2]) for i in range(0, len(shared), 2)])
    assert len(gives[0]) == len(gives[1]) > 3
    assert all(one != two for one, two in zip(*gives, strict=True))
