"""How the doctor got its information: requests, key facts found, the differential by turn, premature closure."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from agentclinic.cases.matcher import Asked, asked_of_measurement, asked_of_patient
from agentclinic.cases.model import Fact, Section
from agentclinic.results.differential import Differential, Source
from agentclinic.results.record import Record
from agentclinic.results.turn import Turn
from agentclinic.scoring.estimates import Estimate, Proportion, mean, proportion, ratio
from agentclinic.scoring.verdicts import case_key, names_truth, strict
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.denial import clauses
from agentclinic.vocabulary.text import STOP_WORDS, content_words, fold

NOT_RECORDED = "not recorded"
NO_KEY_FACTS = "the records do not show whether any key finding was found"
NO_DOOR = "the records do not say what the doctor was told at the door: facts told there count as not found"

# --- what the doctor asked for and was told -------------------------------------------------------------------------


class Request(NamedTuple):
    """A doctor's utterance that asks for something, and the answer."""

    kind: Literal["question", "test", "images"]
    content: str
    reply: Turn | None
    """None if the encounter ended before the answer."""


def requests(record: Record) -> tuple[Request, ...] | None:
    """What the doctor asked for, in order; None if no transcript was kept."""
    if record.transcript is None:
        return None
    found = []
    for index, turn in enumerate(record.transcript):
        action = turn.action
        if action is None or action.kind == "diagnosis" or action.kind == "none":
            continue
        after = record.transcript[index + 1 : index + 2]
        found.append(Request(action.kind, action.content, next((t for t in after if t.role != "doctor"), None)))
    return tuple(found)


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


class Way(StrEnum):
    """How the doctor learned a key fact."""

    DOOR = "door"
    """Told before the first turn."""
    VOLUNTEERED = "volunteered"
    """Told by the patient in reply to an open question, or to a question about something else."""
    ASKED = "asked"
    """Told by the patient in reply to a question about it."""
    ORDERED = "ordered"
    """Reported by the laboratory."""


def door_text(record: Record) -> str | None:
    """What the doctor was told at the door; None if the record does not say."""
    return f"{record.door.demographics}. {record.door.objective}" if record.door else None


def discloses(record: Record, role: str, asked: Iterable[Request]) -> bool:
    """Whether a role states which chart facts it reveals; a builtin role that was never asked would have."""
    replies = [request.reply for request in asked if request.reply and request.reply.role == role]
    if not replies:
        return getattr(record, f"{role}_llm", None) == "builtin"
    return any(reply.disclosures for reply in replies)


def way_found(finding: KeyFinding, record: Record, asked: Sequence[Request]) -> Way | None:
    """How the doctor first learned the finding; None if it never did.

    By path: a reply discloses it. By phrase: a reply says it (`says`); a bare "Yes" does not.
    """
    if any(below(path, AT_THE_DOOR) for path in finding.paths):
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
    """A key finding of a record and how the doctor learned it."""

    finding: KeyFinding
    way: Way | None


def key_facts(record: Record, asked: Sequence[Request] | None = None) -> tuple[Found, ...] | None:
    """The key findings for which a record shows whether they were found; None without a transcript.

    A phrase can be looked for in any reply, a path only if its role says what it discloses: a finding that has only
    paths is left out if a language model plays that role. `asked` saves reading the transcript again.
    """
    asked = requests(record) if asked is None else asked
    if asked is None:
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
    """Weighted recall of one encounter: Σ weight of key findings found ÷ Σ weight of all that can be assessed."""
    total = math.fsum(entry.finding.weight for entry in found)
    return math.fsum(entry.finding.weight for entry in found if entry.way) / total if total else None


# --- premature closure ----------------------------------------------------------------------------------------------


def premature_closure(record: Record, asked: Sequence[Request] | None = None) -> bool | None:
    """Committed, wrong, and an obtainable discriminating finding never requested; None if that cannot be known.

    - Committed and wrong: `diagnosed` and not right by the strict rule. Nothing else is a premature closure.
    - Discriminating: the key finding's role begins with "discriminat" or "refut".
    - Obtainable: it names a chart path; a phrase alone does not say where it could be found.
    - Requested: found in any way (`way_found`), or an order names the examination or test it belongs to, whatever
      the laboratory then said.
    - Known: for every path of some finding we can tell whether it was requested: its role says what it discloses,
      or it is under a heading of examinations or tests, to which orders can be matched.
    """
    never = never_requested(record, asked)
    right = strict(record)
    if never is None or right is None:
        return None
    return record.status == "diagnosed" and not right and bool(never)


