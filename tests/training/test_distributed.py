"""Two processes: their shared gradient is that of one process on the joint batch."""

import multiprocessing
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from kgcf.data.dataset import Dataset
from kgcf.training.batches import make_batch, stream
from kgcf.training.distributed import World
from kgcf.training.step import TERMS, GradientComputer, Sums
from kgcf.training.substitutes import Substitutes
from kgcf.treatment import TreatmentSettings, assign_treatment
from tests.training.tiny import dataset, model, step_context


def joint(data: Dataset, rank: int, size: int) -> tuple[Sums, Sums]:
    """This process's share of one and the same batch, with all three losses on."""
    graph = data.graph
    ends = np.roll(graph.triples, 3, axis=0).astype(np.int64)
    matched = np.arange(len(graph)) % 3 > 0
    found = Substitutes(graph, ends[:, 0], ends[:, 2], matched, matched, matched)
    treatment = assign_treatment(graph, TreatmentSettings())
    net = model(3, treatment=True, context="unreached")
    context = step_context(net, graph, treatment, found, skip_unreached=True, alpha=0.3, beta=0.2)
    batch = make_batch(graph, np.arange(20, 41), 5, "triple", stream(0, 0, 0))
    return GradientComputer(context, 1).compute(batch, rank, size, discrepancy=rank == 1 % size)


def work(rank: int, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    world = World(rank, 2)
    total, apart = joint(dataset(), rank, 2)
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
