"""How the doctor got its information: requests, key facts found, the course of the differential, early closure."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel

from agentclinic.cases.matcher import Asked, asked_of_measurement, asked_of_patient
from agentclinic.cases.model import Fact, Section
from agentclinic.results.differential import Differential, Source
from agentclinic.results.record import Record
from agentclinic.results.turn import Turn
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.sample import Cases, Sample
from agentclinic.scoring.verdicts import case_key, names_truth, strict
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.denial import clauses
from agentclinic.vocabulary.text import STOP_WORDS, content_words, fold

NOT_RECORDED = "not recorded"
NO_KEY_FACTS = "no key findings of which the records could tell whether they were found"
NO_DOOR = "the records do not hold what the doctor was told at the door: facts told there count as not found"

# --- what the doctor asked and was told -----------------------------------------------------------------------------


class Request(NamedTuple):
    """A doctor's utterance that asks for something, and the answer."""

    kind: Literal["question", "test", "images"]
    content: str
    reply: Turn | None
    """None when the encounter ended before anybody answered."""


def requests(record: Record) -> tuple[Request, ...] | None:
    """What the doctor asked for, in order; None when no transcript was kept."""
    if record.transcript is None:
        return None
    found = []
    for index, turn in enumerate(record.transcript):
        action = turn.action
        if action is None or action.kind == "diagnosis":
            continue
        after = record.transcript[index + 1 : index + 2]
        found.append(Request(action.kind, action.content, next((t for t in after if t.role != "doctor"), None)))
    return tuple(found)


# 0.8: four of five words of meaning shared. "Any fever or chills?" after "Fever, chills?" is a repeat; a question
# that adds a new thing to an old one of up to three words is not.
_SAME_WORDS = 0.8


def repeated(contents: Sequence[str]) -> int:
    """How many requests repeat an earlier one: equal when folded, or words of meaning with a Jaccard index >= 0.8.

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
    """Something the case's author holds to matter, and where or in what words it stands."""

    paths: tuple[str, ...]
    """Chart paths; one covers all that is below it."""
    phrases: tuple[str, ...]
    role: str
    weight: float

    @property
    def discriminating(self) -> bool:
        """Whether it speaks between the diagnosis and its alternatives: a role that begins so, or with "refuting"."""
        return self.role.startswith(("discriminat", "refut"))


_TOLD_BY = {
    "Patient_Actor": "patient",
    "patient_info": "patient",
    "Physical_Examination_Findings": "measurement",
    "Test_Results": "measurement",
    "physical_exams": "measurement",
}
"""The roots of charts, and who tells what is below them."""
_STEPS = re.compile(r"[/#\[\].]+")
# Any doctor is told age and sex at the door.
_AT_THE_DOOR = "Patient_Actor/Demographics"


def key_findings(record: Record) -> tuple[KeyFinding, ...]:
    """The case's `Key_Findings`; entries that cannot be read are passed over."""
    entries = (record.annotations or {}).get("Key_Findings")
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
    """Whether a chart path is that place or stands below it."""
    return path.startswith(place) and (len(path) == len(place) or path[len(place)] in "/#[.")


def says(text: str, phrase: str) -> bool:
    """Whether each clause of a phrase has all its words of meaning in one clause of the text, denied alike."""
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


class Way(StrEnum):
    """How a key fact came to the doctor."""

    DOOR = "door"
    """Told before the first word."""
    VOLUNTEERED = "volunteered"
    """Told by the patient in reply to an open question, or to a question about something else."""
    ASKED = "asked"
    """Told by the patient in reply to a question about it."""
    ORDERED = "ordered"
    """Reported by the laboratory."""


def door_text(record: Record) -> str | None:
    """What the doctor was told at the door; None where the record does not keep it."""
    return f"{record.door.demographics}. {record.door.objective}" if record.door else None


def discloses(record: Record, role: str, asked: Iterable[Request]) -> bool:
    """Whether a role says which facts of the chart it tells; a builtin one that was never asked would have."""
    replies = [request.reply for request in asked if request.reply and request.reply.role == role]
    if not replies:
        return getattr(record, f"{role}_llm", None) == "builtin"
    return any(reply.disclosures for reply in replies)


def way_found(finding: KeyFinding, record: Record, asked: Sequence[Request]) -> Way | None:
    """How the finding first came to the doctor; None when it did not.

    By path: a reply discloses it. By phrase: a reply says it (`says`); a bare "Yes" to a question says nothing.
    """
    if any(below(path, _AT_THE_DOOR) for path in finding.paths):
        return Way.DOOR
    door = door_text(record)
    if door and any(says(door, phrase) for phrase in finding.phrases):
        return Way.DOOR
    return next((way for request in asked if (way := _way(finding, request)) is not None), None)


