"""Figure 4 in words and pictures: what the weights α and β do, and which of them validation prefers."""

from pathlib import Path

from kgcf.config import configure
from kgcf.reproduction.report import pictures
from kgcf.reproduction.report.gathering import Gathered, best_validation
from kgcf.reproduction.store import Result
from kgcf.reproduction.targets import PAPER, PATHS, TARGETS, WITHOUT

Place = tuple[float, float]  # α, β


def weights_section(found: Gathered, ablations: Gathered | None, folder: Path) -> list[str]:
    """A heat map for every graph and model; the ablations say what neither weight gives."""
    lines = ["## Figure 4: the weights α and β", "", found.line, ""]
    for dataset in found.datasets():
        for variant in found.variants():
            alike = [(c, r) for c, r in found.found if (c.dataset, c.variant) == (dataset, variant)]
            if not alike:
                continue
            grid = {_weights(cell.changes): result for cell, result in alike}
            path = folder / f"figure4-{dataset.replace(':', '_')}{'-paper' if variant == PAPER else ''}.svg"
            pictures.draw_weights(dataset, variant, {place: _hits(each) for place, each in grid.items()}, path)
            neither = _neither(ablations, dataset) if variant == PATHS else ""  # the ablations are of this model
            lines += [f"![H@10 on {dataset} by α and β, {variant}]({path.name})", ""]
            lines += [f"{dataset}, {variant}: {_range(found, dataset, variant, grid)}{neither}{_preferred(grid)}"]
            lines[-1] += _used() if variant == PAPER else ""
            lines.append("")
    return lines


def _hits(result: Result) -> float:
    return float(result["metrics"]["hits@10"])


def _range(found: Gathered, dataset: str, variant: str, grid: dict[Place, Result]) -> str:
    """From the least to the most, and how much of that chance can make."""
    best, worst = (choose(grid, key=lambda place: _hits(grid[place])) for choose in (max, min))
    planned = sum((c.dataset, c.variant) == (dataset, variant) for c in TARGETS[found.target](found.scale))
    settings = f"{len(grid)} settings" if len(grid) == planned else f"{len(grid)} of {planned} settings so far"
    return (
        f"test H@10 from {_hits(grid[worst]):.4f} ({_spoken(worst)}) to {_hits(grid[best]):.4f} ({_spoken(best)}) over "
        f"{settings}; one seed.{_error(grid[best], grid)}"
    )


def _neither(ablations: Gathered | None, dataset: str) -> str:
    """The same model, seed and passes with α = β = 0, where the ablations have it."""
    result = None if ablations is None else ablations.results(dataset, WITHOUT).get(0)
    if result is None:
        return " The smallest weights are nearly no counterfactual loss."
    return f" Without counterfactual losses (α = β = 0, the same seed): {_hits(result):.4f}."


def _error(best: Result, grid: dict[Place, Result]) -> str:
    """How much of the spread one test set and one seed can make by themselves."""
    interval = best.get("intervals", {}).get("hits@10")
    if interval is None:
        return ""
    within = sum(_hits(result) >= interval["low"] for result in grid.values())
    return (
        f" A single H@10 here is known to {interval['low']:.4f} – {interval['high']:.4f} (the best one's 95 % interval "
        f"over questions); {within} of the {len(grid)} lie within it."
    )


def _preferred(grid: dict[Place, Result]) -> str:
    """Which weights validation would choose, and what they then have on test."""
    known = {place: value for place, result in grid.items() if (value := best_validation(result)) is not None}
    if not known:
        return ""
    place = max(known, key=known.__getitem__)
    return (
        f" Validation prefers {_spoken(place)} (MRR {known[place]:.4f}; the least is {min(known.values()):.4f}), which "
        f"has test H@10 {_hits(grid[place]):.4f}."
    )


def _used() -> str:
    chosen = configure("paper").objective
    return f" Preset `paper` has {_spoken((chosen.alpha, chosen.beta))}."


def _spoken(place: Place) -> str:
    return f"α = {place[0]:g}, β = {place[1]:g}"


def _weights(changes: tuple[str, ...]) -> Place:
    named = dict(change.split("=") for change in changes)
    return float(named["objective.alpha"]), float(named["objective.beta"])
