"""`kgcf demo`: the embedded graph of the world, from its facts to an evaluation."""

import numpy as np
from rich.console import Console

from kgcf.baselines.frequency import FrequencyScorer
from kgcf.cli.tables import facts_tables
from kgcf.data import registry
from kgcf.data.statistics import describe
from kgcf.evaluation.report import breakdown_tables, evaluation_table
from kgcf.evaluation.results import evaluate
from kgcf.progress import showing


def demo() -> None:
    """Show the embedded graph `world` and how far the frequency baseline gets on it."""
    console = Console()
    data = registry.load("world")
    console.print(facts_tables(describe(data, np.random.default_rng(0)), relations=8))
    with showing("ranking", 2 * len(data.test)) as advance:
        result = evaluate(FrequencyScorer(data.graph), data, model="frequency", advance=advance)
    console.print(evaluation_table({"frequency": result}))
    console.print(breakdown_tables(result, data.relations, most=8))
    console.print("\nNext: kgcf datasets ls · kgcf datasets info wn18rr · kgcf evaluate YOUR_FILE.tsv", style="bold")
