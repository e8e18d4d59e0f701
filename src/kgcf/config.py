"""The whole configuration of a run: presets, benchmark files, `--set key=value`; every ablation is a named switch."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from kgcf.baselines.catalogue import find_baseline, read_section
from kgcf.baselines.settings import TRAINING_KEYS, BaselineSettings
from kgcf.causal.embedding import SpaceSettings
from kgcf.causal.treatment import TreatmentSettings
from kgcf.causal.treatment.settings import SEEDED
from kgcf.choices import Candidates
from kgcf.errors import SettingsError, closest, unknown_name
from kgcf.memory.settings import MemorySettings
from kgcf.model.kgcf import DecoderSettings
from kgcf.propagation.layers.encoder import EncoderSettings
from kgcf.training.objective import ObjectiveSettings
from kgcf.training.settings import TrainingSettings

BASELINE_SECTIONS = ("training", "baseline")  # what a run of another model reads


class MatchingSettings(BaseModel):
    """Where substitutes are looked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    candidates: Candidates = Field(
        default="observed", description="Pairs that a train triple links, or all pairs of entities."
    )


class Settings(BaseModel):
    """One section per stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: EncoderSettings = EncoderSettings()
    decoder: DecoderSettings = DecoderSettings()
    treatment: TreatmentSettings = TreatmentSettings()
    space: SpaceSettings = SpaceSettings()
    matching: MatchingSettings = MatchingSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    training: TrainingSettings = TrainingSettings()
    memory: MemorySettings = MemorySettings()
    baseline: SerializeAsAny[BaselineSettings] | None = None  # None: KGCF itself

    @model_serializer(mode="wrap")
    def _applying(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What the run reads: a baseline knows its own section and a part of `training`."""
        everything: dict[str, Any] = dump(self)
        return {section: {key: everything[section][key] for key in keys} for section, _, keys in self.sections()}

    def sections(self) -> Iterator[tuple[str, BaseModel, list[str]]]:
        """The sections that the run reads, with the keys in them that it reads."""
        for section, part in self:
            if part is None or (self.baseline is not None and section not in BASELINE_SECTIONS):
                continue
            keys = list(type(part).model_fields)
            if self.baseline is not None and section == "training":
                keys = [key for key in keys if key in TRAINING_KEYS]
            yield section, part, keys

    @property
    def needs_matching(self) -> bool:
        """Whether counterfactual relations enter the loss."""
        return self.decoder.treatment and (self.objective.alpha > 0 or self.objective.beta > 0)


Values = Mapping[str, Mapping[str, Any]]
Changes = str | Iterable[str] | Mapping[str, Any]  # "section.key=value", several of them, or {"section.key": value}

_PLAIN: Values = {
    "encoder": {"context": "none"},
    "training": {"skip_unreached": False, "schedule": "constant"},
    "memory": {"enabled": "off"},
}
PRESETS: dict[str, Values] = {
    "default": {},
    "fast": {"encoder": {"layers": 4}, "training": {"budget": 20_000}},
    "paper": {
        **_PLAIN,
        "treatment": {"leave_one_out": False},
        "matching": {"candidates": "all"},
        "objective": {"cf_target": "printed", "disc_pairs": "all", "alpha": 1.0, "beta": 0.001},  # by figure 4
    },
    "nbfnet": {**_PLAIN, "decoder": {"treatment": False}, "objective": {"alpha": 0.0, "beta": 0.0}},
}


def configure(
    preset: str = "default",
    benchmark: str | None = None,
    file: Path | None = None,
    changes: Changes = (),
    seed: int | None = None,
    baseline: str | None = None,
) -> Settings:
    """Preset, then what the benchmark's data ask for, the user's file, the seed of everything, single changes.

    `benchmark` is `Dataset.benchmark`: a name that was found by checksums, never that of a user's file. A `baseline`
    is another model, with defaults of its own and nothing of KGCF's presets and benchmarks.
    """
    if baseline is not None:
        return _configure_baseline(baseline, file, changes, seed)
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    values: dict[str, dict[str, Any]] = {}
    _overlay(values, PRESETS[preset])
    if benchmark is not None:
        _overlay(values, benchmark_values(benchmark))
    if file is not None:
        _overlay(values, read_values(file))
    last: dict[str, dict[str, Any]] = {}
    for change in list_changes(changes):
        _overlay(last, change)
    if seed is not None:
        _overlay(values, _seeded(seed, {**values.get("treatment", {}), **last.get("treatment", {})}))
    _overlay(values, last)
    return settings_from(values)


def _configure_baseline(name: str, file: Path | None, changes: Changes, seed: int | None) -> Settings:
    """The model's defaults, the user's file, the seed, single changes; what the model does not read is refused."""
    entry = find_baseline(name)
    values: dict[str, dict[str, Any]] = {}
    _overlay(values, entry.values())
    given = [] if file is None else [read_values(file)]
    given += [] if seed is None else [{"training": {"seed": seed}}]
    for change in [*given, *list_changes(changes)]:
        _overlay(values, change)
    read = {"training": TRAINING_KEYS, "baseline": tuple(entry.settings.model_fields)}
    for section, keys in values.items():
        for key in keys:
            if key not in read.get(section, ()):
                listed = ", ".join(f"{part}.{known}" for part, names in read.items() for known in names)
                raise SettingsError(f"{name} has no setting '{section}.{key}'. It has: {listed}.")
    if values["baseline"]["model"] != name:
        raise SettingsError(f"The settings are those of {values['baseline']['model']}, and {name} is to be trained.")
    return settings_from(values)


