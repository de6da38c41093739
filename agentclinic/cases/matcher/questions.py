"""Find the facts in the patient's script that a question asks about, and what it asks that the script does not say.

Each part of a question is answered by facts, or understood and not in the chart, or not understood. Only what was
understood, and is like nothing in the chart, may be denied: a near fact is told instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.matcher import cues, reader
from agentclinic.cases.matcher.asking import Clause, Part, clauses
from agentclinic.cases.matcher.cues import Asked
from agentclinic.cases.matcher.relevance import FEATURES, Chart, Floats, chances, chart_of, parts_of, threshold
from agentclinic.cases.matcher.relevance import Asked as AskedPart
from agentclinic.cases.matcher.spoken import answer
from agentclinic.cases.matcher.statements import Statement, statement
from agentclinic.cases.matcher.talk import ASKED_BESIDE, small_talk
from agentclinic.cases.matcher.topics import (
    WELL,
    Topic,
    called,
    deniable,
    finding_names,
    label,
    opening,
    span,
    strange_words,
)
from agentclinic.cases.model import Fact, Facts, Section
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import content_words

MARGIN = 0.05
"""How far above the threshold of the trees a statement is told. A part of a question that nothing else answers gets its
nearest statement anyway. In folds about one point of precision for one to two of recall."""
MARGIN_MORE = 0.15
"""The same for a statement that is not the likeliest for any part of the question. In folds 0.05 more or less moves one
point of precision against one of recall."""
NEAR = 0.4
"""From this probability on, a statement is told rather than the thing denied. Below, the patient cannot say: in folds,
0.5 and 0.35 were both a little worse."""
MOST_TOLD = 4
"""Facts told at once, unless more parts of a question are answered or a whole section was asked for. Where a chart has
no words of the patient, its statements repeat each other: leaving some out cost recall and gained no precision."""
NEARLY = 0.8
"""The part of the best probability from which on a fact is as direct an answer as the best."""
ONE_COMPLAINT = 0.3
"""`NEAR` for a statement about the same basic complaint: one kind of it asked for, another in the chart."""
NEAR_BESIDE_SPOKEN = 0.25
"""`NEAR` beside answers where the chart has one fact in each statement, with the patient's words for it."""
LEFT_BESIDE = 0.08
"""If any statement that is not told has this probability, nothing is denied beside an answer."""
LEFT_ALONE = 0.16
"""The same where nothing is told."""
LEFT_UNREAD, NEAR_TO_READER = 0.02, -0.9
"""The same from this probability on, if the reader finds a statement nearer than this beside what it needs."""
DENIAL_ALONE = 0.06
"""Where nothing is told, a statement that denies something is told from this probability on, rather than denied."""
SAME_NAME = 0.25
"""The same for a statement that names what would be denied."""
_LEAST = min(NEAR, NEAR_BESIDE_SPOKEN, ONE_COMPLAINT, SAME_NAME)
"""Below this probability a statement is near nothing, unless it names a quality of pain."""
OTHER_PERSON, OTHER_PLACE = 0.8, 0.4
"""What is left of the chance of a statement about relatives for a question that is not about them, and of one about
another place: where the author gives no questions, likeness alone would tell it."""
NEAREST = 0.3
"""The same for a statement about the aspect that a whole clause asks for."""
NEAREST_IN_SECTION = 0.05
"""The same for a statement in the section of the background that a whole clause asks for."""


def asked_of_patient(question: str, facts: Sequence[Fact]) -> list[Topic]:
    return list(_asked_of_patient(question, Facts.of(facts)))


