"""How the doctor got its information: what it asked for, which key facts it learned, and premature closure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from agentclinic.cases.matcher import Asked, asked_of_measurement, asked_of_patient
from agentclinic.cases.model import Fact, Section
from agentclinic.clinic.doctor import door_text
from agentclinic.results.record import Record
from agentclinic.results.turn import Turn, asked_and_answered
from agentclinic.results.utterance import ActionKind
from agentclinic.scoring.clusters import case_key, cluster_keys, joined
from agentclinic.scoring.stats import Estimate, paired_difference
from agentclinic.scoring.verdicts import decided, strict
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.denial import clauses
from agentclinic.vocabulary.text import STOP_WORDS, content_words, fold
from agentclinic.worlds.model import DEFER

NOT_RECORDED = "not recorded"
# --- what the doctor asked for and was told -------------------------------------------------------------------------


class Request(NamedTuple):
    """A doctor's utterance that asks for something, and the answer."""

    kind: ActionKind
    content: str
    reply: Turn | None
    """None if the encounter ended before the answer."""


def requests(record: Record) -> tuple[Request, ...] | None:
    """What the doctor asked for, in order; None if no transcript was kept."""
    if record.transcript is None:
        return None
    return tuple(
        Request(action.kind, action.content, reply) for _, action, reply in asked_and_answered(record.transcript)
    )


# 0.8: four of five content words shared. "Any fever or chills?" after "Fever, chills?" is a repeat; a question that
# adds something new to an earlier one of up to three words is not.
_SAME_WORDS = 0.8


def repeated(contents: Sequence[str]) -> int:
    """How many requests repeat an earlier one: equal when folded, or content words with a Jaccard index >= 0.8.

    Jaccard index: words in both ÷ words in either.
    """
    earlier: list[tuple[str, frozenset[str]]] = []
    count = 0
    for content in contents:
        now = fold(content).strip(" .?!:"), content_words(content)
        count += any(now[0] == then[0] or _jaccard(now[1], then[1]) >= _SAME_WORDS for then in earlier)
        earlier.append(now)
    return count


def _jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    either = left | right
    return len(left & right) / len(either) if either else 0.0


# --- key facts ------------------------------------------------------------------------------------------------------


class KeyFinding(NamedTuple):
    """Something that matters according to the case's author, and where in the chart or in what words it is."""

    paths: tuple[str, ...]
    """Chart paths; a path covers everything below it."""
    phrases: tuple[str, ...]
    role: str
    weight: float

    @property
    def discriminating(self) -> bool:
        """Whether it separates the diagnosis from its alternatives: a role like "discriminating" or "refuting"."""
        return self.role.startswith(("discriminat", "refut"))


_TOLD_BY = {
    "Patient_Actor": "patient",
    "patient_info": "patient",
    "Physical_Examination_Findings": "measurement",
    "Test_Results": "measurement",
    "physical_exams": "measurement",
}
"""Who reports what is below each root of a chart."""
_STEPS = re.compile(r"[/#\[\].]+")
AT_THE_DOOR = "Patient_Actor/Demographics"
"""Every doctor is told age and sex at the door."""


def key_findings(record: Record) -> tuple[KeyFinding, ...]:
    """The case's `Key_Findings`; unreadable entries are skipped."""
    return key_findings_in(record.annotations or {})


