"""Tables 2 and 4 and figure 2 in words, numbers and pictures."""

from pathlib import Path

from kgcf.reproduction.published import INFERENCE
from kgcf.reproduction.report import pictures
from kgcf.reproduction.report.gathering import Gathered, markdown_table


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
