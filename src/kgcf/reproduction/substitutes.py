"""Substitutes of counterfactual relations, as the paper's table 2 shows them: its own examples where the data has them.

The paths of that table need a trained model: `kgcf explain RUN` shows them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgcf.causal.cache import user_cache
from kgcf.causal.cached_stages import CausalStages
from kgcf.causal.counterfactual import match_pairs
from kgcf.config import configure
from kgcf.data.dataset import Dataset
from kgcf.reproduction.cells import Cell

_OLYMPICS = "/olympics/olympic_participating_country/medals_won./olympics/olympic_medal_honor/olympics"
_REGION = "/film/film/release_date_s./film/film_regional_release_date/film_release_region"
EXAMPLES = {
    "fb15k-237": (
        ("/m/015fr", _OLYMPICS, "/m/0l98s"),  # Brazil, olympics, 1972 Summer Olympics
        ("/m/0ds35l9", _REGION, "/m/05r4w"),  # Bridesmaids, film release region, Portugal
    )
}


def show_substitutes(data: Dataset, cell: Cell) -> dict[str, Any]:
    """Each triple with its treatment, its substitute, that one's treatment, its distance and outcome."""
    settings = configure(cell.preset, data.benchmark, changes=cell.changes, seed=cell.seed)
    stages = CausalStages(user_cache())
    treatment = stages.treatment(data.graph, settings.treatment, data.entities, data.relations)
    space = stages.space(data.graph, settings.space)
    triples = _triples(data, cell)
    remove = settings.training.hides
    table = match_pairs(triples, data.graph, space, treatment, settings.matching.candidates, remove=remove)
    entities, relations = data.entities, data.relations
    rows = []
    for row, (head, relation, tail) in enumerate(triples.tolist()):
        matched = bool(table.matched[row])
        first, second = table.substitutes[row].tolist()
        rows.append(
            {
                "triple": [entities.display(head), relations.display(relation), entities.display(tail)],
                "treatment": bool(table.factual_treatments[row]),
                "substitute": [entities.display(first), entities.display(second)] if matched else None,
                "substitute_treatment": bool(table.counterfactual_treatments[row]),
                "outcome": bool(table.counterfactual_outcomes[row]),
                "distance": float(table.distances[row]) if matched else None,
            }
        )
    return {"rows": rows, "configuration": settings.model_dump(mode="json"), "preset": cell.preset}


def _triples(data: Dataset, cell: Cell) -> NDArray[np.int32]:
    """The paper's triples, then some train triples drawn at random."""
    known = [
        (data.entities.id(h, "entity"), data.relations.id(r, "relation"), data.entities.id(t, "entity"))
        for h, r, t in EXAMPLES.get(data.name, ())
    ]
    drawn = np.random.default_rng(cell.seed).permutation(len(data.graph))[: cell.limit]
    return np.concatenate([np.array(known, dtype=np.int32).reshape(-1, 3), data.graph.triples[drawn]])