@lru_cache(maxsize=4096)  # doctors repeat themselves, and scoring asks again
def _asked_of_patient(question: str, facts: Facts) -> list[Topic]:
    if (known := answer(question, facts)) is not None:
        return known
    said = small_talk(question)
    talk = [Topic(kind, Asked.TALK, ()) for kind in said.kinds]
    if talk and not content_words(said.rest):
        return talk
    read = clauses(said.rest or question)
    feelings = [topic for topic in talk if topic.name in ASKED_BESIDE]
    answered = _choose_facts(read, facts)
    topics: list[Topic] = []
    by_clause: list[list[Topic]] = []
    for at, clause in enumerate(read):
        follows = at > 0 and not clause.main and any(topic.facts for topic in topics)
        by_clause.append(_topics(clause, answered[at], facts))
        for topic in by_clause[-1]:
            if not (follows and topic.kind is Asked.UNCLEAR):  # "and are they heavy?" only asks for more of the same
                _add(topics, topic)
    if any(topic.facts for topic in topics):
        # If anything is answered, skip what the opening already tells.
        topics = [topic for topic in topics if topic.facts or topic.name != "demographics"]
    answers = any(topic.facts for topic in topics)
    if answers and any(topic.kind is Asked.DETAIL for topic in topics):
        # Beside facts, "I couldn't say" is only worth saying of a time: "does it hurt, and how much?"
        tells_time = any(statement(fact).timed for topic in topics for fact in topic.facts)
        topics = [
            topic for topic in topics if topic.kind is not Asked.DETAIL or (topic.name == "timing" and not tells_time)
        ]
    topics = [
        replace(topic, direct=answered[0].direct & {fact.path for fact in topic.facts}) if topic.facts else topic
        for topic in topics
    ]
    clear = [topic for topic in topics if topic.kind is not Asked.UNCLEAR or (topic.words and not answers)]
    left = answered[0].left if answered else 0.0
    in_doubt = left >= (LEFT_BESIDE if answers else LEFT_ALONE)
    if not in_doubt and not answers and left >= LEFT_UNREAD and any(map(_denies, clear)):
        in_doubt = _may_be_said(said.rest or question, facts)
    if in_doubt:
        undenied = dict.fromkeys(_undenied(topic, beside=answers) for topic in clear)
        clear = sorted(undenied, key=lambda topic: topic.kind is Asked.REST)
    if answers:
        said_of = reduce(or_, (statement(fact).named.closed for topic in clear for fact in topic.facts), 0)
        if any(_left_open(clause, found, said_of) for clause, found in zip(read, by_clause, strict=True)):
            clear.append(Topic("rest", Asked.REST, ()))
    return [*clear, *feelings] or [Topic(question.strip(), Asked.UNCLEAR, ())]


def _may_be_said(question: str, facts: Facts) -> bool:
    """Whether the reader finds a statement too near to something asked for a denial of everything."""
    if not facts:
        return False
    index = reader.index_of(facts)
    return any(index.nearness(asks).max() >= asks.needed + NEAR_TO_READER for asks in reader.read(question))


def _denies(topic: Topic) -> bool:
    return topic.kind in (Asked.SYMPTOM, Asked.BACKGROUND, Asked.FAMILY) and not topic.facts


def _undenied(topic: Topic, *, beside: bool) -> Topic:
    """A topic of which the patient cannot say more, if it would be denied."""
    if not _denies(topic):
        return topic
    return Topic("rest", Asked.REST, ()) if beside else Topic(topic.name, Asked.DETAIL, ())


def _left_open(clause: Clause, topics: Sequence[Topic], said_of: int) -> bool:
    """Whether nothing is said about a question beside others, which names something that no fact told is about."""
    if not topics or any(topic.facts or topic.kind not in (Asked.DETAIL, Asked.UNCLEAR) for topic in topics):
        return False
    named = clause.main & ~lexicon.roots() & ~lexicon.bit("pain")
    asks = named and not named & said_of and (_is_open(clause.text) or cues.YES_OR_NO.match(clause.text))
    return bool(asks)


@dataclass(frozen=True)
class _Answered:
    """What the chart says about the parts of a clause."""

    told: dict[int, list[Fact]]
    """The facts, by the part each answers best."""
    covered: frozenset[int]
    """The parts that one of the facts answers."""

    direct: frozenset[str] = frozenset()
    """The paths of the facts that answer a part best, or nearly so."""
    left: float = 0.0
    """The highest probability of a statement that is not told."""

    @property
    def everything(self) -> tuple[Fact, ...]:
        return tuple(dict.fromkeys([fact for found in self.told.values() for fact in found]))


@dataclass(frozen=True, eq=False)
class _Script:
    """What every question reads of a chart, with a place for each statement."""

    chart: Chart
    has_words: bool
    """Whether the chart has the patient's words."""
    denials: NDArray[np.bool_]
    affirms: NDArray[np.bool_]
    """All others."""
    of_kin: NDArray[np.bool_]
    of_patient: NDArray[np.bool_]
    """Tells of the patient and of no relative."""
    unchanged: NDArray[np.bool_]
    """Denies that something changes a pain."""
    any_denials: bool
    """Whether any statement is one, and so on."""
    any_of_kin: bool
    any_unchanged: bool
    any_places: bool


@lru_cache(maxsize=512)
def _script(facts: Facts) -> _Script:
    chart = chart_of(facts)
    denials = [fact.denied for fact in facts]
    of_kin = [one.of_kin for one in chart.statements]
    unchanged = [_denies_a_change(one) for one in chart.statements]
    return _Script(
        chart,
        any(fact.says for fact in facts),
        np.array(denials, dtype=bool),
        ~np.array(denials, dtype=bool),
        np.array(of_kin, dtype=bool),
        np.array([_tells_of_patient_alone(one) for one in chart.statements], dtype=bool),
        np.array(unchanged, dtype=bool),
        any(denials),
        any(of_kin),
        any(unchanged),
        any(one.places for one in chart.statements),
    )


