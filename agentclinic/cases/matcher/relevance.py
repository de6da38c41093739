"""How likely a statement is to answer part of a question: decision trees over features of the pair.

The features come from the lexicon and the cues, never from the diagnosis. `benchmarks/fit_patient.py` fits the trees to
questions whose answers readers marked (`benchmarks/labels`) and writes `data/answers.json`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import accumulate, chain
from operator import or_
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.matcher import cues, vectors
from agentclinic.cases.matcher.asking import MAIN_TYPES, Clause, Part
from agentclinic.cases.matcher.statements import Statement, statement
from agentclinic.cases.model import PATIENT_SECTIONS, Fact, Facts, Section
from agentclinic.vocabulary import lexicon

Floats = NDArray[np.float64]
_TREES = Path(__file__).parent.parent / "data" / "answers.json"
_SECTIONS = tuple(section for section in Section if section in PATIENT_SECTIONS)
_OF_STORY = (Section.HISTORY, Section.SYMPTOMS, Section.REVIEW)
_PARTIAL = 0.6
"""How much a denied parent counts as a match when checking which parts the chart answers at all."""
_ELSEWHERE = 0.3
"""How much a match at another place counts in that check."""

FEATURES = (
    # the part and the statement
    "exact", "child", "parent", "sibling", "exact_share", "match_share", "link_share", "part_concepts",
    *(f"match_{kind}" for kind in MAIN_TYPES), "parent_symptom", "parent_disease", "root_told", "root_asked",
    "match_trigger", "part_triggers", "match_quality", "part_qualities", "match_time",
    "place", "statement_share", "word_share", "words", "statement_word_share",
    "whole", "part_at", "conditional", "only_modifier", "likeness", "clause_likeness",
    # the part and the whole chart
    "own_match", "best_match", "all_matches", "rank", "first_match", "other_match",
    "asks_main_complaint", "tells_main_complaint", "likeness_beside_best", "likeness_rank",
    # the clause and the statement
    "subject", "subject_match", "subject_share", "match_before", "clause_concepts", "known", "only_known",
    *(f"aspect_{aspect.name}" for aspect in cues.ASPECTS), "aspects_asked", "aspects_told", "where", "finer_place",
    "kin", "direction", "changes", "drugs",
    "clause_triggers", "clause_trigger_match", "clause_qualities", "clause_quality_match",
    "clause_times", "clause_time_match",
    # the clause
    *(f"asks_{part.section.value}" for part in cues.BACKGROUND), "opening", "anything_else", "examined", "past",
    "pronoun", "beginning", "parts", "clauses", "clause",
    # the statement
    "well", "nothing_else", "general", "negative", "denied", "primary", "of_kin", "tells_drugs", "concepts", "length",
    "first", "has_place", "has_trigger", "has_time", "has_quality",
    *(f"in_{section.value}" for section in _SECTIONS), "place_in_script",
    # the question and the chart
    "silent_symptoms", "silent_diseases", "symptoms_asked", "diseases_asked", "asked", "left_open", "asked_told",
)  # fmt: skip
"""Features of a part of a question and a statement, in column order."""


_SIGNS = np.array([
    FEATURES.index(name)
    for name in (
        "link_share", "words", "match_trigger", "match_quality", "match_time", "root_told", "well", "nothing_else",
        "subject_match", "aspects_asked", "asks_demographics", "asks_drugs", "asks_social_history", "opening",
        "anything_else", "pronoun",
    )
])  # fmt: skip
"""A pair without any of these, and less alike than `_ALIKE`, never matches, so most pairs skip the trees."""
_ALIKE = 0.35
"""Of 64 marked pairs without a sign 42 are as alike, and 1.5 % of all others."""


@dataclass(frozen=True)
class Asked:
    """A part of a question, and the place of its clause."""

    at: int
    part: Part


def parts_of(clauses: Sequence[Clause]) -> tuple[Asked, ...]:
    return question_of(tuple(clauses)).asked


def answer_probabilities(clauses: Sequence[Clause], facts: Sequence[Fact]) -> Floats:
    """The probability that each statement (row) answers each part of the question (column, as in `parts_of`)."""
    return chances(tuple(clauses), chart_of(Facts.of(facts)))


def chances(clauses: tuple[Clause, ...], chart: Chart) -> Floats:
    table = _features(clauses, chart)
    found = np.zeros(table.shape[1:])
    signs = np.logical_or.reduce(table.take(_SIGNS, axis=0) > 0)
    possible: NDArray[np.intp] = np.logical_or(signs, table[_AT["likeness"]] >= _ALIKE).ravel().nonzero()[0]
    if len(possible):
        found.ravel()[possible] = _trees().probabilities(table.reshape(len(FEATURES), -1).take(possible, axis=1))
    return found.T


def threshold() -> float:
    """The probability above which a statement is told."""
    return _trees().threshold


# ---- features


@dataclass(frozen=True, eq=False)
class Chart:
    """The statements of a patient's script as tables, with a column for each: every question reads all of them."""

    statements: tuple[Statement, ...]
    weights: dict[str, float]
    """Rare words of the script say more than common ones."""
    unknown: float
    saying: dict[str, int]
    """Where in `said` each word is."""
    said: Floats
    """For each word whether each statement says it, and then its weight if it does; the last row is that of no word."""
    stems: Floats
    """The weight of all words of each statement."""
    row: NDArray[np.intp]
    """Where in `told` each concept is, by its bit; those that no statement names are in the last row."""
    told: vectors.Floats
    """For each concept whether the statements name it or a kind of it, and then whether they name it."""
    mains: int
    """The concepts of all statements that can be asked about on their own."""
    alike: dict[tuple[Section, bool], list[int]]
    """The statements by their section and whether they mention a time."""
    main: int
    """What the main complaint is, and is a kind of."""
    tells_main: NDArray[np.bool_]
    alone: Floats
    """The features of each statement."""
    aspects: NDArray[np.bool_]
    places: NDArray[np.int64]
    """How many places each statement names."""
    worse: NDArray[np.bool_]
    better: NDArray[np.bool_]
    of_story: NDArray[np.bool_]
    """Which are about the illness."""
    meaning: vectors.Floats
    """The vectors of what each statement tells."""

    def weight(self, words: Iterable[str]) -> float:
        return sum([self.weights.get(word, self.unknown) for word in words]) or 1.0

    def words(self, parts: Sequence[Part]) -> tuple[Floats, Floats]:
        """How many words each part (row) has in common with each statement, and their weight."""
        rows = [[self.saying[word] for word in part.stems if word in self.saying] or [-1] for part in parts]
        begins = list(accumulate(map(len, rows[:-1]), initial=0))
        both = np.add.reduceat(self.said.take(list(chain.from_iterable(rows)), axis=0), begins)
        count = len(self.statements)
        return both[:, :count], both[:, count:]

    def shared(self, concepts: NDArray[np.intp], sets: vectors.Floats) -> vectors.Floats:
        """How many concepts each set shares with what each statement names, first with and then without its kinds."""
        told = self.told.take(self.row.take(concepts), axis=0)
        return (sets @ told).reshape(len(sets), 2, len(self.statements)).swapaxes(0, 1)


