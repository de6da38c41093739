"""Agents by configuration: `agent_config.yaml`, validated when it is read.

The original's file has entries for other agents, with other tools: only the entry in use must fit this doctor.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from agentclinic.config import parse_settings, suggestion
from agentclinic.doctors.uncertainty.documented import QUERY, TOOLS
from agentclinic.doctors.uncertainty.tools import ARGUMENTS
from agentclinic.errors import ConfigError
from agentclinic.files import find_up, read_limited

SHIPPED = Path(__file__).parent / "agent_config.yaml"
USUAL = Path("agent") / "agent_config.yaml"
UNCERTAINTY = "uncertainty_aware_doctor"
LARGEST = 2**20
"""Bytes of the file: enough for the prompts of many agents."""
MOST_VALUES = 100_000
"""Values in the file, including those that aliases repeat."""


class AgentSettings(BaseModel):
    """One agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(default="builtin", min_length=1)
    synthesis_model: str | None = Field(default=None, min_length=1)
    system_prompt: str = Field(min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_turns: int = Field(default=1, ge=1)
    tools: tuple[str, ...] = ("diagnosis_step", "final_diagnosis")
    terminal_tools: tuple[str, ...] = ("final_diagnosis",)

    @field_validator("tools", "terminal_tools")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in (*ARGUMENTS, *TOOLS):
                raise ValueError(f"there is no tool {name!r}; correct the name, or use an entry with only {_SETS}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> AgentSettings:
        step, final = ("document_step", "final_diagnosis_documented") if self.documented else tuple(ARGUMENTS)
        if not {*self.tools} & {"diagnosis_step", "document_step"}:
            raise ValueError("tools must contain diagnosis_step (or document_step): without it nothing is recorded")
        if not {*self.tools} <= ({*TOOLS} if self.documented else {*ARGUMENTS}):
            raise ValueError(f"tools mixes two sets; use only {_SETS}")
        if not set(self.terminal_tools) <= set(self.tools):
            raise ValueError("terminal_tools may contain only what tools contains")
        if QUERY in self.terminal_tools:
            raise ValueError(f"terminal_tools must not contain {QUERY}, which does not end a turn")
        if final in self.tools and final not in self.terminal_tools:
            raise ValueError(f"terminal_tools must contain {final}, which ends the encounter")
        if self.max_turns > 1 and step not in self.terminal_tools:
            raise ValueError(
                f"terminal_tools must contain {step} if max_turns is more than 1: it ends the doctor's turn"
            )
        if QUERY in self.tools and self.max_turns < 2:
            raise ValueError(f"max_turns must be at least 2 with {QUERY}: a call to another tool has to follow")
        return self

    @property
    def documented(self) -> bool:
        """Whether this agent uses the tools of the original's `uncertainty_documentation_agent`."""
        return "document_step" in self.tools

    @property
    def lookups(self) -> int:
        """How many times in a turn it may look for experiences before it acts."""
        return self.max_turns - 1 if QUERY in self.tools else 0


_SETS = f"{' and '.join(ARGUMENTS)}, or only {', '.join(TOOLS)}"


class AgentFile(BaseModel):
    """The whole of `agent_config.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agents: dict[str, Any]


@dataclass(frozen=True)
class Agent:
    """An agent as configured, and a hash of its settings for the record."""

    settings: AgentSettings
    path: Path
    digest: str


def load_agent(path: Path | None = None, name: str = UNCERTAINTY) -> Agent:
    """The agent of that name, from the path, else from the user's `agent/agent_config.yaml` (`find_up`), else ours."""
    path = path or find_up(USUAL) or SHIPPED
    agents = agents_in(path)
    if name not in agents:
        raise ConfigError(f"{path}: agents has no {name!r}{suggestion(name, agents)}")
    settings = parse_settings(AgentSettings, agents[name], f"{path}: agents.{name}")
    _say_what_is_ignored(path, name, settings, agents)
    return Agent(settings, path, hashlib.sha256(settings.model_dump_json().encode()).hexdigest()[:16])


def agents_in(path: Path) -> dict[str, Any]:
    """The entries of a file by name, unchecked."""
    return parse_settings(AgentFile, _read(path), str(path)).agents


def _say_what_is_ignored(path: Path, name: str, settings: AgentSettings, agents: Mapping[str, Any]) -> None:
    others = [other for other in agents if other != name]
    ignored = [f"the other entries ({', '.join(others)})"] if others else []
    if settings.max_turns != 1 and not settings.lookups:
        ignored.append(f"max_turns {settings.max_turns} (the doctor makes one tool call each time it speaks)")
    if ignored:
        warnings.warn(f"{path}: the entry {name} is used; ignored: {', '.join(ignored)}", stacklevel=3)


def _read(path: Path) -> Any:
    import yaml

    try:
        data = yaml.load(read_limited(path, LARGEST).decode(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "cannot be parsed"
        raise ConfigError(f"{path}{place}: not valid YAML ({what})") from None
    except (ValueError, RecursionError):  # a date that does not exist, or nesting that is too deep
        raise ConfigError(f"{path}: not readable YAML; look for impossible dates or numbers") from None
    if _is_bomb(data):
        raise ConfigError(f"{path}: more than {MOST_VALUES:,} values, because aliases (*) multiply them; use fewer")
    return data


def _is_bomb(data: Any) -> bool:
    """Whether a few lines of YAML stand for far too many values: aliases of aliases, or of themselves."""
    left, seen = [data], 0
    while left and seen <= MOST_VALUES:
        value, seen = left.pop(), seen + 1
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return seen > MOST_VALUES
