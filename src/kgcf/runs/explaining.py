"""The explainer of a run: its entity space is the one it keeps, or is made for another graph when it is needed."""

from functools import partial
from typing import TYPE_CHECKING

from kgcf.explanation.explainer import Explainer
from kgcf.explanation.space_of_graph import find_space
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.observed_graph import with_paths

if TYPE_CHECKING:
    from kgcf.runs.run import Run


def make_explainer(run: "Run", bound: AnsweringGraph) -> Explainer:
    """Explains what the run says on a graph that it was bound to."""
    assert run.model is not None  # a model without paths says so here
    kept, data, settings = run.folder.file("space.safetensors"), run.data, run.settings
    space = partial(find_space, kept, data.entities, bound.graph, bound.entities, settings.space)
    return Explainer(with_paths(bound), settings.training.hides, space, settings.matching.candidates)
