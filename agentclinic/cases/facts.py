"""Atomic facts: a chart taken apart into single statements, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentclinic.cases.model import JSON, Fact, Section
from agentclinic.knowledge.text import fold, sentences

# What charts write where they have nothing to say: silence, not a fact.
_SILENCE = frozenset(
    {"", "n a", "na", "not provided", "not available", "not performed", "not done", "unknown", "not specified",
     "not applicable", "not recorded", "not reported", "not mentioned", "pending"}
)  # fmt: skip

_PATIENT_SECTIONS = (
    ("demographic", Section.DEMOGRAPHICS),
    ("family", Section.FAMILY),
    ("social", Section.SOCIAL),
    ("medication", Section.DRUGS),
    ("drug", Section.DRUGS),
    ("allerg", Section.ALLERGIES),
    ("past", Section.PAST),
    ("review", Section.REVIEW),
    ("symptom", Section.SYMPTOMS),
)
_DENIAL = re.compile(
    r"^(?:(?:the )?patient |she |he |they |mother |father |parents? )?"
    r"(?P<verb>denies|denied|deny|negative for|no history of|no|without)(?: (?:any|experiencing|having))?\s+"
    r"(?P<list>.+?)[.;]?$",
    re.IGNORECASE,
)
_LIST = re.compile(r",\s*(?:or|and|nor)\s+|,\s*|\s+(?:or|nor)\s+")
_LAST_AND = re.compile(r"\s+and\s+(?=[^,]*$)")
# "Denies cough and fever; reports a rash" says two things.
_CLAUSES = re.compile(
    r";\s+(?=(?:but\s+)?(?:reports?|denies|no|endorses|admits|notes|positive|negative)\b)", re.IGNORECASE
)
# Longer parts are clauses rather than items of a list, and cutting there would lose their meaning.
_LONGEST_ITEM = 5


def patient_facts(chart: JSON, root: str) -> tuple[Fact, ...]:
    """The statements of a patient's script."""
    return tuple(_walk(chart, root, (), None))


def exam_facts(chart: JSON, root: str, section: Section) -> tuple[Fact, ...]:
    """The statements of examination findings or test results."""
    return tuple(_walk(chart, root, (), section))


def prose_facts(text: str, root: str, section: Section) -> tuple[Fact, ...]:
    """The statements of running text; a leading "Name:" becomes the statement's head."""
    facts: list[Fact] = []
    for index, part in enumerate(_prose_parts(text)):
        if _STAGE_DIRECTION.search(part):
            continue
        head, body = _split_head(part) if section in (Section.EXAMINATION, Section.TESTS) else ("", part)
        facts.extend(_statements(body, f"{root}#{index}", (head,) if head else (), section, split=False))
    return tuple(facts)


def _walk(value: JSON, path: str, heads: tuple[str, ...], section: Section | None) -> Iterator[Fact]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _walk(child, f"{path}/{key}", (*heads, readable(key)), section)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _walk(child, f"{path}[{index}]", heads, section)
    elif value is not None:
        place = section or patient_section(heads[0] if heads else "")
        if section and heads and "vital sign" in fold(heads[0]):
            place = Section.VITALS
        yield from _statements(str(value), path, heads, place, split=section is None)


def _statements(text: str, path: str, heads: tuple[str, ...], section: Section, *, split: bool) -> Iterator[Fact]:
    if fold(text).strip(" .") in _SILENCE:
        return
    parts = [part for s in sentences(text) for part in _CLAUSES.split(s)] if split else [text.strip()]
    for index, sentence in enumerate(parts):
        place = f"{path}#{index}" if len(parts) > 1 else path
        denial = _DENIAL.match(sentence) if split else None
        items = _items(denial["list"]) if denial else []
        if denial and _is_list(items):
            verb = "No" if denial["verb"].lower().startswith("no") else "Denies"
            for number, item in enumerate(items):
                at = f"{place}.{number}" if len(items) > 1 else place
                yield Fact(at, section, heads, f"{verb} {item.strip().rstrip('.')}", denied=True)
        else:
            yield Fact(place, section, heads, sentence, denied=denial is not None)


def _items(text: str) -> list[str]:
    items = _LIST.split(text)
    # Only after a comma is the last "and" surely one of a list: "nausea and vomiting" belongs together.
    return [*items[:-1], *_LAST_AND.split(items[-1])] if len(items) > 1 else items


def _is_list(items: list[str]) -> bool:
    # "No significant past medical or psychiatric history" is one statement: its items share a last word.
    shared_end = len(items) > 1 and items[-1].lower().rstrip(".").endswith("history")
    return not shared_end and all(0 < len(item.split()) <= _LONGEST_ITEM for item in items)


def patient_section(head: str) -> Section:
    """Which section of a patient's script a key belongs to; what nobody knows is history."""
    folded = fold(head)
    return next((section for word, section in _PATIENT_SECTIONS if word in folded), Section.HISTORY)


def readable(key: str) -> str:
    """A chart's key as a person would write it."""
    return key.replace("_", " ").strip()


# Scripts in prose also tell the actor how to play: "You are not aware of the biopsy's findings".
_STAGE_DIRECTION = re.compile(
    r":$|\b(?:not|n't|n’t|unaware|without)\b[^.]*\b(?:aware|know|seen|informed|told|knowledge|access|reviewed)\b"
    r"|\b(?:aware|know|seen|informed|told)\b[^.]*\b(?:diagnos|test results|findings|readings)"
    r"|\bunaware of\b|\bpatient actor\b[^.]*:|\bcase report\b",
    re.IGNORECASE,
)
_BULLET = re.compile(r"(?:^|\s)(?:\d{1,2}[.)]\s+(?=[A-Z])|[-•*]\s+(?=[A-Z]))")


def _prose_parts(text: str) -> list[str]:
    lines = [part.strip() for part in _BULLET.split(text) if part.strip()]
    return [sentence for line in lines for sentence in sentences(line)]


def _split_head(part: str) -> tuple[str, str]:
    head, colon, body = part.partition(":")
    # A longer head is a sentence with a colon in it, not the name of a test.
    if colon and body.strip() and len(head.split()) <= 6:
        return head.strip(), body.strip()
    return "", part