def _bits(sets: Sequence[int]) -> NDArray[np.uint8]:
    """Sets as rows, with a column for each concept."""
    width = _width()
    packed = np.frombuffer(b"".join([one.to_bytes(width, "little") for one in sets]), np.uint8)
    return np.unpackbits(packed.reshape(len(sets), width), axis=1, bitorder="little")


def _members(sets: Sequence[int]) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """The concepts that any of some sets has, and which of them (column) each set (row) has."""
    bits = _bits(sets)
    concepts = np.bitwise_or.reduce(bits).view(np.bool_).nonzero()[0]
    return concepts, bits.take(concepts, axis=1)


@lru_cache(maxsize=1)
def _width() -> int:
    return lexicon.everything().bit_length() // 8 + 1


@lru_cache(maxsize=512)  # one takes about 40 kB
def chart_of(facts: Facts) -> Chart:
    told = tuple(map(statement, facts))
    counts = Counter(word for one in told for word in one.stems)
    weights = {word: math.log((len(told) + 1) / (count + 0.5)) for word, count in counts.items()}
    saying = {word: row for row, word in enumerate(counts)}
    said = np.zeros((len(saying) + 1, len(told)))
    alike: dict[tuple[Section, bool], list[int]] = {}
    for row, one in enumerate(told):
        alike.setdefault((one.fact.section, one.timed), []).append(row)
        said[[saying[word] for word in one.stems], row] = 1
    named = _bits([*(one.named.closed for one in told), *(one.named.names for one in told)])
    concepts = np.flatnonzero(named[: len(told)].any(axis=0))
    place = np.full(named.shape[1], len(concepts))
    place[concepts] = np.arange(len(concepts))
    main = reduce(or_, (one.named.closed & ~lexicon.roots() for one in told if one.primary), 0)
    return Chart(
        told, weights, math.log(2 * (len(told) + 1)), saying,
        np.hstack([said, said * np.array([*weights.values(), 0.0])[:, None]]),
        np.array([sum(weights[word] for word in one.stems) or 1.0 for one in told]),
        place, np.vstack([named.T[concepts], np.zeros((1, len(named)))]).astype(np.float32),
        reduce(or_, (one.main for one in told), 0), alike,
        main, np.array([bool(one.main & main) for one in told], bool),
        np.array([[*_alone(one), row / len(told)] for row, one in enumerate(told)]).T,
        np.array([one.aspects for one in told], bool).T, np.array([one.places.bit_count() for one in told]),
        np.array([one.worse for one in told], bool), np.array([one.better for one in told], bool),
        np.array([one.fact.section in _OF_STORY for one in told], bool),
        vectors.statement_vectors([one.text for one in told]),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _masks() -> tuple[int, ...]:
    """The concepts of each type, the roots, the main ones, those of them that are no roots, and all that are none."""
    kinds = [lexicon.of_types(kind) for kind in (*MAIN_TYPES, "trigger", "quality", "time", "place")]
    roots, mains = lexicon.roots(), lexicon.of_types(*MAIN_TYPES)
    return (*kinds, roots, mains, mains & ~roots, lexicon.everything() & ~roots)


@lru_cache(maxsize=1)
def _mask_bits() -> NDArray[np.uint8]:
    return _bits(_masks())


_SYMPTOM, _DISEASE = MAIN_TYPES.index("symptom"), MAIN_TYPES.index("disease")
_TRIGGER, _QUALITY, _TIME, _PLACE, _ROOT, _MAIN, _NO_ROOT, _ANY = range(len(MAIN_TYPES), len(MAIN_TYPES) + 8)


@dataclass(frozen=True, eq=False)
class Question:
    """A question as tables, whatever the chart."""

    asked: tuple[Asked, ...]
    place: NDArray[np.intp]
    """The clause of each part."""
    begins: NDArray[np.intp]
    """The first part of the clause of each part."""
    concepts: NDArray[np.intp]
    """The concepts it names, or names a kind of, by their bits."""
    sets: vectors.Floats
    """Sets of these, as rows: for each of `_masks` what each part names, and names a kind of; then what each clause is
    about; then what the whole question names."""
    narrow: bool
    """Whether it names anything that narrows a question down: a trigger, a quality or a time."""
    known: Floats
    """The features that depend on nothing else; 0 for the others."""
    aspects: NDArray[np.bool_] | None
    """Which aspects each clause asks about; None if there are none."""
    single: list[tuple[int, bool, bool]]
    """The parts that are not whole clauses, with whether they name a symptom, and a disease."""
    mains: int
    """The concepts it names that can be asked about on their own."""
    meaning: vectors.Floats
    """The vectors of what the wordings of each part ask, and then each clause."""
    wordings: list[int]
    """The first wording of each part, and the first clause."""


@lru_cache(maxsize=2048)
def question_of(clauses: tuple[Clause, ...]) -> Question:
    asked = tuple(Asked(at, part) for at, clause in enumerate(clauses) for part in clause.parts)
    parts, place = [one.part for one in asked], [one.at for one in asked]
    masks = _masks()
    mains = reduce(or_, (clause.main for clause in clauses), 0)
    sets = [part.named.names for part in parts] + [part.named.above for part in parts]
    sets += [one for several in zip(*map(_sets, clauses), strict=True) for one in several]
    narrow = any(one & _narrow() for one in sets)
    concepts, bits = _members([*sets, mains])
    kinds = _mask_bits().take(concepts, axis=1)[:, None] & bits[: 2 * len(parts)]
    kinds = kinds.reshape(2 * len(parts) * len(masks), len(concepts))
    single = [
        (at, bool(part.named.names & masks[_SYMPTOM]), bool(part.named.names & _diseases()))
        for at, part in enumerate(parts)
        if not part.whole
    ]
    symptoms, diseases = sum([one[1] for one in single]), sum([one[2] for one in single])
    known = np.zeros((len(FEATURES), len(asked), 1))
    texts = [*(part.wordings for part in parts), tuple([clause.text for clause in clauses])]
    if parts:
        of_parts = [
            (
                part.main.bit_count(), (part.named.names & masks[_TRIGGER]).bit_count(),
                (part.named.names & masks[_QUALITY]).bit_count(), part.whole, part.place, part.conditional,
            )
            for part in parts
        ]  # fmt: skip
        of_clauses = [
            (*_clause_alone(clause), len(clauses), at, symptoms, diseases, mains.bit_count())
            for at, clause in enumerate(clauses)
        ]
        both = [(*of_part, *of_clauses[at]) for of_part, at in zip(of_parts, place, strict=True)]
        known[_KNOWN, :, 0] = np.array(both, dtype=np.float64).T
    first = {at: row for row, at in reversed(list(enumerate(place)))}
    aspects = [clause.aspects for clause in clauses]
    return Question(
        asked, np.array(place, dtype=np.intp), np.array([first[at] for at in place], dtype=np.intp), concepts,
        np.concatenate([kinds, bits[2 * len(parts) :]]).astype(np.float32), narrow, known,
        np.array(aspects).T[:, :, None] if any(map(any, aspects)) else None, single, mains,
        vectors.question_vectors(list(chain.from_iterable(texts))),
        list(accumulate(map(len, texts[:-1]), initial=0)),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _narrow() -> int:
    return lexicon.of_types("trigger", "quality", "time")


@lru_cache(maxsize=1)
def _diseases() -> int:
    return lexicon.of_types("disease", "procedure")


def _clause_alone(clause: Clause) -> tuple[float, ...]:
    text, aspects = clause.text, sum(clause.aspects)
    return (
        clause.subject.bit_count(), clause.main.bit_count(), clause.known.bit_count(),
        aspects + clause.where, 0 if aspects else 0.5, clause.where,
        *((clause.names & mask).bit_count() for mask in _masks()[_TRIGGER:_PLACE]),
        *clause.background,
        *cues.which(_TOLD_BY_TEXT, text), cues.beginning(text), len(clause.parts),
    )  # fmt: skip


_TOLD_BY_TEXT = (cues.OPENING, cues.ANYTHING_ELSE, cues.EXAMINED, cues.BEFORE, cues.PRONOUN)


def _sets(clause: Clause) -> tuple[int, ...]:
    """What a clause is about, and what it names of the types that narrow a question down."""
    narrow = (clause.names & mask for mask in _masks()[_TRIGGER:_PLACE])
    return (clause.subject, clause.before, clause.known, clause.main & ~clause.known, clause.places, *narrow)


_AT = {name: at for at, name in enumerate(FEATURES)}
_KNOWN = np.array([
    *map(_AT.__getitem__, (
        "part_concepts", "part_triggers", "part_qualities", "whole", "part_at", "conditional",
        "subject", "clause_concepts", "known", "aspects_asked", "aspects_told", "where", "clause_triggers",
        "clause_qualities", "clause_times",
    )),
    *range(_AT["asks_family_history"], _AT["well"]),
    *map(_AT.__getitem__, ("symptoms_asked", "diseases_asked", "asked")),
])  # fmt: skip


def features(clauses: Sequence[Clause], facts: Sequence[Fact]) -> Floats:
    """The features of each statement (row) and each part of the question (column)."""
    return _features(tuple(clauses), chart_of(Facts.of(facts))).T


def _features(clauses: tuple[Clause, ...], chart: Chart) -> Floats:
    """The same with the features first and the statements last."""
    question = question_of(clauses)
    table = np.empty((len(FEATURES), len(question.asked), len(chart.statements)))
    if not table.size:
        return table
    table[:] = question.known  # 0 in the rows that nothing below fills
    table[_AT["well"] : _AT["silent_symptoms"]] = chart.alone[:, None]
    counts = chart.shared(question.concepts, question.sets)
    of_parts = 2 * len(question.asked) * len(_masks())
    by_kind = counts[:, :of_parts].reshape(2, len(_masks()), 2, *table.shape[1:])
    _fill_pairs(table, question, chart, by_kind)
    _fill_matches(table, question, chart)
    _fill_likeness(table, question, chart)
    by_clause = counts[:, of_parts:-1].reshape(2, -1, len(clauses), table.shape[2])
    _fill_clauses(table, clauses, question, chart, by_clause)
    table[_AT["asked_told"]] = counts[0, -1]
    return table


def _fill_pairs(table: Floats, question: Question, chart: Chart, by_kind: vectors.Floats) -> None:
    """The features of a part and a statement.

    `by_kind` says how many concepts of a type the part names, or names a kind of, that the statement names: first with
    what these are kinds of, and then without.
    """
    (closed, above), (told, wider) = (by_kind[0, :, 0], by_kind[0, :, 1]), (by_kind[1, :, 0], by_kind[1, :, 1])
    parts = [one.part for one in question.asked]
    own = table[_AT["part_concepts"]]
    exact, found, parents = told[_MAIN], closed[_MAIN], wider[_NO_ROOT]
    linked = found + parents
    # One row at a time: numpy is slow to make one array of several.
    table[_AT["exact"]] = exact
    np.subtract(found, exact, out=table[_AT["child"]])
    table[_AT["parent"]] = parents
    np.subtract(above[_ANY], wider[_ANY], out=table[_AT["sibling"]])
    of = np.maximum(1, own[:, :1])
    np.divide(exact, of, out=table[_AT["exact_share"]])
    np.divide(found, of, out=table[_AT["match_share"]])
    np.minimum(1.0, linked / of, out=table[_AT["link_share"]])
    table[_AT["match_symptom"] : _AT["parent_symptom"]] = closed[: len(MAIN_TYPES)]
    table[_AT["parent_symptom"]], table[_AT["parent_disease"]] = wider[_SYMPTOM], wider[_DISEASE]
    np.greater(wider[_ROOT], 0, out=table[_AT["root_told"]])
    np.greater(closed[_ROOT], 0, out=table[_AT["root_asked"]])
    for at, part in enumerate(parts):
        if part.named.names & _masks()[_PLACE]:
            near = closed[_PLACE, at] + told[_PLACE, at] + wider[_PLACE, at] > 0
            table[_AT["place"], at] = np.where(chart.places > 0, np.where(near, 3, _OTHER_PLACE), 1)
    counts, weights = chart.words(parts)
    table[_AT["words"]] = counts
    np.divide(weights, [[chart.weight(part.stems)] for part in parts], out=table[_AT["word_share"]])
    np.divide(weights, chart.stems, out=table[_AT["statement_word_share"]])
    concepts = chart.alone[_CONCEPTS]
    # All of it, if one of its concepts is a kind of something asked for.
    share = table[_AT["statement_share"]]
    share[:] = exact
    np.copyto(share, concepts, where=found > exact)
    share /= np.maximum(1, concepts)
    if question.narrow:
        triggers, qualities, times = closed[_TRIGGER], closed[_QUALITY], closed[_TIME]
        table[_AT["match_trigger"]], table[_AT["match_quality"]], table[_AT["match_time"]] = triggers, qualities, times
        modified = triggers + qualities + times > 0
        modified &= linked == 0
        np.logical_and(modified, own > 0, out=table[_AT["only_modifier"]])


_OTHER_PLACE = 2


def _fill_matches(table: Floats, question: Question, chart: Chart) -> None:
    """The features of a part and the whole chart: a rough match score shows which parts the chart answers."""
    matches = table[_AT["own_match"]]
    np.multiply(table[_AT["parent"]] > 0, _PARTIAL, out=matches)
    np.copyto(matches, 1.0, where=table[_AT["match_share"]] > 0)
    np.multiply(matches, _ELSEWHERE, out=matches, where=table[_AT["place"]] == _OTHER_PLACE)
    best = np.maximum.reduce(matches, axis=1)
    table[_AT["best_match"]] = best[:, None]
    # The sum goes down the rows, as it did when the trees were fitted: in another order it may end differently.
    table[_AT["all_matches"]] = np.add.reduce(np.ascontiguousarray(matches.T))[:, None]
    np.add.reduce(matches[:, :, None] > matches[:, None], axis=1, out=table[_AT["rank"]], dtype=np.float64)
    matches.take(question.begins, axis=0, out=table[_AT["first_match"]], mode="clip")
    table[_AT["other_match"]] = np.maximum.reduce(matches)
    if question.mains & chart.main:
        table[_AT["asks_main_complaint"]] = [[bool(one.part.main & chart.main)] for one in question.asked]
    table[_AT["tells_main_complaint"]] = chart.tells_main
    is_silent = (best < _PARTIAL).tolist()
    symptoms = sum([symptom for at, symptom, _ in question.single if is_silent[at]])
    diseases = sum([disease for at, _, disease in question.single if is_silent[at]])
    table[_AT["silent_symptoms"]], table[_AT["silent_diseases"]] = symptoms, diseases
    # What a statement such as "no other symptoms" would cover.
    if symptoms or diseases:
        well, nothing_else = chart.alone[:2]
        table[_AT["left_open"]] = diseases * well + symptoms * np.maximum(well, nothing_else)


def _fill_likeness(table: Floats, question: Question, chart: Chart) -> None:
    """How like what is asked is to what is told: of a part its likest wording, also beside the likest statement."""
    alike = question.meaning @ chart.meaning.T
    of_clauses = alike[question.wordings[-1] :]
    of_parts = np.maximum.reduceat(alike[: question.wordings[-1]], question.wordings[:-1], axis=0)
    table[_AT["likeness"]] = of_parts
    table[_AT["clause_likeness"]] = of_clauses.take(question.place, axis=0)
    np.subtract(of_parts, np.maximum.reduce(of_parts, axis=1, keepdims=True), out=table[_AT["likeness_beside_best"]])
    table[_AT["likeness_rank"]] = (-of_parts).argsort(axis=1, kind="stable").argsort(axis=1)


def _fill_clauses(
    table: Floats, clauses: Sequence[Clause], question: Question, chart: Chart, by_clause: vectors.Floats
) -> None:
    """The features of a clause and a statement, given how many concepts of `_sets` the statement names."""
    place = question.place
    closed, told = by_clause[0].take(place, axis=1), by_clause[1]
    table[_AT["subject_match"]] = closed[0]
    np.divide(closed[0], np.maximum(1, table[_AT["subject"], :, :1]), out=table[_AT["subject_share"]])
    if question.narrow:
        table[_AT["clause_trigger_match"]], table[_AT["clause_quality_match"]] = closed[5], closed[6]
        table[_AT["clause_time_match"]] = closed[7]
    if len(clauses) > 1:
        table[_AT["match_before"]] = closed[1]
    if any(clause.known for clause in clauses):
        np.greater(closed[2], 0, out=table[_AT["only_known"]])
        np.copyto(table[_AT["only_known"]], 0.0, where=closed[3] > 0)
    on = question.aspects
    if on is not None:
        tells = (on & chart.aspects[:, None])[:, place]
        table[_AT["aspects_asked"] - len(on) : _AT["aspects_asked"]] = np.add(on[:, place], tells, dtype=np.float64)
        asked = on.sum(axis=0)[place]
        table[_AT["aspects_told"]] += tells.sum(axis=0) / np.maximum(1, asked)
    table[_AT["kin"]] = chart.alone[_OF_KIN]
    for at, clause in enumerate(map(clauses.__getitem__, place.tolist())):
        if clause.of_kin:
            table[_AT["kin"], at] += 2
        if clause.where:
            table[_AT["where"], at] += chart.places > 0
            table[_AT["finer_place"], at] = chart.places > told[4, place[at]]
        if clause.worse or clause.better:
            table[_AT["direction"], at] = (clause.worse & chart.worse) | (clause.better & chart.better)
            table[_AT["changes"], at] = 1 + (chart.worse | chart.better)
        if clause.background[_DRUGS]:
            table[_AT["drugs"], at] = 1 + chart.alone[_TELLS_DRUGS]


_DRUGS = [part.section for part in cues.BACKGROUND].index(Section.DRUGS)


def _alone(told: Statement) -> tuple[float, ...]:
    trigger, quality, time = _masks()[_TRIGGER:_PLACE]
    names, fact = told.named.names, told.fact
    return (
        told.well, told.nothing_else, bool(cues.IN_GENERAL.search(fact.text)), told.negative, fact.denied, told.primary,
        told.of_kin, told.drugs, told.main.bit_count(), told.length,
        fact.path.endswith(("#0", "History")),
        bool(told.places), bool(names & trigger), bool(names & time), bool(names & quality),
        *(fact.section is section for section in _SECTIONS),
    )  # fmt: skip


_OF_KIN, _TELLS_DRUGS, _CONCEPTS = (_AT[name] - _AT["well"] for name in ("of_kin", "tells_drugs", "concepts"))


# ---- trees


@dataclass(frozen=True)
class _Trees:
    """All trees at once (Lucchese et al., 2015).

    A pair starts with all leaves of a tree. Where it goes right, it loses those on the left. It ends in the first left.
    """

    feature: NDArray[np.intp]
    bound: Floats
    """Different splits: left if the feature is at most the bound."""
    split: NDArray[np.intp]
    """The splits of the trees: the first of each tree, then the second, ..."""
    keeps: NDArray[np.uint8]
    """The leaves that remain after going right, as bits."""
    value: Floats
    """The leaves of all trees, eight each."""
    before: NDArray[np.intp]
    """The place before the leaves of each tree."""
    threshold: float

    def probabilities(self, table: Floats) -> Floats:
        """One for each pair; the features are the rows of the table."""
        goes_left = (table.take(self.feature, axis=0) <= self.bound).view(np.uint8)
        np.negative(goes_left, out=goes_left)  # all bits, where it is true
        leaves = np.bitwise_and.reduce(goes_left.take(self.split, axis=0) | self.keeps)
        # Copied first: reading a table at places that are not in one row takes three times as long.
        leaves = np.ascontiguousarray(leaves.T)
        leaves ^= leaves - np.uint8(1)  # only the first bit and those before it remain
        first = np.bitwise_count(leaves) + self.before
        return np.asarray(1 / (1 + np.exp(-np.add.reduce(self.value.take(first), axis=1))))


_LEAVES = 8


@lru_cache(maxsize=1)
def _trees() -> _Trees:
    data = json.loads(_TREES.read_text(encoding="utf-8"))
    if tuple(data["features"]) != FEATURES:
        raise ValueError(f"{_TREES.name} was fitted to different features; run benchmarks/fit_patient.py --write")
    feature, bound, left, right, value = (np.array(data[key]) for key in ("feature", "bound", "left", "right", "value"))
    if feature.shape[1] >= 2 * _LEAVES:
        raise ValueError(f"{_TREES.name}: a tree has more than {_LEAVES} leaves")
    is_leaf = left == np.arange(left.shape[1])
    before = np.cumsum(is_leaf, axis=1) - is_leaf  # nodes come before what is below them, on the left first
    from_left, to_right = (1 << np.take_along_axis(before, side, axis=1) for side in (left, right))
    keeps = np.where(is_leaf, 255, 255 & ~(to_right - from_left))
    splits = np.argsort(is_leaf, axis=1, kind="stable")[:, : _LEAVES - 1]
    leaves = np.argsort(~is_leaf, axis=1, kind="stable")[:, :_LEAVES]
    both = np.stack([np.take_along_axis(one, splits, axis=1).T.ravel() for one in (feature, bound)])
    different, split = np.unique(both, axis=1, return_inverse=True)
    return _Trees(
        different[0].astype(np.intp),
        different[1][:, None],
        split.reshape(_LEAVES - 1, -1),
        np.take_along_axis(keeps, splits, axis=1).T[:, :, None].astype(np.uint8),
        np.take_along_axis(value, leaves, axis=1).ravel(),
        _LEAVES * np.arange(len(value)) - 1,
        data["threshold"],
    )
