"""Ablations in words and numbers: what each part adds, and whether it adds more than random labels do."""

from kgcf.reproduction.report.differences import compared, p_value
from kgcf.reproduction.report.gathering import Gathered, markdown_table, over_seeds
from kgcf.reproduction.targets import ABLATIONS, CONTROL

WHOLE, WITHOUT = list(ABLATIONS)[:2]


def parts_section(found: Gathered) -> list[str]:
    """MRR of every variant, its difference to the whole, and the control."""
    lines = ["## Ablations", "", found.line, "", f"Test MRR, paths alone; in brackets the difference to “{WHOLE}”.", ""]
    rows = []
    for variant in found.variants():
        row = [variant]
        for dataset in found.datasets():
            text = over_seeds(found.results(dataset, variant).values(), "mrr", 4)
            comparison = compared(found, dataset, WHOLE, variant) if variant != WHOLE else None
            row.append(text if comparison is None else f"{text} ({comparison.difference.value:+.4f})")
        rows.append(row)
    lines += markdown_table(["variant", *found.datasets()], rows)
    lines += ["**Does the counterfactual loss help by more than its control with random labels?**", ""]
    return [*lines, *(_against_control(found, dataset) for dataset in found.datasets()), ""]


def _against_control(found: Gathered, dataset: str) -> str:
    """The gain of the losses with true labels against that with shuffled ones."""
    control, plain = compared(found, dataset, CONTROL, WHOLE), compared(found, dataset, WITHOUT, WHOLE)
    if control is None or plain is None:
        return f"- {dataset}: not computed yet."
    difference = control.difference
    answer = "cannot be told"
    if difference.excludes_zero:
        answer = "yes" if difference.value > 0 else "no, random labels do better"
    return (
        f"- {dataset}: {answer}. True against shuffled labels {difference.value:+.4f} "
        f"({difference.low:+.4f} – {difference.high:+.4f}, p {p_value(control.permutation)}); "
        f"with the losses against without {plain.difference.value:+.4f} (p {p_value(plain.permutation)})."
    )
