"""An explanation in sentences for people who have not read the paper: because, still, against, compared, how sure."""

from collections.abc import Iterator, Sequence

from kgcf.explanation.counterfactual import CounterfactualEvidence
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.named_paths import NamedPath
from kgcf.explanation.words_in_detail import beside_sentences, detailed_sentences, unreached_sentence

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_TIED = "tie both into the graph equally tightly"
_MEANS = {  # of the same role and of different ones, by how a run labels entities
    "core_number": (f"the links of this relation {_TIED}", f"the links of this relation do not {_TIED}"),
    "core_component": (
        "both lie in the same tightly tied part of this relation's links",
        "they do not lie in the same tightly tied part of this relation's links",
    ),
    "collapsed_core": (f"all links together {_TIED}", f"all links together do not {_TIED}"),
    "louvain": (
        "both belong to the same community of this relation's links",
        "they do not belong to the same community of this relation's links",
    ),
    "shuffled_core": (
        "this run dealt roles out at random, as a control, and gave both the same one",
        "this run dealt roles out at random, as a control, and did not give both the same one",
    ),
    "file": (
        "both have the same label in the file that the run was given",
        "they do not have the same label in the file that the run was given",
    ),
}
_HALF = 0.5  # of its probability: what is left when an answer no longer stands


def sentences(explanation: Explanation, detail: bool = False) -> list[str]:
    """The whole explanation for people, a sentence or a path a line; `detail`: everything, in the paper's words."""
    if detail:
        return detailed_sentences(explanation)
    return [
        *answer_sentences(explanation),
        *reason_sentences(explanation),
        *carried_sentences(explanation),
        *against_sentences(explanation),
        *pair_sentences(explanation),
        *beside_sentences(explanation),
        sure_sentence(explanation),
    ]


def chance(probability: float) -> str:
    """A probability as people read it: three decimals, or the first digit of a tiny one."""
    return f"{probability:.3f}" if probability >= 0.0005 or probability == 0 else f"{probability:.0e}"


def answer_sentences(explanation: Explanation) -> Iterator[str]:
    """The triple, how likely the model finds it, and what was hidden."""
    e = explanation
    yield f"{e.head.full} —{e.relation.full}→ {e.tail.full}: probability {chance(e.probability)}."
    if e.known:
        also = f", with {e.hidden - 1} other link{'s' * (e.hidden > 2)} of the two" if e.hidden > 1 else ""
        yield f"The observed graph has this triple; it was hidden before asking{also}."


def reason_sentences(explanation: Explanation) -> Iterator[str]:
    """Because of which paths; or that there is none that matters."""
    if explanation.reasons:
        yield "Because:"
        for number, path in numbered_reasons(explanation):
            yield f"{number}. {path}{without_sentence(path)}"
    yield from missing_sentences(explanation)


def numbered_reasons(explanation: Explanation) -> Iterator[tuple[int, NamedPath]]:
    """The paths that speak for the triple, by their number among the paths."""
    reasons = explanation.reasons
    return ((number, path) for number, path in enumerate(explanation.paths, start=1) if path in reasons)


def missing_sentences(explanation: Explanation) -> Iterator[str]:
    """Why there is no reason to show."""
    e = explanation
    if e.head == e.tail:
        yield "Head and tail are the same entity, so there is no path to show between them."
    elif not e.reached:
        yield unreached_sentence(e)
    elif not e.reasons:
        tried = f"{_count(e.tried, 'path', 'paths')} were taken away, one at a time, and none of them makes"
        if e.tried == 1:
            tried = "the only one was taken away, and it does not make"
        yield f"No path matters: {tried} the answer what it is."


def carried_sentences(explanation: Explanation) -> Iterator[str]:
    """How much the paths carry together, what the answer would survive, and what would change it."""
    e, carried = explanation, explanation.carried
    if carried is None or not e.reasons:
        return
    whole, alone = chance(e.probability), chance(carried.alone.probability)
    these = "This path" if len(e.paths) == 1 else f"These {_count(len(e.paths), 'path', 'paths')}"
    them, give = ("it", "gives") if len(e.paths) == 1 else ("them", "give")
    of = f"of {whole}" if carried.alone.probability <= e.probability else f"where all evidence gives {whole}"
    last = "" if carried.without.reached else ", for no path is left"
    yield (
        f"{these} alone {give} {alone} {of}; without {them} {chance(carried.without.probability)}{last}. "
        f"{'By memory alone' if e.remembered else 'With no evidence'} it would be "
        f"{chance(carried.nothing.probability)}."
    )
    yield from _standing(explanation)


def _standing(explanation: Explanation) -> Iterator[str]:
    """Without which single path the answer still stands, and the fewest paths without which it does not."""
    e = explanation
    stays = [
        (number, path.effect.without.probability)
        for number, path in numbered_reasons(e)
        if path.effect is not None and path.effect.without.probability > _HALF * e.probability
    ]
    if stays:
        least = min(probability for _, probability in stays)
        numbers = _list([str(number) for number, _ in stays], "or")
        still = "still be predicted" if least >= _HALF else "keep most of its probability"
        yield f"It would {still} if path {numbers} were not there ({_at_least(stays, least)})."
    change = _least_change(explanation)
    if change is None:
        yield "Nothing among these paths would change it: other evidence holds it up."
    elif len(change[0]) > 1 or stays:
        numbers = _list([str(number) for number in change[0]], "and")
        word = "path" if len(change[0]) == 1 else "paths"
        yield f"What would change it: without {word} {numbers} it falls to {chance(change[1])}."


