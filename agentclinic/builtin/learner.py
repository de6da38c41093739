"""The builtin learner: experiences from the difference between what was asked and what the chart held."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from agentclinic.builtin.beliefs import Beliefs, Floats
from agentclinic.builtin.doctor import ranked, think
from agentclinic.cases.model import Door, age_in_years, sex
from agentclinic.clinic.findings import Evidence, gather
from agentclinic.memory.experience import MOST, KnownExperience, LearnerPayload, Written
from agentclinic.models.base import Reply
from agentclinic.results.turn import NO_TOKENS
from agentclinic.vocabulary.base import Finding, knowledge

_SHOWN = 5
"""Findings in an observation: enough to recognize the pattern, few enough that another patient can have them."""
_TELLING = 0.5
"""Natural-log likelihood ratio, truth against the doctor's belief: less would not have changed its mind."""


def learn(payload: LearnerPayload) -> Reply:
    """What the doctor should have asked or ordered: findings that the chart held, the most telling for the truth first.

    Only what was present: that a chart denies something is seldom worth a question to the next patient.
    """
    mind, seen, posterior = think(payload.door, payload.exchanges)
    held = gather(payload.door, payload.chart)
    missed = [finding for finding, present in held.items() if present and finding not in seen]
    gain = _gains(mind, posterior, payload, missed)
    observation = _observation(payload.door, seen)
    experiences: dict[str, KnownExperience] = {}
    for finding in sorted(missed, key=lambda each: (-gain[each], each)):
        if gain[finding] >= _TELLING and observation:
            experience = _experience(knowledge().findings[finding], observation)
            experiences.setdefault(experience.id, experience)
    written = Written(experiences=list(experiences.values())[:MOST])
    return Reply(written.model_dump_json(), parsed=written, usage=NO_TOKENS)


def _gains(mind: Beliefs, posterior: Floats, payload: LearnerPayload, missed: list[str]) -> dict[str, float]:
    """How far each finding would have moved the doctor from its answer to the truth, as a log likelihood ratio.

    A truth that is not in the knowledge base is represented by "other".
    """
    rows = {name: row for row, name in enumerate(mind.hypotheses)}
    truth = mind.known.disease_named(payload.truth)
    said = mind.known.disease_named(payload.diagnosis) or ranked(mind, posterior)[0][0]
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
