"""The models that can be trained beside KGCF: names, one line, paper, settings, and who builds them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from kgcf.baselines import settings as kinds
from kgcf.baselines.settings import BaselineSettings
from kgcf.errors import SettingsError, unknown_name

Family = Literal["floor", "paths", "embeddings", "gnn"]
Values = Mapping[str, Mapping[str, Any]]

_SAMPLED = {"epochs": 100, "batch_size": 128, "learning_rate": 5e-3}
_ONE_TO_ALL = {"epochs": 100, "batch_size": 128, "learning_rate": 3e-3}
_BILINEAR = {"epochs": 100, "batch_size": 128, "learning_rate": 1e-2}
_RULES = {"epochs": 10, "batch_size": 64, "learning_rate": 5e-3}
_TRAINED_ONCE = {"epochs": 1}


@dataclass(frozen=True)
class Entry:
    """One baseline."""

    name: str
    family: Family
    line: str  # what it does
    paper: str
    settings: type[BaselineSettings]
    training: Mapping[str, Any] = field(default_factory=dict)  # its defaults in the section `training`

    @property
    def needs_pykeen(self) -> bool:
        """Whether PyKEEN provides the model or the scheme that it is built in."""
        return self.family in ("embeddings", "gnn")

    @property
    def inductive(self) -> bool:
        """Whether it can answer about entities that training has not seen."""
        return self.family in ("floor", "paths")

    def values(self) -> Values:
        """Its defaults as sections of the configuration."""
        return {"training": self.training, "baseline": {"model": self.name}}


def _gnn(name: str, line: str, paper: str, settings: type[BaselineSettings]) -> Entry:
    return Entry(name, "gnn", line, paper, settings, _ONE_TO_ALL)


_RGCN, _COMPGCN, _LTE = "Schlichtkrull et al. 2018", "Vashishth et al. 2020", "Zhang et al. 2022"
_ENTRIES = (
    Entry("frequency", "floor", "entities by how often they stand there", "", kinds.FrequencySettings, _TRAINED_ONCE),
    Entry("pra", "paths", "random-walk path features, logistic regression", "Lao & Cohen 2010", kinds.PraSettings,
          _TRAINED_ONCE),
    Entry("neurallp", "paths", "soft rules, attention over relations and steps", "Yang et al. 2017",
          kinds.RuleSettings, _RULES),
    Entry("drum", "paths", "soft rules, a sum of chains", "Sadeghian et al. 2019", kinds.DrumSettings, _RULES),
    Entry("transe", "embeddings", "γ − ‖h + r − t‖₁", "Bordes et al. 2013", kinds.SampledSettings, _SAMPLED),
    Entry("distmult", "embeddings", "⟨h, r, t⟩", "Yang et al. 2015", kinds.DistmultSettings, _BILINEAR),
    Entry("complex", "embeddings", "Re⟨h, r, conj t⟩", "Trouillon et al. 2016", kinds.ComplexSettings, _BILINEAR),
    Entry("rotate", "embeddings", "γ − ‖h ∘ r − t‖, r a rotation", "Sun et al. 2019", kinds.SampledSettings, _SAMPLED),
    Entry("hake", "embeddings", "moduli and phases: levels and positions", "Zhang et al. 2020", kinds.HakeSettings,
          _SAMPLED),
    Entry("lowfer", "embeddings", "factorised bilinear pooling of h and r", "Amin et al. 2020", kinds.LowferSettings,
          _ONE_TO_ALL),
    Entry("tucker", "embeddings", "a core tensor times h, r and t", "Balažević et al. 2019", kinds.TuckerSettings,
          _ONE_TO_ALL),
    Entry("conve", "embeddings", "a convolution over h and r", "Dettmers et al. 2018", kinds.ConvolutionSettings,
          _ONE_TO_ALL),
    _gnn("rgcn-transe", "a matrix per relation, then TransE", _RGCN, kinds.RgcnTranse),
    _gnn("rgcn-distmult", "a matrix per relation, then DistMult", _RGCN, kinds.RgcnDistmult),
    _gnn("rgcn-conve", "a matrix per relation, then ConvE", _RGCN, kinds.RgcnConve),
    _gnn("compgcn-transe", "relations composed into messages, then TransE", _COMPGCN, kinds.CompgcnTranse),
    _gnn("compgcn-distmult", "relations composed into messages, then DistMult", _COMPGCN, kinds.CompgcnDistmult),
    _gnn("compgcn-conve", "relations composed into messages, then ConvE", _COMPGCN, kinds.CompgcnConve),
    _gnn("lte-transe", "a linear map of entities, no graph, then TransE", _LTE, kinds.LteTranse),
    _gnn("lte-distmult", "a linear map of entities, no graph, then DistMult", _LTE, kinds.LteDistmult),
    _gnn("lte-conve", "a linear map of entities, no graph, then ConvE", _LTE, kinds.LteConve),
)  # fmt: skip
BASELINES: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find_baseline(name: str) -> Entry:
    """The entry of a name; an unknown one is refused with the nearest."""
    if name not in BASELINES:
        raise unknown_name("model", name, BASELINES)
    return BASELINES[name]


def read_section(values: object) -> BaselineSettings:
    """The section `baseline` of a configuration, checked by the class of the model that it names."""
    name = values.get("model") if isinstance(values, Mapping) else None
    kind = find_baseline(str(name)).settings
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            listed = ", ".join(kind.model_fields)
            raise SettingsError(f"There is no setting 'baseline.{key}'. Choices: {listed}.") from error
        if not key:
            raise SettingsError(message) from error
        raise SettingsError(f"The setting baseline.{key} cannot be {first['input']!r}: {message}.") from error
