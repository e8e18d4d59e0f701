"""Two processes: their shared gradient is that of one process on the joint batch."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

from kgcf.causal.treatment import TreatmentSettings, assign_treatment
from kgcf.data.dataset import Dataset
from kgcf.errors import SettingsError
from kgcf.propagation.plan.planner import Planner
from kgcf.training import step
from kgcf.training.batches import Batch, stream, triples_batch
from kgcf.training.distributed import World
from kgcf.training.loop import Trainer
from kgcf.training.settings import TrainingSettings
from kgcf.training.step import TERMS, GradientComputer, StepContext, Sums
from kgcf.training.substitutes import Substitutes
from tests.training.tiny import dataset, model, step_context


def joint(data: Dataset, rank: int, size: int, threads: int = 1) -> tuple[Sums, Sums]:
    """This process's share of one and the same batch, with all three losses on."""
    graph = data.graph
    ends = np.roll(graph.triples, 3, axis=0).astype(np.int64)
    matched = np.arange(len(graph)) % 3 > 0
    found = Substitutes(graph, ends[:, 0], ends[:, 2], matched, matched, matched)
    treatment = assign_treatment(graph, TreatmentSettings())
    net = model(3, treatment=True, context="unreached")
    context = step_context(net, graph, treatment, found, skip_unreached=True, alpha=0.3, beta=0.2)
    batch = triples_batch(graph, np.arange(20, 41), 5, "triple", stream(0, 0, 0))
    return GradientComputer(context, threads).compute(batch, rank, size, discrepancy=rank == 1 % size)


def work(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    world = World(rank, 2)
    total, apart = joint(dataset(), rank, 2, threads=1 + 2 * rank)  # as on machines with unequal numbers of cores
    world.share(total)
    world.share(apart)
    flat = torch.cat([g.reshape(-1) for g in total.gradients + apart.gradients])
    counts = [total.queries, total.unreached, apart.queries, *((total.terms | apart.terms)[name] for name in TERMS)]
    np.savez(f"{folder}/{rank}.npz", flat=flat.numpy(), counts=np.array(counts))
    gathered = world.gather(np.full(2 + rank, rank))
    assert [part.tolist() for part in gathered] == [[0, 0], [1, 1, 1]]
    dist.destroy_process_group()


def test_shared_gradients_equal_the_joint_batch(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(rank, str(tmp_path))) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=200)
        assert process.exitcode == 0
    total, apart = joint(dataset(), 0, 1)
    expected = torch.cat([g.reshape(-1) for g in total.gradients + apart.gradients]).numpy()
    counts = [total.queries, total.unreached, apart.queries, *((total.terms | apart.terms)[name] for name in TERMS)]
    for rank in range(2):
        found = np.load(tmp_path / f"{rank}.npz")
        assert np.allclose(found["flat"], expected, atol=1e-10)
        assert np.allclose(found["counts"], counts)
    assert np.abs(expected).max() > 0


@pytest.mark.parametrize("threads", [(1, 1), (1, 3), (2, 1, 5), (4,)])
def test_every_query_is_asked_once_whatever_the_threads(
    threads: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def note(context: StepContext, planner: Planner, batch: Batch) -> Sums:
        seen.extend(batch.asked.triples[:, 0].tolist())
        return Sums([], {}, len(batch))

    monkeypatch.setattr(step, "_part", note)
    data = dataset()
    batch = triples_batch(data.graph, np.arange(20, 41), 5, "triple", stream(0, 0, 0))
    context = step_context(model(3), data.graph)
    shares = []
    for rank, own in enumerate(threads):
        before = len(seen)
        GradientComputer(context, own).compute(batch, rank, len(threads))
        shares.append(sorted(seen[before:]))
    assert sorted(seen) == sorted(batch.asked.triples[:, 0].tolist())
    assert shares == [sorted(batch.asked.triples[:, 0][rank :: len(threads)].tolist()) for rank in range(len(threads))]


def test_another_number_of_processes_is_refused_until_the_run_is_finished(tmp_path: Path) -> None:
    data, path = dataset(), tmp_path / "run" / "c.safetensors"

    def trainer(size: int, epochs: int) -> Trainer:
        settings = TrainingSettings(epochs=epochs, batch_size=32, threads=1, schedule="constant")
        return Trainer(step_context(model(3), data.graph), settings, None, World(0, size), checkpoint=path)

    stopped = trainer(1, 1)
    stopped.run()
    stopped.progress.finished = False
    stopped._save()
    with pytest.raises(SettingsError, match=r"by 1 process and cannot be continued by 2 processes.*kgcf resume"):
        trainer(2, 2).resume()
    trainer(1, 2).resume()
    several = trainer(3, 2)
    several._save()
    with pytest.raises(SettingsError, match="trained by 3 processes.*torchrun --nproc-per-node 3 -m kgcf resume"):
        trainer(1, 2).resume()
    several.progress.finished = True
    several._save()
    trainer(1, 2).resume()
