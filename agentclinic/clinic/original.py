"""Prompt files in the original's dialect, translated into ours, so that no other module has to know both dialects."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter

from agentclinic.errors import ConfigError


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
        frozenset({"max_infs", "infs", "door", "objective", "images", "no_tests", "bias"})
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
    """What the original's files have for one of our placeholders; empty if it is only ours."""
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


_IN_ORDER = re.compile(r"(?<!\{)\{\}(?!\})")
_FIELD = re.compile(r"\{(\w+)\}")


def _filled(text: str, names: Mapping[str, str]) -> str:
    try:
        parts = list(Formatter().parse(text))
        fits = all(field is None or (field in names and not (spec or how)) for _, field, spec, how in parts)
    except ValueError:
        fits = False
    if fits:
        return "".join(said + (f"{{{names[field]}}}" if field else "") for said, field, _, _ in parts)
    # The original could not fill this text, for example because of JSON in it: keep braces that are no placeholder.
    return _FIELD.sub(lambda found: f"{{{names[found[1]]}}}" if found[1] in names else found[0], text)