def never_requested(record: Record, asked: Sequence[Request] | None = None) -> tuple[KeyFinding, ...] | None:
    """The discriminating findings that could have been obtained and were not; None if that cannot be known."""
    asked = requests(record) if asked is None else asked
    if asked is None:
        return None
    tells = {role: discloses(record, role, asked) for role in ("patient", "measurement")}
    wanted = [
        f for f in key_findings(record) if f.discriminating and f.paths and all(_decidable(p, tells) for p in f.paths)
    ]
    if not wanted:
        return None
    orders = tuple(request.content for request in asked if request.kind == "test")
    return tuple(f for f in wanted if way_found(f, record, asked) is None and not _ordered(f.paths, orders))


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


# --- the course of the differential ---------------------------------------------------------------------------------

# Ten hypotheses rounded to whole percents add up to 1 within 0.05; anything further off is not a distribution.
_ROUNDING = 0.05


def entropy(differential: Differential) -> float | None:
    """-Σ p·log2 p in bits, with `other` as one class; None if the numbers are not a distribution.

    An `other` that is not stated is what the hypotheses leave of 1. Sums off by rounding are scaled to 1.
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
    """First turn that lists it; turn 1 is before any answer."""
    led: int | None
    """First turn in which it is at the top."""
    dropped: bool
    """It led at some point but not in the last differential."""


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
    """Key findings of the cases and how they were found; null if the cases or records do not say."""

    encounters: int = 0
    """Encounters with at least one key finding that can be assessed."""
    without: int = 0
    """Encounters whose case names no key findings."""
    not_assessable: int = 0
    """Key findings left out because the record does not show whether they were found."""
    recall: Estimate
    """Mean over encounters of Σ weight found ÷ Σ weight."""
    by_way: dict[str, Proportion | None] = {}
    """Key findings first learned this way ÷ all that can be assessed; `door` is null if not recorded."""
    yield_per_request: Estimate
    """Key findings told by patient or laboratory ÷ questions and tests: Σ over encounters ÷ Σ over encounters."""
    note: str | None = None


class DifferentialCourse(BaseModel):
    """The differentials of one source from turn to turn."""

    encounters: int = 0
    entropy_bits: dict[int, Estimate] = {}
    """Mean entropy by turn; the last value is carried forward after the end and through turns without a new one."""
    truth_appeared: Proportion
    """Encounters in which the truth was ever listed."""
    turn_appeared: Estimate
    """Mean first such turn, over those encounters."""
    truth_led: Proportion
    turn_led: Estimate
    truth_dropped: Proportion
    """Encounters in which the truth led but not at the end ÷ those in which it led."""


class Information(BaseModel):
    """How the doctor got its information; null, with a note, if the records do not say."""

    encounters: int = 0
    """Records, except those cut short by a failure that was not the doctor's."""
    missing: int = 0
    """Records cut short by such a failure."""
    without_transcript: int = 0
    """Encounters for which only the number of turns is known."""
    turns: Estimate
    """Mean turns of the doctor."""
    questions: Estimate
    tests: Estimate
    """Mean orders; one may name several tests."""
    images: Estimate
    tokens: dict[str, Estimate] = {}
    """By role: mean input and output tokens, over the encounters that used the role and report them."""
    repeated_questions: Proportion
    """Questions that repeat an earlier one of the encounter ÷ questions."""
    repeated_tests: Proportion
    key_facts: KeyFacts
    differentials: dict[str, DifferentialCourse] = {}
    """By source, never pooled."""
    premature_closure: Proportion
    """Premature closures ÷ encounters where this can be known."""
    premature_of_wrong: Proportion
    """The same among the wrong diagnoses: how many stopped short of a finding that could have settled it."""


class Observation(NamedTuple):
    """What one record contributes."""

    case: str
    turns: int | None
    tokens: tuple[tuple[str, int | None], ...]
    """By role; None if unknown."""
    dialogue: Dialogue | None
    """None if no transcript was kept."""


