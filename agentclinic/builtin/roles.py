"""The builtin patient, laboratory, judge, writer and learner, which use our matcher and fixed rules.

The writer sorts the record's own words into the sections of a case and adds nothing. The learner's experiences come
from the difference between what was asked and what the chart held.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from agentclinic.builtin.doctor import Thought, think
from agentclinic.cases.model import Door, WriterPayload, WrittenStory, age_in_years, sex
from agentclinic.clinic import answers, laboratory
from agentclinic.clinic.findings import Evidence, gather
from agentclinic.clinic.judge import by_code
from agentclinic.clinic.payloads import JudgePayload, LaboratoryPayload, PatientPayload
from agentclinic.memory.experience import MOST, KnownExperience, LearnerPayload, Written
from agentclinic.models.base import Reply
from agentclinic.results.turn import NO_TOKENS
from agentclinic.vocabulary.base import Finding, knowledge

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


_SHOWN = 5
"""Findings in an observation: enough to recognize the pattern, few enough that another patient can have them."""
_TELLING = 0.5
"""Natural-log likelihood ratio, truth against the doctor's belief: less would not have changed its mind."""


def learn(payload: LearnerPayload) -> Reply:
    """What the doctor should have asked or ordered: findings that the chart held, the most telling for the truth first.

    Only findings that were present: what one chart denies is seldom worth asking the next patient about.
    """
    thought = think(payload.door, payload.exchanges)
    seen = thought.evidence
    held = gather(payload.door, payload.chart)
    missed = [finding for finding, present in held.items() if present and finding not in seen]
    gain = _gains(thought, payload, missed)
    observation = _observation(payload.door, seen)
    experiences: dict[str, KnownExperience] = {}
    for finding in sorted(missed, key=lambda each: (-gain[each], each)):
        if gain[finding] >= _TELLING and observation:
            experience = _experience(knowledge().findings[finding], observation)
            experiences.setdefault(experience.id, experience)
    written = Written(experiences=list(experiences.values())[:MOST])
    return Reply(written.model_dump_json(), parsed=written, usage=NO_TOKENS)


def _gains(thought: Thought, payload: LearnerPayload, missed: list[str]) -> dict[str, float]:
    """How far each finding would have moved the doctor from its answer to the truth, as a log likelihood ratio.

    A truth that is not in the knowledge base is represented by "other".
    """
    mind, posterior = thought.mind, thought.posterior
    rows = {name: row for row, name in enumerate(mind.hypotheses)}
    truth = mind.known.disease_named(payload.truth)
    said = mind.known.disease_named(payload.diagnosis) or thought.leader
    right, wrong = rows[truth.id] if truth else len(rows) - 1, rows[said.id]
    if right == wrong:  # it was right: what would have made it surer
        rest = np.delete(posterior, right)
        against = np.delete(mind.likelihood, right, axis=0).T @ (rest / max(rest.sum(), 1e-12))
    else:
        against = mind.likelihood[wrong]
    places = [mind.column[finding] for finding in missed]
    ratios = np.log(mind.likelihood[right, places] / against[places])
    return dict(zip(missed, ratios.tolist(), strict=True))


def _observation(door: Door, seen: Evidence) -> str:
    """The patient and the findings that the doctor knew of, the rarest first; empty if there were none."""
    findings = knowledge().findings
    present = sorted((f for f, state in seen.items() if state), key=lambda each: (findings[each].leak, each))
    return ", ".join([*_person(door), *(findings[each].name for each in present[:_SHOWN])]) if present else ""


def _person(door: Door) -> Iterator[str]:
    age, gender = age_in_years(door.demographics), sex(door.demographics)
    band = None if age is None else "infant" if age < 2 else "child" if age < 13 else "adolescent" if age < 18 else None
    if band:
        yield band
    elif age is not None:
        yield f"{'older ' if age >= 65 else ''}{ {'male': 'man', 'female': 'woman'}.get(gender or '', 'adult') }"


def _experience(finding: Finding, observation: str) -> KnownExperience:
    if finding.order:
        test = knowledge().tests[finding.order].name
        return KnownExperience(
            observation=observation,
            suggestion=f"Order {test}: it can show {finding.name.lower()}, which was not looked for and would have "
            "changed the order of the possibilities.",
            kind="test",
            what=test,
            id=f"test:{finding.order}",
        )
    question = finding.ask or f"Do you have {finding.name}?"
    return KnownExperience(
        observation=observation,
        suggestion=f"Ask about {finding.name.lower()}, which was not asked about and would have changed the order of "
        "the possibilities.",
        kind="question",
        what=question,
        id=f"finding:{finding.id}",
    )


def answer(payload: PatientPayload) -> Reply:
    parts = answers.matched(payload)
    return Reply(answers.worded(parts), usage=NO_TOKENS, disclosures=tuple(part.disclosure for part in parts))


def report(payload: LaboratoryPayload) -> Reply:
    """Report each item ordered: from the chart, by a reviewed equivalent, or as missing."""
    text, disclosures = laboratory.results_line(laboratory.matched(payload), payload)
    return Reply(text, usage=NO_TOKENS, disclosures=disclosures)


def judge(payload: JudgePayload) -> Reply:
    """Yes, No or Unclear by the strict rule, with the relation and the reason."""
    verdict = by_code(payload)
    return Reply({True: "Yes", False: "No", None: "Unclear"}[verdict.correct], usage=NO_TOKENS, verdict=verdict)