def _probabilities(read: tuple[Clause, ...], asked: Sequence[AskedPart], script: _Script) -> Floats:
    """How likely each fact (row) is to answer each part (column), with what is certain settled."""
    chart = script.chart
    found = chances(read, chart)
    when = any(clause.when for clause in read)
    for kind, rows in chart.alike.items():
        if not when and kind[0] not in _SETTLED:
            continue
        settled = [_settled(clause, *kind) for clause in read]
        for at, one in enumerate(asked):
            certain = settled[one.at]
            if certain is not None:
                found[_conditions(rows, chart, read[one.at]) if certain else rows, at] = certain
    if script.any_of_kin:
        others = np.array([not read[one.at].of_kin for one in asked], dtype=bool)
        np.multiply(found, OTHER_PERSON, out=found, where=script.of_kin[:, None] & others)
    for at, one in enumerate(asked):
        clause, likely = read[one.at], found[:, at]
        if script.any_places and one.part.named.names & lexicon.of_types("place"):
            np.multiply(likely, OTHER_PLACE, out=likely, where=_at_other_place(one.part, chart))
        if script.any_unchanged and not one.part.main & lexicon.bit("pain"):
            likely[script.unchanged & ~_settling(one.part, chart)] = 0.0
        if script.any_denials and clause.aspects[_CHARACTER] and lexicon.bit("pain quality") & one.part.named.closed:
            likely[script.denials] = 0.0  # what it is like is not told by what it is not like
        if (example := _example(clause.text)) and (head := _other_head(clause, one.part, example)):
            likely[[not one.named.closed & head for one in chart.statements]] = 0.0
        if clause.of_kin and _asks_of_kin_alone(clause, one.part):
            likely[script.of_patient] = 0.0
        if script.any_denials and _is_open(clause.text) and (likely[script.affirms] >= threshold()).any():
            likely[script.denials] = 0.0  # "how do you sleep?" is not answered by "I don't snore" beside an answer
    return found


def _choose_facts(read: tuple[Clause, ...], facts: Facts) -> list[_Answered]:
    """What answers each clause: the facts above the threshold, and for a part without any, the nearest."""
    asked = parts_of(read)
    script = _script(facts)
    chart, denials, of_kin = script.chart, script.denials, script.of_kin
    found = _probabilities(read, asked, script)
    told: list[dict[int, list[Fact]]] = [{} for _ in read]
    covered: list[set[int]] = [set() for _ in read]
    direct: frozenset[str] = frozenset()
    left = 0.0
    if found.size:
        likeliest = np.maximum.reduce(found, axis=1)
        chosen = likeliest >= threshold() + MARGIN_MORE
        first = found.argmax(axis=0)
        chosen[first] |= likeliest.take(first) >= threshold() + MARGIN
        for row in chosen.nonzero()[0].tolist():
            best = asked[found[row].argmax()]
            told[best.at].setdefault(best.part.place, []).append(facts[row])
        mixed = any(told)
        near, beside = NEAR, NEAR_BESIDE_SPOKEN if script.has_words else NEAR
        idle_denials = denials & ~chosen if script.any_denials else denials
        tops = np.maximum.reduce(found).tolist()
        for at, one in enumerate(asked):
            if tops[at] < _LEAST and (one.part.main or not one.part.named.names & lexicon.of_types("quality")):
                continue
            clause = read[one.at]
            can_be_denied = bool(one.part.main) and not _is_open(clause.text)
            likely = found[:, at].copy()
            if script.any_of_kin and not clause.of_kin:
                likely[of_kin] = 0.0
            if can_be_denied:  # the denial of something else is no better than a plain one
                # Whether one that is near nothing is left makes no difference.
                if script.any_denials and (likely[idle_denials] >= _LEAST).any():
                    likely[idle_denials & ~_settling(one.part, chart)] = 0.0
                if _place_of_pain(one.part):
                    likely[~chosen & _another_pain(one.part, chart)] = 0.0
            most_likely = float(np.maximum.reduce(likely))
            if mixed and most_likely >= near and (likely[chosen] >= near).any():
                covered[one.at].add(one.part.place)
            elif (like := _of_like_quality(clause, one.part, likely, chart)) is not None or (
                most_likely >= ONE_COMPLAINT and (like := _of_one_complaint(one.part, likely, chart)) is not None
            ):
                told[one.at].setdefault(one.part.place, []).append(facts[like])
                covered[one.at].add(one.part.place)
            elif not one.part.whole and most_likely >= (beside if mixed else near):
                told[one.at].setdefault(one.part.place, []).append(facts[int(likely.argmax())])
                covered[one.at].add(one.part.place)
            elif (
                can_be_denied
                and most_likely >= SAME_NAME
                and (same := _of_same_name(one.part, likely, chart)) is not None
            ):
                told[one.at].setdefault(one.part.place, []).append(facts[same])
                covered[one.at].add(one.part.place)
        for at, clause in enumerate(read):
            if cues.ASKS_JOB.search(clause.text):
                jobs = [one.fact for one in chart.statements if _is_job(one)]
                others = [fact for found_here in told[at].values() for fact in found_here if fact not in jobs]
                if jobs:  # others only mention work, or someone else's
                    told[at] = {0: [*jobs, *(fact for fact in others if fact.section is Section.SOCIAL)]}
            if not told[at] and (nearest := _nearest(clause, at, asked, found, chart)) is not None:
                told[at].setdefault(0, []).append(facts[nearest])
                covered[at].update(part.place for part in clause.parts)
        for at, clause in enumerate(read):
            if clause.aspects[_TREATMENT] and (given := _treatments(clause, at, asked, found, chart)):
                told[at] = {0: given}
                covered[at].update(part.place for part in clause.parts)
            else:
                _keep_what_tells(clause, told[at], at, asked, found, chart)
        if not any(told) and (denial := _denial_alone(read, asked, found, chart)) is not None:
            told[denial[1].at][denial[1].part.place] = [facts[denial[0]]]
            covered[denial[1].at].add(denial[1].part.place)
        if any(clause.of_kin for clause in read) or any(_place_of_pain(one.part) for one in asked):
            other = [~of_kin if read[one.at].of_kin else _another_pain(one.part, chart) for one in asked]
            left = _left(told, np.where(np.array(other).T, 0.0, found).max(axis=1).tolist(), facts)
        else:
            left = _left(told, likeliest.tolist(), facts)
        if any(told):
            chance = dict(zip([fact.path for fact in facts], likeliest.tolist(), strict=True))
            direct = _keep_most_direct(told, MOST_TOLD if script.has_words else len(facts), chance)
    return [_Answered(each, frozenset(places), direct, left) for each, places in zip(told, covered, strict=True)]


