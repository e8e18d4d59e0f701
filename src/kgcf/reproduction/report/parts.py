"""Ablations in words and numbers: what each part adds, and whether it adds more than random labels do."""

from dataclasses import dataclass
from statistics import fmean

from kgcf.reproduction.report.differences import LEVEL, compared, p_value, ranks_of
from kgcf.reproduction.report.gathering import Gathered, markdown_table, over_seeds, spread_over
from kgcf.reproduction.significance import Comparison, compare_gains, holm
from kgcf.reproduction.targets import ABLATIONS, CONTROLLED, WHOLE, WITHOUT, WITHOUT_CONTROL

_OTHER_PARTS = ("encoder.", "training.", "treatment.method=shuffled_core")  # what is no variant of the losses
LOSSES = tuple(
    variant
    for variant, changes in ABLATIONS.items()
    if variant != WITHOUT and not any(change.startswith(_OTHER_PARTS) for change in changes)
)  # with true labels


def parts_section(found: Gathered) -> list[str]:
    """MRR of every variant, its difference to the whole, and the control."""
    lines = ["## Ablations", "", found.line, ""]
    lines += [
        "One part changed at a time; the two rows of the semantics are to be compared with each other. The "
        "counterfactual losses have weight 0.1 here, at which they can matter, except for those of preset `paper` "
        "(α = 1, β = 0.001, which validation chose); preset `default` weighs them less. "
        f"Test MRR, paths alone{spread_over(found)}; in brackets the difference to "
        f"“{WHOLE}” over the seeds that both have, * where a permutation test over questions says that it is not 0 "
        f"(p < {LEVEL}, corrected by Holm over the variants of the graph; of these seeds, not of others); –: not "
        "computed yet.",
        "",
    ]
    columns = [_column(found, dataset) for dataset in found.datasets()]
    rows = [[variant, *(column[variant] for column in columns)] for variant in found.variants()]
    lines += markdown_table(["variant", *found.datasets()], rows)
    lines += [f"**Does any variant of the counterfactual losses beat “{WITHOUT}”?**", ""]
    lines += [*(_any_variant(found, dataset) for dataset in found.datasets()), ""]
    lines += [
        "**Do the counterfactual losses help by more than with random labels?** What they add to a model that has the "
        "same labels as input and no such loss, with true labels and with shuffled ones.",
        "",
    ]
    for variant, control in CONTROLLED.items():
        lines += _against_control(found, variant, control)
    lines += ["**What does validation say?** It is what a default is chosen by; the table above is the test set.", ""]
    return [*lines, *(_by_validation(found, dataset) for dataset in found.datasets()), ""]


def _column(found: Gathered, dataset: str) -> dict[str, str]:
    """What the table says of every variant on one graph."""
    against = {v: c for v in found.variants() if v != WHOLE and (c := compared(found, dataset, WHOLE, v)) is not None}
    corrected = holm({variant: comparison.permutation for variant, comparison in against.items()})
    column = {}
    for variant in found.variants():
        column[variant] = over_seeds(found.results(dataset, variant).values(), "mrr", 4)
        if variant in against:
            star = "*" if corrected[variant] < LEVEL else ""
            column[variant] += f" ({against[variant].difference.value:+.4f}{star})"
    return column


@dataclass(frozen=True)
class AgainstNone:
    """A variant of the losses against training without them; p values allow for all that were tried."""

    comparison: Comparison
    questions: float  # p over questions alone
    both: float  # the weaker of questions and seeds

    @property
    def gain(self) -> float:
        """In MRR."""
        return self.comparison.difference.value

    @property
    def better(self) -> bool:
        """Whether it helps, by questions and by seeds: one training settles nothing."""
        return self.gain > 0 and self.both < LEVEL

    @property
    def unsettled(self) -> bool:
        """Whether it helps by the questions of these trainings alone."""
        return self.gain > 0 and self.questions < LEVEL <= self.both

    @property
    def worse(self) -> bool:
        """Whether it does harm, by the questions of these trainings."""
        return self.gain < 0 and self.questions < LEVEL


def losses_against_none(found: Gathered, dataset: str) -> dict[str, AgainstNone]:
    """Every variant of the losses against training without them."""
    against = {v: c for v in LOSSES if (c := compared(found, dataset, WITHOUT, v)) is not None}
    questions = holm({variant: comparison.permutation for variant, comparison in against.items()})
    both = holm({variant: comparison.weaker for variant, comparison in against.items()})
    return {variant: AgainstNone(each, questions[variant], both[variant]) for variant, each in against.items()}


