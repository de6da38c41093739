"""`generate_cases/gen.config.json`: what to make, from what, with which model. Every key is also a flag."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.config import MOST_PROCESSES, MOST_WORKERS, parse_settings, places, read_json
from agentclinic.errors import ConfigError
from agentclinic.files import exists, expanded
from agentclinic.generate.source import StorySetting

SCRIPTS_FOLDER = "generate_cases"
"""Where the original keeps its scripts and their config."""


class MissingInputError(ConfigError):
    """A file or folder that a config names does not exist."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class CommonSettings(_Section):
    """The `common` section, for every source."""

    model: str = "builtin"
    """Model that writes the patient's story: builtin, replay:FILE, or the name of a model at the endpoint."""
    endpoint: str | None = None
    """Endpoint of the model, by its name in `endpoints` (default: the default endpoint)."""
    llm_config: str | None = None
    """Endpoint, key and request settings (default: llm.config.json, if it exists)."""
    sleep_seconds: float = Field(default=0.0, ge=0)
    """Seconds a worker waits between two requests."""
    workers: int = Field(default=1, ge=1, le=MOST_WORKERS)
    """How many encounters, cases or requests to work on at the same time."""
    engine: Literal["local", "ray"] = "local"
    """Where the work is done: in this process, or by the worker processes of a Ray cluster (docs/scale.md)."""
    address: str | None = None
    """Address of the Ray cluster, e.g. auto or 10.0.0.1:6379 (default: start one on this machine for this command)."""
    processes: int | None = Field(default=None, ge=1, le=MOST_PROCESSES)
    """Worker processes on the Ray cluster, which share `workers` (default: one per CPU, at most `workers`)."""
    prompts_dir: str | None = None
    """Folder with prompt files that replace the shipped ones, file by file (default: `prompts` if it exists)."""


class SourceSettings(_Section):
    source: ClassVar[str]
    limit: int | None = Field(default=15, ge=1)
    """Make at most this many cases; in gen.config.json, null means all."""
    output: str
    """File to append the cases to; quarantine, trace and manifest are written next to it."""
    base_dataset_dir: str | None = None
    """Folder with the source's files."""

    @property
    def base(self) -> Path:
        """The source's folder or file; an error if it is not set."""
        if not self.base_dataset_dir:
            raise ConfigError(
                f"{self.source}.base_dataset_dir is not set: name the source's folder with --base-dir, "
                "or in gen.config.json"
            )
        return expanded(self.base_dataset_dir)


class MimicSettings(SourceSettings):
    """The `mimic` section."""

    source: ClassVar[str] = "mimic"
    limit: int | None = Field(default=15, ge=1)
    """Make at most this many cases, spread over the chapters of disease; in gen.config.json, null means all."""
    output: str = "processed_data/agentclinic_mimiciv.jsonl"
    """File to append the cases to; quarantine, trace and manifest are written next to it."""
    mode: Literal["principal", "single", "targets"] = "principal"
    """Which admissions: with any principal diagnosis, with only one diagnosis, or with one of `targets`."""
    targets: str | None = None
    """With mode targets: beginnings of codes or words in titles, separated by commas, e.g. I21,9:410,pneumonia."""
    story: StorySetting = "facts"
    """facts: only what is on record; model: where no symptoms are on record, the model makes up a story."""
    hours: float = Field(default=24.0, gt=0, le=10_000)
    """Results up to this many hours after admission."""
    hours_before: float = Field(default=24.0, ge=0, le=10_000)
    """Results from this many hours before admission, but not from an earlier stay."""
    seed: int = 0
    """Random seed of the choice of admissions."""
    cache_dir: str | None = None
    """Keep Parquet copies of the large tables here; later calls read them many times faster."""
    include_elective: bool = False
    """Also take planned admissions, whose diagnosis was known before."""
    include_symptoms: bool = False
    """Also take symptoms, factors and external causes as diagnoses."""
    include_unspecified: bool = False
    """Also take titles that say other or unspecified."""
    include_recurrent: bool = False
    """Also take admissions whose principal code the patient already had."""
    memory_limit: str = "512MB"
    """Memory for reading the tables; what does not fit goes to disk."""
    threads: int = Field(default=2, ge=1)
    """Threads for reading the tables."""

    @property
    def cache(self) -> Path | None:
        return expanded(self.cache_dir) if self.cache_dir else None

    @property
    def target_list(self) -> tuple[str, ...]:
        return tuple(part.strip() for part in (self.targets or "").split(",") if part.strip())


class MedqaSettings(SourceSettings):
    """The `medqa` section."""

    source: ClassVar[str] = "medqa"
    limit: int | None = Field(default=15, ge=1)
    """Make at most this many cases, in the order of their file; in gen.config.json, null means all."""
    output: str = "processed_data/agentclinic_medqa_generated.jsonl"
    """File to append the cases to; quarantine, trace and manifest are written next to it."""
    base_dataset_dir: str | None = None
    """File of questions (.jsonl, .json, .parquet or .arrow), or a folder with such files."""


class GenFile(_Section):
    """The whole of `gen.config.json`."""

    common: CommonSettings = CommonSettings()
    mimic: MimicSettings = MimicSettings()
    medqa: MedqaSettings = MedqaSettings()


SECTIONS: Mapping[str, type[SourceSettings]] = {"mimic": MimicSettings, "medqa": MedqaSettings}
_INPUTS = frozenset({"llm_config", "prompts_dir", "base_dataset_dir"})
"""Paths that must exist. Relative paths of outputs start at the working folder, as in the original."""


def default_config() -> Path | None:
    """The config file if none is named: in the original's place, or in the working folder."""
    places = (Path(SCRIPTS_FOLDER) / "gen.config.json", Path("gen.config.json"))
    return next((path for path in places if path.is_file()), None)


def load(config: Path | None, source: str, overrides: Mapping[str, Any]) -> tuple[CommonSettings, SourceSettings]:
    """The settings for one source: flags win over the file, the file over the defaults."""
    file = parse_settings(GenFile, read_json(config) if config else {}, str(config))
    common = _merged(CommonSettings, file.common, "common", config, overrides)
    section = _merged(SECTIONS[source], getattr(file, source), source, config, overrides)
    if "output" not in overrides and not section.output.endswith(".jsonl"):  # it could be a login script
        raise ConfigError(f"{source}.output: a file may name only one that ends in .jsonl; use --output")
    return common, section


_Kind = TypeVar("_Kind", bound=_Section)


def _merged(
    kind: type[_Kind], written: _Kind, section: str, config: Path | None, overrides: Mapping[str, Any]
) -> _Kind:
    given = {name: value for name, value in overrides.items() if name in kind.model_fields}
    values = written.model_dump(exclude_unset=True) | given
    for name in _INPUTS & values.keys() - given.keys():
        if config and values[name]:
            values[name] = _found(values[name], f"{config}: {section}.{name}", config.absolute().parent)
    return parse_settings(kind, values, "")


def _found(name: str, key: str, folder: Path) -> str:
    """A path in a config file: next to the file, above the folder of scripts, or in the working folder."""
    above = [folder.parent] if folder.name == SCRIPTS_FOLDER else []
    tried = places([folder, *above, Path.cwd()], name)
    found = next((path for path in tried if exists(path)), None)
    if found is None:
        raise MissingInputError(f"{key}: {name} does not exist; looked for {', '.join(map(str, tried))}")
    return str(found)
