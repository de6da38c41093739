"""The patient's story: what a writer is told, how it is asked, and the script that comes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentclinic.clinic.payloads import WriterPayload, WrittenStory
from agentclinic.clinic.prompts import Prompt, fill, joined
from agentclinic.generate.privacy import REMOVED
from agentclinic.generate.source import SourceCase
from agentclinic.models.base import Message, Purpose, Request
from agentclinic.vocabulary.disease_names import Names
from agentclinic.vocabulary.text import sentences

NOT_ON_RECORD = "What the patient noticed before coming to hospital is not on record; symptoms are unknown."
"""The history of a case whose source has none: unknown, neither there nor denied."""
LABS_ONLY_OBJECTIVE = (
    "Assess the patient{arrival} and name the diagnosis. The history is not on record: rely on vital signs and tests."
)
_OLDEST = 89
"""Ages above are not told apart in the source (MIMIC-IV gives 91 for all of them), nor in a case."""

_ADULT = 18


@dataclass(frozen=True)
class Told:
    """What a writer may know of a source, and how much had to be kept from it."""

    payload: WriterPayload
    withheld: int
    """Sentences and entries left out because they name the diagnosis."""


def told(source: SourceCase, names: Names) -> Told:
    """The source without its diagnosis: what names it is left out, entry by entry, sentence by sentence."""
    kept: dict[str, tuple[str, ...]] = {}
    withheld = 0
    for part, past in (("story", False), ("past", True), ("drugs", True)):
        lines: list[str] = []
        for entry in getattr(source, part):
            plain = " ".join(REMOVED.sub("", entry).split())
            said = [plain] if past else sentences(plain)
            safe = [text for text in said if not _names(text, names, past=past)]
            withheld += len(said) - len(safe)
            if safe:
                lines.append(" ".join(safe))
        kept[part] = tuple(lines)
    arrival = source.arrival if not _names(source.arrival, names, past=False) else ""
    history: Literal["note", "triage", "codes", "none"] = source.history_source
    if history in ("note", "triage") and not kept["story"]:
        history = "codes"
    if history == "codes" and not any(kept.values()):
        history = "none"
    return Told(
        WriterPayload(history, source.age, source.sex, arrival, kept["story"], kept["past"], kept["drugs"]), withheld
    )


def _names(text: str, names: Names, *, past: bool) -> bool:
    return any(not (found.broad and past) for found in names.find(text))


def as_record(payload: WriterPayload) -> str:
    """What the writer is told, as text."""
    parts = {
        "Patient": demographics(payload.age, payload.sex),
        "Arrival": payload.arrival,
        "Present complaint, as written down": "\n".join(payload.story),
        "Earlier diagnoses": "\n".join(f"- {title}" for title in payload.past),
        "Drugs taken before": "\n".join(f"- {drug}" for drug in payload.drugs),
    }
    return "\n\n".join(f"{name}:\n{text}" for name, text in parts.items() if text)


def request(payload: WriterPayload, prompt: Prompt, rejected: Sequence[tuple[str, Sequence[str]]]) -> Request:
    """Ask for a story; `rejected` holds earlier answers with what was wrong with each."""
    rule = prompt.text("codes_only") if payload.history_source == "codes" else ""
    messages = [
        Message("system", joined(prompt.text("system_base"), rule)),
        Message("user", fill(prompt.text("user_prompt_template"), context=as_record(payload))),
    ]
    for answer, reasons in rejected:
        listed = "\n".join(f"- {reason}" for reason in reasons)
        messages.append(Message("assistant", answer))
        messages.append(Message("user", fill(prompt.text("retry", _RETRY), reasons=listed)))
    return Request(Purpose.WRITER, tuple(messages), schema=WrittenStory, payload=payload)


_RETRY = "Your last answer cannot be used:\n{reasons}\nWrite the whole object anew."


def demographics(age: int | None, sex: str) -> str:
    """Age and sex in the words of the public cases."""
    adult, child = {"male": ("man", "boy"), "female": ("woman", "girl")}.get(sex.lower(), ("patient", "child"))
    if age is None:
        return f"{sex.lower()} patient".strip()
    if age > _OLDEST:
        return f"{adult} older than {_OLDEST} years"
    if age == 0:
        return "infant" if child == "child" else f"infant {child}"
    return f"{age}-year-old {child if age < _ADULT else adult}"


def script(payload: WriterPayload, story: WrittenStory | None) -> dict[str, Any]:
    """The `Patient_Actor` part of a case; parts of which nothing is known are left out."""
    patient: dict[str, Any] = {"Demographics": demographics(payload.age, payload.sex)}
    if payload.history_source in ("codes", "none"):
        patient["History"] = joined_sentences(NOT_ON_RECORD, story.history if story else "")
    elif story and story.history.strip():
        patient["History"] = story.history.strip()
    if story is None:
        return patient
    symptoms: dict[str, Any] = {}
    if story.primary_symptom.strip():
        symptoms["Primary_Symptom"] = story.primary_symptom.strip()
    if any(symptom.strip() for symptom in story.secondary_symptoms):
        symptoms["Secondary_Symptoms"] = [s.strip() for s in story.secondary_symptoms if s.strip()]
    sections = {
        "Symptoms": symptoms,
        "Past_Medical_History": story.past_medical_history.strip(),
        "Medications": story.medications.strip(),
        "Social_History": story.social_history.strip(),
        "Family_History": story.family_history.strip(),
        "Review_of_Systems": story.review_of_systems.strip(),
    }
    return patient | {name: text for name, text in sections.items() if text}


def objective(payload: WriterPayload, story: WrittenStory | None) -> str:
    """What the doctor reads at the door."""
    if story is not None and story.objective.strip():
        return story.objective.strip()
    came = f", who {payload.arrival}," if payload.arrival else ""
    return LABS_ONLY_OBJECTIVE.format(arrival=came)


def joined_sentences(*parts: str) -> str:
    """Non-empty parts as running text."""
    return re.sub(r"\s+", " ", " ".join(part.strip() for part in parts if part.strip()))
