"""The paper's tables and figures as lists of cells, at three scales: minutes, hours, and days."""

from collections.abc import Callable, Iterable
from itertools import product

from kgcf.baselines.catalogue import BASELINES
from kgcf.choices import REPORT
from kgcf.config import configure
from kgcf.errors import unknown_name
from kgcf.reproduction.cells import Cell, Scale
from kgcf.reproduction.published_settings import published_settings

SMALL = ("umls", "kinships", "family", "nations")
LARGE = ("wn18rr", "fb15k-237")
COMPARED = ("umls", "kinships", "family", "world", "drugmechdb", "wn18rr:v1", "fb237:v1", "nell:v1")
ABLATED: tuple[str, ...] = ("umls", "wn18rr:v1", "fb237:v1")
TIMED = ("rgcn-distmult", "compgcn-distmult", "lte-distmult", "neurallp", "nbfnet", "kgcf")  # the paper's table 4
WEIGHTS: tuple[str, ...] = ("0.001", "0.01", "0.1", "1.0")  # the paper's grid of α and β
LONG = "family"  # small, and still hours for a graph network: cut at the default scale
_MINUTE = 60.0
_STATED = 5 * _MINUTE  # for every model on a large graph and for the baselines on LONG: none is trained to its end
_UNTIL_SATISFIED = ("training.patience=20", "training.epochs=300")  # the best epoch by validation is kept
_ONE_EPOCH = ("training.epochs=1",)
_ONE_SWEEP = {
    "wn18rr": _ONE_EPOCH,
    "fb15k-237": ("encoder.layers=3", *_ONE_EPOCH),
}  # of our own there, which trains longer than _STATED: in a time, variants would differ by their passes too
_FEW_NEGATIVES = ("objective.negatives=32", "objective.negatives_from=all")  # the paper has 32; a third of the time
_SHORTER = {
    "wn18rr": _ONE_EPOCH,
    "drugmechdb": ("training.epochs=2",),
}  # than their files; validation: docs/training.md
_QUICK_BASELINE = ("training.epochs=10",)
_QUICK_KGCF = ("training.budget=2000", "encoder.layers=3")
_ONCE = ("frequency", "pra")  # trained in one go
_CONVOLVED = ("training.batch_size=2048",)  # every step of a graph network costs a convolution of the whole graph
_PATHS_ALONE = ("memory.enabled=off",)

OWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "nbfnet": ("nbfnet", ()),
    "NBFNet + T": ("nbfnet", ("decoder.treatment=true",)),
    "KGCF (paper)": ("paper", ()),
    "KGCF (paper, α = β = 0.1)": ("paper", ("objective.alpha=0.1", "objective.beta=0.1")),
    "KGCF (default, paths alone)": ("default", _PATHS_ALONE),
    "KGCF (default)": ("default", ()),
    "default, nothing counterfactual": (
        "default",
        (*_PATHS_ALONE, "decoder.treatment=false", "objective.alpha=0.0", "objective.beta=0.0"),
    ),
}  # our own variants: preset and changes
BASE, TREATED, PAPER, TENTHS, PATHS, DEFAULT, PLAIN = OWN
COMPARABLE = (BASE, TREATED, PAPER, TENTHS, PATHS, PLAIN)  # none has a memory
PAIRS = ((BASE, TREATED), (BASE, PAPER), (BASE, TENTHS), (BASE, PATHS), (PLAIN, PATHS))
# Preset `default` differs from `nbfnet` in more than the paper argues about (context, schedule, what is skipped):
# the last pair has all that on both sides, so that what is left between them is counterfactual.


def own_cell(dataset: str, variant: str, seed: int, changes: Iterable[str] = (), seconds: float | None = None) -> Cell:
    """A training of one of our own variants, with all ranks."""
    preset, own = OWN[variant]
    changes = (*_same_shape(dataset, seconds), *own, *changes)
    return Cell("train", dataset, variant, preset=preset, seed=seed, changes=changes, seconds=seconds, ranks=True)


def _same_shape(dataset: str, seconds: float | None) -> tuple[str, ...]:
    """What a survey for a given time would choose, by how busy the machine is: fixed, or variants differ by it too."""
    if seconds is None:
        return ()
    settings = configure(benchmark=dataset)
    return f"encoder.layers={settings.encoder.layers}", f"objective.negatives={settings.objective.negatives}"


