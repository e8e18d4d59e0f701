"""What a part of the report is made of: the finished cells of one target at one scale, and tables in Markdown."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from kgcf.reproduction.cells import SCALES, Cell, Scale
from kgcf.reproduction.standing import outdated, shortly
from kgcf.reproduction.store import Result, Store
from kgcf.reproduction.targets import TARGETS

SCALE_WORDS = {
    "quick": "quick look: minutes on tiny graphs, which says that everything runs and little else",
    "default": "default: hours on one machine",
    "full": "full: more time and seeds",
}


@dataclass(frozen=True)
class Gathered:
    """The finished cells of a target."""

    target: str
    scale: Scale
    found: list[tuple[Cell, Result]]
    wanted: int
    outdated: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by the cell's name: which settings differ
    missing: tuple[str, ...] = ()  # graphs of which no cell is finished
    absent: tuple[str, ...] = ()  # variants of which no cell is finished

    @property
    def line(self) -> str:
        """How much of it is there, and where it was computed."""
        commits = ", ".join(sorted({str(result["commit"]) for _, result in self.found}))
        machines = "; ".join(sorted({_machine(result) for _, result in self.found}))
        return (
            f"{len(self.found)} of {self.wanted} cells ({SCALE_WORDS[self.scale]}); "
            f"`kgcf reproduce {self.target}{'' if self.scale == 'default' else ' --' + self.scale}`; "
            f"commit {commits}; {machines}.{self._left}{self._old}"
        )

    @property
    def _left(self) -> str:
        """A sentence about what is not there yet."""
        if len(self.found) == self.wanted:
            return ""
        parts = [", ".join(self.missing), " and ".join(f"“{variant}”" for variant in self.absent)]
        listed = "; nor of ".join(part for part in parts if part)
        none = f"; nothing yet of {listed}" if listed else ""
        return f" {self.wanted - len(self.found)} cells are not computed yet{none}."

    @property
    def _old(self) -> str:
        """A sentence about the cells that would come out differently now."""
        if not self.outdated:
            return ""
        differing = tuple(dict.fromkeys(each for listed in self.outdated.values() for each in listed))
        verb = "is" if len(self.outdated) == 1 else "are"
        return (
            f" **{len(self.outdated)} of these cells {verb} outdated**: settings have changed since "
            f"({shortly(differing)}); `--again` computes them anew."
        )

    def datasets(self) -> list[str]:
        """In the order of the cells."""
        return list(dict.fromkeys(cell.dataset for cell, _ in self.found))

    def variants(self) -> list[str]:
        """In the order of the cells."""
        return list(dict.fromkeys(cell.variant for cell, _ in self.found))

    def results(self, dataset: str, variant: str) -> dict[int, Result]:
        """By seed."""
        return {c.seed: r for c, r in self.found if c.dataset == dataset and c.variant == variant}

    def validation(self, dataset: str, variant: str) -> dict[int, float]:
        """The validation MRR of the epoch that was kept, by seed; of those that have one."""
        best = {seed: best_validation(result) for seed, result in self.results(dataset, variant).items()}
        return {seed: value for seed, value in best.items() if value is not None}


def gather(store: Store, target: str) -> Gathered | None:
    """The finished cells of the scale that has most, of equals the one that asks for least; None where none has any.

    Scales share cells: a small graph that is trained until validation is satisfied is the same at every one, and says
    nothing of a larger scale until something of that one alone is there.
    """
    best: Gathered | None = None
    for scale in reversed(SCALES):
        cells = TARGETS[target](scale)
        found = [(cell, result) for cell in cells if (result := store.read(cell)) is not None]
        if len(found) > (len(best.found) if best is not None else 0):
            old = {cell.name: changed for cell, result in found if (changed := outdated(cell, result))}
            missing = _none_of((cell.dataset for cell in cells), {cell.dataset for cell, _ in found})
            absent = _none_of((cell.variant for cell in cells), {cell.variant for cell, _ in found})
            best = Gathered(target, scale, found, len(cells), old, missing, absent)
    return best


def _none_of(wanted: Iterable[str], begun: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in wanted if name not in begun))


def _machine(result: Result) -> str:
    machine = result["machine"]
    return f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB"


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]], words: bool = False) -> list[str]:
    """Lines of a table; the first column stands left, the others right unless they are words."""
    places = "|".join([":---", *[":---" if words else "---:"] * (len(titles) - 1)])
    return [f"| {' | '.join(titles)} |", f"|{places}|", *(f"| {' | '.join(row)} |" for row in rows), ""]


def over_seeds(results: Iterable[Result], metric: str, digits: int = 3) -> str:
    """Mean and, of several seeds, standard deviation of a metric."""
    return mean_and_spread((float(result["metrics"][metric]) for result in results), digits)


def mean_and_spread(values: Iterable[float], digits: int) -> str:
    """Mean and, of several, standard deviation; a dash of none."""
    there = list(values)
    if not there:
        return "–"
    mean = f"{fmean(there):.{digits}f}"
    return f"{mean} ± {stdev(there):.{digits}f}" if len(there) > 1 else mean


def best_validation(result: Result) -> float | None:
    """The validation MRR of the epoch that was kept; None where nothing was validated."""
    return max((value for value in result.get("validation", ()) if value is not None), default=None)


def spread_over(found: Gathered) -> str:
    """What figures of several seeds are, said after the name of the metric."""
    counts = {len(found.results(dataset, variant)) for dataset in found.datasets() for variant in found.variants()}
    counts.discard(0)
    most = max(counts, default=1)
    if most == 1:
        return ", one seed"
    return f", mean ± standard deviation over {'up to ' * (len(counts) > 1)}{most} seeds"
