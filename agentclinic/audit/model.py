"""What the audit reads and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import BaseModel

from agentclinic.cases.completion import completed
from agentclinic.cases.matcher import asked_of_measurement, asked_of_patient
from agentclinic.cases.model import Case, Fact
from agentclinic.results.turn import Disclosure

Role = Literal["patient", "measurement"]
ROLES: tuple[Role, ...] = ("patient", "measurement")
Auditor = Literal["code", "reviewer"]


class Kind(StrEnum):
    """A way in which a reply departs from the chart, from the question or from an earlier reply."""

    INVENTED_NUMBER = "invented_number"
    """A number that is in neither the role's chart nor what was said before."""
    DISEASE_NAMED = "disease_named"
    """A disease that is in neither the role's chart nor what was said before."""
    DIAGNOSIS_REVEALED = "diagnosis_revealed"
    """The same, if the disease is the case's own diagnosis."""
    UNASKED = "unasked"
    """Something from a part of the chart that no question or order has asked for."""
    SELF_CONTRADICTED = "self_contradicted"
    """Contradicts an earlier reply of the same encounter."""
    INVENTED = "invented"
    """States something that is not in the chart."""
    CONTRADICTED = "contradicted"
    """Says the opposite of the chart, or another value, side or time."""
    OMITTED = "omitted"
    """Leaves out something that was asked for and is in the chart."""


_EITHER_ROLE = (Kind.INVENTED_NUMBER, Kind.DISEASE_NAMED, Kind.DIAGNOSIS_REVEALED, Kind.UNASKED)
JUDGED_BY_CODE: dict[Role, tuple[Kind, ...]] = {
    "patient": (*_EITHER_ROLE, Kind.CONTRADICTED),
    "measurement": (*_EITHER_ROLE, Kind.OMITTED),
}
"""What code can judge in some replies of a role."""
BY_CODE = (*_EITHER_ROLE, Kind.CONTRADICTED, Kind.OMITTED)
"""The rows of the table for code; what code cannot judge is not audited."""
BY_REVIEWER = (
    Kind.INVENTED, Kind.CONTRADICTED, Kind.OMITTED, Kind.UNASKED, Kind.DISEASE_NAMED, Kind.DIAGNOSIS_REVEALED,
    Kind.SELF_CONTRADICTED,
)  # fmt: skip
"""What a reviewer model is asked for."""


class Departure(BaseModel):
    """One departure, with everything a person needs to check it."""

    kind: Kind
    by: Auditor = "code"
    words: str
    """The words in question; for an omission, the statement of the chart."""
    path: str | None = None
    """The place in the chart that shows it."""
    why: str


@dataclass(frozen=True)
class AuditedReply:
    """A reply of the patient or the laboratory, with what it answers and what was said before."""

    role: Role
    asked: str
    """The doctor's question or order."""
    text: str
    earlier: tuple[AuditedReply, ...] = ()
    """All earlier replies of the encounter, of both roles."""
    disclosures: tuple[Disclosure, ...] = ()
    """Empty if the reply is free text."""
    suggested: tuple[str, ...] | None = None
    """What the matcher suggested when the reply was made; None if that was not recorded."""
    silent_symptom: str = "deny"
    missing_test: str = "unavailable"
    place: str = ""
    """Where the reply is, for people who read a file of reviews."""

    @property
    def chosen(self) -> frozenset[str]:
        """The paths of the facts that the reply discloses."""
        return frozenset(path for disclosure in self.disclosures for path in disclosure.paths)


class Audited(Protocol):
    """Anything with a reply and its case."""

    @property
    def reply(self) -> AuditedReply: ...

    @property
    def case(self) -> Case: ...


def facts_of(case: Case, role: Role) -> tuple[Fact, ...]:
    return case.patient_facts if role == "patient" else case.exam_facts


def known_to(reply: AuditedReply, case: Case) -> tuple[Fact, ...]:
    """The facts that a reply may use: its role's part of the chart, and the completed results that it reports."""
    charted = facts_of(case, reply.role)
    if reply.role == "patient" or reply.missing_test != "completed":
        return charted
    return (*charted, *(fact for fact in completed(case) if fact.path in reply.chosen))


def suggestions(reply: AuditedReply, case: Case) -> frozenset[str]:
    """The paths of the facts that answer the question or order, by our matcher."""
    if reply.suggested is not None:
        return frozenset(reply.suggested)
    facts = known_to(reply, case)
    topics = asked_of_patient if reply.role == "patient" else asked_of_measurement
    return frozenset(fact.path for topic in topics(reply.asked, facts) for fact in topic.facts)
