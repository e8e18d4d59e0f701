"""`Run`: a trained model with its data; evaluates, predicts, completes, scores, explains."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kgcf.causal.treatment import assign_treatment
from kgcf.causal.treatment.label_file import with_kept_labels
from kgcf.choices import Observed
from kgcf.config import Settings
from kgcf.data.dataset import Dataset, Split
from kgcf.data.encoding import encode
from kgcf.data.graph import KnowledgeGraph
from kgcf.data.hiding import Remove
from kgcf.data.parsing import TripleTable
from kgcf.data.reader import read_table, table_from
from kgcf.data.vocabulary import Vocabulary
from kgcf.errors import DataError, SettingsError, StorageError
from kgcf.evaluation.results import Evaluation, evaluate
from kgcf.explanation.entity_space import find_space
from kgcf.explanation.explainer import Explainer
from kgcf.explanation.explanation import Asked, Explanation
from kgcf.explanation.importance import Attribution
from kgcf.explanation.paths import Layers, Weighting
from kgcf.machine.devices import CPU, find_device
from kgcf.model.kgcf import KGCF
from kgcf.prediction.answers import Answer, Question, predict, score_triples
from kgcf.prediction.calibration.calibrate import LIMIT, Request, calibrate_completion, calibrate_run
from kgcf.prediction.calibration.completed_links import CompletionCalibration
from kgcf.prediction.calibration.fitting import UNCALIBRATED
from kgcf.prediction.calibration.record import CalibrationRecord, open_record
from kgcf.prediction.completion import complete, plan_completion
from kgcf.prediction.observed_graph import ObservedGraph
from kgcf.progress import Advance, silent
from kgcf.runs.folder import RunFolder
from kgcf.storage import check_writable, map_arrays, save_arrays, write_json

MODEL = "model.safetensors"


class Run:
    """Open one with `kgcf.open(folder)`, or get one from `kgcf.fit`."""

    def __init__(self, folder: RunFolder, model: KGCF, data: Dataset, settings: Settings) -> None:
        self.folder = folder
        self.model = model
        self.data = data
        self.settings = settings
        self.calibration: CalibrationRecord | None = None  # None: probabilities are sigmoids

    @classmethod
    def open(cls, path: str | Path, device: str = CPU) -> "Run":
        """Open a finished run, to compute on a device; nothing but its folder is needed."""
        place = find_device(device)
        folder = RunFolder(Path(path))
        folder.check()
        if not folder.sealed(MODEL):
            raise StorageError(f"{path} has no trained model yet. Finish its training with: kgcf resume {path}")
        settings, data = folder.settings(), folder.dataset()
        model = new_model(settings, len(data.relations))
        arrays = map_arrays(folder.file(MODEL))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(torch.from_numpy(np.array(arrays[name])))
        run = cls(folder, model.to(place), data, settings)
        run.calibration = open_record(folder.path, model)
        return run

    def save_model(self) -> None:
        """Write the weights and seal the folder: from then on the run is finished."""
        weights = {name: parameter.detach().cpu().numpy() for name, parameter in self.model.named_parameters()}
        save_arrays(self.folder.file(MODEL), weights)
        self.folder.seal()

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
        if save and (data is not None or split != "test" or limit is not None):
            only = "Only the whole test split of the run's own data is saved as its results; nothing was ranked. "
            raise SettingsError(only + "Leave out save=True and write result.to_json() to a file of your own.")
        if save:
            check_writable(self.folder.file("results.json"))
        asked = self._aligned(data) if data is not None else self.data
        task: Split = getattr(asked, split)
        observed = self.bind(task.observed, task.entities)
        model = f"kgcf ({self.folder.facts()['preset']})"
        memory = observed.memory
        result = evaluate(
            observed.scorer, asked, split, model=model, limit=limit, seed=seed, memory=memory, advance=advance
        )
        result.protocol.update(self._protocol())
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
        self.calibration = calibrate_run(self.folder.path, self.model, self.data, self._bind_task, wanted, advance)
        return self.calibration

    def completion_calibration(self, every_entity: bool = False, advance: Advance = silent) -> CompletionCalibration:
        """How `complete` says probabilities; fitted now where the run's calibration does not have it."""
        if self.calibration is not None and not every_entity:
            return self.calibration.completion
        return calibrate_completion(self._bind_task, self.data, "all" if every_entity else "seen", advance=advance)

    def predict(
        self,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        *,
        top: int = 10,
        show_known: bool = False,
        candidates: Sequence[str] | None = None,
        graph: Any = None,  # noqa: ANN401
        observed: Observed = "all",
    ) -> list[Answer]:
        """The best answers to a question with one part left out; `graph` may have entities never seen in training."""
        question = Question(head, relation, tail)
        return predict(self.observe(graph, observed), question, top, show_known, candidates)

    def complete(
        self,
        relations: Sequence[str] | None = None,
        *,
        top: int = 1000,
        every_entity: bool = False,
        min_probability: float = 0.0,
        graph: Any = None,  # noqa: ANN401
        observed: Observed = "all",
        advance: Advance = silent,
    ) -> list[Answer]:
        """The most likely missing triples, by the calibrated probability of a completed link."""
        bound = self.observe(graph, observed)
        task, said = plan_completion(bound, relations, every_entity), self.completion_calibration(every_entity)
        return complete(bound, task, top, min_probability, advance, said)

    def score(
        self,
        triples: Sequence[tuple[str, str, str]],
        *,
        graph: Any = None,  # noqa: ANN401
        observed: Observed = "all",
    ) -> NDArray[np.float64]:
        """Logits of triples; one that is in the graph is hidden from its own question."""
        bound = self.observe(graph, observed)
        rows = [
            (bound.entities.id(h, "entity"), bound.relations.id(r, "relation"), bound.entities.id(t, "entity"))
            for h, r, t in triples
        ]
        return score_triples(bound, np.array(rows, dtype=np.int64).reshape(-1, 3))

    def explain(
        self,
        head: str,
        relation: str,
        tail: str,
        *,
        top: int = 5,
        asked: Asked = "tail",
        weighting: Weighting = "mean",
        layers: Layers = "own",
        attribution: Attribution = "gradient",
        seed: int = 0,
        graph: Any = None,  # noqa: ANN401
        observed: Observed = "all",
    ) -> Explanation:
        """Why a triple is predicted, or is not: its `top` paths, counterfactual evidence and the deletion check."""
        explainer = self.explainer(graph, observed)
        return explainer.explain(
            head,
            relation,
            tail,
            top,
            asked=asked,
            weighting=weighting,
            layers=layers,
            attribution=attribution,
            seed=seed,
        )

    def explainer(self, graph: Any = None, observed: Observed = "all") -> Explainer:  # noqa: ANN401
        """Explains many triples on one observed graph; `graph` and `observed` as in `observe`."""
        bound = self.observe(graph, observed)
        kept, data, settings = self.folder.file("space.safetensors"), self.data, self.settings
        space = partial(find_space, kept, data.entities, bound.graph, bound.entities, settings.space)
        remove: Remove = "pair" if settings.training.remove == "pair" else "triple"
        return Explainer(bound, remove, space, settings.matching.candidates)

    def observe(self, graph: Any = None, observed: Observed = "all") -> ObservedGraph:  # noqa: ANN401
        """The model on everything the user gave, on train alone, or on another graph with the same relations."""
        if graph is not None:
            return self._observe_new(graph)
        task = self.data.test
        seen = task.observed if observed == "train" else task.known
        return self.bind(seen, task.entities, task.observed)

    def bind(self, graph: KnowledgeGraph, entities: Vocabulary, train: KnowledgeGraph | None = None) -> ObservedGraph:
        """The model on one graph and the treatment it gives; `train` is its train part, if not all of it."""
        treatment = None
        if self.settings.decoder.treatment:
            chosen = with_kept_labels(self.settings.treatment, self.folder.path)
            treatment = assign_treatment(graph, chosen, entities=entities, relations=self.data.relations)
        calibration = UNCALIBRATED if self.calibration is None else self.calibration.calibration
        return ObservedGraph(
            self.model,
            graph,
            entities,
            self.data.relations,
            treatment,
            calibration=calibration,
            train=train,
            memory=self.settings.training.memory_gb * 1e9,
        )

    def _bind_task(self, task: Split) -> ObservedGraph:
        return self.bind(task.observed, task.entities)

    def _observe_new(self, source: Any) -> ObservedGraph:  # noqa: ANN401
        if isinstance(source, TripleTable):
            table = source
        else:
            table = read_table(Path(source)) if isinstance(source, str | Path) else table_from(source, "graph")
        entities, triples = self._encoded(table, str(source) if isinstance(source, str | Path) else "the graph")
        weights = table.weights
        return self.bind(KnowledgeGraph.build(triples, len(entities), len(self.data.relations), weights), entities)

    def _encoded(self, table: TripleTable, where: str) -> tuple[Vocabulary, NDArray[np.int32]]:
        """Number a graph's entities afresh and its relations as the model knows them, by label or by name."""
        encoded = encode([table])
        known = [self.data.relations.id(encoded.relations.label(i), "relation") for i in range(len(encoded.relations))]
        if not known:
            raise DataError(f"{where} has no triples.")
        triples = encoded.triples[0].copy()
        triples[:, 1] = np.array(known, dtype=np.int32)[triples[:, 1]]
        return encoded.entities.with_names(self.data.entities.names), triples

    def _aligned(self, data: Dataset) -> Dataset:
        """Another dataset with its relations numbered as the model knows them."""
        known = np.array(self.data.relations.ids(data.relations.labels(), "relation"), dtype=np.int32)
        count = len(self.data.relations)

        def graph(old: KnowledgeGraph) -> KnowledgeGraph:
            return KnowledgeGraph.build(_renumbered(old.triples, known), old.entity_count, count, old.weights)

        def split(old: Split) -> Split:
            return replace(
                old, observed=graph(old.observed), queries=_renumbered(old.queries, known), known=graph(old.known)
            )

        return replace(
            data, relations=self.data.relations, train=split(data.train), valid=split(data.valid), test=split(data.test)
        )

    def _protocol(self) -> dict[str, object]:
        facts = self.folder.facts()
        training = self.settings.training
        history = facts.get("history", {})
        return {
            "preset": facts["preset"],
            "device": str(self.model.device),
            "training_seed": training.seed,
            "epochs": training.epochs,
            "training": history,
        }


def new_model(settings: Settings, relation_count: int) -> KGCF:
    """A model with the initial weights of the run's seed."""
    generator = torch.Generator().manual_seed(settings.training.seed)
    return KGCF(settings.encoder, settings.decoder, relation_count, generator)


def _renumbered(triples: NDArray[np.int32], known: NDArray[np.int32]) -> NDArray[np.int32]:
    result = triples.copy()
    result[:, 1] = known[triples[:, 1]]
    return result
