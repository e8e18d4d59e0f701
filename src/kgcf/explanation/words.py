"""An explanation in sentences."""

from collections.abc import Iterator

from kgcf.explanation.counterfactual import CounterfactualEvidence
from kgcf.explanation.deletion import Deletion
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.memory_evidence import about_paths_sentences, memory_sentences, run_sentences
from kgcf.explanation.named_paths import NamedPath

_REMOVED = {
    "top": "the strongest path",
    "random": "a random path of the same length",
    "shortest": "the shortest path",
}


def sentences(explanation: Explanation, detail: bool = False) -> list[str]:
    """The whole explanation for people, a sentence or a path a line; `detail` as in `answer_sentences`."""
    return [
        *answer_sentences(explanation, detail),
        *path_sentences(explanation),
        *memory_sentences(explanation.memory, explanation.relation),
        *run_sentences(explanation.runs),
        *counterfactual_sentences(explanation),
        *deletion_sentences(explanation),
    ]


def answer_sentences(explanation: Explanation, detail: bool = False) -> Iterator[str]:
    """The triple, how likely the model finds it, and what was hidden; in `detail`, where the probability comes from."""
    e = explanation
    made = f" ({e.probability_from} of logit {e.logit:.3f}, asked for the {e.asked})" if detail else ""
    yield f"{e.head.full} —{e.relation.full}→ {e.tail.full}: probability {e.probability:.3f}{made}."
    if e.known:
        also = f", with {e.hidden - 1} other link{'s' * (e.hidden > 2)} of the two" if e.hidden > 1 else ""
        yield f"The observed graph has this triple; it was hidden before asking{also}."


def path_sentences(explanation: Explanation) -> Iterator[str]:
    """The paths, strongest first, and what is missing."""
    for number, path in enumerate(explanation.paths, start=1):
        yield f"{number}. {path.weight:+.4f}  {path_line(path)}"
    yield from missing_path_sentences(explanation)


def missing_path_sentences(explanation: Explanation) -> Iterator[str]:
    """Why there is no path, or how heavy a path can be that was missed."""
    if explanation.head == explanation.tail:
        yield "Head and tail are the same entity, so there is no path to show between them."
    elif not explanation.paths:
        yield "No path leads from one to the other: the model has no evidence besides what it knows of their relations."
    if explanation.bound is not None:
        yield f"The search stopped early; a path that it missed weighs at most {explanation.bound:.4f}."


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


def counterfactual_line(explanation: Explanation) -> str:
    """The counterfactual evidence on one line; empty for a model without treatment."""
    evidence = explanation.counterfactual
    if evidence is None:
        return ""
    own = f"{_role(evidence.factual_treatment)} (T = {int(evidence.factual_treatment)})"
    found = evidence.substitute
    if found is None:
        return f"{own}; no pair has the other treatment under {explanation.relation.shown}."
    outcome = "known" if found.known else "not known"
    pair = f"{found.head.shown} —{explanation.relation.shown}→ {found.tail.shown}"
    return (
        f"{own}; with the other treatment (T = {int(evidence.counterfactual_treatment)}) the probability would be "
        f"{evidence.counterfactual_probability:.4f}; nearest such pair: {pair} ({outcome}, "
        f"distance {found.distance:.3f})."
    )


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
    if explanation.deletion:
        yield from about_paths_sentences(explanation.memory)
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
