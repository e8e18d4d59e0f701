"""Path Ranking (Lao & Cohen 2010): random-walk probabilities along path types, one logistic regression per relation."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit
from torch import nn

from kgcf.baselines.contract import Baseline, EpochKeeper, ReachScorer
from kgcf.baselines.paths.walks import NONE, Path, find_paths
from kgcf.baselines.settings import BaselineSettings, PraSettings
from kgcf.data.graph import KnowledgeGraph

Matrices = list[csr_matrix]  # of every relation, the probabilities of a step along it
_LEAST_SUPPORT = 2  # triples that a path type must join, where there are more than a few
_FEW = 10


class PathRanking(Baseline):
    """score(h, r, t) = Σ_p θ_{r,p} P(h → t | p) + θ_r; P is the chance of a walk that takes p's relations in turn."""

    def __init__(self, settings: PraSettings, graph: KnowledgeGraph, seed: int) -> None:
        super().__init__()
        self.settings, self._graph, self._seed = settings, graph, seed
        relations, count = 2 * graph.relation_count, settings.paths
        self.theta = nn.Parameter(torch.zeros(relations, count), requires_grad=False)
        self.offset = nn.Parameter(torch.zeros(relations), requires_grad=False)
        self.paths: torch.Tensor
        self.register_buffer("paths", torch.full((relations, count, settings.length), NONE))

    def fit(self, epochs: EpochKeeper) -> None:
        """One epoch: for every relation its paths, then its regression; further epochs would change nothing."""
        if not epochs.remaining:
            return
        epochs.begin()
        steps = step_matrices(self._graph)
        for relation in range(2 * self._graph.relation_count):
            generator = np.random.default_rng((self._seed, relation))
            loss, questions = self._fit_relation(relation, steps, generator)
            epochs.step(2 * self._graph.relation_count, loss, questions)
        while epochs.end():
            epochs.begin()

    def _fit_relation(self, relation: int, steps: Matrices, generator: np.random.Generator) -> tuple[float, int]:
        """Choose the paths and fit the weights of one relation; the triples asked about are taken out of the graph."""
        settings, graph = self.settings, self._graph
        pairs = _pairs(graph, relation)
        chosen = generator.permutation(len(pairs))[: settings.sample]
        asked = pairs[chosen]
        paths = _best(find_paths(graph, relation, asked, settings.length, settings.walks, generator), settings.paths)
        if not paths:
            return 0.0, 0
        found = Regression.collect(graph, steps, relation, asked, paths, settings.negatives, generator)
        theta, offset, loss = found.fit(settings.penalty)
        for place, path in enumerate(paths):
            self.paths[relation, place, : len(path)] = torch.tensor(path)
        self.theta[relation, : len(paths)] = torch.from_numpy(theta).float()
        self.offset[relation] = offset
        return loss, len(asked)

    def weighted_paths(self, relation: int) -> dict[Path, float]:
        """The path types of a relation with their weights."""
        rows = (tuple(step for step in path if step != NONE) for path in self.paths[relation].tolist())
        weights = self.theta[relation].tolist()
        return {path: weight for path, weight in zip(rows, weights, strict=True) if path}

    def scorer(self, graph: KnowledgeGraph, memory: float) -> ReachScorer:
        """Walks on the observed graph."""
        return PathScorer(self, graph)