def key_findings_in(annotations: Mapping[str, Any]) -> tuple[KeyFinding, ...]:
    """The `Key_Findings` among a case's annotations; unreadable entries are skipped."""
    entries = annotations.get("Key_Findings")
    found = [_key_finding(entry) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return tuple(finding for finding in found if finding is not None)


def _key_finding(entry: dict[str, Any]) -> KeyFinding | None:
    named = entry.get("any_of")
    names = [name.strip() for name in named if isinstance(name, str)] if isinstance(named, list) else []
    paths = tuple(name for name in names if _root(name) in _TOLD_BY)
    phrases = tuple(name for name in names if _root(name) not in _TOLD_BY and content_words(name))
    weight = entry.get("weight", 1)
    counts = isinstance(weight, int | float) and not isinstance(weight, bool) and 0 < weight < math.inf
    if not (paths or phrases) or not counts:
        return None
    return KeyFinding(paths, phrases, fold(str(entry.get("role") or "")), float(weight))


def _root(path: str) -> str:
    return _STEPS.split(path, maxsplit=1)[0]


def below(path: str, place: str) -> bool:
    """Whether a chart path is that place or is below it."""
    return path.startswith(place) and (len(path) == len(place) or path[len(place)] in "/#[.")


def says(text: str, phrase: str) -> bool:
    """Whether each clause of a phrase has all its content words in one clause of the text, equally negated."""
    told, wanted = _marked(text), [part for part in _marked(phrase) if part]
    return bool(wanted) and all(any(part <= clause for clause in told) for part in wanted)


@lru_cache(maxsize=8192)
def _marked(text: str) -> tuple[frozenset[tuple[str, bool]], ...]:
    return tuple(
        frozenset(
            (word, clause.negated[place] or clause.denied_after(place + 1))
            for place, word in enumerate(clause.words)
            if word not in STOP_WORDS
        )
        for clause in clauses(text)
    )


class LearnedFrom(StrEnum):
    """How the doctor learned a key fact."""

    DOOR = "door"
    """Told before the first turn."""
    VOLUNTEERED = "volunteered"
    """Told by the patient in reply to an open question, or to a question about something else."""
    ASKED = "asked"
    """Told by the patient in reply to a question about it."""
    ORDERED = "ordered"
    """Reported by the laboratory."""


def discloses(record: Record, role: str, asked: Iterable[Request]) -> bool:
    """Whether a role states which facts it reveals; one that was never asked would have, unless it plays freely."""
    replies = [request.reply for request in asked if request.reply and request.reply.role == role]
    if not replies:
        grounded = (record.simulator or {}).get(role) in ("grounded", "voiced")
        return grounded or getattr(record, f"{role}_llm", None) == "builtin"
    return any(reply.disclosures for reply in replies)


def way_found(finding: KeyFinding, record: Record, asked: Sequence[Request]) -> LearnedFrom | None:
    """How the doctor first learned the finding; None if it never did.

    By path: a reply discloses it. By phrase: a reply says it (`says`); a bare "Yes" does not.
    """
    if any(below(path, AT_THE_DOOR) for path in finding.paths):
        return LearnedFrom.DOOR
    if record.door and any(says(door_text(record.door), phrase) for phrase in finding.phrases):
        return LearnedFrom.DOOR
    return next((way for request in asked if (way := _way(finding, request)) is not None), None)


def _way(finding: KeyFinding, request: Request) -> LearnedFrom | None:
    reply = request.reply
    if reply is None or reply.role not in ("patient", "measurement"):
        return None
    ordered = reply.role == "measurement"
    for part in reply.disclosures:
        if any(below(path, place) for path in part.paths for place in finding.paths):
            return LearnedFrom.ORDERED if ordered else _told_in_topic(request.content, part.topic)
    spoken = next((phrase for phrase in finding.phrases if says(reply.text, phrase)), None)
    if spoken is None:
        return None
    return LearnedFrom.ORDERED if ordered else _told_in_words(request.content, spoken)


def _told_in_topic(question: str, topic: str) -> LearnedFrom:
    topics = asked_of_patient(question, ())
    opening = any(t.kind is Asked.OPENING for t in topics)
    named = any(t.name == topic and t.kind is not Asked.OPENING for t in topics)
    return LearnedFrom.VOLUNTEERED if opening and not named else LearnedFrom.ASKED


def _told_in_words(question: str, phrase: str) -> LearnedFrom:
    """Asked, unless the question is open or is about symptoms other than the phrase's."""
    topics = asked_of_patient(question, ())
    if _findings(question) & _findings(phrase) or content_words(question) & content_words(phrase):
        return LearnedFrom.ASKED
    elsewhere = all(t.kind in (Asked.OPENING, Asked.SYMPTOM, Asked.RESULT) and t.name != "timing" for t in topics)
    return LearnedFrom.VOLUNTEERED if elsewhere else LearnedFrom.ASKED


def _findings(text: str) -> set[str]:
    return {mention.key for mention in knowledge().finding_terms.find(text)}


class Found(NamedTuple):
    """A key finding of a record and how the doctor learned it."""

    finding: KeyFinding
    way: LearnedFrom | None


def shown_chart(record: Record) -> bool:
    """Whether the doctor was shown the whole chart, and had nothing to find."""
    return record.doctor == "full_information"


def key_facts(record: Record, asked: Sequence[Request] | None = None) -> tuple[Found, ...] | None:
    """The key findings for which a record shows whether they were found.

    None without a transcript, or if the doctor was shown the chart.

    A phrase can be looked for in any reply, a path only if its role says what it discloses: a finding that has only
    paths is left out if a language model plays that role. `asked` saves reading the transcript again.
    """
    asked = requests(record) if asked is None else asked
    if asked is None or shown_chart(record):
        return None
    tells = {role: discloses(record, role, asked) for role in ("patient", "measurement")}
    found = []
    for finding in key_findings(record):
        paths = tuple(p for p in finding.paths if tells[_TOLD_BY[_root(p)]] or below(p, AT_THE_DOOR))
        if paths or finding.phrases:
            seen = finding._replace(paths=paths)
            found.append(Found(finding, way_found(seen, record, asked)))
    return tuple(found)


def recall(found: Sequence[Found]) -> float | None:
    """Weighted recall of one encounter: Σ weight of key findings found ÷ Σ weight of all that can be assessed.

    What was told at the door did not have to be found, and does not count.
    """
    sought = [entry for entry in found if entry.way is not LearnedFrom.DOOR]
    total = math.fsum(entry.finding.weight for entry in sought)
    return math.fsum(entry.finding.weight for entry in sought if entry.way) / total if total else None


# --- premature closure ----------------------------------------------------------------------------------------------


def premature_closure(record: Record, asked: Sequence[Request] | None = None) -> bool | None:
    """Committed, wrong, with turns left, and no discriminating finding requested; None if that cannot be known.

    - Committed and wrong: `diagnosed` and not right by the strict rule. Nothing else is a premature closure. Whether an
      answer that could not be read is one cannot be known.
    - With turns left: a doctor that used every turn did not stop early.
    - No discriminating finding requested: none of those of `decisive`.
    """
    if record.regret and record.regret.ending in (None, DEFER):
        return False  # in a solvable world, committed to no disease
    findings = decisive(record, asked)
    right, turns, limit = decided(record), record.num_turns, record.max_infs
    if findings is None or right is None or turns is None or limit is None:
        return None
    return record.status == "diagnosed" and not right and turns < limit and not any(sought for _, sought in findings)


def decisive(record: Record, asked: Sequence[Request] | None = None) -> list[tuple[KeyFinding, bool]] | None:
    """The discriminating findings that the doctor could obtain, and whether it requested them.

    - Discriminating: the key finding's role begins with "discriminat" or "refut".
    - Obtainable: it names a chart path (a phrase alone does not say where it could be found) and was not told at the
      door.
    - Requested: found in any way (`way_found`), or an order names the examination or test it belongs to, whatever
      the laboratory then said.
    - Known: for every path of the finding we can tell whether it was requested: its role says what it discloses, or it
      is under a heading of examinations or tests, to which orders can be matched.

    None if there is no such finding, no transcript, or if the doctor was shown the chart.
    """
    asked = requests(record) if asked is None else asked
    if asked is None or shown_chart(record):
        return None
    tells = {role: discloses(record, role, asked) for role in ("patient", "measurement")}
    orders = tuple(request.content for request in asked if request.kind == "test")
    found = []
    for finding in key_findings(record):
        if finding.discriminating and finding.paths and all(_decidable(path, tells) for path in finding.paths):
            way = way_found(finding, record, asked)
            if way is not LearnedFrom.DOOR:
                found.append((finding, way is not None or _ordered(finding.paths, orders)))
    return found or None


def _decidable(path: str, tells: dict[str, bool]) -> bool:
    role = _TOLD_BY[_root(path)]
    return tells[role] or below(path, AT_THE_DOOR) or (role == "measurement" and bool(_as_fact(path).heads))


def _ordered(paths: Sequence[str], orders: Sequence[str]) -> bool:
    facts = tuple(_as_fact(path) for path in paths if _TOLD_BY[_root(path)] == "measurement")
    return any(answer.facts for order in orders for answer in asked_of_measurement(order, facts)) if facts else False


@lru_cache(maxsize=8192)
def _as_fact(path: str) -> Fact:
    """A fact with the headings of a path, for the chart matcher; the record does not have its text."""
    root, *steps = path.split("/")
    heads = tuple(re.sub(r"[#\[].*", "", step).replace("_", " ").strip() for step in steps)
    section = Section.TESTS if root == "Test_Results" else Section.EXAMINATION
    vital = bool(heads) and "vital sign" in fold(heads[0])
    return Fact(path, Section.VITALS if vital else section, heads, "")


# --- against a doctor who was shown everything ----------------------------------------------------------------------


def gap_to_full_information(records: Iterable[Record], full: Iterable[Record]) -> Estimate:
    """What asking costs in accuracy: mean over cases of (strict accuracy shown everything - strict accuracy here).

    Cases are paired by `case_key`, repeats averaged within a case, missing data left out. An answer that could not be
    read counts as not right, as in the accuracy. A case in only one run is left out and counted in the note.
    """
    keys: dict[str, tuple[str, ...]] = {}
    ours, theirs = _accuracy_by_case(records, keys), _accuracy_by_case(full, keys)
    paired = [(case, *ours[case], *theirs[case]) for case in ours if case in theirs]
    if not paired:
        return Estimate(value=None, note="no case in both runs")
    clusters = joined(keys[case] for case, *_ in paired)
    changes = [
        (c, there * (1 - here), here * (1 - there)) for c, (_, here, _, there, _) in zip(clusters, paired, strict=True)
    ]
    plays = sum(min(one, other) for _, _, one, _, other in paired) / len(paired)
    alone = len(ours) + len(theirs) - 2 * len(paired)
    note = f"cases in one run only, left out: {alone}" if alone else None
    return paired_difference(changes, plays).estimate.model_copy(update={"n": len(paired), "note": note})


def _accuracy_by_case(records: Iterable[Record], keys: dict[str, tuple[str, ...]]) -> dict[str, tuple[float, int]]:
    """The share right and the verdicts of each case; adds to `keys` by which clusters are found."""
    verdicts: dict[str, list[bool]] = {}
    for record in records:
        if (right := strict(record)) is not None:
            verdicts.setdefault(case_key(record), []).append(right)
            keys.setdefault(case_key(record), cluster_keys(record))
    return {case: (sum(given) / len(given), len(given)) for case, given in verdicts.items()}
