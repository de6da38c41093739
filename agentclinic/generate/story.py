"""The patient's story: what a writer is told, the request, and the script made from the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentclinic.cases.model import WITHOUT_SYMPTOMS, HistorySource, WriterPayload, WrittenStory
from agentclinic.clinic.prompts import Prompt, fill, joined
from agentclinic.generate.source import REMOVED, SourceCase, StorySetting
from agentclinic.models.base import Message, Purpose, Request
from agentclinic.vocabulary.disease_names import Names
from agentclinic.vocabulary.text import sentences

NOT_ON_RECORD = "What the patient noticed before coming to hospital is not on record; symptoms are unknown."
"""The history of a case whose source has none: unknown, neither present nor denied."""
LABS_ONLY_OBJECTIVE = (
    "Assess the patient{arrival} and name the diagnosis. The history is not on record: rely on vital signs and tests."
)
_OLDEST = 89
"""Older ages are not given: MIMIC-IV has 91 for all of them."""


@dataclass(frozen=True)
class Brief:
    """What a writer may know about a source."""

    payload: WriterPayload
    withheld: int
    """Sentences and entries left out because they name the diagnosis."""


def brief(source: SourceCase, names: Names, results: Sequence[str] = (), setting: StorySetting = "facts") -> Brief:
    """The source without its diagnosis: every sentence of the story, past title or drug that names it is left out.

    With the setting `model`, a source without symptoms also has its diagnosis, its other codes and its `results`: a
    story that leads to the diagnosis cannot be made up without them.
    """
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
    history: HistorySource = source.history_source
    if history in ("note", "triage") and not kept["story"]:
        history = "codes"
    if history == "codes" and not any(kept.values()):
        history = "none"
    payload = WriterPayload(history, source.age, source.sex, arrival, kept["story"], kept["past"], kept["drugs"])
    if setting == "model" and history in WITHOUT_SYMPTOMS:
        payload = replace(
            payload,
            history_source="model",
            diagnosis=source.truth.title,
            coded=source.coded,
            results=tuple(results),
        )
    return Brief(payload, withheld)


def _names(text: str, names: Names, *, past: bool) -> bool:
    return any(not (found.broad and past) for found in names.find(text))


def as_record(payload: WriterPayload) -> str:
    parts = {
        "Patient": demographics(payload.age, payload.sex),
        "Arrival": payload.arrival,
        "Present complaint, as written down": "\n".join(payload.story),
        "Earlier diagnoses": "\n".join(f"- {title}" for title in payload.past),
        "Drugs taken before": "\n".join(f"- {drug}" for drug in payload.drugs),
        "Diagnosis (secret)": payload.diagnosis,
        "Also coded for this stay": "\n".join(f"- {title}" for title in payload.coded),
        "Results, without normal ones": "\n".join(f"- {line}" for line in payload.results),
    }
    return "\n\n".join(f"{name}:\n{text}" for name, text in parts.items() if text)


def request(payload: WriterPayload, prompt: Prompt, rejected: Sequence[tuple[str, Sequence[str]]]) -> Request:
    """The request for a story; `rejected` has earlier answers and what was wrong with each."""
    base = "story_from_codes" if payload.history_source == "model" else "system_base"
    rule = prompt.text("codes_only") if payload.history_source == "codes" else ""
    messages = [
        Message("system", joined(prompt.text(base), rule)),
        Message("user", fill(prompt.text("user_prompt_template"), context=as_record(payload))),
    ]
    for answer, reasons in rejected:
        listed = "\n".join(f"- {reason}" for reason in reasons)
        messages += [Message("assistant", answer), Message("user", fill(prompt.text("retry"), reasons=listed))]
    return Request(Purpose.WRITER, tuple(messages), schema=WrittenStory, payload=payload)


def demographics(age: int | None, sex: str) -> str:
    adult, child = {"male": ("man", "boy"), "female": ("woman", "girl")}.get(sex.lower(), ("patient", "child"))
    if age is None:
        return f"{sex.lower()} patient".strip()
    if age > _OLDEST:
        return f"{adult} older than {_OLDEST} years"
    if age == 0:
        return "infant" if child == "child" else f"infant {child}"
    return f"{age}-year-old {child if age < 18 else adult}"


def script(payload: WriterPayload, story: WrittenStory | None) -> dict[str, Any]:
    patient: dict[str, Any] = {"Demographics": demographics(payload.age, payload.sex)}
    written = {name: _stripped(text) for name, text in story.model_dump().items()} if story else {}
    history = written.get("history", "")
    if payload.history_source in WITHOUT_SYMPTOMS:
        history = " ".join(f"{NOT_ON_RECORD} {history}".split())
    symptoms = {
        "Primary_Symptom": written.get("primary_symptom"),
        "Secondary_Symptoms": written.get("secondary_symptoms"),
    }
    sections = {
        "History": history,
        "Symptoms": {name: text for name, text in symptoms.items() if text},
        "Past_Medical_History": written.get("past_medical_history"),
        "Medications": written.get("medications"),
        "Social_History": written.get("social_history"),
        "Family_History": written.get("family_history"),
        "Review_of_Systems": written.get("review_of_systems"),
    }
    if payload.history_source == "model":
        # Small models write here even if nothing is on record ("No drugs are mentioned"): that is left out.
        on_record = {"Past_Medical_History": (*payload.past, *payload.coded), "Medications": payload.drugs}
        for name in ("Past_Medical_History", "Medications", "Social_History", "Family_History"):
            sections[name] = sections[name] if on_record.get(name) else ""
    return patient | {name: text for name, text in sections.items() if text}


def _stripped(value: str | list[str]) -> str | list[str]:
    if isinstance(value, str):
        return value.strip()
    return [text.strip() for text in value if text.strip()]


def objective(payload: WriterPayload, story: WrittenStory | None) -> str:
    if story is not None and story.objective.strip():
        return story.objective.strip()
    came = f", who {payload.arrival}," if payload.arrival else ""
    return LABS_ONLY_OBJECTIVE.format(arrival=came)