def table1(scale: Scale) -> list[Cell]:
    """All models: small graphs until validation is satisfied, large ones in a stated time, `full` as published."""
    if scale == "quick":
        cells = [
            Cell("train", "umls", name, name, changes=() if name in _ONCE else _QUICK_BASELINE) for name in BASELINES
        ]
        return cells + [own_cell("umls", variant, 0, _QUICK_KGCF) for variant in (BASE, PATHS, DEFAULT)]
    cells = []
    changes: tuple[str, ...]
    for dataset, seed in product(SMALL, range(3)):
        cells += _small(dataset, seed, cut=scale == "default" and dataset == LONG)
    budget, seeds = (_STATED, 1) if scale == "default" else (6 * 60 * _MINUTE, 3)
    for dataset, seed in product(LARGE, range(seeds)):
        large = ("training.epochs=1000", "training.validate_triples=500")
        for name in BASELINES:
            stated = published_settings(dataset, name) if scale == "full" else ()
            batches = _CONVOLVED if scale == "default" and name.startswith(("rgcn", "compgcn")) else ()
            changes = () if name in _ONCE else (*large, *batches, *stated)
            cells.append(Cell("train", dataset, name, name, seed=seed, changes=changes, seconds=budget))
        cells += _own_large(dataset, seed, budget, scale)
    return cells


def _own_large(dataset: str, seed: int, budget: float, scale: Scale) -> list[Cell]:
    """Our own variants on a large graph: in the stated time if it is long, else one epoch, the same for all."""
    if scale == "default":  # a memory takes half an hour more
        return [own_cell(dataset, variant, seed, _ONE_SWEEP[dataset]) for variant in (BASE, PAPER, PATHS)]
    return [own_cell(dataset, variant, seed, seconds=budget) for variant in (BASE, PAPER, PATHS, DEFAULT)]


def _small(dataset: str, seed: int, cut: bool) -> list[Cell]:
    """All models on a small graph; `cut`: the baselines with one seed and a stated time."""
    cells = []
    for name in BASELINES if seed == 0 or not cut else ():
        changes = () if name in _ONCE else _UNTIL_SATISFIED
        cells.append(Cell("train", dataset, name, name, seed=seed, changes=changes, seconds=_STATED if cut else None))
    return cells + [own_cell(dataset, variant, seed) for variant in (BASE, PAPER, PATHS, DEFAULT)]


def table2(scale: Scale) -> list[Cell]:
    """Substitutes of the paper's examples, and of triples drawn from the graph."""
    datasets = ("world",) if scale == "quick" else ("world", "fb15k-237", "wn18rr")
    return [Cell("substitutes", dataset, "KGCF (paper)", preset="paper", seed=1, limit=5) for dataset in datasets]


def table3(scale: Scale) -> list[Cell]:
    """NBFNet against KGCF, paired: the same passes for all variants, as the graph's settings say; several seeds.

    Not the same time: how many passes fit into it depends on what else the machine does, and differs by chance.
    """
    if scale == "quick":
        return [
            own_cell(d, variant, seed, _QUICK_KGCF)
            for d in ("umls", "world")
            for variant in COMPARABLE
            for seed in (0, 1)
        ]
    seeds, shorter = (5, _SHORTER) if scale == "default" else (10, {})
    wanted = [(d, seed) for d in COMPARED for seed in range(seeds)] + [("wn18rr", seed) for seed in range(3)]
    return [own_cell(d, variant, seed, shorter.get(d, ())) for d, seed in wanted for variant in COMPARABLE]


def table4(scale: Scale) -> list[Cell]:
    """Seconds to rank, every model measured in one process, one after the other."""
    dataset, limit = {"quick": ("umls", 50), "default": ("fb15k-237", 200), "full": ("fb15k-237", None)}[scale]
    return [Cell("inference", str(dataset), ",".join(TIMED), limit=limit)]


def figure2(scale: Scale) -> list[Cell]:
    """How relations are distributed in train and test."""
    datasets = ("umls", "world") if scale == "quick" else LARGE
    return [Cell("distribution", dataset, "relations") for dataset in datasets]


def figure4(scale: Scale) -> list[Cell]:
    """Every α and β of the paper's grid, of the paper's own model too: it chooses them by this search."""
    grids: list[tuple[str, str, tuple[str, ...]]] = [
        ("wn18rr:v1", PAPER, ()),
        ("wn18rr:v1", PATHS, ()),
        ("wn18rr", PATHS, (*_ONE_EPOCH, *_FEW_NEGATIVES)),
    ]
    values = WEIGHTS
    if scale == "quick":
        grids, values = [("umls", PATHS, _QUICK_KGCF)], ("0.01", "1.0")
    return [
        own_cell(dataset, variant, 0, (*changes, f"objective.alpha={alpha}", f"objective.beta={beta}"))
        for dataset, variant, changes in grids
        for beta, alpha in product(values, values)
    ]


