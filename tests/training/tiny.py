"""Small things to train on: seconds, not minutes."""

from pathlib import Path

import numpy as np
import torch

from kgcf.causal.treatment import Treatment
from kgcf.data.dataset import Dataset, transductive
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples, Remove
from kgcf.data.vocabulary import Vocabulary
from kgcf.model.kgcf import KGCF, DecoderSettings
from kgcf.propagation.layers.encoder import EncoderSettings
from kgcf.training.objective import ObjectiveSettings
from kgcf.training.step import StepContext
from kgcf.training.substitutes import Substitutes

TINY = ("encoder.layers=2", "encoder.width=8", "decoder.hidden=8", "training.epochs=2", "training.batch_size=8")


def family(generator: np.random.Generator, people: int = 40) -> KnowledgeGraph:
    """Parents, and grandparents that follow from them: something two layers can learn."""
    parents = [(int(generator.integers(0, c)), 0, c) for c in range(1, people)]
    above = {c: p for p, _, c in parents}
    grand = [(above[above[c]], 1, c) for c in range(1, people) if above[c] in above]
    friends = [(int(a), 2, int(b)) for a, b in generator.integers(0, people, (people, 2))]
    return KnowledgeGraph.build(np.array(parents + grand + friends), people, 3)


def dataset(seed: int = 0) -> Dataset:
    """The family graph, its last grandparents to be predicted."""
    graph = family(np.random.default_rng(seed))
    rows = np.flatnonzero(graph.triples[:, 1] == 1)
    valid, test = graph.triples[rows[-12:-6]], graph.triples[rows[-6:]]
    train = np.delete(graph.triples, rows[-12:], axis=0)
    return transductive(
        "tiny", Vocabulary.numbered(40), Vocabulary(["parent", "grandparent", "friend"]), (train, valid, test)
    )


def write_folder(data: Dataset, folder: Path) -> Path:
    """The dataset as train.txt, valid.txt and test.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in data.splits:
        lines = (f"e{h}\t{data.relations.label(r)}\te{t}\n" for h, r, t in split.queries.tolist())
        (folder / f"{split.name}.txt").write_text("".join(lines))
    return folder


def model(relations: int, *, treatment: bool = False, context: str = "none", seed: int = 0) -> KGCF:
    """A small model in double precision."""
    settings = EncoderSettings.model_validate({"layers": 2, "width": 8, "context": context})
    generator = torch.Generator().manual_seed(seed)
    return KGCF(settings, DecoderSettings(hidden=8, treatment=treatment), relations, generator).double()


def step_context(
    net: KGCF,
    graph: KnowledgeGraph,
    treatment: Treatment | None = None,
    substitutes: Substitutes | None = None,
    remove: Remove = "triple",
    skip_unreached: bool = False,
    **objective: object,
) -> StepContext:
    """What a step needs, with plain defaults."""
    chosen = ObjectiveSettings.model_validate({"answers": 1, "negatives": 5, "alpha": 0.0, "beta": 0.0, **objective})
    treated = None if treatment is None else treatment.treated
    return StepContext(net, graph, chosen, treated, True, substitutes, remove, skip_unreached, 1e9)


def everything(hidden: HiddenTriples, query: int, graph: KnowledgeGraph) -> KnowledgeGraph:
    """The graph that one query sees, rebuilt from scratch."""
    return graph.without(graph.triples[hidden.of(query)])
