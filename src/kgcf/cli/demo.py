"""`kgcf demo`: the main job on the embedded graph of the world: train, compare, predict."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from kgcf.machine.interrupts import importing
from kgcf.screen import Screen, cell

if TYPE_CHECKING:
    from kgcf.data.dataset import Dataset
    from kgcf.runs.run import Run

_QUESTIONS = (("Mexico", "speaks"), ("Portugal", "uses currency"), ("Brazil", "is in region"))  # with answers kept back
_SAME = ("encoder.layers=4", "training.budget=24000", "training.schedule=cosine", "training.validate_triples=200")


def demo(
    keep: Annotated[
        Path | None, typer.Option(help="New folder for the KGCF run [default: one in kgcf's cache, made once].")
    ] = None,
) -> None:
    """Train KGCF and plain NBFNet on the embedded graph `world`, compare them, and answer questions."""
    with importing():
        from kgcf.baselines.frequency import FrequencyScorer
        from kgcf.cli.answer_tables import answer_table
        from kgcf.cli.evaluation_tables import evaluation_table
        from kgcf.data import registry
        from kgcf.evaluation.results import evaluate
        from kgcf.runs.folder import RunFolder
    screen = Screen()
    if keep is not None:
        RunFolder(keep).check_free()
    data = registry.load("world")
    size = f"{len(data.entities):,} entities, {len(data.relations)} relations, {len(data.graph):,} train triples"
    screen.print(Text.assemble(("world", "bold"), f": {size}; {len(data.test):,} facts are kept back to test on."))
    frequency = evaluate(FrequencyScorer(data.graph), data, model="frequency")
    results = {"frequency (floor)": frequency}
    with tempfile.TemporaryDirectory(prefix="kgcf-demo-") as scratch:
        kept = keep or (kept_folder() if not kept_folder().exists() else Path(scratch) / "kgcf")
        screen.print(Text.assemble(("\nPlain NBFNet", "bold"), ", 24,000 training questions"))
        results["NBFNet"] = _train(data, "nbfnet", Path(scratch) / "nbfnet").evaluate("test")
        screen.print(Text.assemble(("\nKGCF", "bold"), ", the same with treatment and counterfactual losses"))
        run = _train(data, "default", kept)
        results["KGCF"] = run.evaluate("test", save=True)
        screen.print()
        screen.print(evaluation_table(results))
        for head, relation in _QUESTIONS:
            left_out = ", ".join(_kept_back(data, head, relation))
            question = (f"\n{head} {relation} …", "bold")
            screen.print(Text.assemble(question, cell(f"  (kept back from training: {left_out})")))
            screen.print(answer_table(run.predict(head, relation, top=5, observed="train")).for_people(screen.width)[0])
    screen.print()
    screen.print(cell(f"See it in a browser:        kgcf serve {'--demo' if keep is None else keep}"))
    screen.print("Next, on your own triples:  kgcf train my.tsv --output runs/mine")
    screen.print("                            kgcf predict runs/mine --head NAME --relation NAME")


def kept_folder() -> Path:
    """Where the demonstration's run is kept."""
    from kgcf.data.locations import cache_folder

    return cache_folder() / "demo" / "world"


def demo_run() -> Path:
    """The run of the demonstration; trained now where there is none, and finished where it was stopped."""
    with importing():
        from kgcf.data import registry
        from kgcf.pipeline import evaluate_on_test, resume
        from kgcf.runs.folder import RunFolder
        from kgcf.runs.model_file import MODEL
    folder = RunFolder(kept_folder())
    is_run = folder.file("run.json").is_file()
    if is_run and folder.sealed(MODEL) and folder.file("results.json").is_file():
        return folder.path
    Screen(stderr=True).print("Training the demonstration, once: about a minute.", style="dim")
    evaluate_on_test(resume(folder.path) if is_run else _train(registry.load("world"), "default", folder.path))
    return folder.path


def _kept_back(data: "Dataset", head: str, relation: str) -> list[str]:
    """The answers that only the valid and test splits know."""
    asked = data.entities.id(head), data.relations.id(relation)
    known = set(data.test.known.tails(*asked).tolist()) - set(data.graph.tails(*asked).tolist())
    return [data.entities.display(entity) for entity in sorted(known)]


def _train(data: "Dataset", preset: str, folder: Path) -> "Run":
    with importing():
        from kgcf.pipeline import Execution, fit
        from kgcf.runs.watch import Watcher
    with Watcher(shown=True) as watcher:
        return fit(data, folder, preset=preset, changes=_SAME, execution=Execution(watcher, watcher.say))
