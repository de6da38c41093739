"""A doctor who keeps asking: every fact of a patient, by its author's questions, until it is told exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from agentclinic.cases.model import Case, Fact
from agentclinic.clinic.answers import matched, payload_of, worded
from agentclinic.clinic.payloads import PatientTraits
from agentclinic.results.turn import Disclosure, Exchange
from agentclinic.vocabulary.jargon import mentions

CONFIDENTIAL = "Whatever you tell me is confidential. May we talk about it in private, just the two of us?"
_DENIES = re.compile(r"^(?:denies|no|not|never) ", re.IGNORECASE)
MOST_ATTEMPTS = 4
"""How often a question is put again before the next is tried: reluctant, played down, exact, and one more."""


@dataclass
class Interview:
    """A dialogue with the builtin patient of a case."""

    case: Case
    traits: PatientTraits
    exchanges: list[Exchange] = field(default_factory=list)
    told: set[str] = field(default_factory=set)

    @property
    def turns(self) -> int:
        return len(self.exchanges)

    def ask(self, question: str) -> tuple[Disclosure, ...]:
        parts = matched(payload_of(self.case, question, tuple(self.exchanges), of_patient=self.traits))
        disclosures = tuple(part.disclosure for part in parts)
        self.exchanges.append(Exchange("question", question, worded(parts), disclosures))
        self.told.update(path for part in disclosures for path in part.paths)
        return disclosures

    def insist(self, fact: Fact) -> bool:
        """Ask for a fact until it is told; False if no question brings it out."""
        for question in questions_about(fact):
            words = question
            for _ in range(MOST_ATTEMPTS):
                reply = self.ask(words)
                if fact.path in self.told:
                    return True
                if any(effect.reason.startswith("literacy") for part in reply for effect in part.withheld):
                    words = explained(question)
                elif not any(fact.path == e.path for part in reply for e in (*part.withheld, *part.vague)):
                    break  # it was not meant by this question
        return False


def explained(question: str) -> str:
    """A question with every term explained: "Any edema? By edema I mean swelling"."""
    known = {one.word.lower(): f"By {one.word} I mean {one.term.plain[0]}." for one in mentions(question)}
    return " ".join([question, *known.values()])


def questions_about(fact: Fact) -> Iterator[str]:
    """The author's questions, then the fact itself as a question, alone and under its heading."""
    yield from fact.asked
    yield f"{fact.text.rstrip('.')}?"
    if fact.denied:
        yield f"Do you have {_DENIES.sub('', fact.text.rstrip('.'))}?"
    heading = fact.heads[-1] if fact.heads else "story"
    yield f"Tell me about your {heading.lower()}: {fact.text.rstrip('.')}?"
    yield f"Tell me about your {heading.lower()}."
    yield from ["Is there anything else?"] * 3


def interviewed(case: Case, traits: PatientTraits) -> tuple[Interview, list[Fact]]:
    """The dialogue in which every fact is asked for, and the facts that never came out."""
    interview = Interview(case, traits)
    interview.ask(CONFIDENTIAL)
    missing = [fact for fact in case.patient_facts if fact.path not in interview.told and not interview.insist(fact)]
    return interview, missing