def _any_variant(found: Gathered, dataset: str) -> str:
    """Whether a variant with the losses is better than the one without."""
    against = losses_against_none(found, dataset)
    if not against:
        return f"- {dataset}: not computed yet."
    better = [variant for variant, each in against.items() if each.better]
    unsettled = [variant for variant, each in against.items() if each.unsettled]
    worse = sum(each.worse for each in against.values())
    best = max(against, key=lambda variant: against[variant].gain)
    said = f"yes, {', '.join(better)}" if better else "no variant is shown to"
    said += f"; {', '.join(unsettled)} by these seeds' questions, not settled for others" if unsettled else ""
    tried = f"{len(against)} variants" + (f" of {len(LOSSES)} so far" if len(against) < len(LOSSES) else "")
    seeds = max(len(each.comparison.seeds) for each in against.values())
    return (
        f"- {dataset}: {said}; {worse} are worse ({tried}, {_seeds_at_most(seeds)}, p < {LEVEL} over questions after "
        f"correction). The highest is {best} ({against[best].gain:+.4f}, p corrected "
        f"{p_value(against[best].questions)} over questions)."
    )


def _against_control(found: Gathered, variant: str, control: str) -> list[str]:
    """What the losses add with true labels against what they add with shuffled ones, on every graph."""
    needed = (WITHOUT, variant, WITHOUT_CONTROL, control)
    pairs: dict[str, tuple[Comparison, Comparison, Comparison]] = {}
    for dataset in found.datasets():
        if (ranks := ranks_of(found, dataset, needed)) is not None:
            without, true, without_shuffled, shuffled = (1 / each for each in ranks)
            helps, control_helps = true - without, shuffled - without_shuffled
            each = (helps - control_helps, helps, control_helps)
            pairs[dataset] = tuple(map(compare_gains, each))  # type: ignore[assignment]
    corrected = holm({dataset: more.weaker for dataset, (more, _, _) in pairs.items()})
    lines = [f"{variant}:", ""]
    for dataset in found.datasets():
        if dataset in pairs:
            lines.append(f"- {dataset}: {_answer(pairs[dataset], corrected[dataset])}")
        else:
            lines.append(f"- {dataset}: {_not_yet(found, dataset, variant, needed)}")
    return [*lines, ""]


def _answer(three: tuple[Comparison, Comparison, Comparison], corrected: float) -> str:
    more, true, shuffled = three
    spread, gain = more.difference, true.difference.value
    if gain < 0 and true.permutation < LEVEL:
        answer = "no: they do harm"
    elif corrected >= LEVEL:
        answer = "not shown" + (", one seed so far" if more.seed_test is None else "")
    elif spread.value < 0:
        answer = "no, with random labels they do better"
    else:
        answer = "yes" if gain > 0 else "no: they do not help"
    return (
        f"{answer}. With true labels they add {gain:+.4f} (p {p_value(true.permutation)}), with shuffled ones "
        f"{shuffled.difference.value:+.4f} (p {p_value(shuffled.permutation)}); the former is more by "
        f"{spread.value:+.4f} ({spread.low:+.4f} – {spread.high:+.4f}; {_count(len(more.seeds))}, p corrected, over "
        f"questions and seeds, {p_value(corrected)})."
    )


def _not_yet(found: Gathered, dataset: str, variant: str, needed: tuple[str, ...]) -> str:
    """Which cells the answer waits for, and what is known without them."""
    absent = [each for each in needed if not found.results(dataset, each)]
    waits = f"“{'”, “'.join(absent)}”" if absent else "a seed that all four have"
    known = compared(found, dataset, WITHOUT, variant)
    if known is None:
        return f"not computed yet: {waits}."
    gain = known.difference
    harm = "no: they do harm." if gain.high < 0 else "not computed yet."
    return (
        f"{harm} With true labels they add {gain.value:+.4f} ({gain.low:+.4f} – {gain.high:+.4f}, "
        f"{_count(len(known.seeds))}); to compare with random labels it needs {waits}."
    )


def _by_validation(found: Gathered, dataset: str) -> str:
    """The variants that stand highest on validation, by the seeds that all have, and the two that matter."""
    best = {v: validated for v in found.variants() if (validated := found.validation(dataset, v))}
    seeds = sorted(set.intersection(*map(set, best.values()))) if best else []
    if not seeds:
        return f"- {dataset}: not computed yet."
    means = {variant: fmean(by_seed[seed] for seed in seeds) for variant, by_seed in best.items()}
    order = sorted(means, key=lambda variant: -means[variant])
    named = dict.fromkeys([*order[:3], *(each for each in (WITHOUT, WHOLE) if each in means)])
    listed = ", ".join(f"{order.index(each) + 1}. {each} ({means[each]:.4f})" for each in named)
    by = "seed" if len(seeds) == 1 else "seeds"
    return f"- {dataset}: of {len(order)} variants, by {by} {', '.join(map(str, seeds))}, {listed}."


def _seeds_at_most(seeds: int) -> str:
    return "one seed each" if seeds == 1 else f"one to {seeds} seeds each"


def _count(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"{seeds} seeds"