def _way(finding: KeyFinding, request: Request) -> Way | None:
    reply = request.reply
    if reply is None or reply.role not in ("patient", "measurement"):
        return None
    ordered = reply.role == "measurement"
    for part in reply.disclosures:
        if any(below(path, place) for path in part.paths for place in finding.paths):
            return Way.ORDERED if ordered else _told_in_topic(request.content, part.topic)
    spoken = next((phrase for phrase in finding.phrases if says(reply.text, phrase)), None)
    if spoken is None:
        return None
    return Way.ORDERED if ordered else _told_in_words(request.content, spoken)


def _told_in_topic(question: str, topic: str) -> Way:
    topics = asked_of_patient(question, ())
    opening = any(t.kind is Asked.OPENING for t in topics)
    named = any(t.name == topic and t.kind is not Asked.OPENING for t in topics)
    return Way.VOLUNTEERED if opening and not named else Way.ASKED


def _told_in_words(question: str, phrase: str) -> Way:
    """Asked, unless the question is open or is about symptoms other than the phrase's."""
    topics = asked_of_patient(question, ())
    if _findings(question) & _findings(phrase) or content_words(question) & content_words(phrase):
        return Way.ASKED
    elsewhere = all(t.kind in (Asked.OPENING, Asked.SYMPTOM, Asked.RESULT) and t.name != "timing" for t in topics)
    return Way.VOLUNTEERED if elsewhere else Way.ASKED


def _findings(text: str) -> set[str]:
    return {mention.key for mention in knowledge().finding_terms.find(text)}


class Found(NamedTuple):
    """A key finding of a record and how it came."""

    finding: KeyFinding
    way: Way | None


def key_facts(record: Record, asked: Sequence[Request] | None = None) -> tuple[Found, ...] | None:
    """The key findings of which a record can tell whether they were found; None without a transcript.

    A phrase can be looked for in any reply, a path only where its role says what it discloses: a finding with paths
    alone is left out where a language model plays that role. `asked` spares reading the transcript again.
    """
    asked = requests(record) if asked is None else asked
    if asked is None:
        return None
    tells = {role: discloses(record, role, asked) for role in ("patient", "measurement")}
    found = []
    for finding in key_findings(record):
        paths = tuple(p for p in finding.paths if tells[_TOLD_BY[_root(p)]] or below(p, _AT_THE_DOOR))
        if paths or finding.phrases:
            seen = finding._replace(paths=paths)
            found.append(Found(finding, way_found(seen, record, asked)))
    return tuple(found)


def recall(found: Sequence[Found]) -> float | None:
    """Weighted recall of one encounter: Σ weight of key findings found ÷ Σ weight of all that can be assessed."""
    total = math.fsum(entry.finding.weight for entry in found)
    return math.fsum(entry.finding.weight for entry in found if entry.way) / total if total else None


# --- premature closure ----------------------------------------------------------------------------------------------


def premature_closure(record: Record, asked: Sequence[Request] | None = None) -> bool | None:
    """Committed, wrong, and an obtainable discriminating finding never requested; None when that cannot be known.

    - Committed and wrong: `diagnosed` and not right by the strict rule. Others are not premature closures.
    - Discriminating: the key finding's role begins with "discriminat" or "refut".
    - Obtainable: it names a chart path; an author's phrase alone does not say where it could be had.
    - Requested: found in any way (`way_found`), or an order names the examination or test it stands under, whatever
      the laboratory then said.
    - Known: there is a finding for each of whose paths it can be told whether it was requested: its role says what
      it discloses, or it stands under a heading of examinations or tests, to which orders can be matched.
    """
    asked = requests(record) if asked is None else asked
    right = strict(record)
    if asked is None or right is None:
        return None
    tells = {role: discloses(record, role, asked) for role in ("patient", "measurement")}
    wanted = [
        f for f in key_findings(record) if f.discriminating and f.paths and all(_decidable(p, tells) for p in f.paths)
    ]
    if not wanted:
        return None
    if record.status != "diagnosed" or right:
        return False
    orders = tuple(request.content for request in asked if request.kind == "test")
    return any(way_found(f, record, asked) is None and not _ordered(f.paths, orders) for f in wanted)


def _decidable(path: str, tells: dict[str, bool]) -> bool:
    role = _TOLD_BY[_root(path)]
    return tells[role] or below(path, _AT_THE_DOOR) or (role == "measurement" and bool(_as_fact(path).heads))


