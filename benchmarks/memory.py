"""Peak memory of ranking, predicting, completing, explaining and training on a generated graph with many relations.

Run: python benchmarks/memory.py [--label after] [--entities 200000] [--relations 1000] [--output FILE.json]

Every task runs in a process of its own with one thread and random weights; memory does not depend on what was learned.
"held" is what graph, treatment and model take before the task begins, "peak" the most that the process ever had in
memory, and "extra" the difference: what the task needs. To compare two trees, run this script twice with PYTHONPATH set
to their sources and two labels: figures are added to those that the output file has.
"""

import argparse
import ctypes
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kgcf.causal.embedding import EntitySpace, SpaceSettings
from kgcf.causal.treatment import assign_treatment
from kgcf.config import configure
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.explanation.explainer import Explainer
from kgcf.model.kgcf import KGCF
from kgcf.prediction.answers import Question, predict
from kgcf.prediction.completion import complete, estimate_seconds, plan_completion
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.training.batches import stream, triples_batch
from kgcf.training.passes import epoch_order
from kgcf.training.step import GradientComputer, StepContext
from kgcf.training.substitutes import Substitutes
from machine import describe_protocol, peak_memory, reset_peak_memory

SETTINGS = ("objective.beta=0.1", "training.remove=triple")
SIZES = {"entities": 200_000, "relations": 1_000, "triples": 1_000_000}
TASK_SEED = 1
MOST_BYTES = 8 * 10**9  # that a task may allocate


def generate(entities: int, relations: int, triples: int) -> KnowledgeGraph:
    """Random triples in which low ids are frequent: hubs, and relations of very different sizes."""
    generator = np.random.default_rng(0)
    columns = [
        (generator.random(triples) ** power * count).astype(np.int64)
        for power, count in ((1.5, entities), (3.0, relations), (1.5, entities))
    ]
    return KnowledgeGraph.build(np.stack(columns, axis=1), entities, relations)


