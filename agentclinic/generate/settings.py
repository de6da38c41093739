"""`generate_cases/gen.config.json`: what is made, from where, by which model; each key is also a flag.

Flags win over the file, the file over the defaults. A key nobody knows is refused, naming the nearest known one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.config import parse_settings, read_json

SEED_FOLDER = "generate_cases"
"""Where the seed keeps its scripts; paths in a config there are relative to the folder above."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class CommonSettings(_Section):
    """The `common` section: for every source."""

    model: str = "builtin"
    """Model that writes the patient's story: builtin, replay:FILE, or a model name at the endpoint."""
    endpoint: str | None = None
    """Name in `endpoints` of agentclinic.config.json; the default endpoint when not given."""
    llm_config: str | None = None
    """File with endpoint, key and request settings; llm.config.json when that is there."""
    sleep_seconds: float = Field(default=0.0, ge=0)
    """Pause between two requests of one worker, in seconds."""
    workers: int = Field(default=1, ge=1)
    """Cases made at the same time."""
    prompts_dir: str | None = None
    """Folder whose writer.json wins over the shipped one; `prompts` when that exists."""


class SourceSettings(_Section):
    """What every source has."""

    limit: int | None = Field(default=None, ge=1)
    """Make at most this many cases; all that can be made when not given."""
    output: str = ""
    """File to append the cases to; quarantine, trace and manifest are written beside it."""
    base_dataset_dir: str | None = None
    """Folder with the source's files. Also as --base-dir."""


class MimicSettings(SourceSettings):
    """The `mimic` section."""

    limit: int | None = Field(default=15, ge=1)
    """Make at most this many cases, spread over the chapters of disease."""
    output: str = "processed_data/agentclinic_mimiciv.jsonl"
    """File to append the cases to; quarantine, trace and manifest are written beside it."""
    mode: Literal["principal", "single", "targets"] = "principal"
    """Which admissions: any principal diagnosis, only those with a single diagnosis, or only `targets`."""
    targets: str | None = None
    """With mode targets: beginnings of codes or words of titles, separated by commas, e.g. I21,9:410,pneumonia."""
    hours: float = Field(default=24.0, gt=0)
    """Results up to this many hours after admission."""
    hours_before: float = Field(default=24.0, ge=0)
    """Results from this many hours before admission, but not from an earlier stay."""
    seed: int = 0
    """Another seed, another choice of admissions."""
    cache_dir: str | None = None
    """Keep Parquet copies of the large tables here: later calls read them many times faster."""
    include_elective: bool = False
    """Also take planned admissions."""
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


class MedqaSettings(SourceSettings):
    """The `medqa` section."""

    limit: int | None = Field(default=15, ge=1)
    """Make at most this many cases, in the order of the file."""
    output: str = "processed_data/agentclinic_medqa_generated.jsonl"
    """File to append the cases to; quarantine, trace and manifest are written beside it."""
    base_dataset_dir: str | None = None
    """File of questions (JSON lines), or a folder with such files. Also as --base-dir."""


class GenFile(_Section):
    """The whole of `gen.config.json`."""

    common: CommonSettings = CommonSettings()
    mimic: MimicSettings = MimicSettings()
    medqa: MedqaSettings = MedqaSettings()


SECTIONS: Mapping[str, type[SourceSettings]] = {"mimic": MimicSettings, "medqa": MedqaSettings}
_PATHS = frozenset({"llm_config", "prompts_dir", "output", "base_dataset_dir", "cache_dir"})


def default_config() -> Path | None:
    """The config file when none is named: the seed's place, or the working folder."""
    places = (Path(SEED_FOLDER) / "gen.config.json", Path("gen.config.json"))
    return next((path for path in places if path.is_file()), None)


def load(config: Path | None, source: str, overrides: Mapping[str, Any]) -> tuple[CommonSettings, SourceSettings]:
    """The settings for one source: flags over the file over the defaults; paths made absolute."""
    file = parse_settings(GenFile, read_json(config) if config else {}, str(config))
    root = _root(config)
    common = _laid_over(CommonSettings, file.common, root, overrides)
    section = _laid_over(SECTIONS[source], getattr(file, source), root, overrides)
    return common, section


def _root(config: Path | None) -> Path:
    if config is None:
        return Path.cwd()
    folder = config.absolute().parent
    return folder.parent if folder.name == SEED_FOLDER else folder


_Kind = TypeVar("_Kind", bound=_Section)


def _laid_over(kind: type[_Kind], written: _Kind, root: Path, overrides: Mapping[str, Any]) -> _Kind:
    values = written.model_dump(exclude_unset=True)
    values = {name: _absolute(root, name, value) for name, value in values.items()}
    given = {name: value for name, value in overrides.items() if name in kind.model_fields}
    return parse_settings(kind, values | given, "the flags")


def _absolute(root: Path, name: str, value: Any) -> Any:
    return str(root / Path(value).expanduser()) if name in _PATHS and isinstance(value, str) and value else value
