"""Tables 2 and 4, figures 2 and 4 in words, numbers and pictures."""

from pathlib import Path

from kgcf.reproduction.published import INFERENCE
from kgcf.reproduction.report import pictures
from kgcf.reproduction.report.gathering import Gathered, markdown_table
from kgcf.reproduction.store import Result
from kgcf.reproduction.targets import TARGETS, WITHOUT


def substitutes_section(found: Gathered) -> list[str]:
    """Table 2: triples with their substitutes."""
    lines = ["## Table 2: substitutes of counterfactual relations", "", found.line, ""]
    lines += ["T: treatment. The paths of the paper's table are in `results/table2-*.md`, by `kgcf explain`.", ""]
    for cell, result in found.found:
        rows = []
        for row in result["rows"]:
            head, relation, tail = (_cell(part) for part in row["triple"])
            pair = "none" if row["substitute"] is None else ", ".join(map(_cell, row["substitute"]))
            far = "" if row["distance"] is None else f"{row['distance']:.3f}"
            outcome = "yes" if row["outcome"] else "no"
            rows.append([f"{head}, {relation}, {tail}", str(int(row["treatment"])), pair,
                         str(int(row["substitute_treatment"])), far, outcome])  # fmt: skip
        lines += [f"### {cell.dataset}", ""]
        lines += markdown_table(["triple", "T", "substitute", "its T", "distance", "is it a fact?"], rows)
    return lines


def _cell(text: str) -> str:
    """A text from data inside a Markdown table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def inference_section(found: Gathered) -> list[str]:
    """Table 4: seconds to rank."""
    lines = ["## Table 4: how long answers take", "", found.line, ""]
    for cell, result in found.found:
        share = result["questions"] / result["test_questions"]
        rows = []
        for name, parts in result["seconds"].items():
            total = sum(parts)
            rows.append([name, f"{1000 * total / result['questions']:.1f}", f"{total / share:,.1f}", INFERENCE[name]])
        note = (
            f"{cell.dataset}: {result['questions']:,} of {result['test_questions']:,} questions; {result['protocol']}."
        )
        lines += [note, ""]
        titles = ["model", "ms per question", "s for all test questions", "paper: FB15k-237 on a V100"]
        lines += markdown_table(titles, rows)
        slowest = result["seconds"]["kgcf"], result["seconds"]["nbfnet"]
        lines += [f"KGCF takes {sum(slowest[0]) / sum(slowest[1]):.2f} times as long as NBFNet (the paper: 1.05).", ""]
    return lines


def distribution_section(found: Gathered, folder: Path) -> list[str]:
    """Figure 2: relations by how often they occur."""
    lines = ["## Figure 2: how relations are distributed", "", found.line, ""]
    for cell, result in found.found:
        path = folder / f"figure2-{cell.dataset.replace(':', '_')}.svg"
        pictures.draw_distribution(cell.dataset, result["relations"], path)
        counts = sorted((row["train"] for row in result["relations"].values()), reverse=True)
        half = next(i for i in range(1, len(counts) + 1) if 2 * sum(counts[:i]) >= sum(counts))
        lines += [f"![Relations of {cell.dataset}]({path.name})", ""]
        lines += [f"{cell.dataset}: {half} of {len(counts)} relations have half of the train triples.", ""]
    return lines


def weights_section(found: Gathered, ablations: Gathered | None, folder: Path) -> list[str]:
    """Figure 4: α and β; the ablations say what neither gives."""
    lines = ["## Figure 4: the weights α and β", "", found.line, ""]
    for dataset in found.datasets():
        cells = {_weights(c.changes): r for c, r in found.found if c.dataset == dataset}
        values = {place: float(result["metrics"]["hits@10"]) for place, result in cells.items()}
        path = folder / f"figure4-{dataset.replace(':', '_')}.svg"
        pictures.draw_weights(dataset, values, path)
        best, worst = max(values, key=values.__getitem__), min(values, key=values.__getitem__)
        planned = sum(cell.dataset == dataset for cell in TARGETS[found.target](found.scale))
        settings = (
            f"{len(values)} settings" if len(values) == planned else f"{len(values)} of {planned} settings so far"
        )
        lines += [f"![H@10 on {dataset} by α and β]({path.name})", ""]
        lines += [
            f"{dataset}: test H@10 from {values[worst]:.4f} (α = {worst[0]:g}, β = {worst[1]:g}) to {values[best]:.4f} "
            f"(α = {best[0]:g}, β = {best[1]:g}) over {settings}; one seed.{_error(cells[best], values)}"
            f"{_neither(ablations, dataset)} Where the maximum lies was not chosen on validation.",
            "",
        ]
    return lines


def _neither(ablations: Gathered | None, dataset: str) -> str:
    """The same model, seed and passes with α = β = 0, where the ablations have it."""
    result = None if ablations is None else ablations.results(dataset, WITHOUT).get(0)
    if result is None:
        return " The smallest weights are nearly no counterfactual loss."
    return f" Without counterfactual losses (α = β = 0, the same seed): {result['metrics']['hits@10']:.4f}."


def _error(best: Result, values: dict[tuple[float, float], float]) -> str:
    """How much of the spread one test set and one seed can make by themselves."""
    interval = best.get("intervals", {}).get("hits@10")
    if interval is None:
        return ""
    within = sum(value >= interval["low"] for value in values.values())
    return (
        f" A single H@10 here is known to {interval['low']:.4f} – {interval['high']:.4f} (the best one's 95 % interval "
        f"over questions); {within} of the {len(values)} lie within it."
    )


def _weights(changes: tuple[str, ...]) -> tuple[float, float]:
    named = dict(change.split("=") for change in changes)
    return float(named["objective.alpha"]), float(named["objective.beta"])
