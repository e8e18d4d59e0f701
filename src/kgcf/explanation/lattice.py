"""The layers of a plan as one lattice: (layer, entity) slots, the edges between them, and where walks begin and end."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kgcf.propagation.plan.planner import Plan


@dataclass(frozen=True, eq=False)
class Lattice:
    """A walk of l edges from head to tail is a way from the head's slot of layer 0 to the tail's slot of layer l.

    Its i-th edge is an edge of layer i. S slots and M edges of all layers, numbered through; edges are
    sorted by the slot they enter.
    """

    head: int
    tail: int
    entities: NDArray[np.int32] = field(repr=False)  # [S]
    offsets: NDArray[np.int64] = field(repr=False)  # [S + 1] first edge that enters a slot
    sources: NDArray[np.int64] = field(repr=False)  # [M] slot of the layer before
    relations: NDArray[np.int32] = field(repr=False)  # [M] in the direction of travel, 0 … 2R − 1
    triples: NDArray[np.int32] = field(repr=False)  # [M] the graph's triple behind every edge
    layers: NDArray[np.int64] = field(repr=False)  # [M] 1 … L
    goals: NDArray[np.int64] = field(repr=False)  # [L + 1] the tail's slot in every layer, −1 if it has none
    start: int  # the head's slot of layer 0, −1 if nothing depends on it

    @classmethod
    def of(cls, plan: Plan) -> "Lattice":
        """The lattice of a plan with one query and one candidate."""
        assert plan.candidates is not None, "a lattice leads to one tail"
        assert plan.candidates.shape == (1, 1), "a lattice leads to one tail"
        head, tail = int(plan.heads[0]), int(plan.candidates[0, 0])
        bases = np.cumsum([0, *(len(layer.entities) for layer in plan.layers)])
        steps = plan.layers[1:]
        degrees = np.concatenate([np.zeros(bases[1], np.int64), *(np.diff(step.edge_offsets) for step in steps)])
        sizes = [len(step.sources) for step in steps]
        entries = np.concatenate([np.zeros(0, np.int32), *(step.entries for step in steps)])
        return cls(
            head=head,
            tail=tail,
            entities=np.concatenate([layer.entities for layer in plan.layers]),
            offsets=np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64),
            sources=np.concatenate([step.sources + bases[i] for i, step in enumerate(steps)]).astype(np.int64),
            relations=np.concatenate([step.relations for step in steps]),
            triples=plan.graph.edge_triples[entries] % np.int32(max(len(plan.graph), 1)),
            layers=np.repeat(np.arange(1, len(steps) + 1), sizes),
            goals=np.array([_slot_of(layer.entities, tail, bases[i]) for i, layer in enumerate(plan.layers)]),
            start=_slot_of(plan.layers[0].entities, head, 0),
        )

    def over_layers(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """[M] values [M] of edges summed over the layers: every message of a travelled edge has the same sum."""
        if not len(values):
            return values
        keys = self.triples.astype(np.int64) * (int(self.relations.max()) + 1) + self.relations
        positions = np.unique(keys, return_inverse=True)[1]
        return np.bincount(positions, weights=values)[positions].astype(np.float64)


def _slot_of(entities: NDArray[np.int32], entity: int, base: int) -> int:
    found = np.flatnonzero(entities == entity)
    return int(base + found[0]) if len(found) else -1