def _denial_alone(
    read: Sequence[Clause], asked: Sequence[AskedPart], found: Floats, chart: Chart
) -> tuple[int, AskedPart] | None:
    """The likeliest denial in the chart, and the part of the question that it answers."""
    can_be_denied = [bool(one.part.main) and not (_is_open(read[one.at].text) or read[one.at].of_kin) for one in asked]
    denies = [one.negative and not one.of_kin for one in chart.statements]
    likely = np.where(np.outer(denies, can_be_denied), found, 0.0)
    row, at = divmod(int(likely.argmax()), len(asked))
    return (row, asked[at]) if likely[row, at] >= DENIAL_ALONE else None


def _left(told: Sequence[dict[int, list[Fact]]], likely: Iterable[float], facts: Facts) -> float:
    """The highest probability of a statement that is not told."""
    paths = {fact.path for parts in told for answers in parts.values() for fact in answers}
    if not paths:
        return max(likely, default=0.0)
    return max([chance for fact, chance in zip(facts, likely, strict=True) if fact.path not in paths], default=0.0)


_CHARACTER, _TREATMENT = (
    next(at for at, aspect in enumerate(cues.ASPECTS) if aspect.name == name) for name in ("character", "treatment")
)
_CHANGES = cues.Cue(
    r"\b(?:reliev|eas(?:e|es)\b|help|improv|worsen|aggravat|trigger|bring|set(?:s|ting)? .{0,20}off"
    r"|make .{0,25}\b(?:better|worse))"
)


def _treatments(clause: Clause, at: int, asked: Sequence[AskedPart], found: Floats, chart: Chart) -> list[Fact]:
    """What was taken or done, for a clause that asks for it: what is likely, or else the drugs."""
    if not _is_open(clause.text):
        return []
    columns = [column for column, one in enumerate(asked) if one.at == at]
    best = found[:, columns].max(axis=1)
    tells = [
        row
        for row, one in enumerate(chart.statements)
        if not one.of_kin
        and ((one.fact.section is Section.DRUGS and not one.negative) or one.aspects[_TREATMENT] or one.drugs)
    ]
    likely = [row for row in tells if best[row] >= NEAREST]
    drugs = [row for row in tells if chart.statements[row].fact.section is Section.DRUGS]
    return [chart.statements[row].fact for row in likely or drugs]