class Dialogue(NamedTuple):
    """What a transcript shows, in numbers."""

    questions: int
    tests: int
    images: int
    repeated_questions: int
    repeated_tests: int
    facts: tuple[Way | None, ...]
    """How the doctor learned each key finding that can be assessed."""
    recall: float | None
    no_findings: bool
    """The case names no key findings."""
    not_assessable: int
    """Key findings for which the record does not show whether they were found."""
    door: bool
    """Whether the record says what the doctor was told at the door."""
    courses: tuple[tuple[str, array[float], Course | None], ...]
    """By source: entropies by turn, and how the truth fared, if it is known."""
    premature: bool | None
    wrong: bool
    """Ended with a wrong diagnosis."""


def observe(record: Record) -> Observation | None:
    """Reduce a record to a few numbers; None for an encounter cut short by a failure that was not the doctor's."""
    if record.status == "model_failed":
        return None
    asked = requests(record)
    tokens = tuple((role, _tokens(used)) for role, used in (record.usage or {}).items())
    return Observation(case_key(record), record.num_turns, tokens, None if asked is None else _dialogue(record, asked))


def _tokens(used: Mapping[str, int | None]) -> int | None:
    sent, received = used.get("input_tokens"), used.get("output_tokens")
    return None if sent is None or received is None else sent + received


def _dialogue(record: Record, asked: Sequence[Request]) -> Dialogue:
    questions, tests = ([r.content for r in asked if r.kind == kind] for kind in ("question", "test"))
    stated, found = key_findings(record), key_facts(record, asked) or ()
    return Dialogue(
        questions=len(questions),
        tests=len(tests),
        images=len(asked) - len(questions) - len(tests),
        repeated_questions=repeated(questions),
        repeated_tests=repeated(tests),
        facts=tuple(entry.way for entry in found),
        recall=recall(found),
        no_findings=not stated,
        not_assessable=len(stated) - len(found),
        door=door_text(record) is not None,
        courses=tuple(
            (source, entropy_by_turn(given), course(given, record) if record.ground_truth else None)
            for source, given in differentials(record).items()
        ),
        premature=premature_closure(record, asked),
        wrong=record.status == "diagnosed" and strict(record) is False,
    )


def entropy_by_turn(stated: Sequence[tuple[int, Differential]]) -> array[float]:
    """Entropy of each turn from 1 to the last stated; not a number before the first."""
    values: array[float] = array("d")
    for turn, differential in stated:
        bits = entropy(differential)
        if bits is not None and turn > len(values):
            values.extend([values[-1] if values else math.nan] * (turn - 1 - len(values)))
            values.append(bits)
    return values


def summarise(observations: Iterable[Observation | None], seed: int = 0) -> Information:
    """Means per encounter, key facts, differentials by turn and premature closure."""
    given = list(observations)
    seen = [one for one in given if one is not None]
    talks = [(one.case, one.dialogue) for one in seen if one.dialogue is not None]
    roles = sorted({role for one in seen for role, _ in one.tokens})
    closures = [talk for _, talk in talks if talk.premature is not None]
    premature = sum(talk.premature is True for talk in closures)

    def average(values: Iterable[tuple[str, float | None]]) -> Estimate:
        found = mean(((case, value) for case, value in values if value is not None), seed, low=0)
        return found if found.n else Estimate(value=None, note=NOT_RECORDED)

    return Information(
        encounters=len(seen),
        missing=len(given) - len(seen),
        without_transcript=len(seen) - len(talks),
        turns=average((one.case, one.turns) for one in seen),
        questions=average((case, talk.questions) for case, talk in talks),
        tests=average((case, talk.tests) for case, talk in talks),
        images=average((case, talk.images) for case, talk in talks),
        tokens={role: average((one.case, dict(one.tokens).get(role)) for one in seen) for role in roles},
        repeated_questions=_share(talks, "repeated_questions", "questions"),
        repeated_tests=_share(talks, "repeated_tests", "tests"),
        key_facts=_key_facts(talks, seed),
        differentials=_courses(talks, seed),
        premature_closure=proportion(premature, len(closures)),
        premature_of_wrong=proportion(premature, sum(talk.wrong for talk in closures)),
    )