class PathScorer:
    """Scores relation by relation: the walks of all heads that ask about it are one sparse product each."""

    def __init__(self, model: PathRanking, graph: KnowledgeGraph) -> None:
        self._model, self._count = model, graph.entity_count
        self._steps = step_matrices(graph)

    def score_tails(self, heads: NDArray[np.int64], relations: NDArray[np.int64]) -> NDArray[np.float32]:
        """[B, N] scores."""
        return self.score_with_reach(heads, relations)[0]

    def score_with_reach(
        self, heads: NDArray[np.int64], relations: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """[B, N] scores, and whether any path of the relation leads to the entity."""
        scores = np.empty((len(heads), self._count), dtype=np.float32)
        reached = np.zeros(scores.shape, dtype=bool)
        for relation in np.unique(relations).tolist():
            rows = np.flatnonzero(relations == relation)
            total = np.full((len(rows), self._count), float(self._model.offset[relation]), dtype=np.float32)
            weights = self._model.weighted_paths(relation)
            for path, chances in walk_chances(self._steps, heads[rows], list(weights)).items():
                at = np.repeat(np.arange(len(rows)), np.diff(chances.indptr)), chances.indices
                total[at] += np.float32(weights[path]) * chances.data
                reached[rows[at[0]], at[1]] = True
            scores[rows] = total
        return scores, reached


class Regression:
    """The examples of one relation: features [M, P] of reached tails and of answers, and whether they are true."""

    def __init__(self, features: NDArray[np.float64], labels: NDArray[np.float64]) -> None:
        self.features, self.labels = features, labels

    @classmethod
    def collect(
        cls,
        graph: KnowledgeGraph,
        steps: Matrices,
        relation: int,
        asked: NDArray[np.int64],
        paths: list[Path],
        negatives: int,
        generator: np.random.Generator,
    ) -> "Regression":
        """For every head its answers among the asked triples [S, 2] and as many reached wrong tails as wanted."""
        seen = _hide(graph, steps, relation, asked)
        heads, row = np.unique(asked[:, 0], return_inverse=True)
        tables = walk_chances(seen, heads, paths)
        reached = sum(tables.values(), csr_matrix((len(heads), graph.entity_count), dtype=np.float32))
        rows, tails, labels = [row], [asked[:, 1]], [np.ones(len(asked))]
        for place, head in enumerate(heads.tolist()):
            found = reached.indices[reached.indptr[place] : reached.indptr[place + 1]]
            wrong = np.setdiff1d(found, graph.tails(head, relation))
            drawn = generator.permutation(wrong)[: negatives * int((row == place).sum())]
            rows.append(np.full(len(drawn), place))
            tails.append(drawn.astype(np.int64))
            labels.append(np.zeros(len(drawn)))
        at = np.concatenate(rows), np.concatenate(tails)
        features = np.stack([np.asarray(table[at]).ravel() for table in tables.values()], axis=1)
        return cls(features.astype(np.float64), np.concatenate(labels))

    def fit(self, penalty: float) -> tuple[NDArray[np.float64], float, float]:
        """θ, its offset and the mean log loss; every feature is divided by its largest value while fitting."""
        scale = np.maximum(self.features.max(axis=0), 1e-12)
        scaled = np.column_stack([self.features / scale, np.ones(len(self.labels))])

        def loss(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            return penalised_loss(theta, scaled, self.labels, penalty)

        found = minimize(loss, np.zeros(scaled.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200})
        return found.x[:-1] / scale, float(found.x[-1]), float(found.fun)


def penalised_loss(
    theta: NDArray[np.float64], features: NDArray[np.float64], labels: NDArray[np.float64], penalty: float
) -> tuple[float, NDArray[np.float64]]:
    """The mean log loss plus penalty · ‖θ‖² of all weights but the last, the offset; and its gradient."""
    logits = features @ theta
    weights = np.append(theta[:-1], 0.0)
    value = float((np.logaddexp(0.0, logits) - labels * logits).mean() + penalty * weights @ weights)
    return value, features.T @ (expit(logits) - labels) / len(labels) + 2 * penalty * weights


def step_matrices(graph: KnowledgeGraph) -> Matrices:
    """For every relation, inverse ones too, [N, N] the chance to go from h to t by one of h's edges with it."""
    return [_step_matrix(graph, relation) for relation in range(2 * graph.relation_count)]


def _step_matrix(graph: KnowledgeGraph, relation: int) -> csr_matrix:
    pairs = _pairs(graph, relation)
    degrees = np.bincount(pairs[:, 0], minlength=graph.entity_count)
    chances = (1.0 / degrees[pairs[:, 0]]).astype(np.float32)
    return csr_matrix((chances, (pairs[:, 0], pairs[:, 1])), shape=(graph.entity_count,) * 2)


def walk_chances(steps: Matrices, heads: NDArray[np.int64], paths: list[Path]) -> dict[Path, csr_matrix]:
    """[B, N] for every path, the chance P(h → t | p); paths that begin alike share their products."""
    count = steps[0].shape[0]
    start = csr_matrix((np.ones(len(heads), np.float32), (np.arange(len(heads)), heads)), shape=(len(heads), count))
    known: dict[Path, csr_matrix] = {(): start}
    for path in sorted(paths):
        for end in range(1, len(path) + 1):
            if path[:end] not in known:
                known[path[:end]] = known[path[: end - 1]] @ steps[path[end - 1]]
    return {path: known[path] for path in paths}


def _hide(graph: KnowledgeGraph, steps: Matrices, relation: int, asked: NDArray[np.int64]) -> Matrices:
    """The steps without the triples that are asked about."""
    base = relation % graph.relation_count
    ends = asked if relation < graph.relation_count else asked[:, ::-1]
    rest = graph.without(np.column_stack([ends[:, 0], np.full(len(ends), base), ends[:, 1]]))
    seen = list(steps)
    for changed in (base, base + graph.relation_count):
        seen[changed] = _step_matrix(rest, changed)
    return seen


def _pairs(graph: KnowledgeGraph, relation: int) -> NDArray[np.int64]:
    """[E_r, 2] head and tail of every edge of a relation, which may be an inverse one."""
    rows = graph.triples[graph.triples[:, 1] == relation % graph.relation_count]
    ends: NDArray[np.int64] = rows.astype(np.int64)[:, [0, 2] if relation < graph.relation_count else [2, 0]]
    return ends


def _best(found: dict[Path, int], count: int) -> list[Path]:
    """The path types that join most triples; those of a single triple only where there are few."""
    ordered = sorted(found, key=lambda path: (-found[path], len(path), path))
    enough = [path for path in ordered if found[path] >= _LEAST_SUPPORT]
    return (enough if len(enough) > _FEW else ordered)[:count]


def build(
    settings: BaselineSettings, graph: KnowledgeGraph, batch_size: int, learning_rate: float, seed: int
) -> PathRanking:
    """Before its regression all weights are 0."""
    assert isinstance(settings, PraSettings)
    return PathRanking(settings, graph, seed)
