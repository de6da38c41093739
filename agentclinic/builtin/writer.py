"""The builtin writer: puts the record's own words in their places, and adds nothing."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.clinic.payloads import WriterPayload, WrittenStory
from agentclinic.models.base import Reply
from agentclinic.results.turn import NO_TOKENS

# Headings that notes have, and the part of a story that each tells.
_PARTS = {
    "chief complaint": "complaint",
    "history of present illness": "history",
    "past medical history": "past",
    "past surgical history": "past",
    "social history": "social",
    "family history": "family",
}


def write(payload: WriterPayload) -> Reply:
    """Tell what is on record under the headings it stands under."""
    parts: dict[str, list[str]] = {}
    for entry in payload.story if payload.history_source != "triage" else ():
        heading, colon, text = entry.partition(":")
        part = _PARTS.get(heading.strip().lower()) if colon else None
        parts.setdefault(part or "history", []).append(text.strip() if part else entry)
    complaints = list(payload.story) if payload.history_source == "triage" else parts.get("complaint", [])
    past = [*parts.get("past", ()), *payload.past]
    story = WrittenStory(
        objective=_objective(complaints, payload.arrival),
        history=" ".join(_sentence(text) for text in parts.get("history", ())),
        primary_symptom=complaints[0].rstrip(".") if complaints else "",
        secondary_symptoms=[text.rstrip(".") for text in complaints[1:]],
        past_medical_history=_listed("On record from earlier: ", past),
        medications=_listed("Takes ", payload.drugs),
        social_history=" ".join(_sentence(text) for text in parts.get("social", ())),
        family_history=" ".join(_sentence(text) for text in parts.get("family", ())),
        review_of_systems="",
    )
    return Reply(story.model_dump_json(), parsed=story, usage=NO_TOKENS)


def _objective(complaints: Sequence[str], arrival: str) -> str:
    if complaints:
        return f"Assess and diagnose the patient presenting with {complaints[0].rstrip('.').lower()}."
    return f"Assess and diagnose the patient{f', who {arrival}' if arrival else ''}."


def _listed(before: str, items: Sequence[str]) -> str:
    return f"{before}{'; '.join(item.rstrip('.') for item in items)}." if items else ""


def _sentence(text: str) -> str:
    text = text.strip()
    text = f"{text[:1].upper()}{text[1:]}"
    return text if not text or text[-1] in ".!?" else f"{text}."
