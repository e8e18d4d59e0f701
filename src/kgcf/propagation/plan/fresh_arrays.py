"""The arrays that planning a batch writes into: of the right size and type, and where it matters empty."""

import numpy as np

from kgcf.data.graph import KnowledgeGraph
from kgcf.propagation.plan.assembly import Findings, LayerSlots
from kgcf.propagation.plan.cones import Scratch
from kgcf.propagation.plan.listing import Buffers, Edges, Slots

_FIRST_ROOM = 1024  # slots and edges; buffers grow as they are filled


def new_buffers() -> Buffers:
    """For the slots and edges of all layers, one query after the other."""
    slots, edges = ([np.empty(_FIRST_ROOM, np.int32) for _ in range(count)] for count in (5, 3))
    return Buffers(Slots(*slots), Edges(*edges))


def new_scratch(graph: KnowledgeGraph, layers: int) -> Scratch:
    """What one query needs while it is planned; the marks are taken back after it."""
    entity_count = graph.entity_count
    return Scratch(
        ahead=np.full(entity_count, -1, np.int8),
        behind=np.full(entity_count, -1, np.int8),
        slot_of=np.full(entity_count, -1, np.int32),
        hidden_at=np.zeros(entity_count, np.int32),
        hidden=np.zeros(len(graph), np.bool_),
        ball=np.empty((2, entity_count), np.int32),
        levels=np.zeros((2, layers + 2), np.int64),
        members=np.empty((layers + 1, entity_count), np.int32),
    )


def new_findings(query_count: int, candidate_count: int, layers: int) -> Findings:
    """What planning finds of every query."""
    return Findings(
        slot_counts=np.zeros((query_count, layers + 1), np.int64),
        edge_counts=np.zeros((query_count, layers + 1), np.int64),
        slot_starts=np.zeros((query_count, layers + 1), np.int64),
        edge_starts=np.zeros((query_count, layers + 1), np.int64),
        log_degrees=np.zeros(query_count, np.float64),
        rows=np.full((query_count, candidate_count), -1, np.int64),
        meetings=np.zeros(query_count, np.int64),
    )


def new_layer_slots(slot_count: int, query_count: int) -> LayerSlots:
    """The slots of one layer over all queries."""
    return LayerSlots(
        entities=np.empty(slot_count, np.int32),
        previous=np.empty(slot_count, np.int32),
        degrees=np.empty(slot_count, np.int32),
        reached=np.empty(slot_count, np.int32),
        edge_offsets=np.empty(slot_count + 1, np.int64),
        scales=np.empty(slot_count, np.float64),
        heads=np.empty(query_count, np.int64),
    )
