"""Prompt files: the shipped ones, and a user's own, which take precedence file by file.

Files in the original's dialect are translated into ours here, so that no other module has to know both.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Formatter

from agentclinic import lazy
from agentclinic.cases.model import Fact
from agentclinic.config import ROLES, nearest, read_json, suggestion
from agentclinic.errors import ConfigError
from agentclinic.files import expanded, find_up


@dataclass(frozen=True)
class _Role:
    """How the original reads one role's file."""

    named: Mapping[str, str]
    """Placeholders of `user_prompt_template`, and our names for them."""
    system: tuple[str, ...]
    """Keys of the texts that make up the system prompt, in order, with our own placeholders between them."""
    ordered: Mapping[str, tuple[str, ...]]
    """What each `{}` stands for, in the texts that the original fills."""
    ours: frozenset[str]
    """Placeholders of our own dialect in these texts."""


_DIALOGUE = {"agent_hist": "history", "question": "reply"}
_ROLES = {
    "doctor": _Role(
        {**_DIALOGUE, "planning_notes": "notes"},
        ("system_base", "{images}{bias}", "system_presentation_suffix"),
        {"system_base": ("max_infs", "infs"), "system_presentation_suffix": ("objective",)},
        frozenset({"max_infs", "infs", "door", "objective", "images", "no_tests", "bias", "policy"})
        | {"history", "reply", "turn", "notes"},
    ),
    "patient": _Role(
        _DIALOGUE,
        ("system_base", "{bias}", "system_symptoms_suffix"),
        {"system_symptoms_suffix": ("patient",)},
        frozenset({"patient", "silence", "caregiver", "bias", "history", "reply"}),
    ),
    "measurement": _Role(
        {"agent_hist": "history", "question": "request"},
        ("system_base", "system_presentation_suffix"),
        {"system_presentation_suffix": ("exam",)},
        frozenset({"exam", "history", "request"}),
    ),
    "moderator": _Role(
        {"correct": "truth", "diag": "diagnosis"}, ("system_prompt",), {}, frozenset({"truth", "diagnosis"})
    ),
}
_TEMPLATE = "user_prompt_template"
_IMAGES = "system_images_suffix"


def translated(role: str, texts: Mapping[str, str], path: Path) -> dict[str, str]:
    """The texts of a prompt file in our dialect; those that are ours already stay as they are.

    A file is the original's if it has one of the original's keys or placeholders.
    """
    how = _ROLES.get(role)
    if how is None or not (theirs := _theirs(how, texts)):
        return dict(texts)
    keys = [key for key in (*how.system, _TEMPLATE, _IMAGES) if key in texts]
    ours = [f"{{{name}}} in {key}" for key in keys for name in sorted(how.ours) if f"{{{name}}}" in texts[key]]
    if ours:
        raise ConfigError(
            f"{path}: mixes two dialects: {theirs[0]} is the original's and {ours[0]} is ours; use one of them "
            "throughout (docs/prompts.md has both)"
        )
    own = {key: text for key, text in texts.items() if key not in keys}
    if _TEMPLATE in texts:
        # The original's template continues right after the notes, and our notes do not end with a line break.
        own[_TEMPLATE] = re.sub(r"\{notes\}(?!\n)", "{notes}\n", _filled(texts[_TEMPLATE], how.named))
    if how.system[0] in texts:
        own["system_base"] = "".join(_part(key, texts, how, path) for key in how.system)
    if _IMAGES in texts:
        own["images_suffix"] = texts[_IMAGES]
    return own


def original_name(role: str, placeholder: str) -> str:
    """The original's name for one of our placeholders; empty if the original has none."""
    how = _ROLES.get(role)
    for theirs, ours in how.named.items() if how else ():
        if ours == placeholder:
            return f"{{{theirs}}}"
    for key, names in how.ordered.items() if how else ():
        if placeholder in names:
            return f"{{}} of {key}"
    return ""


def _theirs(how: _Role, texts: Mapping[str, str]) -> list[str]:
    """The keys and placeholders in a file that only the original has."""
    template, base = texts.get(_TEMPLATE, ""), texts.get("system_base", "")
    named = [f"{{{name}}} in {_TEMPLATE}" for name in how.named if f"{{{name}}}" in template]
    ordered = ["{} in system_base"] if "system_base" in how.ordered and _IN_ORDER.search(base) else []
    return [*named, *ordered, *(key for key in (*how.system, _IMAGES) if key in texts and key != "system_base")]


