"""The paper's table 2 for a model of ours: queries with their substitutes (SoCR) and their best paths, with names.

Run: python benchmarks/table2.py RUN [--queries FILE.tsv] [--count 3] [--seed 0] [--top 3] [--output FILE.md]
FILE has lines of head, relation, tail (labels or names). Without one, `--count` test triples are drawn at random; on
fb15k-237 the two queries that the paper prints come first. The observed graph is train; a query that train has is
hidden first by the run's own rule.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from kgcf.data.dataset import Dataset
from kgcf.errors import DataError
from kgcf.explanation.counterfactual import CounterfactualEvidence
from kgcf.explanation.explainer import Explainer
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.how import How
from kgcf.explanation.named_paths import NamedEdge
from kgcf.machine.provenance import provenance
from kgcf.runs.run import Run

Query = tuple[str, str, str]
_OLYMPICS = "/olympics/olympic_participating_country/medals_won./olympics/olympic_medal_honor/olympics"
_REGION = "/film/film/release_date_s./film/film_regional_release_date/film_release_region"
PAPER: dict[str, tuple[Query, ...]] = {
    "fb15k-237": (
        ("/m/015fr", _OLYMPICS, "/m/0l98s"),  # Brazil, olympics, 1972 Summer Olympics
        ("/m/0ds35l9", _REGION, "/m/05r4w"),  # Bridesmaids, film release region, Portugal
    )
}


def main() -> None:
    """Write the table of one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--queries", type=Path, help="file of triples instead of test triples drawn at random")
    parser.add_argument("--count", type=int, default=3, help="test triples to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--top", type=int, default=3, help="paths per query")
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    run = Run.open(chosen.run)
    if chosen.queries is not None:
        queries, origin = read_queries(chosen.queries), f"queries: {chosen.queries.name}"
    else:
        drawn = draw_queries(run.data, chosen.count, chosen.seed)
        queries = [*PAPER.get(run.data.name, ()), *drawn]
        printed = len(queries) - len(drawn)
        origin = f"queries: {printed} of the paper, {len(drawn)} test triples drawn with seed {chosen.seed}"
    text = "\n".join(table(run, queries, chosen.top, origin)) + "\n"
    print(text, end="")
    if chosen.output is not None:
        chosen.output.write_text(text, encoding="utf-8")


