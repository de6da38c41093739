"""Prompt files: the shipped ones, and a user's own that win file by file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentclinic.config import ROLES, suggestion
from agentclinic.errors import ConfigError

SHIPPED = Path(__file__).parent.parent / "prompts"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Prompt:
    """One prompt file."""

    path: Path
    texts: Mapping[str, str]
    biases: Mapping[str, str]
    digest: str

    def text(self, key: str, default: str = "") -> str:
        """A text by key; a user's file may leave optional ones out."""
        return self.texts.get(key, default)

    def bias(self, name: str | None) -> str:
        """The text of a bias; unknown ones are refused with the known ones."""
        if name is None:
            return ""
        if name not in self.biases:
            raise ConfigError(f"unknown bias {name!r} in {self.path.name}; known are {', '.join(sorted(self.biases))}")
        return self.biases[name]


@dataclass(frozen=True)
class Prompts:
    """The prompt files of a run, by name."""

    files: Mapping[str, Prompt]

    def __getitem__(self, name: str) -> Prompt:
        return self.files[name]

    @property
    def digests(self) -> dict[str, str]:
        """A hash by file name, for the record."""
        return {name: prompt.digest for name, prompt in self.files.items()}


def load_prompts(folder: Path | None = None) -> Prompts:
    """Read the four roles' prompts; a file in `folder` wins over the shipped one of that name."""
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"prompts_dir: {folder} is not a folder")
    return Prompts({role: load_prompt(role, folder) for role in ROLES})


def load_prompt(name: str, folder: Path | None = None) -> Prompt:
    """Read one prompt file."""
    own = folder / f"{name}.json" if folder else None
    path = own if own and own.exists() else SHIPPED / f"{name}.json"
    raw = path.read_bytes()
    try:
        data = json.loads(raw)
    except ValueError as error:
        raise ConfigError(f"{path}: not valid JSON ({error})") from None
    return _prompt(path, data, hashlib.sha256(raw).hexdigest()[:16])


def _prompt(path: Path, data: Any, digest: str) -> Prompt:
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a JSON object with system_base and user_prompt_template")
    biases = data.get("biases", {})
    if not isinstance(biases, dict) or not all(isinstance(text, str) for text in biases.values()):
        raise ConfigError(f"{path}: biases must be an object of texts")
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    for key in ("system_base", "user_prompt_template"):
        if key not in texts:
            raise ConfigError(f"{path}: {key!r} is missing or not text{suggestion(key, texts)}")
    return Prompt(path, texts, biases, digest)


def fill(template: str, **values: object) -> str:
    """Put values into `{name}` places in one pass: braces in a value, or unknown names, stay as they are."""
    return _PLACEHOLDER.sub(lambda m: str(values[m[1]]) if m[1] in values else m[0], template).rstrip()


def joined(*parts: str) -> str:
    """Non-empty parts with a blank line between."""
    return "\n\n".join(part for part in parts if part)