def seeds_of(settings: Settings) -> dict[str, int]:
    """Every seed that the run uses, by its name: `training.seed`, `space.seed`, and those of some other stages."""
    unused = () if settings.treatment.method in SEEDED else ("treatment",)
    unused = (*unused, "memory") if settings.memory.enabled == "off" else unused
    return {
        f"{section}.seed": int(dict(part)["seed"])
        for section, part, keys in settings.sections()
        if "seed" in keys and section not in unused
    }


def _seeded(seed: int, treatment: Mapping[str, Any]) -> Values:
    """The seed for every section that has one; a treatment that draws nothing would refuse it."""
    method = treatment.get("method", TreatmentSettings().method)
    sections = [section for section, part in Settings() if hasattr(part, "seed")]
    return {section: {"seed": seed} for section in sections if section != "treatment" or method in SEEDED}


def settings_from(values: Values) -> Settings:
    """Check all values; an unknown key or impossible value is a sentence that names the choices."""
    checked: dict[str, Any] = dict(values)
    if "baseline" in values:
        checked["baseline"] = read_section(values["baseline"])
    try:
        return Settings.model_validate(checked)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from error


def benchmark_note(name: str | None) -> str | None:
    """A sentence about the settings that `configure` takes from a benchmark; None where it takes none."""
    values = {} if name is None else benchmark_values(name)
    if not values:
        return None
    listed = ", ".join(f"{part}.{key}={_toml(value)}" for part, keys in values.items() for key, value in keys.items())
    return f"settings of the benchmark {name}, known by its sha256: {listed}"


def benchmark_values(name: str) -> Values:
    """The settings that a benchmark's data ask for; nothing for data that we do not know."""
    file = resources.files("kgcf") / "configs" / f"{name.replace(':', '_')}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def read_values(path: Path) -> Values:
    """Read a TOML file with sections as in `config.toml` of a run."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}.") from error


def write_toml(settings: Settings) -> str:
    """The effective configuration as TOML, each key with its line of help."""
    lines = ["# The effective configuration of this run; `kgcf train DATA --config FILE` takes it."]
    for section, model, keys in settings.sections():
        lines += ["", f"[{section}]"]
        for key in keys:
            shown = _toml(getattr(model, key))
            help_text = type(model).model_fields[key].description
            lines.append(f"{key} = {shown}  # {help_text}" if shown is not None else f"# {key}: not set. {help_text}")
    return "\n".join(lines) + "\n"


def _overlay(values: dict[str, dict[str, Any]], more: Mapping[str, Any]) -> None:
    for section, entries in more.items():
        if not isinstance(entries, Mapping):
            raise SettingsError(f"'{section}' must be a section with keys, such as [training]. {_choices(())}")
        values.setdefault(section, {}).update(entries)


def list_changes(changes: Changes) -> Iterable[Values]:
    """Changes one by one, in the order in which they were given."""
    if isinstance(changes, Mapping):
        return [_named_change(name, value) for name, value in changes.items()]
    return map(_parse_change, [changes] if isinstance(changes, str) else changes)


def _named_change(name: str, value: Any) -> Values:  # noqa: ANN401
    """`{"training.batch_size": 64}`, or a whole section, `{"training": {"batch_size": 64}}`."""
    section, dot, key = name.partition(".")
    if isinstance(value, Mapping) and not dot:
        return {section: value}
    if not (dot and key):
        raise SettingsError(f"'{name}' should be section.key, for example {{'training.batch_size': 64}}.")
    return {section: {key: value}}


def _parse_change(change: str) -> Values:
    """`training.batch_size=64`; the value is read as TOML, else as a word."""
    key, sign, text = change.partition("=")
    section, dot, name = key.strip().partition(".")
    if not (sign and dot and name):
        raise SettingsError(f"'{change}' should be section.key=value, for example training.batch_size=64.")
    if text.strip().lower() == "none" and _may_be_unset(section, name):
        return {section: {name: None}}
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    return {section: {name: value}}


def _may_be_unset(section: str, name: str) -> bool:
    """Whether `none` means that a setting has no value; elsewhere it is a word like others."""
    if section == "baseline":
        return name == "seconds"
    model = Settings.model_fields[section].annotation if section in Settings.model_fields else None
    field = model.model_fields.get(name) if isinstance(model, type) and issubclass(model, BaseModel) else None
    return field is not None and type(None) in get_args(field.annotation)


def _toml(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    keys = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        near = closest(keys[-1], _known_keys(keys[:-1]))
        hint = f" Did you mean '{near[0]}'?" if near else ""
        return f"There is no setting '{'.'.join(keys)}'.{hint} {_choices(keys[:-1])}"
    message = first["msg"].removeprefix("Value error, ")
    return f"The setting {'.'.join(keys[:2])} cannot be {first['input']!r}: {message}."


def _choices(keys: Iterable[str]) -> str:
    return "Choices: " + ", ".join(_known_keys(keys)) + "."


def _known_keys(keys: Iterable[str]) -> list[str]:
    section = next(iter(keys), None)
    if section is None:
        return list(Settings.model_fields)
    model = getattr(Settings(), section)
    assert isinstance(model, BaseModel)
    return list(type(model).model_fields)
