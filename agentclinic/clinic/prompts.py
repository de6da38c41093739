"""Prompt files: the shipped ones, and a user's own, which take precedence file by file."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentclinic.cases.model import Fact
from agentclinic.clinic.original import original_name, translated
from agentclinic.config import ROLES, read_json, suggestion
from agentclinic.errors import ConfigError
from agentclinic.files import expanded

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
        """A text by key; a user's file may leave out optional texts."""
        return self.texts.get(key, default)

    def has(self, *keys: str) -> bool:
        return all(key in self.texts for key in keys)

    def completed(self) -> Prompt:
        """With the shipped text for everything that a user's file leaves out."""
        return replace(self, texts={**_read(self.path.stem, SHIPPED / self.path.name).texts, **self.texts})

    def bias(self, name: str | None) -> str:
        """The text of a bias; for an unknown bias, an error that lists the known ones."""
        if name is None:
            return ""
        if name not in self.biases:
            raise ConfigError(f"{self.path.name} has no bias {name!r}{suggestion(name, self.biases)}")
        return self.biases[name]


def supported(bias: str | None, prompt: Prompt) -> str | None:
    """The bias, or none with a warning if the file does not have it: as in the original, it is then ignored."""
    if bias is None or bias in prompt.biases:
        return bias
    near = suggestion(bias, prompt.biases) or "; it has none"
    file = prompt.path
    warnings.warn(f"{file.stem}_bias {bias!r} is ignored: {file.name} has no such bias{near}", stacklevel=3)
    return None


@dataclass(frozen=True)
class Prompts:
    """The prompt files of a run, by name."""

    files: Mapping[str, Prompt]

    def __getitem__(self, name: str) -> Prompt:
        return self.files[name]

    @property
    def digests(self) -> dict[str, str]:
        """A hash of each file, for the record."""
        return {name: prompt.digest for name, prompt in self.files.items()}


def user_prompts(named: str | None = None) -> Path | None:
    """The folder with the user's own prompts: the one given, else `prompts` in the working folder, if it exists."""
    folder = expanded(named) if named else Path("prompts")
    if named and not folder.is_dir():
        raise ConfigError(f"prompts_dir: {folder} is not a folder")
    return folder if folder.is_dir() else None


def load_prompts(folder: Path | None = None, *further: str) -> Prompts:
    """Read the prompts of the four roles and `further` ones; a file in `folder` replaces the shipped one."""
    return Prompts({name: load_prompt(name, folder) for name in (*ROLES, *further)})


def load_prompt(name: str, folder: Path | None = None) -> Prompt:
    shipped = _read(name, SHIPPED / f"{name}.json")
    own = folder / f"{name}.json" if folder else None
    if own is None or not own.exists():
        return shipped
    prompt = _read(name, own)
    # A file of the original's four roles may leave out texts on purpose; the other files are ours and need all texts.
    kept = _CLINIC if name in ROLES else tuple(shipped.texts)
    defaults = {key: shipped.texts[key] for key in kept if key in shipped.texts}
    return replace(prompt, texts={**defaults, **prompt.texts})


_CLINIC = (
    "opening", "last_turn", "images_off", "images_shown", "exact_form", "name_missing",
    "said_nothing", "confidence",
)  # fmt: skip
"""What the clinic itself says, with the shipped text if a user's file has none."""
_NEEDED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "doctor": {"user_prompt_template": ("history", "reply")},
    "patient": {"system_base": ("patient",), "user_prompt_template": ("reply",)},
    "measurement": {"system_base": ("exam",), "user_prompt_template": ("request",)},
    "moderator": {"user_prompt_template": ("diagnosis", "truth")},
    "uncertainty": {"system_base": ("door",), "user_prompt_template": ("record", "reply")},
    "synthesis": {"user_prompt_template": ("facts",)},
    "writer": {"user_prompt_template": ("context",)},
    "reviewer": {"user_prompt_template": ("facts", "question", "reply")},
    "memory": {"user_prompt_template": ("situation", "candidates"), "block": ("experiences",)},
    "learner": {"user_prompt_template": ("dialogue", "truth", "missed")},
}
"""Placeholders that each role's texts must contain."""


def _read(name: str, path: Path) -> Prompt:
    data = read_json(path)
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a JSON object with system_base and user_prompt_template")
    biases = data.get("biases", {})
    if not isinstance(biases, dict) or not all(isinstance(text, str) for text in biases.values()):
        raise ConfigError(f"{path}: biases must be an object of texts")
    texts = translated(name, {key: value for key, value in data.items() if isinstance(value, str)}, path)
    for key in ("system_base", "user_prompt_template", *_CLINIC):
        if key not in texts and (key in data or key not in _CLINIC):
            raise ConfigError(f"{path}: {key!r} is missing or not text{suggestion(key, texts)}")
    for key, placeholders in _NEEDED.get(name, {}).items():
        for needed in placeholders:
            if key in texts and f"{{{needed}}}" not in texts[key]:
                theirs = original_name(name, needed)
                also = f" ({theirs} in the original's dialect)" if theirs else ""
                raise ConfigError(f"{path}: {key} lacks {{{needed}}}{also}, which the {name} needs; add it")
    return Prompt(path, texts, biases, hashlib.sha256(path.read_bytes()).hexdigest()[:16])


def fill(template: str, **values: object) -> str:
    """Replace `{name}` placeholders in one pass; braces in a value, and unknown names, stay as they are."""
    return _PLACEHOLDER.sub(lambda m: str(values[m[1]]) if m[1] in values else m[0], template).rstrip()


def placed(template: str, parts: Mapping[str, str], **values: object) -> str:
    """Fill a template. Each of `parts` is put where the template names it, or else at the end as a paragraph."""
    unnamed = (part for name, part in parts.items() if f"{{{name}}}" not in template)
    return joined(fill(template, **values, **parts), *unnamed)


def id_lines(facts: Mapping[str, Fact], longest: int | None = None) -> str:
    """Facts with the ids by which a model names them, one per line."""
    return "\n".join(f"{name}: {' / '.join(fact.heads)}: {fact.text[:longest]}" for name, fact in facts.items())


def joined(*parts: str) -> str:
    """Non-empty parts, separated by blank lines."""
    return "\n\n".join(part for part in parts if part)