def _least_change(explanation: Explanation) -> tuple[list[int], float] | None:
    """The fewest paths that take half of the probability away, and what is left; None: not even all of them do."""
    e = explanation
    if e.subsets:
        options = [
            ([i + 1 for i in range(len(e.paths)) if at >> i & 1], o.probability) for at, o in enumerate(e.subsets)
        ]
    else:
        effects = [path.effect for path in e.paths if path.effect is not None]
        options = [([*range(1, i + 2)], effect.together.probability) for i, effect in enumerate(effects)]
    enough = [option for option in options if option[0] and option[1] <= _HALF * e.probability]
    return min(enough, key=lambda option: (len(option[0]), option[1]), default=None)


def against_sentences(explanation: Explanation) -> Iterator[str]:
    """The paths without which the score rises."""
    for path in explanation.opposed:
        yield f"Speaking against it: {path}{without_sentence(path)}"


def pair_sentences(explanation: Explanation) -> Iterator[str]:
    """The nearest comparable pair, what happened there, and what the model would say in its place."""
    e, evidence = explanation, explanation.counterfactual
    if evidence is None:
        yield "This model was trained without comparing pairs, so there is no comparable pair to show."
        return
    yield _role_sentence(e, evidence)
    found = evidence.substitute
    if found is None:
        yield f"No pair has {_role(not evidence.factual_treatment)} under “{e.relation.shown}” to compare with."
        return
    holds = "holds" if found.known else "is not known to hold"
    yield (
        f"The most similar pair with {_role(not evidence.factual_treatment)} is {found.head.shown} and "
        f"{found.tail.shown}: there “{e.relation.shown}” {holds}."
    )
    own, other = chance(evidence.factual_probability), chance(evidence.other_probability)
    change = f"would be {other} instead of {own}" if own != other else f"would stay {own}"
    yield f"With {_role(not evidence.factual_treatment)}, the probability of {e.triple} {change}."


def pair_line(explanation: Explanation) -> str:
    """The same on one line, for lists of answers; empty for a model that compares no pairs."""
    evidence = explanation.counterfactual
    if evidence is None:
        return ""
    found, other = evidence.substitute, _role(not evidence.factual_treatment)
    if found is None:
        return f"the two have {_role(evidence.factual_treatment)}; no pair has {other} to compare with"
    outcome = "known" if found.known else "not known"
    pair = f"{found.head.shown} —{explanation.relation.shown}→ {found.tail.shown}"
    return (
        f"compare {pair} ({outcome}), the most similar pair with {other}; with {other} the probability would be "
        f"{chance(evidence.other_probability)}"
    )


def sure_sentence(explanation: Explanation) -> str:
    """What the probability is worth."""
    e = explanation
    if e.probability_from == "sigmoid":
        return "How sure: this probability was not compared with outcomes; use it to order answers, not as a frequency."
    of = " of this relation" if e.probability_from == "relation" else ""
    return f"How sure: among answers of validation{of} that scored like this one, {_share(e.probability)} were true."


def _share(probability: float) -> str:
    """So many of 100; of 1,000 where that would be none or all."""
    for whole in (100, 1000):
        if 0 < (found := round(whole * probability)) < whole:
            return f"about {found} of {whole:,}"
    return "fewer than 1 of 1,000" if probability < 0.5 else "more than 999 of 1,000"


def _role_sentence(explanation: Explanation, evidence: CounterfactualEvidence) -> str:
    pair = f"{explanation.head.shown} and {explanation.tail.shown}"
    same, different = _MEANS[evidence.treatment]
    own = evidence.factual_treatment
    means = same if own else different
    return f"Compared: {pair} have {_role(own)} under “{explanation.relation.shown}”, that is, {means}."


def _role(same: bool) -> str:
    return "the same role" if same else "different roles"


def without_sentence(path: NamedPath) -> str:
    """What the answer would be without a path; of one that others can stand in for, also without those before it."""
    effect = path.effect
    if effect is None:
        return ""
    last = "" if effect.without.reached else ", and no path would be left"
    said = f"without it {chance(effect.without.probability)}{last}"
    if not effect.needed and not effect.against:
        above = f", without it and those above {chance(effect.together.probability)}"
        said = f"others say the same: {said}{above if effect.together != effect.without else ''}"
    return f"  ({said})"


def _at_least(stays: Sequence[tuple[int, float]], least: float) -> str:
    return chance(least) if len(stays) == 1 else f"at least {chance(least)}"


def _count(number: int, one: str, many: str) -> str:
    shown = _NUMBERS[number] if number < len(_NUMBERS) else str(number)
    return f"{shown} {one if number == 1 else many}"


def _list(items: Sequence[str], last: str) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"
