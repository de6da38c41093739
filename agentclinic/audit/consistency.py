"""Whether a reply contradicts an earlier one of the same encounter; precise rather than complete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from agentclinic.audit.model import AuditedReply, Departure, Kind
from agentclinic.cases.matcher import asked_of_measurement
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.cases.values import Measured, measured_in
from agentclinic.results.turn import Provenance
from agentclinic.vocabulary.denial import answers_no, answers_yes, clauses
from agentclinic.vocabulary.lexicon import complaints
from agentclinic.vocabulary.text import content_words, fold, sentences

COMPLAINTS = frozenset(
    {"suicidality", "hallucination", "seizure", "blood in urine", "painful urination", "hematemesis", "diarrhea",
     "constipation", "nausea", "vomiting", "heartburn", "jaundice", "hemoptysis", "cough", "wheeze", "breathlessness",
     "palpitations", "sore throat", "night sweats", "fever", "chills", "fatigue", "neck stiffness", "headache",
     "vertigo", "tremor", "nosebleed", "vaginal discharge"}
)  # fmt: skip
"""Complaints that a patient either has or does not have, wherever in the body."""
# "No fever now" does not contradict "I had a fever last week", and "not much pain" does not deny pain.
_LIMITED = re.compile(
    r"\b(?:now|today|currently|at the moment|right now|any ?more|longer|yet|last|ago|before|used to|previous\w*|first"
    r"|initially|at first|earlier|since|until|sometimes|occasional\w*|at times|when|while|whenever|if|unless|during"
    r"|after|with|only|except|apart|besides|other than|much|many|very|severe|bad|major|significant|real|really|high"
    r"|sure|think|maybe|might|could|worse|better|improv\w*|chang\w*|new|usual\w*|always|every|all the time|history"
    r"|family|mother|father|brother|sister|son|daughter|wife|husband|never had|past|recent\w*|particular\w*|specific\w*"
    r"|because|due|like|feel like|caused?|night|morning|a bit|little|slight\w*|mild\w*|enough|medic\w*|as)\b",
    re.IGNORECASE,
)
_PLAIN_QUESTION = re.compile(
    r"^\W*(?:and |so |okay,? |ok,? )?(?:any|do you have|have you (?:had|noticed|experienced)|are you having"
    r"|is there|did you have|have you been having)(?: any| a)?\s+(?P<what>[\w\s,/-]{3,60})\?*\s*$",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"(?:^|[.;:]|\bRESULTS:)\s*(?P<what>[^.;:]{2,80}?)(?: is| was| are| were)?"
    r" (?:not available|unavailable|not done|not performed|has not been (?:done|performed))\b",
    re.IGNORECASE,
)
_LINE = re.compile(r"[;\n]|\.\s|\s-\s|,\s(?=[A-Z][\w ]{2,30}:)")


def self_contradictions(reply: AuditedReply, case: Case) -> Iterator[Departure]:
    """Find where a reply contradicts an earlier one of the same role; each contradiction is listed once."""
    before = [said for said in reply.earlier if said.role == reply.role]
    if not before:
        return
    if reply.role == "patient":
        yield from _complaints(reply, before)
    else:
        yield from _values(reply, before, case)
        yield from _availability(reply, before, case)


def _complaints(reply: AuditedReply, before: list[AuditedReply]) -> Iterator[Departure]:
    affirmed, denied = stated(reply.asked, reply.text)
    for said in before:
        other, not_other = stated(said.asked, said.text)
        for name in sorted((affirmed & not_other) | (denied & other)):
            now, then = ("affirmed", "denied") if name in affirmed else ("denied", "affirmed")
            why = f"{name}: {now} here and {then} in turn {said.turn}"
            yield Departure(kind=Kind.SELF_CONTRADICTED, words=reply.text, why=why)


@lru_cache(maxsize=16384)
def stated(asked: str, text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The complaints that a reply plainly affirms and those it plainly denies, without those of which it does both."""
    affirmed: set[str] = set()
    denied: set[str] = set()
    for sentence in sentences(text):
        limited = _LIMITED.search(sentence)
        for clause in clauses(sentence):
            marks = [clause.denies(place) for place in range(len(clause.words))]
            for negated, into in ((False, affirmed), (True, denied)):
                kept = (w if mark is negated else "." for w, mark in zip(clause.words, marks, strict=True))
                # A qualified denial denies nothing. A qualified complaint still counts, so that it can cancel a denial.
                if not (negated and limited):
                    into |= complaints(" ".join(kept)) & COMPLAINTS
            if limited and not any(marks):
                denied |= complaints(" ".join(clause.words)) & COMPLAINTS
    question = _PLAIN_QUESTION.match(asked)
    if question and not _LIMITED.search(asked):
        named = complaints(question["what"]) & COMPLAINTS
        if answers_no(text) and not _LIMITED.search(text):
            denied |= named
        elif answers_yes(text) and len(named) == 1 and " or " not in asked and "," not in asked:
            affirmed |= named
    return frozenset(affirmed - denied), frozenset(denied - affirmed)


def _values(reply: AuditedReply, before: list[AuditedReply], case: Case) -> Iterator[Departure]:
    """The same quantity with a different value, unless the chart has both."""
    charted = {(value.analyte.name, value.value) for value in measured_in(case.exam_facts) if value.exact}
    now = _measured(reply.text)
    for said in before:
        for name, value in now.items():
            other = _measured(said.text).get(name)
            if other is None or abs(value.value - other.value) <= 0.01 * abs(other.value):
                continue
            if {(name, value.value), (name, other.value)} <= charted:
                continue
            why = f"{name}: {value.text.strip()} here and {other.text.strip()} in turn {said.turn}"
            yield Departure(kind=Kind.SELF_CONTRADICTED, words=value.text, why=why)


@lru_cache(maxsize=4096)
def _measured(report: str) -> dict[str, Measured]:
    """The first exact value of each analyte in a report."""
    lines = (line.rpartition(":") for line in _LINE.split(report.removeprefix("RESULTS:")))
    facts = [Fact(str(n), Section.TESTS, (head.rpartition(":")[2].strip(" *-"),), text.strip(" *."))
             for n, (head, _, text) in enumerate(lines) if head.strip()]  # fmt: skip
    found: dict[str, Measured] = {}
    for value in measured_in(facts):
        if value.exact:
            found.setdefault(value.analyte.name, value)
    return found


def _availability(reply: AuditedReply, before: list[AuditedReply], case: Case) -> Iterator[Departure]:
    """A test that one reply reports and another calls unavailable, under the same name."""
    for said in before:
        for missing, other in ((reply, said), (said, reply)):
            reported = {content_words(head): fact for fact in _reported(other, case) for head in fact.heads}
            both = [reported[content_words(name)] for name in _missing(missing) if content_words(name) in reported]
            if both:
                why = f"reported in one of turns {said.turn} and {reply.turn}, not available in the other"
                yield Departure(kind=Kind.SELF_CONTRADICTED, words=reply.text, path=both[0].path, why=why)
                return


def _missing(reply: AuditedReply) -> list[str]:
    if reply.disclosures:
        return [d.topic for d in reply.disclosures if d.provenance is Provenance.UNAVAILABLE]
    return [match["what"] for match in _MISSING.finditer(reply.text)]


def _reported(reply: AuditedReply, case: Case) -> list[Fact]:
    if reply.disclosures:
        return [fact for fact in case.exam_facts if fact.path in reply.chosen]
    said = fold(reply.text)
    ordered = (fact for item in asked_of_measurement(reply.asked, case.exam_facts) for fact in item.facts)
    return [fact for fact in ordered if fold(fact.text).strip(" .") in said]
