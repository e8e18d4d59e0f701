"""Single precision on WN18RR: the sparse engine and the dense reference agree to 1e-5."""

import numpy as np
import pytest
import torch

from kgcf.model.all_entities import score_all
from kgcf.propagation.plan.planner import Planner

from .batches import dense_logits, of_candidates, random_batch, sparse_logits
from .random_graphs import random_model


@pytest.mark.benchmark
def test_wn18rr_queries_agree_in_single_precision() -> None:
    from kgcf.data import registry  # the one test of this folder that needs benchmark data

    graph = registry.load("wn18rr").graph
    batch = random_batch(0, graph, size=4, width=33, remove="triple")
    encoder, decoder = random_model(0, graph.relation_count, dtype=torch.float32, layers=6, width=32)
    with torch.no_grad():
        rows = [batch.take(slice(i, i + 1)) for i in range(4)]
        expected = torch.cat(
            [dense_logits(encoder, decoder, graph, row) for row in rows]
        )  # one query at a time: memory
        plan = Planner(graph, 6).plan(batch.heads, batch.relations, batch.candidates, batch.hidden)
        found = sparse_logits(encoder, decoder, plan)
        torch.testing.assert_close(found, of_candidates(expected, batch), rtol=1e-5, atol=1e-5)
        plan = Planner(graph, 6).plan(batch.heads, batch.relations, None, batch.hidden)
        ranked = score_all(encoder, decoder, plan)
    slots = plan.layers[-1]
    reached = torch.from_numpy(slots.queries), torch.from_numpy(slots.entities.astype(np.int64))
    torch.testing.assert_close(ranked[reached], expected[reached], rtol=1e-5, atol=1e-5)
