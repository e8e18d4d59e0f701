"""Devices by name, and the plan with torch operations instead of kernels: through training, ranking, explaining."""

from pathlib import Path

import numpy as np
import pytest
import torch

import kgcf
from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.errors import SettingsError
from kgcf.explanation.case import open_case
from kgcf.machine.devices import available_devices, find_device, worker_threads
from kgcf.model.kgcf import KGCF, DecoderSettings
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.propagation.layers import sparse
from kgcf.propagation.layers.encoder import EncoderSettings
from kgcf.propagation.layers.torch_operations import TORCH_ROWS
from kgcf.propagation.plan.planner import Planner
from kgcf.training.batches import stream, triples_batch
from kgcf.training.loop import Trainer
from kgcf.training.settings import TrainingSettings
from kgcf.training.step import GradientComputer, StepContext, Sums
from kgcf.training.substitutes import Substitutes
from tests.explanation.test_case import observe
from tests.propagation.random_graphs import random_graph
from tests.training.tiny import TINY, dataset, step_context, write_folder

SMALL = (*TINY, "objective.negatives=4", "space.walks=2", "training.threads=1", "training.epochs=1")
GRAPH = random_graph(5, entity_count=25, triple_count=80)
VARIANTS = [
    {},
    {"dependent": True, "context": "decoder"},
    {"context": "layers", "message": "transe", "aggregate": "mean"},
    {"context": "none", "message": "rotate", "aggregate": "max", "residual": False},
    {"context": "unreached", "aggregate": "min", "layer_norm": False, "dependent": True},
]


