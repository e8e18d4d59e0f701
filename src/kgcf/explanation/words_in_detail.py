"""An explanation in full and in the paper's words: logits, weights, T^F and T^CF, the deletion check."""

from collections.abc import Iterator

from kgcf.explanation.counterfactual import CounterfactualEvidence
from kgcf.explanation.deletion import Deletion
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.memory_evidence import about_paths_sentences, memory_sentences, run_sentences
from kgcf.explanation.named_paths import NamedPath

_REMOVED = {
    "top": "the first path",
    "random": "a random path of the same length",
    "shortest": "the shortest path",
}


def detailed_sentences(explanation: Explanation) -> list[str]:
    """The whole explanation, a sentence or a path a line."""
    return [
        *answer_sentences(explanation),
        *path_sentences(explanation),
        *counterfactual_sentences(explanation),
        *carried_sentences(explanation),
        *deletion_sentences(explanation),
        *beside_sentences(explanation),
    ]


def answer_sentences(explanation: Explanation) -> Iterator[str]:
    """The triple, how likely the model finds it, where the probability comes from, and what was hidden."""
    e = explanation
    made = f"{e.probability_from} of logit {e.logit:.3f}, asked for the {e.asked}"
    yield f"{e.head.full} —{e.relation.full}→ {e.tail.full}: probability {e.probability:.3f} ({made})."
    if e.known:
        also = f", with {e.hidden - 1} other link{'s' * (e.hidden > 2)} of the two" if e.hidden > 1 else ""
        yield f"The observed graph has this triple; it was hidden before asking{also}."


def path_sentences(explanation: Explanation) -> Iterator[str]:
    """The paths in their order, then those that speak against the triple, and what is missing."""
    for number, path in enumerate(explanation.paths, start=1):
        yield f"{number}. {effect_figures(path)}  {path_line(path)}"
    for path in explanation.against:
        yield f"against: {effect_figures(path)}  {path_line(path)}"
    yield from missing_path_sentences(explanation)


def effect_figures(path: NamedPath) -> str:
    """What the logit loses without a path, the logit on it alone, and what its edges weigh."""
    if path.effect is None:
        return f"weight {path.weight:+.4f}"
    return f"drop {path.effect.drop:+.3f}, alone {path.effect.alone.logit:+.3f}, weight {path.weight:+.4f}"


def carried_sentences(explanation: Explanation) -> Iterator[str]:
    """The logits with all evidence, on the paths alone, without them, and with none."""
    carried = explanation.carried
    if carried is not None:
        nothing = "by memory alone" if explanation.remembered else "with no evidence"
        yield (
            f"Logit {explanation.logit:.3f}; on these paths alone {carried.alone.logit:.3f}, without them "
            f"{carried.without.logit:.3f}, {nothing} {carried.nothing.logit:.3f} "
            f"({explanation.tried} paths were tried by {explanation.attribution})."
        )


def missing_path_sentences(explanation: Explanation) -> Iterator[str]:
    """Why there is no path, or how heavy a path can be that was missed."""
    if explanation.head == explanation.tail:
        yield "Head and tail are the same entity, so there is no path to show between them."
    elif not explanation.reached:
        yield unreached_sentence(explanation)
    elif not explanation.paths:
        yield f"None of the {explanation.tried} paths tried makes the score what it is."
    if explanation.bound is not None:
        yield f"The search stopped early; a path that it missed weighs at most {explanation.bound:.4f}."


def unreached_sentence(explanation: Explanation) -> str:
    """That no path leads to the answer, and what it rests on then."""
    if explanation.remembered:
        return "No path leads from one to the other: the answer rests on memory and what is known of their relations."
    return "No path leads from one to the other: the model has no evidence besides what it knows of their relations."


def beside_sentences(explanation: Explanation) -> Iterator[str]:
    """What says something beside the paths: memory, other runs; and that taking paths away is not about these."""
    yield from memory_sentences(explanation.memory, explanation.relation)
    yield from run_sentences(explanation.runs)
    if explanation.paths or explanation.against:
        yield from about_paths_sentences(explanation.memory)


def path_line(path: NamedPath) -> str:
    """A path on one line, each edge with its treatments where they are known."""
    parts = [path.edges[0].head.shown]
    for edge in path.edges:
        treatments = ""
        if edge.factual_treatment is not None and edge.counterfactual_treatment is not None:
            treatments = f" (T {int(edge.factual_treatment)}, T^CF {int(edge.counterfactual_treatment)})"
        parts.append(f"{edge.arrow} {edge.tail.shown}{treatments}")
    return " ".join(parts)


def counterfactual_sentences(explanation: Explanation) -> Iterator[str]:
    """T^F, the substitute, p^CF and the effect; or that there is none."""
    evidence = explanation.counterfactual
    if evidence is None:
        yield "This model has no treatment, so there is no counterfactual evidence."
        return
    yield _treatment_sentence(explanation, evidence)
    found = evidence.substitute
    if found is None:
        yield "No pair has the other treatment under this relation, so there is no counterfactual."
    else:
        outcome = "is known as well" if found.known else "is not known"
        yield (
            f"The nearest pair with the other treatment is {found.head.shown} and {found.tail.shown} (distance "
            f"{found.distance:.3f}); {found.head.shown} —{explanation.relation.shown}→ {found.tail.shown} {outcome}."
        )
        yield (
            f"Under the other treatment {explanation.triple} would have probability "
            f"{evidence.counterfactual_probability:.3f} instead of {evidence.factual_probability:.3f}."
        )
    yield f"Having the same role changes the probability by {evidence.individual_effect:+.3f} (ITE)."


def _treatment_sentence(explanation: Explanation, evidence: CounterfactualEvidence) -> str:
    pair = f"{explanation.head.shown} and {explanation.tail.shown}"
    kind, own = evidence.treatment.replace("_", " "), evidence.factual_treatment
    return f"{pair} have {_role(own)} under {explanation.relation.shown} (by {kind}): treatment T = {int(own)}."


def _role(treated: bool) -> str:
    """What a treatment means here, in words that nobody takes for medicine."""
    return "the same neighbourhood role" if treated else "different neighbourhood roles"


def deletion_sentences(explanation: Explanation) -> Iterator[str]:
    """What happens without the path, and without the controls."""
    for deletion in explanation.deletion:
        yield deletion_sentence(explanation, deletion)
    if explanation.deletion and all(found.removed != "random" for found in explanation.deletion):
        yield "No random path of the same length was met, so that control is missing."


def deletion_sentence(explanation: Explanation, deletion: Deletion[NamedPath]) -> str:
    """One removal."""
    left = "" if deletion.reached else "; no path is left"
    moved = f"falls by {deletion.drop:.3f}" if deletion.drop >= 0 else f"rises by {-deletion.drop:.3f}"
    return (
        f"Without {_REMOVED[deletion.removed]} the logit {moved} "
        f"(probability {explanation.probability:.3f} → {deletion.probability:.3f}{left})."
    )
