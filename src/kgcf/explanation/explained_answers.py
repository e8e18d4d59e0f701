"""Predictions with their reasons: every answer to a question beside its explanation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kgcf.choices import PATHS
from kgcf.explanation.explainer import Explainer
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.how import How
from kgcf.prediction.answers import Answer, Question, find_answers, name_answers

SHORT = How(top=PATHS, check=False)  # without controls and subsets: ask `Explainer.explain` for those of one answer


@dataclass(frozen=True)
class ExplainedAnswer:
    """An answer and why; a known answer is explained as if it were not known."""

    answer: Answer
    explanation: Explanation

    def to_json(self) -> dict[str, Any]:
        """The answer's own values, and under `explanation` those of its explanation."""
        return {**asdict(self.answer), "explanation": self.explanation.to_json()}


def explain_answers(
    explainer: Explainer,
    question: Question,
    top: int = 10,
    show_known: bool = False,
    allowed: Sequence[str] | None = None,
    *,
    how: How = SHORT,
) -> list[ExplainedAnswer]:
    """The answers of `predict`, each explained by its paths as an answer to the question that was asked."""
    observed = explainer.observed
    found = find_answers(observed, question, top, show_known, allowed)
    count = observed.graph.relation_count
    explained = []
    for answer, (h, r, t) in zip(name_answers(observed, found), found.triples.tolist(), strict=True):
        asked = (t, r + count, h) if question.head is None else (h, r, t)
        explained.append(ExplainedAnswer(answer, explainer.explain_case(explainer.case(*asked, how), how)))
    return explained
