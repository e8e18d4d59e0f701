"""Everything that runs a model runs on a device that refuses tensors of the CPU, and says what the CPU says.

Run by `test_pretended_device.py` in a process of its own: autograd counts the devices when it first differentiates.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

import kgcf.pipeline
import kgcf.runs.run
from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.explanation.case import open_case
from kgcf.explanation.explainer import Explainer
from kgcf.model.kgcf import KGCF, DecoderSettings
from kgcf.pipeline import fit, open_run, resume
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.propagation.layers.encoder import EncoderSettings
from kgcf.training.distributed import World
from kgcf.training.loop import Trainer
from kgcf.training.settings import TrainingSettings
from kgcf.training.step import TERMS, Sums
from kgcf.training.substitutes import Substitutes
from tests.explanation.test_case import observe
from tests.explanation.test_counterfactual import a_space
from tests.pretended import pretending
from tests.propagation.random_graphs import random_graph
from tests.training.tiny import TINY, dataset, step_context, write_folder

SMALL = (*TINY, "objective.negatives=4", "space.walks=2", "training.threads=2", "training.epochs=1")
GRAPH = random_graph(3, entity_count=20, triple_count=60)
VARIANTS = [
    {},
    {"dependent": True, "context": "decoder", "aggregate": "mean", "message": "transe"},
    {"context": "layers", "layer_norm": False, "aggregate": "max", "message": "rotate"},
    {"context": "none", "residual": False, "aggregate": "sum"},
]


@pytest.fixture
def device() -> Iterator[torch.device]:
    with pretending() as found:
        yield found


def new_model(treatment: bool = True, **choices: object) -> KGCF:
    encoder = EncoderSettings.model_validate({"layers": 3, "width": 8, "context": "unreached", **choices})
    decoder = DecoderSettings(hidden=8, treatment=treatment)
    return KGCF(encoder, decoder, GRAPH.relation_count, torch.Generator().manual_seed(1)).double()


def new_trainer(model: KGCF, path: Path, epochs: int, skip_unreached: bool = True, **objective: object) -> Trainer:
    turned = np.roll(GRAPH.triples, 1, axis=0).astype(np.int64)
    known = np.arange(len(GRAPH)) % 2 == 0
    found = Substitutes(GRAPH, turned[:, 0], turned[:, 2], np.arange(len(GRAPH)) % 5 > 0, known, known)
    treatment = assign_treatment(GRAPH, TreatmentSettings()) if model.decoder.treatment else None
    objective = {"alpha": 0.3, "beta": 0.2, **objective}
    context = step_context(model, GRAPH, treatment, found, skip_unreached=skip_unreached, **objective)  # type: ignore[arg-type]
    settings = TrainingSettings(epochs=epochs, batch_size=8, batches_per_epoch=3, threads=2, schedule="constant")
    return Trainer(context, settings, None, checkpoint=path)


def weights_of(model: KGCF) -> list[torch.Tensor]:
    return [parameter.detach().cpu() for parameter in model.parameters()]


def test_the_device_refuses_what_a_real_one_refuses(device: torch.device) -> None:
    there, here = torch.ones(3).to(device).requires_grad_(), torch.ones(3)
    assert there.device == device
    with pytest.raises(RuntimeError, match="tensors on two devices"):
        there + here
    with pytest.raises(RuntimeError, match="tensors on two devices"):
        torch.cat([there, here])
    with pytest.raises(RuntimeError, match="tensors on two devices"):
        here[there.detach().long()]
    with pytest.raises((RuntimeError, TypeError), match="numpy"):
        there.detach().numpy()
    (gradient,) = torch.autograd.grad((there * there * torch.tensor(2.0)).sum(), there)
    assert gradient.device == device
    assert gradient.cpu().tolist() == [4, 4, 4]
    assert torch.zeros(2, device=device).device == device
    assert torch.tensor([2.0], device=device).cpu().tolist() == [2]
    assert here.copy_(gradient).tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    ("choices", "objective"),
    [
        (VARIANTS[0], {"disc": "kl"}),
        (VARIANTS[1], {"disc": "frobenius", "cf_target": "printed"}),
        (VARIANTS[2], {"disc": "mean", "skip_unreached": False}),
        ({**VARIANTS[3], "treatment": False}, {"temperature": 0, "alpha": 0, "beta": 0}),
    ],
)
def test_training_and_resuming(
    device: torch.device, tmp_path: Path, choices: dict[str, bool], objective: dict[str, bool]
) -> None:
    path = tmp_path / "checkpoint.safetensors"
    expected = new_trainer(new_model(**choices), tmp_path / "cpu.safetensors", 2, **objective)
    expected.run()
    new_trainer(new_model(**choices).to(device), path, 1, **objective).run()
    for place in (device, torch.device("cpu")):  # what one device saved, any device continues
        model = new_model(**choices).to(place)
        copy = Path(shutil.copy(path, tmp_path / "copy.safetensors"))
        second = new_trainer(model, copy, 2, **objective)
        second.resume()
        second.progress.finished = False
        history = second.run().history
        assert model.device == place
        for found, wanted in zip(history, expected.progress.history, strict=True):
            assert set(found) == set(wanted)
            for term in found.keys() & set(TERMS):
                assert found[term] == pytest.approx(wanted[term], rel=1e-8)
        for mine, theirs in zip(weights_of(model), weights_of(expected.context.model), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("choices", VARIANTS)
def test_ranking_and_logits(device: torch.device, choices: dict[str, object]) -> None:
    model, treatment = new_model(**choices), assign_treatment(GRAPH, TreatmentSettings())  # type: ignore[arg-type]
    heads, relations = np.arange(9), np.arange(9) % (2 * GRAPH.relation_count)
    candidates = np.random.default_rng(0).integers(0, GRAPH.entity_count, (9, 4))
    results = []
    for place in ("cpu", device):
        names = observe(GRAPH)
        bound = ObservedGraph(model.to(place), GRAPH, names.entities, names.relations, treatment, 2)
        scores, reached = bound.scorer.score_with_reach(heads, relations)
        results.append((scores, reached, *bound.logits(heads, relations, candidates)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("choices", VARIANTS)
def test_explanations(device: torch.device, choices: dict[str, object]) -> None:
    h, r, t = GRAPH.triples[7].tolist()
    found = []
    for place in ("cpu", device):
        observed = observe(GRAPH, **choices)  # type: ignore[arg-type]
        observed.model.to(place)
        case = open_case(observed, h, r, t, "triple")
        explained = Explainer(observed, "triple", lambda: a_space(GRAPH)).explain_case(case)
        assert explained.counterfactual is not None
        evidence = explained.counterfactual
        deleted = [d.logit for d in explained.deletion]
        numbers = [explained.logit, evidence.factual_probability, evidence.counterfactual_probability, *deleted]
        found.append((np.array(numbers), case.importance.values, case.logits_without([np.arange(3)])[0]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_a_whole_run(device: torch.device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kgcf.pipeline, kgcf.runs.run):
        monkeypatch.setattr(module, "find_device", torch.device)
    data = write_folder(dataset(), tmp_path / "tiny")
    run = fit(data, tmp_path / "run", changes=SMALL, device=str(device))
    assert run.model.device == device
    result = run.evaluate("test", save=True)
    assert result.protocol["device"] == str(device)
    here, there = open_run(tmp_path / "run"), open_run(tmp_path / "run", device=str(device))
    assert (here.model.device.type, there.model.device) == ("cpu", device)
    assert here.settings == run.settings  # the device is no setting
    assert here.calibration is not None
    assert here.evaluate("test")["mrr"] == pytest.approx(result["mrr"], abs=1e-6)
    question = [("e0", "parent", "e5"), ("e3", "friend", "e9")]
    np.testing.assert_allclose(here.score(question), there.score(question), atol=1e-5)
    one, other = (opened.predict("e1", "parent", top=4) for opened in (here, there))
    np.testing.assert_allclose([a.logit or 0 for a in one], [a.logit or 0 for a in other], atol=1e-5)
    assert len(there.complete(["parent"], top=5)) == 5
    assert resume(tmp_path / "run", device=str(device)).model.device == device


def test_gradients_are_shared_through_the_cpu(device: torch.device) -> None:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())  # type: ignore[attr-defined]
    try:
        sums = Sums([torch.tensor([[1.0, 2.0]]).to(device), torch.tensor(3.0).to(device)], {"factual": 4.0}, 5)
        World(0, 2).share(sums)
    finally:
        dist.destroy_process_group()
    assert [gradient.device for gradient in sums.gradients] == [device, device]
    assert [gradient.cpu().tolist() for gradient in sums.gradients] == [[[1.0, 2.0]], 3.0]
    assert (sums.terms, sums.queries) == ({"factual": 4.0}, 5)