@pytest.fixture
def torch_path(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """After `use(torch_path)` no kernel of the encoder runs."""
    return monkeypatch


def use(torch_path: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("a kernel ran")

    torch_path.setattr(sparse, "runs_compiled", lambda device: False)
    for name in ("aggregate", "advance", "advance_by_degree"):
        torch_path.setattr(sparse, name, forbidden)
    torch_path.setattr("kgcf.model.all_entities._score_with_kernels", forbidden)


def new_model(treatment: bool = True, **choices: object) -> KGCF:
    encoder = EncoderSettings.model_validate({"layers": 3, "width": 8, "context": "unreached", **choices})
    decoder = DecoderSettings(hidden=8, treatment=treatment)
    return KGCF(encoder, decoder, GRAPH.relation_count, torch.Generator().manual_seed(1))


def new_context(model: KGCF, skip_unreached: bool) -> StepContext:
    turned = np.roll(GRAPH.triples, 1, axis=0).astype(np.int64)
    known = np.arange(len(GRAPH)) % 2 == 0
    found = Substitutes(GRAPH, turned[:, 0], turned[:, 2], np.arange(len(GRAPH)) % 5 > 0, known, known)
    treatment = assign_treatment(GRAPH, TreatmentSettings())
    return step_context(model, GRAPH, treatment, found, skip_unreached=skip_unreached, alpha=0.3, beta=0.2)


def test_devices_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_device("cpu") == torch.device("cpu")
    for wrong in ("gpu", "cuda:x", "cpu:1", "", "meta"):
        with pytest.raises(SettingsError, match=f"no device called '{wrong}': devices are cpu, cuda and cuda:N"):
            find_device(wrong)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingsError, match=r"'cuda:1' is not available: torch .* Available here: cpu. Use the CPU"):
        find_device("cuda:1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert available_devices() == ["cpu", "cuda", "cuda:0", "cuda:1"]
    assert find_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(SettingsError, match="'cuda:2' is not there. Available here: cpu, cuda, cuda:0, cuda:1. Choose"):
        find_device("cuda:2")


def test_threads_divide_work_on_the_cpu_alone() -> None:
    assert worker_threads(torch.device("cpu"), 3) == 3
    assert worker_threads(torch.device("cpu"), None) == torch.get_num_threads()
    assert worker_threads(torch.device("cuda"), 3) == 1


def test_an_unknown_device_stops_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no device called 'gpu'"):
        kgcf.fit("nothing", tmp_path / "run", device="gpu")
    for act in (kgcf.resume, kgcf.open):
        with pytest.raises(SettingsError, match="no device called 'gpu'"):
            act(tmp_path / "run", device="gpu")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("skip_unreached", [True, False])
@pytest.mark.parametrize("choices", VARIANTS)
def test_losses_and_gradients(torch_path: pytest.MonkeyPatch, choices: dict[str, object], skip_unreached: bool) -> None:
    """Factual, counterfactual and discrepancy, with treatment, in single precision."""
    context = new_context(new_model(**choices), skip_unreached)  # type: ignore[arg-type]
    batch = triples_batch(GRAPH, np.arange(5, 25), 5, "triple", stream(0, 0, 0))
    expected = GradientComputer(context, 1).compute(batch)
    use(torch_path)
    found = GradientComputer(context, 1).compute(batch)
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine.queries, mine.unreached) == (theirs.queries, theirs.unreached)
        assert mine.terms == pytest.approx(theirs.terms, rel=1e-5)
        _compare(mine, theirs)
    assert set(expected[0].terms | expected[1].terms) >= {"factual", "counterfactual", "discrepancy"}


def _compare(found: Sums, expected: Sums) -> None:
    largest = max(float(gradient.abs().max()) for gradient in expected.gradients)
    assert largest > 0
    for mine, theirs in zip(found.gradients, expected.gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5 * largest)


def test_training(torch_path: pytest.MonkeyPatch) -> None:
    """Whole epochs, in double precision: Adam makes steps of rounding where a gradient is zero."""
    settings = TrainingSettings(epochs=2, batch_size=8, batches_per_epoch=4, threads=2)
    trainers = []
    for compiled in (True, False):
        if not compiled:
            use(torch_path)
        trainers.append(Trainer(new_context(new_model().double(), True), settings, None))
        trainers[-1].run()
    with_kernels, with_torch = (trainer.progress.history for trainer in trainers)
    for one, other in zip(with_kernels, with_torch, strict=True):
        assert one["discrepancy"] == pytest.approx(other["discrepancy"], rel=1e-8)
        assert one["factual"] == pytest.approx(other["factual"], rel=1e-8)
    for mine, theirs in zip(*(trainer.context.model.parameters() for trainer in trainers), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("treatment", [True, False])
@pytest.mark.parametrize("choices", VARIANTS)
def test_ranking_and_logits(torch_path: pytest.MonkeyPatch, choices: dict[str, object], treatment: bool) -> None:
    model, names = new_model(treatment, **choices), observe(GRAPH)
    assigned = assign_treatment(GRAPH, TreatmentSettings()) if treatment else None
    bound = ObservedGraph(model, GRAPH, names.entities, names.relations, assigned, 2)
    heads, relations = np.arange(9), np.arange(9) % (2 * GRAPH.relation_count)
    candidates = np.random.default_rng(0).integers(0, GRAPH.entity_count, (9, 4))
    expected, known = bound.scorer.score_with_reach(heads, relations)
    wanted = bound.logits(heads, relations, candidates)[0]
    use(torch_path)
    found, reached = bound.scorer.score_with_reach(heads, relations)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(reached, known)
    np.testing.assert_allclose(bound.logits(heads, relations, candidates)[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("choices", VARIANTS)
def test_explanations(torch_path: pytest.MonkeyPatch, choices: dict[str, object]) -> None:
    observed = observe(GRAPH, **choices)  # type: ignore[arg-type]
    h, r, t = GRAPH.triples[7].tolist()
    removed = [np.arange(3), np.arange(10, 14)]
    numbers = []
    for compiled in (True, False):
        if not compiled:
            use(torch_path)
        case = open_case(observed, h, r, t, "triple")
        paths = [path.weight for path in case.best_paths(5).paths]
        logits = [case.importance.logit, *case.logits_under([True, False]), *case.logits_without(removed)[0]]
        numbers.append(np.array([*logits, *paths, *case.importance.values]))
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-8, atol=1e-10)


def test_a_whole_run(torch_path: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = kgcf.fit(write_folder(dataset(), tmp_path / "tiny"), tmp_path / "run", changes=SMALL, device="cpu")
    assert run.evaluate("test").protocol["device"] == "cpu"
    found = []
    for compiled in (True, False):
        if not compiled:
            use(torch_path)
        opened = kgcf.open(tmp_path / "run", device="cpu")
        asked = opened.predict("e1", "parent", top=5), opened.complete(["friend"], top=5)
        found.append([*opened.score([("e0", "parent", "e5")]), *(a.logit or 0 for answers in asked for a in answers)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_stored_messages_count_as_memory(torch_path: pytest.MonkeyPatch) -> None:
    encoder, memory = new_model().encoder, 20_000
    questions = np.arange(20), np.zeros(20, np.int64), np.arange(20)[::-1, None]
    with_kernels = list(Planner(GRAPH, 3).parts(*questions, None, sparse.budget_for(encoder, memory)))
    use(torch_path)
    with_torch = list(Planner(GRAPH, 3).parts(*questions, None, sparse.budget_for(encoder, memory)))
    assert len(with_kernels) < len(with_torch) < 20
    assert all(plan.edge_count * TORCH_ROWS * 8 * 4 < memory for plan in with_torch if len(plan) > 1)