def _ordered(paths: Sequence[str], orders: Sequence[str]) -> bool:
    facts = tuple(_as_fact(path) for path in paths if _TOLD_BY[_root(path)] == "measurement")
    return any(answer.facts for order in orders for answer in asked_of_measurement(order, facts)) if facts else False


@lru_cache(maxsize=8192)
def _as_fact(path: str) -> Fact:
    """A fact with the headings of a path, for the chart matcher; the record does not hold its text."""
    root, *steps = path.split("/")
    heads = tuple(re.sub(r"[#\[].*", "", step).replace("_", " ").strip() for step in steps)
    section = Section.TESTS if root == "Test_Results" else Section.EXAMINATION
    vital = bool(heads) and "vital sign" in fold(heads[0])
    return Fact(path, Section.VITALS if vital else section, heads, "")


# --- the course of the differential ---------------------------------------------------------------------------------

# Ten hypotheses rounded to whole percents are off from 1 by at most 0.05; more is not a distribution.
_ROUNDING = 0.05


def entropy(differential: Differential) -> float | None:
    """-Σ p·log2 p in bits, with `other` as one class; None where the numbers are not a distribution.

    Where `other` is not stated, what the hypotheses leave of 1 is. Sums off by rounding are scaled to 1.
    """
    stated = [hypothesis.probability for hypothesis in differential.hypotheses]
    given = [p for p in stated if p is not None]
    if differential.source is Source.PLANNER_SCORE or len(given) < len(stated):
        return None
    other = differential.other
    given.append(max(0.0, 1 - math.fsum(given)) if other is None else other)
    total = math.fsum(given)
    if abs(total - 1) > _ROUNDING:
        return None
    return max(0.0, -math.fsum(p / total * math.log2(p / total) for p in given if p > 0))


class Course(NamedTuple):
    """How the truth fared in the differentials of one source."""

    appeared: int | None
    """Turn in which it was first listed; turn 1 is before any answer."""
    led: int | None
    """Turn in which it first stood at the top."""
    dropped: bool
    """It led once and does not lead in the last differential."""


def course(stated: Sequence[tuple[int, Differential]], record: Record) -> Course:
    """Follow the truth through differentials by turn."""
    true = {name: names_truth(name, record) for name in {h.diagnosis for _, d in stated for h in d.hypotheses}}
    listed = [turn for turn, d in stated if any(true[h.diagnosis] for h in d.hypotheses)]
    leading = [turn for turn, d in stated if d.hypotheses and true[d.hypotheses[0].diagnosis]]
    led = leading[0] if leading else None
    return Course(listed[0] if listed else None, led, led is not None and leading[-1] != stated[-1][0])


def differentials(record: Record) -> dict[str, list[tuple[int, Differential]]]:
    """The differentials of the transcript by source, each with its turn."""
    by_source: dict[str, list[tuple[int, Differential]]] = {}
    for turn in record.transcript or ():
        if turn.differential is not None:
            by_source.setdefault(turn.differential.source.value, []).append((turn.turn, turn.differential))
    return by_source


# --- the whole ------------------------------------------------------------------------------------------------------


class KeyFacts(BaseModel):
    """Key findings of the cases and how they were found; null where cases or records do not tell."""

    encounters: int = 0
    """With at least one key finding that can be assessed."""
    without: int = 0
    """Encounters of cases that name no key findings."""
    not_assessable: int = 0
    """Key findings of which the record cannot tell whether they were found: left out."""
    recall: Estimate
    """Mean over encounters of Σ weight found ÷ Σ weight."""
    by_way: dict[str, Proportion | None] = {}
    """Key findings that first came this way ÷ all that can be assessed; `door` null where not recorded."""
    yield_per_request: Estimate
    """Key findings told by patient or laboratory ÷ questions and tests: Σ over encounters ÷ Σ over encounters."""
    note: str | None = None


class DifferentialCourse(BaseModel):
    """The differentials of one source from turn to turn."""

    encounters: int = 0
    entropy_bits: dict[int, Estimate] = {}
    """Mean entropy by turn; an encounter that has ended, or a turn without a new differential, keeps the last value."""
    truth_appeared: Proportion
    """Encounters in which the truth was ever listed."""
    turn_appeared: Estimate
    """Mean first such turn, over those encounters."""
    truth_led: Proportion
    turn_led: Estimate
    truth_dropped: Proportion
    """Encounters in which the truth led once and does not in the end ÷ those in which it led."""