def _keep_what_tells(
    clause: Clause,
    told: dict[int, list[Fact]],
    at: int,
    asked: Sequence[AskedPart],
    found: Floats,
    chart: Chart,
) -> None:
    """Asked for an aspect of the complaint, leave out what does not tell it if another fact does."""
    if not told:
        return
    changes = bool(_CHANGES.search(clause.text))
    if not (changes or clause.where or any(clause.aspects)):
        return

    def tells(one: Statement) -> bool:
        aspect = any(on and off for on, off in zip(clause.aspects, one.aspects, strict=True))
        here = clause.where and bool(one.places)
        return aspect or here or (changes and (one.worse or one.better))

    if any(tells(statement(fact)) for facts in told.values() for fact in facts):
        for place, facts in list(told.items()):
            facts[:] = [fact for fact in facts if tells(statement(fact))]
            if not facts:
                del told[place]
    elif changes or (_is_open(clause.text) and not clause.where):
        best = found[:, [column for column, one in enumerate(asked) if one.at == at]].max(axis=1)
        near = [(best[row], -row) for row, one in _at_least(NEAREST, best, chart) if tells(one) and not one.of_kin]
        if near:
            told.clear()
            told[0] = [chart.statements[-max(near)[1]].fact]


def _keep_most_direct(told: list[dict[int, list[Fact]]], most: int, chance: dict[str, float]) -> frozenset[str]:
    """Put the likeliest fact of each part first, and leave out the least likely others if there are many.

    Returns the paths of the likeliest of each part and of those nearly as likely.
    """
    for parts in told:
        for found in parts.values():
            found.sort(key=lambda fact: -chance[fact.path])
    lists = [found for parts in told for found in parts.values()]
    others = sorted((fact for found in lists for fact in found[1:]), key=lambda fact: -chance[fact.path])
    room = max(0, most - len(lists))
    spared = {fact.path for place, fact in enumerate(others) if place < room or chance[fact.path] == 1}
    for found in lists:
        found[1:] = [fact for fact in found[1:] if fact.path in spared]
    near = (fact for found in lists for fact in found if chance[fact.path] >= NEARLY * chance[found[0].path])
    return frozenset(fact.path for fact in near)


def _asks_of_kin_alone(clause: Clause, part: Part) -> bool:
    """Whether a part asks about the family and not about the patient."""
    if not clause.of_kin or _YOU_TOO.search(clause.text):
        return False
    return bool(cues.ASKS_OF_KIN.search(clause.parts[0].text) or cues.ASKS_OF_KIN.search(part.text))


_YOU_TOO = re.compile(r"\b(?:you (?:or|and|had|have)|or you|have you|yourself|do you)\b(?! know)", re.IGNORECASE)


def _tells_of_patient_alone(one: Statement) -> bool:
    return not (one.of_kin or one.well or one.nothing_else or cues.ASKS_OF_KIN.search(one.fact.text))


def _settling(part: Part, chart: Chart) -> NDArray[np.bool_]:
    """The statements whose denial also denies what a part asks for: it, something wider, or everything."""
    return _denied_by(part.named.closed & ~lexicon.roots() & ~(lexicon.bit("pain") & ~part.main), chart)


def _another_pain(part: Part, chart: Chart) -> NDArray[np.bool_]:
    """For a part that asks for pain at a place: the statements about a pain, if the main complaint is not there."""
    return _elsewhere(_place_of_pain(part), chart)


def _place_of_pain(part: Part) -> int:
    """The places at which a part asks for pain."""
    closed = part.named.closed
    return closed & lexicon.of_types("place") if closed & lexicon.bit("pain") else 0


@lru_cache(maxsize=4096)
def _elsewhere(places: int, chart: Chart) -> NDArray[np.bool_]:
    if not places or any(places & one.named.closed for one in chart.statements if one.primary):
        return np.zeros(len(chart.statements), dtype=bool)
    return np.array([not places & one.named.closed for one in chart.statements], dtype=bool)


def _at_other_place(part: Part, chart: Chart) -> NDArray[np.bool_]:
    """The statements that name places, but none that the part names, or that one of these is in or has in it."""
    named = part.named.names & lexicon.of_types("place")
    around = part.named.closed & lexicon.of_types("place") if named else 0
    return np.array(
        [
            bool(named and one.places) and not (named & one.named.closed or around & one.places)
            for one in chart.statements
        ],
        dtype=bool,
    )


@lru_cache(maxsize=4096)
def _denied_by(wider: int, chart: Chart) -> NDArray[np.bool_]:
    everything = _denied_at_all(chart)
    if not wider & chart.mains:
        return everything
    return np.logical_or(everything, [bool(one.main & wider) for one in chart.statements])


@lru_cache(maxsize=512)
def _denied_at_all(chart: Chart) -> NDArray[np.bool_]:
    return np.asarray(chart.alone[_WELL_AND_ELSE].any(axis=0))


