"""`kgcf demo`: the main job on the embedded graph of the world: train, compare, predict."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell

if TYPE_CHECKING:
    from kgcf.data.dataset import Dataset
    from kgcf.evaluation.results import Evaluation
    from kgcf.runs.run import Run

_QUESTIONS = (("Mexico", "speaks"), ("Portugal", "uses currency"), ("Brazil", "is in region"))  # with answers kept back
_SAME = ("encoder.layers=4", "training.budget=24000", "training.schedule=cosine", "training.validate_triples=200")


def demo() -> None:
    """Train KGCF and plain NBFNet on the embedded graph `world`, compare them, and answer questions."""
    with importing():
        from kgcf.baselines.frequency import FrequencyScorer
        from kgcf.cli.answer_tables import answer_table
        from kgcf.cli.evaluation_tables import evaluation_table
        from kgcf.data import registry
        from kgcf.evaluation.results import evaluate
    screen = Screen()
    data = registry.load("world")
    size = f"{len(data.entities):,} entities, {len(data.relations)} relations, {len(data.graph):,} train triples"
    screen.print(Text.assemble(("world", "bold"), f": {size}; {len(data.test):,} facts are kept back to test on."))
    frequency = evaluate(FrequencyScorer(data.graph), data, model="frequency")
    results = {"frequency (floor)": frequency}
    with tempfile.TemporaryDirectory(prefix="kgcf-demo-") as scratch:
        screen.print(Text.assemble(("\nPlain NBFNet", "bold"), ", 24,000 training questions"))
        results["NBFNet"] = _train(data, "nbfnet", Path(scratch) / "nbfnet")[1]
        screen.print(Text.assemble(("\nKGCF", "bold"), ", the same with treatment and counterfactual losses"))
        run, results["KGCF"] = _train(data, "default", Path(scratch) / "kgcf")
        screen.print()
        screen.print(evaluation_table(results))
        for head, relation in _QUESTIONS:
            kept = ", ".join(_kept_back(data, head, relation))
            question = (f"\n{head} {relation} …", "bold")
            screen.print(Text.assemble(question, cell(f"  (kept back from training: {kept})")))
            screen.print(answer_table(run.predict(head, relation, top=5, observed="train")).for_people(screen.width)[0])
    screen.print("\nNext, on your own triples:  kgcf train my.tsv --output runs/mine")
    screen.print("                            kgcf predict runs/mine --head NAME --relation NAME")


def _kept_back(data: "Dataset", head: str, relation: str) -> list[str]:
    """The answers that only the valid and test splits know."""
    asked = data.entities.id(head), data.relations.id(relation)
    known = set(data.test.known.tails(*asked).tolist()) - set(data.graph.tails(*asked).tolist())
    return [data.entities.display(entity) for entity in sorted(known)]


def _train(data: "Dataset", preset: str, folder: Path) -> "tuple[Run, Evaluation]":
    with importing():
        from kgcf.pipeline import Execution, fit
        from kgcf.runs.watch import Watcher
    with Watcher(shown=True) as watcher:
        run = fit(data, folder, preset=preset, changes=_SAME, execution=Execution(watcher, watcher.say))
    return run, run.evaluate("test")
