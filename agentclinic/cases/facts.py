"""Split a chart into single statements, each with its path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentclinic import lazy
from agentclinic.cases.model import JSON, Fact, Section
from agentclinic.vocabulary.denial import read_denial, split_statements
from agentclinic.vocabulary.text import fold, sentences, tidy

# What charts write when they have nothing to say: not a fact.
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


def patient_facts(chart: JSON, root: str) -> tuple[Fact, ...]:
    return tuple(chart_facts(chart, root))


def exam_facts(chart: JSON, root: str, section: Section) -> tuple[Fact, ...]:
    return tuple(chart_facts(chart, root, section))


def prose_facts(text: str, root: str, section: Section) -> tuple[Fact, ...]:
    return tuple(told_in_prose(text, root, section))


def chart_facts(chart: JSON, root: str, section: Section | None = None) -> Iterator[Fact]:
    """The statements of a chart, one by one: those of a patient, or of one section."""
    return _walk(chart, root, (), section)


def told_in_prose(text: str, root: str, section: Section) -> Iterator[Fact]:
    """The statements of running text; a leading "Name:" becomes the heading of its statement."""
    plain = _LEAD_IN.sub("", tidy(text)).replace("**", "")
    lines = [part.strip() for part in _BULLET.split(plain) if part.strip()]
    for index, part in enumerate(sentence for line in lines for sentence in sentences(line)):
        if _STAGE_DIRECTION.search(part):
            continue
        head, body = _split_head(part) if section in (Section.EXAMINATION, Section.TESTS) else ("", part)
        yield from _statements(body, f"{root}#{index}", (head,) if head else (), section, split=False)


def chart_text(facts: Iterable[Fact]) -> str:
    """A chart as text for the judge: one statement per line, each after its heading."""
    return "\n".join([f"{fact.heads[-1]}. {fact.text}" if fact.heads else fact.text for fact in facts])


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
    parts = [part for s in sentences(text) for part in split_statements(s)] if split else [text.strip()]
    for index, sentence in enumerate(parts):
        place = f"{path}#{index}" if len(parts) > 1 else path
        denial = read_denial(sentence) if split else None
        if denial and denial.items:
            for number, item in enumerate(denial.items):
                at = f"{place}.{number}" if len(denial.items) > 1 else place
                yield Fact(at, section, heads, item, denied=True)
        else:
            yield Fact(place, section, heads, sentence, denied=bool(denial and denial.throughout))


def patient_section(head: str) -> Section:
    """Which section of a patient's script a key belongs to; an unknown key is history."""
    folded = fold(head)
    return next((section for word, section in _PATIENT_SECTIONS if word in folded), Section.HISTORY)


def readable(key: str) -> str:
    return key.replace("_", " ").strip()


# Prose scripts also instruct the actor: "You are not aware of the biopsy's findings".
_STAGE_DIRECTION = lazy.regex(
    r":$|\b(?:not|n't|n’t|unaware|without)\b[^.]{0,300}\b(?:aware|know|seen|informed|told|knowledge|access|reviewed)\b"
    r"|\b(?:aware|know|seen|informed|told)\b[^.]{0,300}\b(?:diagnos|test results|findings|readings)"
    r"|\bprovided text\b|\bin the text\b"
    r"|\bdoes not (?:contain|provide|include) (?:any )?(?:specific )?(?:test|instrument)"
    r"|\bunaware of\b|\bpatient actor\b[^.]{0,300}:|\bcase report\b",
    re.IGNORECASE,
)
_BULLET = lazy.regex(r"(?:^|\s)(?:\d{1,2}[.)]\s+(?=[A-Z])|[-•*]\s+(?=[A-Z]))")
_LEAD_IN = lazy.regex(r"^\s*(?:for )?(?:the |your role as a )?patient(?: actor)?\s*:\s*", re.IGNORECASE)


def _split_head(part: str) -> tuple[str, str]:
    head, colon, body = part.partition(":")
    # With a longer head, it is a sentence with a colon in it, not the name of a test.
    if colon and body.strip() and len(head.split()) <= 6:
        return head.strip(), body.strip()
    return "", part