_WELL_AND_ELSE = [FEATURES.index(name) - FEATURES.index("well") for name in ("well", "nothing_else")]


def _denies_a_change(one: Statement) -> bool:
    """Whether a statement denies that something changes a pain: it says nothing about other pains."""
    narrow = one.named.names & lexicon.of_types("trigger")
    return one.negative and bool(narrow) and bool(one.named.names & lexicon.bit("pain"))


def _is_job(one: Statement) -> bool:
    works = lexicon.named(one.fact.text).closed & lexicon.bit("occupation") or cues.TELLS_JOB.search(one.fact.text)
    return one.fact.section is Section.SOCIAL and bool(works)


@lru_cache(maxsize=1024)
def _is_open(text: str) -> bool:
    return bool(cues.OPEN.search(text))


@lru_cache(maxsize=1024)
def _example(text: str) -> int:
    """Where the examples of what is asked for begin; 0 if there are none."""
    found = _EXAMPLE.search(text)
    return found.start() if found else 0


def _other_head(clause: Clause, part: Part, example: int) -> int:
    """What the quality that a part names belongs to, if not to a pain: "problems with urination, such as burning"."""
    if part.whole or clause.text.find(part.text) < example:
        return 0
    head = clause.parts[0].main & ~lexicon.closed("pain") & ~lexicon.roots()
    return head if part.named.names & lexicon.of_types("quality") else 0


def _of_like_quality(clause: Clause, part: Part, likely: Floats, chart: Chart) -> int | None:
    """For a part that only names a quality of pain, such as tightness: the statement that tells one, best the same."""
    asked = part.named.names & lexicon.of_types("quality")
    if part.main or not asked or not part.named.closed & lexicon.bit("pain quality"):
        return None
    if (example := _example(clause.text)) and _other_head(clause, part, example):
        return None
    alike = [
        (bool(one.named.names & asked), likely[row], -row)
        for row, one in enumerate(chart.statements)
        if one.named.closed & lexicon.bit("pain quality") and not one.negative and chart.of_story[row]
    ]
    return -max(alike)[2] if alike else None


def _of_one_complaint(part: Part, likely: Floats, chart: Chart) -> int | None:
    """The likeliest statement about the same basic complaint as a part, at the same place if both name one."""
    near = [] if part.whole or not part.main else _at_least(ONE_COMPLAINT, likely, chart)
    asked = lexicon.complaints(part.text) if near else frozenset()
    places = part.named.closed & lexicon.of_types("place")
    alike = [
        (likely[row], -row)
        for row, one in near
        if asked & lexicon.complaints(one.fact.says or one.fact.text)
        and not (places and one.places and not places & one.named.closed)
    ]
    return -max(alike)[1] if alike else None


def _at_least(bound: float, likely: Floats, chart: Chart) -> list[tuple[int, Statement]]:
    return [(row, chart.statements[row]) for row in (likely >= bound).nonzero()[0].tolist()]


def _of_same_name(part: Part, likely: Floats, chart: Chart) -> int | None:
    """The likeliest statement that names what a part would deny: "does wine set it off?", and the chart says so."""
    named = part.main & deniable() & ~lexicon.roots() & ~lexicon.bit("pain")
    places = part.named.closed & lexicon.of_types("place")
    alike = [
        (likely[row], -row)
        for row, one in _at_least(SAME_NAME, likely, chart)
        if one.named.closed & named
        and not one.negative
        and not (places and one.places and not places & one.named.closed)
    ]
    return -max(alike)[1] if alike and not part.whole else None


def _nearest(clause: Clause, at: int, asked: Sequence[AskedPart], found: Floats, chart: Chart) -> int | None:
    """Of a clause that nothing answers, the statement nearest to it that tells what it asks for.

    That is an aspect of the complaint, or a section of the background.
    """
    columns = [column for column, one in enumerate(asked) if one.at == at]
    if not columns or not (clause.sections or any(clause.aspects)):
        return None
    best = found[:, columns].max(axis=1)
    if clause.sections:
        tells = np.array(
            [one.fact.section in clause.sections or (clause.of_kin and one.of_kin) for one in chart.statements]
        )
    else:
        told = chart.aspects[np.array(clause.aspects)].any(axis=0)
        tells = told & chart.of_story
    best = np.where(tells, best, 0.0)
    enough = NEAREST_IN_SECTION if clause.sections else NEAREST
    return int(best.argmax()) if best.max(initial=0.0) >= enough else None


_WHOLE_SECTIONS = {
    Section.DRUGS: "medication",
    Section.PAST: "medical condition",
}
"""Sections that a question can ask for as a whole: "what medications do you take?"."""


