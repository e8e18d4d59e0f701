"""What finding substitutes will take: real searches for a few slices of triples, in a space like the real one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kgcf.causal.counterfactual.matching import SLICE, Pool
from kgcf.causal.counterfactual.nearest import Search
from kgcf.causal.embedding import EntitySpace, SpaceSettings
from kgcf.causal.embedding.entity_space import relation_weights
from kgcf.causal.relation_graphs import RelationGraph
from kgcf.data.graph import KnowledgeGraph
from kgcf.runs.survey.ground import STREAM, Allowance, Ground
from kgcf.runs.survey.side_by_side import measure_gain
from kgcf.training.batches import stream

SLICES = 16  # that are searched for each treatment, at most,
LEAST = 3  # and at least, of FIRST triples each if nothing more is allowed
SPREAD = 4  # how many whole slices must fit into what is left, for one of them to be searched
FIRST = 64  # triples of a slice that are searched to see whether the whole of it can be
ROUNDS = 4  # how often vectors of the rough space move towards those of their neighbours


def estimate_matching(ground: Ground, space: EntitySpace, allowance: Allowance) -> float:
    """Seconds to match every train triple.

    How much a search can leave out depends on the space, and triples that share an end share its distances. So whole
    slices are searched as matching does it, of relations drawn by their size, in the real space or one that is like
    it. Treated and untreated triples apart: the ones look among most pairs of the graph, the others among few.
    """
    settings, graph, treatment = ground.settings, ground.data.graph, ground.treatment
    own, remove = settings.treatment.leave_one_out, settings.training.remove
    assert treatment is not None
    assert remove != "auto"
    began = ground.clock()
    pool = Pool.of(graph, treatment, settings.matching.candidates, own, remove)
    treated = pool.treated
    once = ground.clock() - began
    sample = _Sample(ground, pool, space, treated, _Slices.of(graph, treated))
    return once + sum(sample.seconds(value, allowance.left) for value in (True, False))


@dataclass(frozen=True, eq=False)
class _Sample:
    """Times searches for triples of a graph."""

    ground: Ground
    pool: Pool
    space: EntitySpace
    treated: NDArray[np.bool_]  # [E]
    slices: "_Slices"

    def seconds(self, value: bool, allowed: float) -> float:
        """For all triples of this treatment, after looking at some of them for so many seconds."""
        rows = stream(self.ground.settings.training.seed, STREAM).permutation(len(self.treated))
        drawn = rows[self.treated[rows] == value][:SLICES].tolist()
        if not drawn:
            return 0.0
        allowance, found = Allowance(allowed, self.ground.clock), list[tuple[float, float]]()
        for row in drawn[:1] + drawn:  # the first one twice: it compiles
            found.append(self._time(self.slices.around(row), allowance))
            if len(found) > LEAST and allowance.left <= 0:
                break
        prepared, each = np.mean(found[1:], axis=0).tolist()
        searched = each * int((self.treated == value).sum()) / self._gain(self.slices.around(drawn[0]))
        return float(prepared * self.slices.relations[value] + searched)

    def _time(self, rows: NDArray[np.intp], allowance: Allowance) -> tuple[float, float]:
        """Seconds that come once with a relation, and seconds of one thread for each triple of this slice."""
        clock = self.ground.clock
        began = clock()
        triples, search = self._search(rows)
        prepared, each = clock() - began, 0.0
        for count in (FIRST, len(rows)):
            began = clock()
            search(triples[:count, 0], triples[:count, 2])
            each = (clock() - began) / min(count, len(rows))
            if count >= len(rows) or each * len(rows) > allowance.left / SPREAD:
                break
        return prepared, each

    def _gain(self, rows: NDArray[np.intp]) -> float:
        """What the cores gain by searching side by side."""
        triples, search = self._search(rows[:FIRST])
        return measure_gain(lambda: search(triples[:, 0], triples[:, 2]), self.ground.clock)

    def _search(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.int64], Search]:
        """These triples, which are of one relation and treatment, and the search among their substitutes."""
        triples = self.ground.data.graph.triples[rows].astype(np.int64)
        search, _ = next(iter(self.pool.searches(self.space, triples, self.treated[rows])))
        return triples, search


@dataclass(frozen=True, eq=False)
class _Slices:
    """The train triples as matching divides them: by relation and treatment, by their ends, so many at a time."""

    order: NDArray[np.intp]  # [E] rows
    places: NDArray[np.intp]  # [E] where a row stands in it
    starts: NDArray[np.intp]  # [E] where the triples of a row's relation and treatment begin
    ends: NDArray[np.intp]  # [E] and end
    relations: tuple[int, int]  # with untreated triples, with treated ones

    @classmethod
    def of(cls, graph: KnowledgeGraph, treated: NDArray[np.bool_]) -> Self:
        """Of a graph whose triples have these treatments."""
        heads, relations, tails = graph.triples.astype(np.int64).T
        group = relations * 2 + treated
        order = np.lexsort((heads, tails, group))
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        starts, ends = (np.searchsorted(group[order], group, side=side) for side in ("left", "right"))
        kinds = np.unique(group) % 2
        return cls(order, places, starts, ends, (int((kinds == 0).sum()), int((kinds == 1).sum())))

    def around(self, row: int) -> NDArray[np.intp]:
        """The slice that a triple is in."""
        begin = self.starts[row] + (self.places[row] - self.starts[row]) // SLICE * SLICE
        return self.order[begin : min(begin + SLICE, self.ends[row])]


def rough_space(graph: KnowledgeGraph, parts: Sequence[RelationGraph], settings: SpaceSettings) -> EntitySpace:
    """A space in moments that is like the real one: random vectors, drawn towards those of their neighbours.

    Who shares neighbours in a relation is near each other in it, and relations are weighted as they will be.
    """
    generator, weights = stream(settings.seed, STREAM), relation_weights(graph, settings.psi)
    total = np.zeros((graph.entity_count, settings.dimension), np.float32)
    for part in parts:
        degrees = np.diff(part.offsets)
        shares = np.repeat(1 / degrees, degrees).astype(np.float32)
        mean = csr_array((shares, part.neighbours, part.offsets), shape=(len(part), len(part)))
        vectors = generator.standard_normal((len(part), settings.dimension), dtype=np.float32)
        for _ in range(ROUNDS):
            vectors = (vectors + mean @ vectors) / 2
        total[part.entities] += np.float32(weights[part.relation]) * vectors / max(float(vectors.std()), 1e-9)
    return EntitySpace(total, settings, graph.fingerprint)
