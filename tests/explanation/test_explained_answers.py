"""Predictions with their reasons: the answers of `predict`, each explained as the question was asked."""

import json
from dataclasses import replace

import numpy as np
import pytest

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.explanation.explained_answers import explain_answers
from kgcf.explanation.explainer import Explainer
from kgcf.explanation.how import How
from kgcf.prediction.answers import Question, predict
from kgcf.prediction.calibration.fitting import Calibration, FittedCurve
from kgcf.prediction.calibration.link_curves import LinkCurve
from kgcf.prediction.observed_graph import ObservedGraph

from .test_case import observe
from .test_counterfactual import a_space
from .test_explainer import TRIPLES, people

GRADIENT = How(top=2, attribution="gradient", check=False)
LEAST = 0.0001  # of the unreached
INTERCEPTS = (-1.0, 0.5, 1.5, -0.5)  # of two relations and their inverses
CURVE = LinkCurve((-10.0, 10.0), (-6.0, 4.0), INTERCEPTS)
CALIBRATED = Calibration("relation", "for a test", {"relation": FittedCurve(CURVE, LEAST)})


def promised(logit: float, asked: int) -> float:
    """Of a question about this relation, inverse ones last."""
    return float(CURVE(np.array([logit]), np.array([asked]))[0])


def calibrated() -> Explainer:
    """The people of `test_explainer`, two relations of one name, and a calibrated model."""
    plain = people().observed
    relations = Vocabulary(["knows", "likes"], {"knows": "is near", "likes": "is near"})
    observed = ObservedGraph(
        plain.model, plain.graph, plain.entities, relations, plain.treatment, calibration=CALIBRATED
    )
    return Explainer(observed, "triple", lambda: a_space(plain.graph))


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        (Question("Ann", "likes", None), "tail"),
        (Question(None, "likes", "Cyd"), "head"),
        (Question("Ann", None, "Eva"), "tail"),
    ],
)
def test_answers_are_those_of_predict_and_reasons_those_of_explain(question: Question, asked: str) -> None:
    explainer = calibrated()
    found = explain_answers(explainer, question, top=4, how=GRADIENT)
    assert [item.answer for item in found] == predict(explainer.observed, question, 4)
    assert any(item.explanation.paths for item in found)
    for item in found:
        answer, why = item.answer, item.explanation
        assert why.asked == asked
        assert len(why.paths) <= 2
        assert why.deletion == ()
        assert answer.reached == (answer.logit is not None)
        if answer.logit is not None:
            assert why.logit == pytest.approx(answer.logit, abs=1e-5)  # ranking computes in single precision
        assert why.probability == pytest.approx(answer.probability, abs=1e-6)
        assert why.probability_from == answer.probability_from == "relation"
        number = ["knows", "likes"].index(answer.relation) + (2 if asked == "head" else 0)
        assert answer.probability == (LEAST if answer.logit is None else max(promised(answer.logit, number), LEAST))
        own = replace(GRADIENT, asked=why.asked)
        alone = explainer.explain(why.head.label, why.relation.label, why.tail.label, own)
        assert alone == why


def test_probabilities_are_calibrated_everywhere_in_an_explanation() -> None:
    explainer = calibrated()
    for tail in ("Cyd", "Hal"):  # a path leads to Cyd, none to Hal
        found = explainer.explain("Ann", "likes", tail)
        assert found.probability == (max(promised(found.logit, 1), LEAST) if found.reached else LEAST)
        assert found.counterfactual is not None
        assert found.counterfactual.factual_probability == pytest.approx(found.probability, abs=1e-12)
        for deletion in found.deletion:
            assert deletion.probability == (max(promised(deletion.logit, 1), LEAST) if deletion.reached else LEAST)


def test_a_known_answer_is_explained_as_if_it_were_not() -> None:
    explainer = people()
    found = explain_answers(explainer, Question("Ann", "likes", None), top=8, show_known=True)
    (known,) = [item for item in found if item.answer.known]
    assert known.explanation.known
    assert known.explanation.hidden == 1
    own = [path for path in known.explanation.paths if len(path.edges) == 1]
    assert not any(edge.relation.label == "likes" and not edge.inverse for path in own for edge in path.edges)


def test_json_has_the_answer_and_its_reason() -> None:
    (item,) = explain_answers(people(), Question("Ann", "likes", None), top=1, how=replace(GRADIENT, top=1))
    values = json.loads(json.dumps(item.to_json(), allow_nan=False))
    assert values["tail"] == values["explanation"]["tail"]["label"] == "e3"
    assert values["tail_name"] == values["explanation"]["tail"]["name"] == "Dan"
    assert values["rank"] == 1
    assert len(values["explanation"]["paths"]) == 1


def test_only_allowed_answers_and_a_model_without_treatment() -> None:
    graph = KnowledgeGraph.build(TRIPLES, 8, 2)
    plain = Explainer(observe(graph, treatment=False), "triple", lambda: pytest.fail("no space is needed"))
    found = explain_answers(plain, Question("0", "1", None), allowed=["3", "7"])
    assert {item.answer.tail for item in found} == {"3", "7"}
    assert all(item.explanation.counterfactual is None for item in found)