_NARROWED = re.compile(r"\b(?:new|chang\w+|start\w*|stopp?\w*)\b", re.IGNORECASE)
"""Asks for a change of the medicines, not for all of them."""


_SETTLED = frozenset({*_WHOLE_SECTIONS, Section.FAMILY, Section.ALLERGIES})
"""The sections that `_settled` decides on if a clause asks for more than a time."""


def _settled(clause: Clause, section: Section, timed: bool) -> bool | None:
    """Whether a clause certainly asks for a statement or certainly does not; None if the trees decide."""
    asked = clause.sections
    if section is Section.FAMILY and clause.of_kin and not clause.main & _of_a_kind():
        return True
    if section is Section.ALLERGIES and section in asked:
        return True
    name = _WHOLE_SECTIONS.get(section)
    whole = name and section in asked and not clause.of_kin and not _NARROWED.search(clause.text)
    if whole and clause.main & lexicon.bit(name or ""):
        return True
    if section is Section.ALLERGIES and section not in asked:
        return False
    if section is Section.FAMILY and not clause.of_kin and clause.main & _of_a_kind():
        return False
    return False if clause.when and not timed else None


_RELATIVE = re.compile(
    r"\b(brother|sister|father|mother|mom|mum|dad|son|daughter|uncle|aunt|cousin|grand\w+)s?\b", re.IGNORECASE
)


def _conditions(rows: Sequence[int], chart: Chart, clause: Clause) -> list[int]:
    """Of statements about illnesses, medicines or relatives, those that tell of one.

    Not vaccines, what was never taken, or a relative other than the one asked for.
    """
    told = {row: chart.statements[row] for row in rows}
    section = chart.statements[rows[0]].fact.section
    if section is Section.FAMILY and (asked := set(_RELATIVE.findall(clause.text.lower()))):
        return [row for row, one in told.items() if asked & set(_RELATIVE.findall(one.fact.text.lower()))]
    if section is Section.PAST:
        names = lexicon.of_types("disease", "symptom")
        told = {row: one for row, one in told.items() if one.well or one.main & names} or told
    return list(told)


@lru_cache(maxsize=1)
def _of_a_kind() -> int:
    """Diseases and symptoms: a question that names one asks about that one."""
    return lexicon.of_types("disease", "symptom") & ~lexicon.roots()


def _add(topics: list[Topic], topic: Topic) -> None:
    for place, earlier in enumerate(topics):
        if earlier.name == topic.name and earlier.kind is topic.kind:
            topics[place] = Topic(topic.name, topic.kind, tuple(dict.fromkeys(earlier.facts + topic.facts)))
            return
    topics.append(topic)


def _topics(clause: Clause, answered: _Answered, facts: Sequence[Fact]) -> list[Topic]:
    everything = answered.everything
    if cues.EXAMINED.search(clause.text) and not everything:
        return [Topic("examination or result", Asked.RESULT, ())]
    background = [part for part, on in zip(cues.BACKGROUND, clause.background, strict=True) if on]
    if cues.MORE.search(clause.text):
        return [Topic("more", Asked.MORE, everything if finding_names(clause.text) else ())]
    if cues.OPENING.search(clause.text) and not background:
        return [Topic("opening", Asked.OPENING, opening(facts))]
    if background:
        return _background_topics(clause, background, answered) + _other_symptoms(clause, answered)
    if cues.ANYTHING_ELSE.search(clause.text) and not any(finding_names(part.text) for part in clause.parts):
        return [Topic("other symptoms", Asked.MORE, everything)]
    aspects = [aspect.name for aspect, on in zip(cues.ASPECTS, clause.aspects, strict=True) if on]
    if aspects and clause.parts and len([part for part in clause.parts if not part.whole]) <= 1:
        yes_or_no = aspects[0] != "timing" and not _is_open(clause.text) and clause.main
        # "When was your last colonoscopy?" is denied if nothing tells of one.
        yes_or_no = yes_or_no or (clause.when and clause.main and not clause.main & ~lexicon.of_types("procedure"))
        kind = Asked.SYMPTOM if everything or yes_or_no else Asked.DETAIL
        return [Topic(aspects[0], kind, everything, concepts=clause.main)]
    return _symptom_topics(clause, answered)


