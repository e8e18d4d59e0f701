"""`Run`: a trained model with its data; evaluates, predicts, completes, scores, explains."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kgcf.baselines.contract import Baseline
from kgcf.choices import Observed
from kgcf.config import Settings
from kgcf.data.dataset import Dataset, Split
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import SettingsError
from kgcf.evaluation.results import Evaluation, evaluate
from kgcf.explanation.how import How
from kgcf.machine.devices import CPU, find_device
from kgcf.model.kgcf import KGCF
from kgcf.plain_tables import html_table
from kgcf.prediction.answering_graph import AnsweringGraph
from kgcf.prediction.answers import Answers, predict, score_triples
from kgcf.prediction.blending.recall import Recall
from kgcf.prediction.calibration.calibrate import LIMIT, Request, calibrate_completion, calibrate_run
from kgcf.prediction.calibration.completed_links import CompletionCalibration, Scope
from kgcf.prediction.calibration.record import CalibrationRecord, open_record
from kgcf.prediction.completion import complete, plan_completion
from kgcf.progress import Advance, silent
from kgcf.runs.any_model import read_any_model, write_any_model
from kgcf.runs.arguments import (
    as_how,
    as_names,
    as_question,
    as_triples,
    check_choice,
    check_count,
    check_saved,
    check_share,
    check_split,
)
from kgcf.runs.binding import aligned_data, bind_run
from kgcf.runs.ensemble import FILE as ENSEMBLE
from kgcf.runs.ensemble import EnsembleRecord, companion_folder, read_ensemble
from kgcf.runs.folder import RunFolder
from kgcf.runs.memory_stage import open_recall
from kgcf.runs.protocol import describe_run
from kgcf.runs.short_look import model_title, short_look
from kgcf.screen import inert
from kgcf.storage import check_writable, write_json

if TYPE_CHECKING:  # imported where they are used: most questions to a run need no explanation
    from kgcf.explanation.explainer import Explainer
    from kgcf.explanation.explanation import Explanation
    from kgcf.explanation.rules import Rule


class Run:
    """Open one with `kgcf.open(folder)`, or get one from `kgcf.fit`."""

    def __init__(self, folder: RunFolder, model: KGCF | Baseline, data: Dataset, settings: Settings) -> None:
        self.folder = folder
        self.weights = model  # KGCF, or another model behind the same contract
        self.data = data
        self.settings = settings
        self.workspace: float | None = None  # bytes that one thread may hold to compute; None: as the settings say
        self.calibration: CalibrationRecord | None = None  # None: probabilities are sigmoids
        self.recall: Recall | None = None  # None: paths alone
        self.ensemble: EnsembleRecord | None = None  # None: a run of its own
        self.others: tuple[Run, ...] = ()  # which answer together with this one

    @classmethod
    def open(cls, path: str | Path, device: str = CPU) -> "Run":
        """Open a finished run, to compute on a device; nothing but its folder is needed."""
        target = find_device(device)
        folder = RunFolder(Path(path))
        folder.check()
        settings, data = folder.settings(), folder.dataset()
        model = read_any_model(folder, settings, data.graph)
        run = cls(folder, model.to(target), data, settings)
        run.recall = open_recall(folder)
        if folder.sealed(ENSEMBLE):
            run.ensemble = read_ensemble(folder.path)
            numbers = range(1, len(run.ensemble.names))
            run.others = tuple(cls.open(companion_folder(folder.path, number), device) for number in numbers)
        run.calibration = open_record(folder.path, run.all_weights)
        return run

    @property
    def model(self) -> KGCF:
        """The KGCF model; a run of another model has none."""
        if isinstance(self.weights, Baseline):
            raise SettingsError(
                f"{self.folder.path} holds the model '{model_title(self)}', which has no paths to explain. "
                "Train KGCF for that: kgcf train DATA"
            )
        return self.weights

    @property
    def all_weights(self) -> tuple[KGCF | Baseline, ...]:
        """The model of this run, and those of the runs beside it."""
        return (self.weights, *(other.weights for other in self.others))

    def save_model(self) -> None:
        """Write the weights and seal the folder: from then on the run is finished."""
        write_any_model(self.folder, self.weights)

    def __repr__(self) -> str:
        return "\n".join(["Run", *(f"  {name}: {inert(value)}" for name, value in short_look(self).items())])

    def _repr_html_(self) -> str:
        return html_table(("Run", ""), list(short_look(self).items()), ("<", "<"))

    def evaluate(
        self,
        split: str = "test",
        *,
        limit: int | None = None,
        seed: int = 0,
        data: Dataset | None = None,
        save: bool = False,
        advance: Advance = silent,
    ) -> Evaluation:
        """Rank the answers of a split, observing train only; `data` is another graph with the same relations.

        To `save` (the whole test split of the run's own data) is to write results.json and report the calibration.
        """
        check_split(split)
        if limit is not None:
            check_count("limit", limit)
        if save:
            check_saved(split, limit, data is None)
            check_writable(self.folder.file("results.json"))
        asked = aligned_data(self.data, data)
        task: Split = getattr(asked, split)
        observed = self.bind(task.observed, task.entities, own=data is None)
        how = describe_run(self.folder, self.data, self.settings, str(self.weights.device))
        result = evaluate(
            observed.scorer,
            asked,
            split,
            model=model_title(self),
            limit=limit,
            seed=seed,
            memory=observed.memory,
            advance=advance,
        )
        result.protocol.update(how)
        if save:
            write_json(self.folder.file("results.json"), result.to_json())
            self.calibrate()
        return result

    def calibrate(
        self,
        *,
        test: bool = True,
        limit: int | None = LIMIT,
        seed: int = 0,
        save: bool = True,
        advance: Advance = silent,
    ) -> CalibrationRecord:
        """Fit probabilities to validation and, if asked to, measure them on `test`; what is there already stays."""
        wanted = Request(test, limit, seed, save)
        self.calibration = calibrate_run(self.folder.path, self.all_weights, self.data, self.bind_task, wanted, advance)
        return self.calibration

    def completion_calibration(
        self, every_entity: bool = False, advance: Advance = silent, *, memory: bool = True
    ) -> CompletionCalibration:
        """How `complete` says probabilities, with `memory` or on another graph; fitted now where the run has none."""
        if self.calibration is not None and not every_entity:
            return self.calibration.links_by(memory)
        scope: Scope = "all" if every_entity else "seen"
        return calibrate_completion(self.bind_task, self.data, scope, memory=memory, advance=advance)

    def predict(
        self,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        *,
        top: int = 10,
        show_known: bool = False,
        candidates: str | Iterable[str] | None = None,
        graph: Any = None,  # noqa: ANN401
        observed: Observed = "all",
    ) -> Answers:
        """The best answers to a question with one part left out; `graph` may have entities never seen in training."""
        question = as_question(head, relation, tail)
        check_count("top", top)
        return predict(self.observe(graph, observed), question, top, show_known, as_names(candidates))

    def complete(
        self,
        relations: str | Iterable[str] | None = None,
        *,
        top: int = 1000,
        every_entity: bool = False,
        min_probability: float = 0.0,
        graph: Any = None,  # noqa: ANN401
        observed: Observed = "all",
        advance: Advance = silent,
    ) -> Answers:
        """The most likely missing triples of one relation, of several or of all, by their calibrated probability."""
        check_count("top", top)
        check_share("min_probability", min_probability)
        bound = self.observe(graph, observed)
        task = plan_completion(bound, as_names(relations), every_entity)
        calibration = self.completion_calibration(every_entity, memory=bound.remembers)
        return complete(bound, task, top, min_probability, advance, calibration)

    def score(
        self,
        triples: Iterable[Sequence[str]],
        *,
        probabilities: bool = False,
        graph: Any = None,  # noqa: ANN401
        observed: Observed = "all",
    ) -> NDArray[np.float64]:
        """Logits of triples, or their probabilities; of one that is in the graph its question does not see what
        training hid: the triple, or all links of its two ends.
        """
        bound = self.observe(graph, observed)
        asked = as_triples(bound, triples)
        found = score_triples(bound, asked, self.settings.training.hides)
        if not probabilities:
            return found.logits
        return bound.probabilities(asked[:, 1], found.logits, found.reached, found.heard)

    def explain(
        self,
        head: str,
        relation: str,
        tail: str,
        *,
        how: How | None = None,
        graph: Any = None,  # noqa: ANN401
        observed: Observed = "all",
        **choices: Any,  # noqa: ANN401
    ) -> "Explanation":
        """Why a triple is predicted, or is not: the paths that carry it, what speaks against, a comparable pair.

        `choices` are fields of `How`: run.explain("Portugal", "borders", "Spain", top=3, attribution="gradient").
        """
        return self.explainer(graph, observed).explain(head, relation, tail, as_how(how, choices))

    def rules(
        self,
        relation: str | None = None,
        *,
        top: int = 20,
        answers: int = 200,
        seed: int = 0,
        advance: Advance = silent,
    ) -> "tuple[Rule, ...]":
        """The relation patterns that carry the answers of a relation, or of all, found over answers of validation."""
        from kgcf.explanation.rules import draw_answers, find_rules  # as in `_explainer`

        check_count("top", top)
        check_count("answers", answers)
        task = self.data.valid
        drawn = draw_answers(task.queries, self.data.relations, relation, answers, seed)
        return find_rules(self._explainer(self.bind_task(task)), drawn, top, seed, advance=advance)

    def explainer(self, graph: Any = None, observed: Observed = "all") -> "Explainer":  # noqa: ANN401
        """Explains many triples on one observed graph; `graph` and `observed` as in `observe`."""
        return self._explainer(self.observe(graph, observed))

    def _explainer(self, bound: AnsweringGraph) -> "Explainer":
        from kgcf.runs.explaining import make_explainer  # slow to import, and only needed to explain

        return make_explainer(self, bound)

    def observe(self, graph: Any = None, observed: Observed = "all") -> AnsweringGraph:  # noqa: ANN401
        """The model on everything the user gave, on train alone, or on another graph with the same relations."""
        check_choice("observed", observed, Observed)
        if graph is not None:
            from kgcf.runs.other_graphs import read_graph  # with all the readers, which are slow to import

            return self.bind(*read_graph(graph, self.data), own=False)
        task = self.data.test
        seen = task.observed if observed == "train" else task.known
        return self.bind(seen, task.entities, task.observed)

    def bind(
        self, graph: KnowledgeGraph, entities: Vocabulary, train: KnowledgeGraph | None = None, *, own: bool = True
    ) -> AnsweringGraph:
        """The model on one graph and the treatment it gives; `train` is its train part, if not all of it.

        Memory has a say only where the entities are the run's `own`, numbered as they were in training.
        """
        return bind_run(self, graph, entities, train, own)

    def bind_task(self, task: Split) -> AnsweringGraph:
        """The model on the graph that a task observes."""
        return self.bind(task.observed, task.entities)
