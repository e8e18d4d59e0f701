"""What a plan is: per layer, the slots (query, entity) to compute and the edges between them; what it may take."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import HiddenTriples
from kgcf.propagation.plan.assembly import Limits


@dataclass(frozen=True, eq=False)
class LayerPlan:
    """One layer: S slots sorted by query, M edges sorted by target slot; layer 0 has slots and no edges."""

    slot_offsets: NDArray[np.int64]  # [B + 1] first slot of every query
    entities: NDArray[np.int32]  # [S]
    previous: NDArray[np.int32]  # [S] slot of the same entity in the layer before, −1 if it was not reached yet
    degrees: NDArray[np.int32]  # [S] visible edges that enter the entity, listed or not
    reached: NDArray[np.int32]  # [S] those from reached entities; more than are listed where these are a draw
    edge_offsets: NDArray[np.int64]  # [S + 1] first edge of every slot
    sources: NDArray[np.int32]  # [M] slot in the layer before
    relations: NDArray[np.int32]  # [M] in 0 … 2R − 1, in the direction of the message
    entries: NDArray[np.int32]  # [M] where the edge, turned round, stands in the graph's table: the target's row
    scales: NDArray[np.float64]  # [S] log(degree + 1) over the mean of the whole visible graph
    heads: NDArray[np.int64]  # [B] slot of every query's head, −1 if no candidate depends on it

    @property
    def queries(self) -> NDArray[np.int64]:
        """[S] the query of every slot."""
        return np.repeat(np.arange(len(self.slot_offsets) - 1), np.diff(self.slot_offsets))


@dataclass(frozen=True, eq=False)
class Plan:
    """What to compute for queries `first` … `first + B − 1` of a batch: layers 0 … L, and where the answers stand."""

    graph: KnowledgeGraph
    first: int
    heads: NDArray[np.int64]  # [B]
    relations: NDArray[np.int64]  # [B]
    hidden: HiddenTriples
    layers: tuple[LayerPlan, ...]  # L + 1
    mean_log_degrees: NDArray[np.float64]  # [B] of the graph minus the query's hidden set
    meetings: NDArray[np.int64]  # [B] depth at which the two cones met
    candidates: NDArray[np.int64] | None  # [B, K]; None: every entity is a candidate (ranking)
    rows: NDArray[np.int64] | None  # [B, K] slot of the candidate in layer L, −1 if unreached
    everybody: bool = False  # whether entities have a state before any walk reaches them: zero in layer 0

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def slot_count(self) -> int:
        """State updates: slots of the layers 1 … L."""
        return sum(len(layer.entities) for layer in self.layers[1:])

    @property
    def edge_count(self) -> int:
        """Messages of all layers."""
        return sum(len(layer.sources) for layer in self.layers)


@dataclass(frozen=True, eq=False)
class Thinning:
    """Updates of a batch aggregate at most `fan_in` of their reached edges, drawn anew for every query and layer."""

    fan_in: int
    keys: NDArray[np.uint64]  # [B] what the draws of a query depend on, besides layer and entity


@dataclass(frozen=True)
class Budget:
    """How much memory one plan and its computation may take, from the width and precision of the states."""

    total: float = float("inf")  # bytes
    width: int = 32
    statistics: int = 4
    itemsize: int = 4
    message_rows: int = 0  # rows of the width that every edge keeps; the kernels keep none
    query_rows: int = 0  # rows of the width that every query keeps: relation vectors of its own

    @property
    def limits(self) -> Limits:
        """A slot keeps statistics and about four rows of states and gradients; an edge its ids and messages.

        Ids are counted twice and more: in the plan, and in the planner's buffers, which grow by doubling.
        """
        row = self.width * self.itemsize
        return Limits(
            slot_bytes=(2 * self.statistics + 4) * row + 72.0,
            edge_bytes=self.message_rows * row + 36.0,
            query_bytes=float(self.query_rows * row),
            budget=self.total,
        )

    def cost(self, plan: Plan) -> float:
        """Bytes that a plan is reckoned at."""
        limits = self.limits
        slots = plan.slot_count + len(plan.layers[0].entities)
        return slots * limits.slot_bytes + plan.edge_count * limits.edge_bytes + len(plan) * limits.query_bytes