def _part(key: str, texts: Mapping[str, str], how: _Role, path: Path) -> str:
    """One part of the system prompt; the original sends those that it does not fill as they are."""
    if key not in how.ordered:
        return key if key.startswith("{") else texts.get(key, "")
    names = how.ordered[key]
    places = itertools.count()
    text = _IN_ORDER.sub(lambda _: f"{{{next(places)}}}", texts.get(key, ""))
    if (found := next(places)) > len(names):
        fills = ", ".join(f"{{{name}}}" for name in names)
        raise ConfigError(
            f"{path}: {key} has {found} {{}}, and the original fills {len(names)} ({fills} in our dialect); "
            "remove the others, or double their braces"
        )
    return _filled(text, {str(place): name for place, name in enumerate(names)})


_IN_ORDER = lazy.regex(r"(?<!\{)\{\}(?!\})")
_FIELD = lazy.regex(r"\{(\w+)\}")


def _filled(text: str, names: Mapping[str, str]) -> str:
    try:
        parts = list(Formatter().parse(text))
        fits = all(field is None or (field in names and not (spec or how)) for _, field, spec, how in parts)
    except ValueError:
        fits = False
    if fits:
        return "".join(said + (f"{{{names[field]}}}" if field else "") for said, field, _, _ in parts)
    # The original could not fill this text, for example because it contains JSON: keep other braces as they are.
    return _FIELD.sub(lambda found: f"{{{names[found[1]]}}}" if found[1] in names else found[0], text)


SHIPPED = Path(__file__).parent.parent / "prompts"
_PLACEHOLDER = lazy.regex(r"\{([a-z_]+)\}")


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
        """The text of a bias; for an unknown bias, an error that names the nearest one and lists all."""
        if name is None:
            return ""
        if name not in self.biases:
            near = nearest(name, self.biases)
            raise ConfigError(
                f"{self.path.stem}_bias: {self.path.name} has no bias {name!r}; "
                f"{f'did you mean {near!r}? It has' if near else 'it has'} {', '.join(sorted(self.biases)) or 'none'}"
            )
        return self.biases[name]


def supported(bias: str | None, prompt: Prompt) -> str | None:
    """The bias, or none with a warning if the file does not have it: as in the original, it is then ignored."""
    try:
        prompt.bias(bias)
    except ConfigError as unknown:
        warnings.warn(f"{unknown}; the bias is ignored", stacklevel=3)
        return None
    return bias


@dataclass(frozen=True)
class Prompts:
    """The prompt files of a run, by name."""

    files: Mapping[str, Prompt]

    def __getitem__(self, name: str) -> Prompt:
        return self.files[name]

    @property
    def digests(self) -> dict[str, str]:
        return {name: prompt.digest for name, prompt in self.files.items()}


def user_prompts(named: str | None = None) -> Path | None:
    """The folder with the user's own prompts: the one given, else the user's `prompts` (`find_up`), if there is one."""
    if not named:
        return find_up("prompts", folder=True)
    folder = expanded(named)
    if not folder.is_dir():
        raise ConfigError(f"prompts_dir: {folder} is not a folder")
    return folder


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
    "said_nothing", "one_name", "confidence",
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
    "completion": {"user_prompt_template": ("beginning",)},
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
    _name_unknown(name, data, path)
    return Prompt(path, texts, biases, hashlib.sha256(path.read_bytes()).hexdigest()[:16])


def _name_unknown(name: str, data: Mapping[str, object], path: Path) -> None:
    """Warn of keys that nothing reads: those of neither the shipped file nor the original's."""
    shipped = SHIPPED / f"{name}.json"
    if path == shipped:
        return
    how = _ROLES.get(name)
    known = {*read_json(shipped), *((*how.system, _IMAGES, "biases") if how else ())}
    for key in sorted(data.keys() - known):
        meant = nearest(key, known)
        warnings.warn(f"{path}: nothing reads {key!r}{f'; did you mean {meant!r}?' if meant else ''}", stacklevel=1)


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
