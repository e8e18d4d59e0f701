import json
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from kgcf.causal.embedding import EntitySpace
from kgcf.choices import MethodName
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import UnknownNameError
from kgcf.explanation.explainer import Explainer
from kgcf.explanation.explanation import Explanation
from kgcf.explanation.how import How
from kgcf.explanation.words import sentences
from kgcf.explanation.words_in_detail import path_line
from kgcf.prediction.observed_graph import ObservedGraph

from .test_case import observe
from .test_counterfactual import a_space

TRIPLES = [[0, 0, 1], [1, 0, 2], [3, 0, 2], [3, 0, 4], [4, 0, 5], [5, 0, 3], [0, 1, 2], [2, 1, 4], [1, 1, 5], [6, 1, 7]]
ENTITIES = ["Ann", "Bea", "Cyd", "Dan", "Eva", "Fay", "Gil", "Hal"]


def people(treatment: bool = True) -> Explainer:
    graph = KnowledgeGraph.build(TRIPLES, 8, 2)
    plain = observe(graph, treatment=treatment)
    names = Vocabulary([f"e{i}" for i in range(8)], {f"e{i}": name for i, name in enumerate(ENTITIES)})
    observed = ObservedGraph(plain.model, graph, names, Vocabulary(["knows", "likes"]), plain.treatment)

    def space() -> EntitySpace:
        assert treatment, "a model without treatment needs no space"
        return a_space(graph)

    return Explainer(observed, "triple", space)


def test_names_in_names_out() -> None:
    found = people().explain("Ann", "likes", "e2", How(top=3, attribution="gradient"))
    assert (found.head.name, found.relation.name, found.tail.label) == ("Ann", "likes", "e2")
    assert found.known
    assert found.hidden == 1
    assert 1 <= len(found.paths) <= 3
    assert found.paths[0].edges[0].head.name == "Ann"
    assert found.paths[0].edges[-1].tail.name == "Cyd"
    assert found.counterfactual is not None
    assert [deletion.removed for deletion in found.deletion] == ["top", "random", "shortest"]
    with pytest.raises(UnknownNameError, match="Ann"):
        people().explain("Anne", "likes", "Cyd")


def test_namesakes_are_told_apart() -> None:
    explainer = people()
    twins = {f"e{i}": name for i, name in enumerate(ENTITIES)} | {"e1": "Ann"}
    explainer.observed.entities = Vocabulary([f"e{i}" for i in range(8)], twins)
    found = explainer.explain("e0", "likes", "Cyd", How(attribution="gradient"))
    assert found.head.ambiguous
    assert not found.tail.ambiguous
    said = sentences(found)
    assert said[0].startswith("Ann (e0) —likes→ Cyd (e2): probability")
    assert any("Ann (e0) —knows→ Ann (e1) —knows→ Cyd" in str(path) for path in found.paths)
    assert any("Ann (e0) and Cyd " in line for line in said)
    with pytest.raises(UnknownNameError, match="'Ann' is ambiguous: it names e0, e1. Use one of these labels"):
        explainer.explain("Ann", "likes", "Cyd")


def test_inverse_edges_are_shown_as_arrows_to_the_left() -> None:
    found = people().explain("Ann", "likes", "Dan", How(top=50, attribution="gradient"))
    shown = {str(path) for path in found.paths}
    assert "Ann —knows→ Bea —knows→ Cyd ←knows— Dan" in shown
    for path in found.paths:
        for edge in path.edges:
            ends = (edge.tail, edge.head) if edge.inverse else (edge.head, edge.tail)
            triple = [
                ENTITIES.index(ends[0].name),
                ["knows", "likes"].index(edge.relation.name),
                ENTITIES.index(ends[1].name),
            ]
            assert triple in TRIPLES


def test_a_question_for_the_head_runs_from_the_tail() -> None:
    found = people().explain("Ann", "likes", "Cyd", How(asked="head", attribution="gradient"))
    assert (found.head.name, found.tail.name, found.asked) == ("Ann", "Cyd", "head")
    assert found.paths[0].edges[0].head.name == "Cyd"
    assert found.paths[0].edges[-1].tail.name == "Ann"


def test_details_say_what_the_json_says() -> None:
    found = people().explain("Ann", "likes", "Cyd", How(attribution="gradient"))
    text = "\n".join(sentences(found, detail=True))
    assert f"probability {found.probability:.3f} (sigmoid of logit {found.logit:.3f}, asked for the tail)" in text
    assert "it was hidden before asking" in text
    assert found.counterfactual is not None
    assert f"T = {int(found.counterfactual.factual_treatment)}." in text
    assert f"{found.counterfactual.individual_effect:+.3f} (ITE)" in text
    for path in found.paths:
        assert path.effect is not None
        figures = f"drop {path.effect.drop:+.3f}, alone {path.effect.alone.logit:+.3f}, weight {path.weight:+.4f}"
        assert f"{figures}  {path_line(path)}" in text
        assert all(edge.factual_treatment is not None for edge in path.edges)
    assert "Without the first path the logit" in text
    assert "Without a random path of the same length" in text


def test_json_is_plain() -> None:
    found = people().explain("Ann", "likes", "Cyd", How(attribution="gradient"))
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["paths"][0]["edges"][0]["head"] == {"label": "e0", "name": "Ann", "ambiguous": False}
    assert plain["paths"][0]["weight"] == found.paths[0].weight
    assert plain["format"] == 2
    assert plain["paths"][0]["effect"]["without"]["probability"] == found.paths[0].effect.without.probability  # type: ignore[union-attr]


def test_every_key_of_the_json_is_in_the_documents() -> None:
    text = Path("docs/explanations.md").read_text(encoding="utf-8")
    table = text[text.index("## The JSON") : text.index("## In Python")]
    for key in people().explain("Ann", "likes", "Cyd").to_json():
        assert f"`{key}`" in table or f"`{key}[" in table, key


def test_a_model_without_treatment_says_so() -> None:
    found = people(treatment=False).explain("Ann", "likes", "Cyd", How(attribution="gradient"))
    assert found.counterfactual is None
    assert found.paths[0].edges[0].factual_treatment is None
    assert "This model has no treatment, so there is no counterfactual evidence." in sentences(found, detail=True)
    assert any("trained without comparing pairs" in line for line in sentences(found))
    assert found.deletion


@pytest.mark.parametrize("method", get_args(MethodName))
def test_every_way_of_labelling_entities_has_words(method: str) -> None:
    found = people().explain("Ann", "likes", "Cyd", How(check=False))
    assert found.counterfactual is not None
    for same in (True, False):
        evidence = replace(found.counterfactual, treatment=method, factual_treatment=same)
        said = "\n".join(sentences(replace(found, counterfactual=evidence)))
        assert f"have {'the same role' if same else 'different roles'} under “likes”, that is, " in said
        assert ("at random, as a control" in said) == (method == "shuffled_core")


@pytest.mark.parametrize(("tail", "said"), [("Hal", "No path leads"), ("Ann", "the same entity")])
def test_without_paths_there_is_an_answer_and_no_deletion(tail: str, said: str) -> None:
    found = people().explain("Ann", "likes", tail)
    assert found.paths == ()
    assert found.deletion == ()
    assert any(said in line for line in sentences(found))


def test_a_search_that_stopped_early_is_said_to_have() -> None:
    found: Explanation = replace(people().explain("Ann", "likes", "Cyd"), bound=0.25)
    assert "The search stopped early; a path that it missed weighs at most 0.2500." in sentences(found, detail=True)
