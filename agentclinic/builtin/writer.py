"""The builtin writer: sorts the record's own words into the sections of a case, and adds nothing."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.cases.story import WriterPayload, WrittenStory
from agentclinic.models.base import Reply
from agentclinic.results.turn import NO_TOKENS

# The headings of notes, and the section each belongs to.
_PARTS = {
    "chief complaint": "complaint",
    "history of present illness": "history",
    "past medical history": "past",
    "past surgical history": "past",
    "social history": "social",
    "family history": "family",
}


def write(payload: WriterPayload) -> Reply:
    triage = payload.history_source == "triage"
    parts: dict[str, list[str]] = {}
    for entry in payload.story if not triage else ():
        heading, colon, text = entry.partition(":")
        part = _PARTS.get(heading.strip().lower()) if colon else None
        parts.setdefault(part or "history", []).append(text.strip() if part else entry)
    complaints = list(payload.story) if triage else parts.get("complaint", [])

    def prose(part: str) -> str:
        return " ".join(_sentence(text) for text in parts.get(part, ()))

    story = WrittenStory(
        objective=_objective(complaints, payload.arrival),
        history=prose("history"),
        primary_symptom=complaints[0].rstrip(".") if complaints else "",
        secondary_symptoms=[text.rstrip(".") for text in complaints[1:]],
        past_medical_history=_join("On record from earlier: ", [*parts.get("past", ()), *payload.past]),
        medications=_join("Takes ", payload.drugs),
        social_history=prose("social"),
        family_history=prose("family"),
        review_of_systems="",
    )
    return Reply(story.model_dump_json(), parsed=story, usage=NO_TOKENS)


def _objective(complaints: Sequence[str], arrival: str) -> str:
    if complaints:
        return f"Assess and diagnose the patient presenting with {complaints[0].rstrip('.').lower()}."
    return f"Assess and diagnose the patient{f', who {arrival}' if arrival else ''}."


def _join(before: str, items: Sequence[str]) -> str:
    return f"{before}{'; '.join(item.rstrip('.') for item in items)}." if items else ""


def _sentence(text: str) -> str:
    text = text.strip()
    text = f"{text[:1].upper()}{text[1:]}"
    return text if not text or text[-1] in ".!?" else f"{text}."