class Information(BaseModel):
    """How the doctor got its information; null, with a note, where the records do not tell."""

    encounters: int = 0
    """Records, without those cut short by a failure that was not the doctor's."""
    missing: int = 0
    """Those."""
    without_transcript: int = 0
    """Encounters of which only the turns are known."""
    turns: Estimate
    """Mean turns of the doctor."""
    questions: Estimate
    tests: Estimate
    """Mean orders; one may name several tests."""
    images: Estimate
    tokens: dict[str, Estimate] = {}
    """By role: mean input and output tokens, over the encounters that used it and know."""
    repeated_questions: Proportion
    """Questions that repeat an earlier one of the encounter ÷ questions."""
    repeated_tests: Proportion
    key_facts: KeyFacts
    differentials: dict[str, DifferentialCourse] = {}
    """By source, never pooled."""
    premature_closure: Proportion
    """Encounters that closed too early ÷ encounters where it can be known."""
    premature_of_wrong: Proportion
    """The same among the wrong diagnoses: how many of them stopped short of a finding that could have told."""


class _Facts:
    """Sums for `KeyFacts`."""

    def __init__(self) -> None:
        self.recall, self.yielded = Sample(0, 1), Sample(0)
        self.ways: Counter[Way] = Counter()
        self.encounters = self.without = self.not_assessable = self.assessed = self.doors = 0

    def add(self, case: int, record: Record, asked: Sequence[Request]) -> None:
        stated, found = key_findings(record), key_facts(record, asked) or ()
        self.without += not stated
        self.not_assessable += len(stated) - len(found)
        share = recall(found)
        if share is None:
            return
        self.encounters += 1
        self.assessed += len(found)
        self.doors += door_text(record) is not None
        self.ways.update(entry.way for entry in found if entry.way)
        self.recall.add(case, share)
        told = sum(entry.way not in (None, Way.DOOR) for entry in found)
        self.yielded.add(case, told, sum(request.kind != "images" for request in asked))

    def result(self, seed: int) -> KeyFacts:
        by_way: dict[str, Proportion | None] = {way.value: proportion(self.ways[way], self.assessed) for way in Way}
        if not self.doors and not self.ways[Way.DOOR]:
            by_way[Way.DOOR.value] = None
        return KeyFacts(
            encounters=self.encounters,
            without=self.without,
            not_assessable=self.not_assessable,
            recall=self.recall.estimate(seed),
            by_way=by_way if self.assessed else {},
            yield_per_request=self.yielded.estimate(seed),
            note=NO_KEY_FACTS if not self.encounters else NO_DOOR if self.doors < self.encounters else None,
        )


class _Courses:
    """Sums for `DifferentialCourse`."""

    def __init__(self) -> None:
        self.bits: array[float] = array("d")
        """Entropies by turn, one encounter after another."""
        self.cases, self.lengths = array("q"), array("q")
        """The case of each of those encounters, and how many turns it has."""
        self.appeared, self.led = Sample(1), Sample(1)
        self.encounters = self.dropped = 0

    def add(self, case: int, stated: Sequence[tuple[int, Differential]], record: Record) -> None:
        values = _by_turn(stated)
        if values:
            self.bits.extend(values)
            self.cases.append(case)
            self.lengths.append(len(values))
        if not record.ground_truth:
            return
        self.encounters += 1
        seen = course(stated, record)
        if seen.appeared is not None:
            self.appeared.add(case, seen.appeared)
        if seen.led is not None:
            self.led.add(case, seen.led)
        self.dropped += seen.dropped

    def result(self, seed: int) -> DifferentialCourse:
        return DifferentialCourse(
            encounters=self.encounters,
            entropy_bits={turn: sample.estimate(seed) for turn, sample in self._entropies()},
            truth_appeared=proportion(self.appeared.n, self.encounters),
            turn_appeared=self.appeared.estimate(seed),
            truth_led=proportion(self.led.n, self.encounters),
            turn_led=self.led.estimate(seed),
            truth_dropped=proportion(self.dropped, self.led.n),
        )

    def _entropies(self) -> Iterator[tuple[int, Sample]]:
        cases, lengths, bits = np.array(self.cases), np.array(self.lengths), np.array(self.bits)
        starts = np.cumsum(lengths) - lengths
        for turn in range(1, max(self.lengths, default=0) + 1):
            values = bits[starts + np.minimum(turn, lengths) - 1]
            known = ~np.isnan(values)
            sample = Sample(0)
            sample.add_all(cases[known], values[known])
            yield turn, sample