def _share(talks: Sequence[tuple[str, Dialogue]], part: str, whole: str) -> Proportion:
    return proportion(*(sum(getattr(talk, name) for _, talk in talks) for name in (part, whole)))


def _key_facts(talks: Sequence[tuple[str, Dialogue]], seed: int) -> KeyFacts:
    assessed = [(case, talk) for case, talk in talks if talk.recall is not None]
    ways = Counter(way for _, talk in assessed for way in talk.facts)
    doors = sum(talk.door for _, talk in assessed)
    by_way: dict[str, Proportion | None] = {way.value: proportion(ways[way], ways.total()) for way in Way}
    if not doors and not ways[Way.DOOR]:
        by_way[Way.DOOR.value] = None
    told = (
        (case, sum(way not in (None, Way.DOOR) for way in talk.facts), talk.questions + talk.tests)
        for case, talk in assessed
    )
    return KeyFacts(
        encounters=len(assessed),
        without=sum(talk.no_findings for _, talk in talks),
        not_assessable=sum(talk.not_assessable for _, talk in talks),
        recall=mean(((case, talk.recall or 0.0) for case, talk in assessed), seed, low=0, high=1),
        by_way=by_way if assessed else {},
        yield_per_request=ratio(told, seed, low=0),
        note=NO_KEY_FACTS if not assessed else NO_DOOR if doors < len(assessed) else None,
    )


def _courses(talks: Sequence[tuple[str, Dialogue]], seed: int) -> dict[str, DifferentialCourse]:
    by_source: dict[str, list[tuple[str, array[float], Course | None]]] = {}
    for case, talk in talks:
        for source, bits, followed in talk.courses:
            by_source.setdefault(source, []).append((case, bits, followed))
    return {source: _course(given, seed) for source, given in sorted(by_source.items())}


def _course(given: Sequence[tuple[str, array[float], Course | None]], seed: int) -> DifferentialCourse:
    followed = [(case, seen) for case, _, seen in given if seen is not None]
    appeared = [(case, seen.appeared) for case, seen in followed if seen.appeared is not None]
    led = [(case, seen.led) for case, seen in followed if seen.led is not None]
    entropies = [(case, bits) for case, bits, _ in given if bits]
    by_turn = {
        turn: [(case, value) for case, bits in entropies if not math.isnan(value := bits[min(turn, len(bits)) - 1])]
        for turn in range(1, max((len(bits) for _, bits in entropies), default=0) + 1)
    }
    return DifferentialCourse(
        encounters=len(followed),
        entropy_bits={turn: mean(values, seed, low=0) for turn, values in by_turn.items()},
        truth_appeared=proportion(len(appeared), len(followed)),
        turn_appeared=mean(appeared, seed, low=1),
        truth_led=proportion(len(led), len(followed)),
        turn_led=mean(led, seed, low=1),
        truth_dropped=proportion(sum(seen.dropped for _, seen in followed), len(led)),
    )


# --- against a doctor who was shown everything ----------------------------------------------------------------------


def gap_to_full_information(records: Iterable[Record], full: Iterable[Record], seed: int = 0) -> Estimate:
    """What asking costs in accuracy: mean over cases of (strict accuracy shown everything - strict accuracy here).

    Cases are paired by `case_key`, repeats averaged within a case, missing data left out. A case in only one run
    is left out and counted in the note; n is the number of pairs.
    """
    ours, theirs = _accuracy_by_case(records), _accuracy_by_case(full)
    paired = ours.keys() & theirs.keys()
    estimate = mean(((case, theirs[case] - ours[case]) for case in paired), seed, low=-1, high=1)
    alone = len(ours) + len(theirs) - 2 * len(paired)
    return estimate.model_copy(update={"note": f"{alone} cases in one run only, left out"}) if alone else estimate


def _accuracy_by_case(records: Iterable[Record]) -> dict[str, float]:
    verdicts: dict[str, list[bool]] = {}
    for record in records:
        if (right := strict(record)) is not None:
            verdicts.setdefault(case_key(record), []).append(right)
    return {case: sum(given) / len(given) for case, given in verdicts.items()}