def _background_topics(clause: Clause, asked: Sequence[cues.Background], answered: _Answered) -> list[Topic]:
    """The background sections asked for.

    A fact goes to its own section if that is asked for, else to the one that its part of the question asks for, else
    to the only one. Otherwise it is a topic of its own.
    """
    by_section: dict[Section, list[Fact]] = {part.section: [] for part in asked}
    others: list[Topic] = []
    for place, facts in answered.told.items():
        part = next((part for part in clause.parts if part.place == place), clause.parts[-1])
        for fact in facts:
            section = Section.FAMILY if statement(fact).of_kin else fact.section
            asks = [one.section for one in asked if part.whole or one.asked.search(part.text)]
            if section in by_section or asks or len(asked) == len(clause.parts) == 1:
                by_section[section if section in by_section else asks[0] if asks else asked[0].section].append(fact)
            else:
                _add(others, Topic(label(part.text), Asked.SYMPTOM, (fact,)))
    topics = []
    for one in asked:
        found, words = tuple(dict.fromkeys(by_section[one.section])), _asking_for(one, clause, answered)
        if found or words:
            topics.append(Topic(one.section.value.replace("_", " "), one.kind, found, words))
    return topics + others


def _asking_for(section: cues.Background, clause: Clause, answered: _Answered) -> str:
    """The words that ask for a section and that no fact answers; empty if facts of other sections answer them all."""
    asking = [part for part in clause.parts if not part.whole and section.asked.search(part.text)]
    silent = [part.text for part in asking if part.place not in answered.covered]
    return ", ".join(silent) if asking else clause.text


def _other_symptoms(clause: Clause, answered: _Answered) -> list[Topic]:
    """What a clause about the background also asks for: symptoms, and outside the family illnesses and exposures."""
    topics: list[Topic] = []
    for part in clause.parts:
        if part.whole or part.place in answered.covered or part.conditional or _asks_of_kin_alone(clause, part):
            continue
        names = [name for name in finding_names(part.text) if name in _symptom_names()]
        of_section = clause.of_kin or any(one.asked.search(part.text) for one in cues.BACKGROUND)
        if names or (
            not of_section and part.main & lexicon.of_types("disease", "exposure") and not WELL.search(part.text)
        ):
            _add(
                topics,
                Topic(names[0] if names else label(part.text), Asked.SYMPTOM, (), called(part.text, names), part.main),
            )
    return topics


@lru_cache(maxsize=1)
def _symptom_names() -> frozenset[str]:
    return frozenset(finding.name for finding in knowledge().findings.values() if finding.kind == "symptom")


def _symptom_topics(clause: Clause, answered: _Answered) -> list[Topic]:
    """A topic for each part that is answered, can be denied, or is not understood."""
    topics: list[Topic] = []
    everything = answered.everything
    aspect = next((aspect.name for aspect, on in zip(cues.ASPECTS, clause.aspects, strict=True) if on), "")
    open_question, may_open = _is_open(clause.text), cues.OPEN.may_be_in(clause.text)
    parts = [part for part in clause.parts if not part.whole or part.place in answered.told]
    for part in parts:
        found = tuple(answered.told.get(part.place, ()))
        if not found and part.place in answered.covered:
            continue
        names = finding_names(part.text)
        name = names[0] if names else label(part.text)
        if found:
            _add(topics, Topic(name, Asked.SYMPTOM, found))
        else:
            if everything and (example := _example(clause.text)) and clause.text.find(part.text) > example:
                continue
            opens = may_open and _is_open(part.text)
            opens = opens or (open_question and not cues.YES_OR_NO.match(part.text))
            detail = opens or (aspect and (part.conditional or not names))
            _add(topics, Topic(aspect or name, Asked.DETAIL, ()) if detail else _unanswered(part, name, names))
    if any(topic.facts for topic in topics):
        # Beside an answer, what only narrows the question down is part of it.
        return [topic for topic in topics if topic.facts or topic.kind is Asked.SYMPTOM]
    understood = [topic for topic in topics if topic.kind is not Asked.UNCLEAR]
    return understood or topics or [Topic(clause.text, Asked.UNCLEAR, ())]


def _unanswered(part: Part, label: str, names: Sequence[str]) -> Topic:
    """What to make of a part that nothing in the chart is near to."""
    if not part.main and part.named.names & lexicon.of_types("quality"):
        return Topic("character", Asked.DETAIL, ())
    strange = strange_words(part.text)
    if (names or part.main & deniable()) and len(strange) <= MOST_STRANGE and not WELL.search(part.text):
        return Topic(label, Asked.SYMPTOM, (), called(part.text, names), part.main)
    if strange:
        return Topic(label, Asked.UNCLEAR, (), span(part.text, strange))
    return Topic(label, Asked.DETAIL, ())


_EXAMPLE = re.compile(r"\b(?:like|such as|including|for example|e\.g\.?)\s", re.IGNORECASE)
"""After it come examples of what was asked for, which are not denied beside an answer."""


MOST_STRANGE = 1
"""Words of a part that we do not know, beside something that we know: with more, we may have misread it."""