def _by_turn(stated: Sequence[tuple[int, Differential]]) -> array[float]:
    """Entropy of each turn from 1 to the last stated; not a number before the first."""
    values: array[float] = array("d")
    for turn, differential in stated:
        bits = entropy(differential)
        if bits is not None and turn > len(values):
            values.extend([values[-1] if values else math.nan] * (turn - 1 - len(values)))
            values.append(bits)
    return values


class Tally:
    """Sums one record at a time; of a record, only a few numbers are kept."""

    def __init__(self) -> None:
        self._cases = Cases()
        self._means = {name: Sample(0) for name in ("turns", "question", "test", "images")}
        self._tokens: dict[str, Sample] = {}
        self._counts: Counter[str] = Counter()
        self._facts = _Facts()
        self._courses: dict[str, _Courses] = {}

    def add(self, record: Record) -> None:
        """Count one record."""
        if record.status == "model_failed":
            self._counts["missing"] += 1
            return
        case = self._cases.number(record)
        self._counts["encounters"] += 1
        if record.num_turns is not None:
            self._means["turns"].add(case, record.num_turns)
        for role, used in (record.usage or {}).items():
            known = used.get("input_tokens"), used.get("output_tokens")
            sample = self._tokens.setdefault(role, Sample(0))
            if known[0] is not None and known[1] is not None:
                sample.add(case, known[0] + known[1])
        asked = requests(record)
        if asked is None:
            self._counts["without_transcript"] += 1
        else:
            self._add_transcript(case, record, asked)

    def _add_transcript(self, case: int, record: Record, asked: Sequence[Request]) -> None:
        contents: dict[str, list[str]] = {"question": [], "test": [], "images": []}
        for request in asked:
            contents[request.kind].append(request.content)
        for kind, said in contents.items():
            self._means[kind].add(case, len(said))
            self._counts[kind] += len(said)
            self._counts[f"repeated {kind}"] += repeated(said)
        self._facts.add(case, record, asked)
        for source, stated in differentials(record).items():
            self._courses.setdefault(source, _Courses()).add(case, stated, record)
        early = premature_closure(record, asked)
        if early is not None:
            self._counts["closure known"] += 1
            self._counts["closure known, wrong"] += record.status == "diagnosed" and strict(record) is False
            self._counts["premature"] += early

    def result(self, seed: int = 0) -> Information:
        """The measures of what was counted."""
        counts = self._counts
        means = {name: _noted(sample.estimate(seed)) for name, sample in self._means.items()}
        return Information(
            encounters=counts["encounters"],
            missing=counts["missing"],
            without_transcript=counts["without_transcript"],
            turns=means["turns"],
            questions=means["question"],
            tests=means["test"],
            images=means["images"],
            tokens={role: _noted(sample.estimate(seed)) for role, sample in sorted(self._tokens.items())},
            repeated_questions=proportion(counts["repeated question"], counts["question"]),
            repeated_tests=proportion(counts["repeated test"], counts["test"]),
            key_facts=self._facts.result(seed),
            differentials={source: courses.result(seed) for source, courses in sorted(self._courses.items())},
            premature_closure=proportion(counts["premature"], counts["closure known"]),
            premature_of_wrong=proportion(counts["premature"], counts["closure known, wrong"]),
        )


def _noted(estimate: Estimate) -> Estimate:
    return estimate if estimate.n else Estimate(value=None, note=NOT_RECORDED)


# --- against a doctor who was told everything -----------------------------------------------------------------------


def gap_to_full_information(records: Iterable[Record], full: Iterable[Record], seed: int = 0) -> Estimate:
    """What asking costs in accuracy: mean over cases of (strict accuracy told everything - strict accuracy here).

    Cases are paired by `case_key`, repeats averaged within a case, missing data left out. A case of one run only
    is left out and counted in the note; n is the number of pairs.
    """
    ours, theirs = _accuracy_by_case(records), _accuracy_by_case(full)
    sample = Sample(-1, 1)
    paired = sorted(ours.keys() & theirs.keys())
    for number, case in enumerate(paired):
        sample.add(number, theirs[case] - ours[case])
    alone = len(ours) + len(theirs) - 2 * len(paired)
    estimate = sample.estimate(seed)
    return estimate.model_copy(update={"note": f"{alone} cases in one run only, left out"}) if alone else estimate


def _accuracy_by_case(records: Iterable[Record]) -> dict[str, float]:
    counts: dict[str, tuple[int, int]] = {}
    for record in records:
        right = strict(record)
        if right is not None:
            c, n = counts.get(case_key(record), (0, 0))
            counts[case_key(record)] = c + right, n + 1
    return {case: c / n for case, (c, n) in counts.items()}
