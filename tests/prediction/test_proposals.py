"""What calibrates completion is what completion proposes; its probabilities are true where the old way was far off."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from kgcf.data.dataset import Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import SettingsError
from kgcf.prediction.calibration.completed_links import fit_completion, uncalibrated
from kgcf.prediction.calibration.fitting import UNCALIBRATED, Calibration, fit_calibration
from kgcf.prediction.calibration.sampling import collect_best
from kgcf.prediction.completion import complete, plan_completion, rank_links
from kgcf.prediction.proposals import BEST, OTHERS, collect_proposals, draw_questions, shares

PEOPLE = 150
OFTEN, RARELY = 0, 1  # relations: the same logits, very different truths
RATES = {OFTEN: -1.5, RARELY: -6.0}


@dataclass
class Known:
    """A scorer that looks its logits up; it reaches everybody but the last five."""

    logits: NDArray[np.float32]  # [2R, N, N]

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        reached = np.ones((len(heads), self.logits.shape[2]), dtype=bool)
        reached[:, -5:] = False
        return self.logits[relations, heads], reached


@dataclass
class Observed:
    """As much of an observed graph as completion looks at."""

    graph: KnowledgeGraph
    scorer: Known
    entities: Vocabulary = field(default_factory=lambda: Vocabulary.numbered(PEOPLE))
    relations: Vocabulary = field(default_factory=lambda: Vocabulary(["often", "rarely"]))
    calibration: Calibration = UNCALIBRATED
    memory: float = 1e9
    questions_at_once: int = 64

    def score_supported(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
        scores, reached = self.scorer.score_with_reach(heads, relations)
        return scores, reached, reached

    def probabilities(
        self,
        relations: NDArray[np.int64],
        logits: NDArray[np.float64],
        reached: NDArray[np.bool_],
        heard: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        return self.calibration.probabilities(logits, reached | heard, relations)

    def calibration_of(self, _heard: bool) -> Calibration:
        return self.calibration

    def logits_of_ranked(
        self,
        head: int,
        relation: int,
        found: NDArray[np.int64],
        scores: NDArray[np.float32],
        reached: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        return scores[found].astype(np.float64)

    def half_links(self, *ends: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return np.ones(len(ends[0]), dtype=bool), np.ones(len(ends[0]), dtype=bool)


@dataclass(frozen=True)
class Case:
    """Truths drawn from known rates and dealt to train, valid and test."""

    observed: Observed
    valid: NDArray[np.int32]
    test: NDArray[np.int32]


@pytest.fixture(scope="module")
def case() -> Case:
    generator = np.random.default_rng(0)
    logits = generator.normal(0, 1.5, (2, PEOPLE, PEOPLE)).astype(np.float32)
    logits[RARELY] += 1.0  # the higher logits are the worse ones
    odds = np.array([RATES[OFTEN], RATES[RARELY]])[:, None, None] + logits
    true = np.argwhere(generator.random(logits.shape) < expit(odds))[:, [1, 0, 2]].astype(np.int32)
    true = true[true[:, 0] != true[:, 2]]
    dealt = generator.permutation(len(true)) % 10
    train, valid, test = true[dealt < 8], true[dealt == 8], true[dealt == 9]
    both = np.concatenate([logits, logits.transpose(0, 2, 1)])
    return Case(Observed(KnowledgeGraph.build(train, PEOPLE, 2), Known(both)), valid, test)


def test_proposals_are_what_completion_proposes(case: Case) -> None:
    for scope in ("seen", "all"):
        found = collect_proposals(case.observed, case.valid, scope)  # type: ignore[arg-type]
        plan = plan_completion(case.observed, None, scope == "all")  # type: ignore[arg-type]
        links = rank_links(case.observed, plan, uncalibrated(scope), 10**6)  # type: ignore[arg-type]
        true = KnowledgeGraph.build(case.valid, PEOPLE, 2).contains(links.triples)
        assert found.weights.sum() == pytest.approx(len(links.triples))
        assert found.true_count == true.sum()
        best = np.sort(found.logits[found.labels])
        assert best == pytest.approx(np.sort(links.logits[true]), abs=1e-6)
        assert (links.triples[:, 0] != links.triples[:, 2]).all()
        assert links.triples[:, 2].max() < PEOPLE - 5  # the last five are reached by nothing
        assert not case.observed.graph.contains(links.triples).any()


def test_links_below_the_best_are_thinned_and_stand_for_each_other(case: Case) -> None:
    found = collect_proposals(case.observed, case.valid, "all")  # type: ignore[arg-type]
    for question in range(0, 300, 37):
        here = found.questions == question
        assert here.sum() <= BEST + OTHERS + len(case.valid)
        weights = found.weights[here]
        assert (weights >= 1).all()
        lowest = np.sort(found.logits[here & (found.weights == 1)])[-BEST:].min()
        assert (found.logits[here & (found.weights > 1)] <= lowest).all()
    assert (found.weights > 1).any()


def test_questions_are_drawn_with_and_without_a_missing_answer(case: Case) -> None:
    asked = {(h, r) for h, r, _ in case.valid.tolist()}
    generator = np.random.default_rng(3)
    every = draw_questions(case.observed, case.valid, "seen", None, generator)  # type: ignore[arg-type]
    assert (every.weights == 1).all()
    drawn = draw_questions(case.observed, case.valid, "seen", 60, generator)  # type: ignore[arg-type]
    assert 50 <= len(drawn.heads) <= 60
    missing = np.array([q in asked for q in zip(drawn.heads.tolist(), drawn.relations.tolist(), strict=True)])
    assert 20 <= missing.sum() <= 40
    assert set(drawn.relations.tolist()) == {OFTEN, RARELY}
    assert drawn.weights.sum() == pytest.approx(len(every.heads))
    pairs = list(zip(every.heads.tolist(), every.relations.tolist(), strict=True))
    assert drawn.weights[missing].sum() == pytest.approx(sum(q in asked for q in pairs))  # each half for its own


def test_links_of_drawn_questions_stand_for_those_of_all(case: Case) -> None:
    every, drawn = (collect_proposals(case.observed, case.valid, "seen", limit) for limit in (None, 60))  # type: ignore[arg-type]
    assert len(drawn) < len(every) / 3
    assert drawn.weights.sum() == pytest.approx(every.weights.sum(), rel=0.03)
    assert drawn.rate == pytest.approx(every.rate, rel=0.4)


def test_shares_are_bounded_and_hear_the_rare() -> None:
    counts = np.array([0, 1, 100, 10_000])
    found = shares(counts, 120)
    assert found.sum() <= 120
    assert found.tolist() == [0, 1, *found[2:].tolist()]
    assert 0 < found[2] < found[3] < 100 * found[2]
    assert shares(counts, 10_101).tolist() == counts.tolist()
    assert shares(counts, 0).tolist() == [0, 0, 0, 0]


def test_probabilities_are_true_by_relation_where_the_old_way_promised_too_much(case: Case) -> None:
    proposals = collect_proposals(case.observed, case.valid, "seen", 200, 1)  # type: ignore[arg-type]
    said = fit_completion(proposals, "seen")
    graph = case.observed.graph
    task = Split("valid", graph, case.valid, graph, case.observed.entities)
    old = fit_calibration(collect_best(case.observed, task))  # type: ignore[arg-type]
    facts = KnowledgeGraph.build(case.test, PEOPLE, 2)
    for relation, name in ((OFTEN, "often"), (RARELY, "rarely")):
        plan = plan_completion(case.observed, [name], every_entity=False)  # type: ignore[arg-type]
        links = rank_links(case.observed, plan, said, 1000)  # type: ignore[arg-type]
        true = facts.contains(links.triples).mean()
        promised = old.probabilities(links.logits, np.ones(1000, dtype=bool), links.triples[:, 1]).mean()
        assert links.probabilities.mean() == pytest.approx(true, abs=0.04)
        assert relation == OFTEN or promised > 4 * true
    plan = plan_completion(case.observed, None, every_entity=False)  # type: ignore[arg-type]
    by_probability = rank_links(case.observed, plan, said, 500)  # type: ignore[arg-type]
    by_logit = rank_links(case.observed, plan, uncalibrated("seen"), 500)  # type: ignore[arg-type]
    assert facts.contains(by_probability.triples).mean() > 1.5 * facts.contains(by_logit.triples).mean()
    assert by_probability.probabilities.mean() == pytest.approx(facts.contains(by_probability.triples).mean(), abs=0.05)


def test_ranking_is_by_probability_then_logit_and_the_least_probability_cuts_it(case: Case) -> None:
    said = fit_completion(collect_proposals(case.observed, case.valid, "seen", 200, 1), "seen")  # type: ignore[arg-type]
    plan = plan_completion(case.observed, None, every_entity=False)  # type: ignore[arg-type]
    everything = rank_links(case.observed, plan, said, 10**6)  # type: ignore[arg-type]
    order = np.lexsort((-everything.logits, -everything.probabilities))
    assert (everything.probabilities[order] == everything.probabilities).all()
    assert (everything.logits[order] == everything.logits).all()
    first = rank_links(case.observed, plan, said, 300)  # type: ignore[arg-type]
    assert (first.triples == everything.triples[:300]).all()
    bar = float(first.probabilities[120])
    cut = rank_links(case.observed, plan, said, 300, bar)  # type: ignore[arg-type]
    assert len(cut.logits) == (first.probabilities >= bar).sum()
    assert (cut.triples == first.triples[: len(cut.logits)]).all()
    assert len(rank_links(case.observed, plan, said, 300, 1.0).logits) == 0  # type: ignore[arg-type]


def test_completed_links_say_what_their_probability_is_conditional_on(case: Case) -> None:
    said = fit_completion(collect_proposals(case.observed, case.valid, "seen", 200, 1), "seen")  # type: ignore[arg-type]
    plan = plan_completion(case.observed, None, every_entity=False)  # type: ignore[arg-type]
    answers = complete(case.observed, plan, 5, calibration=said)  # type: ignore[arg-type]
    assert {(a.probability_from, a.probability_given) for a in answers} == {("completion", "proposed by complete")}
    plain = complete(case.observed, plan, 5)  # type: ignore[arg-type]
    assert {(a.probability_from, a.probability_given) for a in plain} == {("sigmoid", "nothing: not calibrated")}
    with pytest.raises(SettingsError, match="for candidates 'all'"):
        complete(case.observed, plan, 5, calibration=replace(said, scope="all"))  # type: ignore[arg-type]