class World:
    """A model with random weights on a generated graph."""

    def __init__(self, graph: KnowledgeGraph, questions: int) -> None:
        self.graph = graph
        self.questions = questions
        self.settings = configure("default", None, None, SETTINGS)
        generator = torch.Generator().manual_seed(0)
        self.model = KGCF(self.settings.encoder, self.settings.decoder, graph.relation_count, generator)
        self.treatment = assign_treatment(graph, self.settings.treatment)
        names = Vocabulary.numbered(graph.entity_count), Vocabulary.numbered(graph.relation_count)
        self.observed = ObservedGraph(self.model, graph, *names, self.treatment, threads=1)

    def drawn(self, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Triples drawn at random."""
        return np.random.default_rng(TASK_SEED).choice(self.graph.triples, count).astype(np.int64)


def rank(world: World) -> None:
    """Scores of all entities for so many questions."""
    triples = world.drawn(world.questions)
    world.observed.scorer.score_with_reach(triples[:, 0], triples[:, 1])


def predict_tail(world: World) -> None:
    """`predict` of one tail."""
    h, r, _ = world.drawn(1)[0].tolist()
    predict(world.observed, Question(str(h), str(r), None))


def predict_relation(world: World) -> None:
    """`predict` of one relation: as many questions as there are relations."""
    h, _, t = world.drawn(1)[0].tolist()
    predict(world.observed, Question(str(h), None, str(t)))


def estimate(world: World) -> None:
    """`complete --estimate`: the heads that every relation has."""
    estimate_seconds(world.observed, plan_completion(world.observed, None, False))


def estimate_all(world: World) -> None:
    """`complete --estimate --candidates all`: every entity and every relation, 200 million questions."""
    estimate_seconds(world.observed, plan_completion(world.observed, None, True))


def complete_one(world: World) -> None:
    """`complete` of so many questions of one relation."""
    task = plan_completion(world.observed, ["0"], False)
    complete(world.observed, replace(task, heads=(task.heads[0][: world.questions],)), top=100)


def explain(world: World) -> None:
    """One explanation with counterfactual evidence (in a random entity space) and deletion check."""
    vectors = np.random.default_rng(0).standard_normal((world.graph.entity_count, 32)).astype(np.float32)
    space = EntitySpace(vectors, SpaceSettings(), world.graph.fingerprint)
    explainer = Explainer(world.observed, "triple", lambda: space)
    explainer.explain_case(explainer.case(*world.drawn(1)[0].tolist()))


def train(world: World) -> None:
    """Three gradients of batches of 32 with random substitutes, all of which L_disc compares."""
    graph, generator = world.graph, np.random.default_rng(0)
    heads, tails = generator.integers(0, graph.entity_count, (2, len(graph)))
    every = np.ones(len(graph), dtype=bool)
    objective = world.settings.objective.model_copy(update={"disc_pairs": "all"})
    found = Substitutes(graph, heads, tails, every, every, generator.random(len(graph)) < 0.5)
    memory = world.settings.training.memory_gb * 1e9
    treated = world.treatment.treated
    computer = GradientComputer(
        StepContext(world.model, graph, objective, treated, True, found, "triple", True, memory), 1
    )
    order = epoch_order(len(graph), 0, 0)
    for index in range(3):
        triples = order[32 * index : 32 * (index + 1)]
        computer.compute(triples_batch(graph, triples, objective.negatives, "triple", stream(0, 0, index, 0)))


TASKS: dict[str, Callable[[World], None]] = {
    "rank questions": rank,
    "predict a tail": predict_tail,
    "predict a relation": predict_relation,
    "estimate completing": estimate,
    "estimate, every entity": estimate_all,
    "complete one relation": complete_one,
    "explain one triple": explain,
    "train 3 steps, β > 0": train,
}


ASKING = ("rank questions", "complete one relation")  # the tasks that ask as many questions as they are told


def measure(name: str, graph: KnowledgeGraph, questions: int) -> None:
    """In the child process: one task; kernels are loaded beforehand on a small graph."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))  # rather a MemoryError than a machine at a halt
    TASKS[name](World(generate(200, 4, 800), 2))
    world = World(graph, questions)
    held = _resident()
    reset_peak_memory()
    started = time.perf_counter()
    TASKS[name](world)
    found = {"held_mb": round(held), "peak_mb": round(peak_memory()), "seconds": time.perf_counter() - started}
    found["extra_mb"] = found["peak_mb"] - found["held_mb"]
    found["process_peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    if name in ASKING:
        found["questions"] = questions
    print(json.dumps(found))


def _resident() -> float:
    """Megabytes in memory now, what was freed given back: the peak, once it was reset."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    reset_peak_memory()
    return peak_memory()


def in_child(name: str, arguments: argparse.Namespace) -> dict[str, float] | str:
    """Measure in a fresh process; the last line of an error if it fails."""
    sizes = [f"--{key}={getattr(arguments, key)}" for key in (*SIZES, "questions")]
    command = [sys.executable, __file__, "--measure", name, *sizes]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        return f"stopped after {arguments.timeout} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"killed by signal {-done.returncode}"])[-1]
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure all tasks, print a table, add the figures to the output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for key, size in SIZES.items():
        parser.add_argument(f"--{key}", type=int, default=size)
    parser.add_argument("--questions", type=int, default=64, help="For the tasks that rank several questions.")
    parser.add_argument("--label", default="after", help="What these figures are called in the output.")
    parser.add_argument("--task", action="append", choices=list(TASKS), help="Only this task. Repeatable.")
    parser.add_argument("--timeout", type=float, default=1800.0, help="Seconds that one task may take.")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    sizes = {key: getattr(arguments, key) for key in SIZES}
    if arguments.measure:
        measure(arguments.measure, generate(**sizes), arguments.questions)
        return
    written: dict[str, Any] = {"graph": sizes, "settings": list(SETTINGS), "results": {}, "protocol": {}}
    if arguments.output is not None and arguments.output.is_file():
        written = json.loads(arguments.output.read_text(encoding="utf-8"))
    for name in arguments.task or TASKS:
        beside = written["results"].setdefault(name, {})
        beside[arguments.label] = in_child(name, arguments)
        print(f"{name:32s}", *(_line(label, found) for label, found in beside.items()), sep="  ", flush=True)
        protocol = describe_protocol(1) | {"memory": __doc__, "times": "seconds of one run each, cold"}
        written["protocol"][arguments.label] = protocol
        if arguments.output is not None:
            arguments.output.write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _line(label: str, found: dict[str, float] | str) -> str:
    if isinstance(found, str):
        return f"{label}: {found}"
    return f"{label}: peak {found['peak_mb']:,.0f} MB, extra {found['extra_mb']:,.0f} MB, {found['seconds']:.1f} s"


if __name__ == "__main__":
    main()