def read_queries(path: Path) -> list[Query]:
    """Lines of head, relation and tail, with tabs between."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    for number, row in enumerate(rows, start=1):
        if len(row) != 3:
            raise DataError(f"{path}, query {number}: expected head, relation and tail with tabs between.")
    return [(h, r, t) for h, r, t in rows]


def draw_queries(data: Dataset, count: int, seed: int) -> list[Query]:
    """Some test triples, by label."""
    entities, relations = data.test.entities, data.relations
    rows = np.random.default_rng(seed).permutation(len(data.test.queries))[:count]
    triples = data.test.queries[rows].tolist()
    return [(entities.label(h), relations.label(r), entities.label(t)) for h, r, t in triples]


def table(run: Run, queries: Sequence[Query], top: int, origin: str) -> Iterator[str]:
    """The whole text: protocol, then a section per query."""
    explainer = run.explainer(observed="train")
    yield f"# Path interpretations on {run.data.name}"
    yield ""
    yield f"{protocol(run)}; {origin}."
    yield ""
    yield (
        "T^F / T^CF stand behind every triple: its own treatment, and that of its nearest pair with the other one. "
        "A weight is the mean of ∂logit/∂edge along the path, each edge in the layer of its step."
    )
    for number, query in enumerate(queries, start=1):
        yield ""
        yield from section(explainer, run.data, number, query, top)


def protocol(run: Run) -> str:
    """Dataset, preset, how long it was trained, what it is worth on validation, and where this was computed."""
    facts, training, here = run.folder.facts(), run.settings.training, provenance()
    history = facts.get("history")
    best = history.get("best_validation_mrr") if isinstance(history, dict) else None
    length = f"{training.epochs} epochs" if training.budget is None else f"{training.budget:,} queries"
    triples = training.validate_triples
    validated = min(triples or len(run.data.valid), len(run.data.valid))
    worth = "not validated" if best is None else f"validation MRR {best:.3f} on {validated:,} triples"
    return (
        f"Dataset {run.data.name}, preset {facts['preset']}, {length}, training seed {training.seed}, {worth}; "
        f"observed graph: train, remove rule: {training.remove}; "
        f"kgcf {here['kgcf']}, commit {here['commit']}, {here['processor']}, {here['cores']} cores, {here['date']}"
    )


def section(explainer: Explainer, data: Dataset, number: int, query: Query, top: int) -> Iterator[str]:
    """One query: the triple, its substitute, its paths."""
    found = explainer.explain(*query, How(top=top, attribution="gradient", check=False))
    evidence = found.counterfactual
    own = _treatments(evidence.factual_treatment, evidence.counterfactual_treatment) if evidence is not None else ""
    yield f"## {number}. {_cell(found.head.name)}, {_cell(found.relation.name)}, {_cell(found.tail.name)}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| **Query** | {_triple(found.head.name, found.relation.name, found.tail.name)}{own} |"
    yield f"| | {_cell(answer(found, data, query))} |"
    yield f"| **SoCR** | {socr(found, evidence)} |"
    for path in found.paths:
        yield f"| **{path.weight:+.4f}** | {' ∧ '.join(_edge(edge) for edge in path.edges)} |"
    if not found.paths:
        yield "| | no path leads from head to tail |"
    elif found.deletion:
        yield f"| | {_cell(deletion(found))} |"


def answer(found: Explanation, data: Dataset, query: Query) -> str:
    """Where the triple comes from, and how likely the model finds it."""
    part = split_of(data, query)
    hidden = f", {found.hidden} triple{'s' * (found.hidden > 1)} hidden" if found.hidden else ""
    return f"{part}{hidden}; probability {found.probability:.3f} ({found.probability_from}), logit {found.logit:.3f}"


def split_of(data: Dataset, query: Query) -> str:
    """Which split has the triple."""
    entities = data.test.entities
    triple = [entities.id(query[0], "entity"), data.relations.id(query[1], "relation"), entities.id(query[2], "entity")]
    if data.test.observed.contains([triple])[0]:
        return "train"
    for split in (data.valid, data.test):
        if split.entities == entities and (split.queries == np.array(triple)).all(axis=1).any():
            return split.name
    return "not in the data"


def socr(found: Explanation, evidence: CounterfactualEvidence | None) -> str:
    """The substitute of the counterfactual relation, with its own treatments, distance and outcome."""
    if evidence is None:
        return "the model has no treatment"
    pair = evidence.substitute
    if pair is None:
        return "no pair has the other treatment under this relation"
    known = "known" if pair.known else "not known"
    return (
        f"{_triple(pair.head.name, found.relation.name, pair.tail.name)}"
        f"{_treatments(pair.factual_treatment, pair.counterfactual_treatment)}; {known}, distance {pair.distance:.3f}; "
        f"p^F {evidence.factual_probability:.3f}, p^CF {evidence.counterfactual_probability:.3f}, "
        f"ITE {evidence.individual_effect:+.3f}"
    )


def deletion(found: Explanation) -> str:
    """What removing the top path does, beside the controls."""
    drops = {item.removed: item.drop for item in found.deletion}
    return "logit falls without: " + ", ".join(f"{kind} path {drop:+.3f}" for kind, drop in drops.items())


def _edge(edge: NamedEdge) -> str:
    relation = edge.relation.name + ("⁻¹" if edge.inverse else "")
    if edge.factual_treatment is None or edge.counterfactual_treatment is None:
        return _triple(edge.head.name, relation, edge.tail.name)
    return _triple(edge.head.name, relation, edge.tail.name) + _treatments(
        edge.factual_treatment, edge.counterfactual_treatment
    )


def _triple(head: str, relation: str, tail: str) -> str:
    return f"⟨{_cell(head)}, {_cell(relation)}, {_cell(tail)}⟩"


def _treatments(factual: bool, counterfactual: bool) -> str:
    return f" ({int(factual)}/{int(counterfactual)})"


def _cell(text: str) -> str:
    """Text that a table cell can hold."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