_STRONG = ("objective.alpha=0.1", "objective.beta=0.1")  # the counterfactual losses at a weight that can matter
_ASKED = ("objective.cf_state=substitute", "objective.cf_pairs=all")
_AS_PRINTED = (
    "objective.alpha=1.0",
    "objective.beta=0.001",
    "objective.cf_target=printed",
    "objective.disc_pairs=all",
)  # the losses of preset `paper`, whose weights validation chose
_ALL_ALIKE = ("encoder.context=none", "training.skip_unreached=false")  # nothing tells reached from unreached
ABLATIONS: dict[str, tuple[str, ...]] = {
    "all parts (α = β = 0.1)": (),
    "no counterfactual losses": ("objective.alpha=0.0", "objective.beta=0.0"),
    "disc none (only L_CF)": ("objective.beta=0.0",),
    "only L_disc": ("objective.alpha=0.0",),
    "treatment core_component": ("treatment.method=core_component",),
    "treatment collapsed_core": ("treatment.method=collapsed_core",),
    "treatment louvain": ("treatment.method=louvain",),
    "treatment shuffled (control)": ("treatment.method=shuffled_core",),
    "without leave-one-out": ("treatment.leave_one_out=false",),
    "candidates all": ("matching.candidates=all",),
    "target printed": ("objective.cf_target=printed",),
    "losses of preset paper": _AS_PRINTED,
    "losses of preset paper, shuffled (control)": (*_AS_PRINTED, "treatment.method=shuffled_core"),
    "L_CF weighted by distance": ("objective.cf_weight=distance",),
    "L_CF of the nearest quarter": ("objective.cf_weight=0.25",),
    "L_CF asks for substitutes": _ASKED,
    "L_CF asks for substitutes, shuffled (control)": (*_ASKED, "treatment.method=shuffled_core"),
    "L_CF flips and asks": ("objective.cf_state=both", "objective.cf_pairs=all"),
    "disc frobenius": ("objective.disc=frobenius",),
    "disc mean": ("objective.disc=mean",),
    "ψ uniform": ("space.psi=uniform",),
    "ψ inverse": ("space.psi=inverse",),
    "context none": ("encoder.context=none",),
    "context decoder": ("encoder.context=decoder",),
    "semantics grounded, all queries, no context": _ALL_ALIKE,
    "semantics nbfnet, all queries, no context": (*_ALL_ALIKE, "encoder.semantics=nbfnet"),
    "no counterfactual losses, shuffled (control)": (
        "objective.alpha=0.0",
        "objective.beta=0.0",
        "treatment.method=shuffled_core",
    ),
}
WHOLE, WITHOUT = list(ABLATIONS)[:2]
CONTROL = "treatment shuffled (control)"
WITHOUT_CONTROL = "no counterfactual losses, shuffled (control)"  # random labels reach the decoder, no loss uses them
CONTROLLED = {
    WHOLE: CONTROL,
    "losses of preset paper": "losses of preset paper, shuffled (control)",
    "L_CF asks for substitutes": "L_CF asks for substitutes, shuffled (control)",
}
DECISIVE = {WITHOUT, WITHOUT_CONTROL, *CONTROLLED, *CONTROLLED.values()}  # what "more than random labels?" rests on


def ablations(scale: Scale) -> list[Cell]:
    """One part changed at a time; random labels are the control that a counterfactual loss has to beat.

    What this question rests on has several seeds at the default scale, the other variants one.
    """
    datasets, seeds, extra = ABLATED, 3 if scale == "default" else 5, tuple[str, ...]()
    chosen = ABLATIONS
    if scale == "quick":
        datasets, seeds, extra = ("umls",), 1, _QUICK_KGCF
        chosen = {name: ABLATIONS[name] for name in (WHOLE, WITHOUT, CONTROL, WITHOUT_CONTROL)}
    return [
        Cell(
            "train",
            d,
            name,
            seed=seed,
            changes=(*extra, *_PATHS_ALONE, *_STRONG, *changes),
            ranks=True,
        )
        for d in datasets
        for seed in range(seeds)
        for name, changes in chosen.items()
        if seed == 0 or scale == "full" or name in DECISIVE
    ]


TARGETS: dict[str, Callable[[Scale], list[Cell]]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "figure2": figure2,
    "figure4": figure4,
    "ablations": ablations,
}
ALL = "all"


def cells_of(target: str, scale: Scale) -> list[Cell]:
    """The cells of a target, or of all; a cell that two tables share is there once."""
    if target not in (*TARGETS, ALL):
        raise unknown_name("target", target, [*TARGETS, ALL, REPORT])
    chosen = TARGETS.values() if target == ALL else [TARGETS[target]]
    found = {cell.key: cell for listing in chosen for cell in listing(scale)}
    return list(found.values())
