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
from operator import or_
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.matcher import cues
from agentclinic.cases.matcher.asking import MAIN_TYPES, Clause, Part
from agentclinic.cases.matcher.statements import Statement, statement
from agentclinic.cases.model import PATIENT_SECTIONS, Fact, Section
from agentclinic.vocabulary import lexicon

Floats = NDArray[np.float64]
_TREES = Path(__file__).parent.parent / "data" / "answers.json"
_SECTIONS = tuple(section for section in Section if section in PATIENT_SECTIONS)
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
    "whole", "part_at", "conditional", "only_modifier",
    # the part and the whole chart
    "own_match", "best_match", "all_matches", "rank", "first_match", "other_match",
    "asks_main_complaint", "tells_main_complaint",
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


_SIGNS = [
    FEATURES.index(name)
    for name in (
        "link_share", "words", "match_trigger", "match_quality", "match_time", "root_told", "well", "nothing_else",
        "subject_match", "aspects_asked", "asks_demographics", "asks_drugs", "asks_social_history", "opening",
        "anything_else", "pronoun",
    )
]  # fmt: skip
"""A pair without any of these never matches, so most pairs skip the trees."""


@dataclass(frozen=True)
class Asked:
    """A part of a question, and the place of its clause."""

    at: int
    part: Part


def parts_of(clauses: Sequence[Clause]) -> list[Asked]:
    return [Asked(at, part) for at, clause in enumerate(clauses) for part in clause.parts]


def answer_probabilities(clauses: Sequence[Clause], facts: Sequence[Fact]) -> Floats:
    """The probability that each statement (row) answers each part of the question (column, as in `parts_of`)."""
    table = _features(clauses, chart_of(tuple(facts)))
    found = np.zeros(table.shape[1:])
    possible = np.flatnonzero((table[_SIGNS] > 0).any(axis=0))
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
    saying: dict[str, list[int]]
    """The statements in which a word occurs."""
    stems: Floats
    """The weight of all words of each statement."""
    concepts: NDArray[np.intp]
    """The concepts that any statement names or names a kind of, by their bits."""
    told: NDArray[np.float32]
    """Those that each statement names with what they are kinds of, and then those it names."""
    kinds: NDArray[np.float32]
    """Those in each set of `_masks`."""
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

    def weight(self, words: Iterable[str]) -> float:
        return sum(self.weights.get(word, self.unknown) for word in words) or 1.0

    def bits(self, sets: Sequence[int]) -> NDArray[np.float32]:
        """Sets of concepts as rows, with a column for each concept of the script."""
        return _bits(sets).take(self.concepts, axis=1).astype(np.float32)

    def counts(self, sets: NDArray[np.float32]) -> Floats:
        """How many concepts each set shares with what each statement names, first with and then without its kinds."""
        shared = (sets.reshape(-1, sets.shape[-1]) @ self.told).astype(np.float64)
        return np.moveaxis(shared.reshape(*sets.shape[:-1], 2, -1), -2, 0)


def _bits(sets: Sequence[int]) -> NDArray[np.uint8]:
    width = lexicon.everything().bit_length() // 8 + 1
    packed = np.frombuffer(b"".join(one.to_bytes(width, "little") for one in sets), np.uint8)
    return np.unpackbits(packed.reshape(len(sets), width), axis=1, bitorder="little")


@lru_cache(maxsize=512)  # one takes about 40 kB
def chart_of(facts: tuple[Fact, ...]) -> Chart:
    told = tuple(map(statement, facts))
    counts = Counter(word for one in told for word in one.stems)
    weights = {word: math.log((len(told) + 1) / (count + 0.5)) for word, count in counts.items()}
    saying: dict[str, list[int]] = {}
    for row, one in enumerate(told):
        for word in one.stems:
            saying.setdefault(word, []).append(row)
    concepts = np.flatnonzero(_bits([reduce(or_, (one.named.closed for one in told), 0)])[0])
    named = _bits([*(one.named.closed for one in told), *(one.named.names for one in told)])[:, concepts]
    main = reduce(or_, (one.named.closed & ~lexicon.roots() for one in told if one.primary), 0)
    return Chart(
        told, weights, math.log(2 * (len(told) + 1)), saying,
        np.array([sum(weights[word] for word in one.stems) or 1.0 for one in told]),
        concepts, np.ascontiguousarray(named.T, np.float32), _bits(_masks())[:, concepts].astype(np.float32),
        main, np.array([bool(one.main & main) for one in told], bool),
        np.array([[*_alone(one), row / len(told)] for row, one in enumerate(told)]).T,
        np.array([one.aspects for one in told], bool).T, np.array([one.places.bit_count() for one in told]),
        np.array([one.worse for one in told], bool), np.array([one.better for one in told], bool),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _masks() -> tuple[int, ...]:
    """The concepts of each type, the roots, the main ones that are no roots, and all that are no roots."""
    kinds = [lexicon.of_types(kind) for kind in (*MAIN_TYPES, "trigger", "quality", "time", "place")]
    roots = lexicon.roots()
    return (*kinds, roots, lexicon.of_types(*MAIN_TYPES) & ~roots, lexicon.everything() & ~roots)


_MAINS = slice(len(MAIN_TYPES))
_TRIGGER, _QUALITY, _TIME, _AT, _ROOT, _MAIN, _ANY = range(len(MAIN_TYPES), len(MAIN_TYPES) + 7)


def features(clauses: Sequence[Clause], facts: Sequence[Fact]) -> Floats:
    """The features of each statement (row) and each part of the question (column)."""
    return _features(clauses, chart_of(tuple(facts))).T


def _features(clauses: Sequence[Clause], chart: Chart) -> Floats:
    """The same with the features first and the statements last."""
    asked = parts_of(clauses)
    table = np.empty((len(FEATURES), len(asked), len(chart.statements)))
    if not table.size:
        return table
    place = [one.at for one in asked]
    pairs = _pairs([one.part for one in asked], chart)
    matches = _matches(*pairs[[_EXACT, _CHILD, _PARENT, _PLACE]])
    best = matches.max(axis=1)
    whole = _whole(clauses, asked, best)
    alone = chart.alone[:, None]
    begins = [place.index(at) for at in range(len(clauses))]
    mains = reduce(or_, (clause.main for clause in clauses), 0)
    of_clause = np.array([[*_clause_alone(clause), len(clauses), at] for at, clause in enumerate(clauses)])
    blocks: tuple[Floats | Sequence[float], ...] = (
        pairs,
        # The sum goes down the rows, as it did when the trees were fitted: in another order it may end differently.
        matches[None], best[None, :, None], np.ascontiguousarray(matches.T).sum(axis=0)[None, :, None],
        (matches[:, None] > matches[:, :, None]).sum(axis=2)[None], matches[begins][place][None],
        matches.max(axis=0)[None, None], np.array([[[bool(one.part.main & chart.main)] for one in asked]]),
        chart.tells_main[None, None],
        _clause_pairs(clauses, chart)[:, place], of_clause[place].T[:, :, None], alone,
        np.array(whole)[:, None, None], _left_open(whole, *alone[:2])[None],
        chart.counts(chart.bits([mains]))[:1],
    )  # fmt: skip
    at = 0
    for block in blocks:
        table[at : at + len(block)] = block
        at += len(block)
    return table


def _matches(exact: Floats, child: Floats, parent: Floats, place: Floats) -> Floats:
    """A rough match score of a statement and a part, to see which parts the chart answers."""
    value = np.where(exact + child > 0, 1.0, np.where(parent > 0, _PARTIAL, 0.0))
    return np.where(place == _OTHER_PLACE, value * _ELSEWHERE, value)


_EXACT, _CHILD, _PARENT, _PLACE = (FEATURES.index(name) for name in ("exact", "child", "parent", "place"))
_OTHER_PLACE = 2


def _pairs(parts: Sequence[Part], chart: Chart) -> Floats:
    """The features of each part and each statement."""
    masks = _masks()
    names = chart.bits([part.named.names for part in parts])
    above = chart.bits([part.named.above for part in parts])
    # What a part names, then what that is a kind of, by type, in what the statement names with and without its kinds.
    (closed, wider_closed), (told, wider) = (
        shared.transpose(0, 2, 1, 3) for shared in chart.counts(np.stack([names, above])[:, :, None] * chart.kinds)
    )
    own = np.array([[part.main.bit_count()] for part in parts])
    triggers, qualities, placed = (
        np.array([[(part.named.names & masks[kind]).bit_count()] for part in parts])
        for kind in (_TRIGGER, _QUALITY, _AT)
    )
    exact, found, parents = told[_MAINS].sum(axis=0), closed[_MAINS].sum(axis=0), wider[_MAIN]
    count = np.maximum(1, own)
    concepts = chart.alone[_CONCEPTS]
    near = (closed[_AT] > 0) | (told[_AT] + wider[_AT] > 0)
    where = np.where(placed > 0, np.where(chart.alone[_HAS_PLACE] > 0, np.where(near, 3, _OTHER_PLACE), 1), 0)
    weight, shared = np.zeros(exact.shape), np.zeros(exact.shape)
    for at, part in enumerate(parts):
        for word in part.stems & chart.saying.keys():
            weight[at, chart.saying[word]] += chart.weights[word]
            shared[at, chart.saying[word]] += 1
    table = np.empty((FEATURES.index("own_match"), *exact.shape))
    modified = closed[_TRIGGER] + closed[_QUALITY] + closed[_TIME]
    for at, plane in enumerate((
        exact, found - exact, parents, wider_closed[_ANY] - wider[_ANY],
        exact / count, found / count, np.minimum(1.0, (found + parents) / count), own,
        *closed[_MAINS], wider[0], wider[1], wider[_ROOT] > 0, closed[_ROOT] > 0,
        closed[_TRIGGER], triggers, closed[_QUALITY], qualities, closed[_TIME], where,
        # All of it, if one of its concepts is a kind of something asked for.
        np.where(found > exact, concepts, exact) / np.maximum(1, concepts),
        weight / np.array([[chart.weight(part.stems)] for part in parts]), shared, weight / chart.stems,
        *np.array([(part.whole, part.place, part.conditional) for part in parts]).T[:, :, None],
        (own > 0) & (found + parents == 0) & (modified > 0),
    )):  # fmt: skip
        table[at] = plane
    return table


def _clause_pairs(clauses: Sequence[Clause], chart: Chart) -> Floats:
    """The features of each clause and each statement."""
    masks = _masks()[_TRIGGER:_AT]
    sets = [(c.subject, c.before, c.known, c.main & ~c.known, c.places, *(c.names & mask for mask in masks))
            for c in clauses]  # fmt: skip
    own = np.array([[one.bit_count() for one in (*several, clause.main)]
                    for several, clause in zip(sets, clauses, strict=True)]).T[:, :, None]  # fmt: skip
    closed, told = chart.counts(chart.bits([one for several in zip(*sets, strict=True) for one in several])).reshape(
        2, len(sets[0]), len(clauses), -1
    )
    flags = [(c.where, c.of_kin, c.worse, c.better, c.background[_DRUGS]) for c in clauses]
    where, of_kin, worse, better, drugs = np.array(flags).T[:, :, None]
    on = np.array([clause.aspects for clause in clauses]).T[:, :, None]
    tells = chart.aspects[:, None]
    asked = on.sum(axis=0)
    has_place = chart.alone[_HAS_PLACE] > 0
    planes = (
        own[0], closed[0], closed[0] / np.maximum(1, own[0]), closed[1], own[-1], own[2],
        (closed[2] > 0) & (closed[3] == 0),
        *on * (1 + tells), asked + where, np.where(asked, (on & tells).sum(axis=0) / np.maximum(1, asked), 0.5),
        where * (1 + has_place), where & (chart.places > told[4]), of_kin * 2 + chart.alone[_OF_KIN],
        (worse & chart.worse) | (better & chart.better), (worse | better) * (1 + (chart.worse | chart.better)),
        drugs * (1 + chart.alone[_TELLS_DRUGS]),
        own[5], closed[5], own[6], closed[6], own[7], closed[7],
    )  # fmt: skip
    return np.stack([np.broadcast_to(plane, closed.shape[1:]) for plane in planes], dtype=np.float64)


_DRUGS = [part.section for part in cues.BACKGROUND].index(Section.DRUGS)


def _clause_alone(clause: Clause) -> tuple[float, ...]:
    text = clause.text
    return (
        *clause.background,
        bool(cues.OPENING.search(text)), bool(cues.ANYTHING_ELSE.search(text)), bool(cues.EXAMINED.search(text)),
        bool(cues.BEFORE.search(text)), bool(cues.PRONOUN.search(text)), cues.beginning(text), len(clause.parts),
    )  # fmt: skip


def _alone(told: Statement) -> tuple[float, ...]:
    trigger, quality, time = _masks()[_TRIGGER:_AT]
    names, fact = told.named.names, told.fact
    return (
        told.well, told.nothing_else, bool(cues.IN_GENERAL.search(fact.text)), told.negative, fact.denied, told.primary,
        told.of_kin, told.drugs, told.main.bit_count(), told.length,
        fact.path.endswith(("#0", "History")),
        bool(told.places), bool(names & trigger), bool(names & time), bool(names & quality),
        *(fact.section is section for section in _SECTIONS),
    )  # fmt: skip


_OF_KIN, _TELLS_DRUGS, _CONCEPTS, _HAS_PLACE = (
    FEATURES.index(name) - FEATURES.index("well") for name in ("of_kin", "tells_drugs", "concepts", "has_place")
)


def _whole(clauses: Sequence[Clause], asked: Sequence[Asked], best: Floats) -> list[float]:
    """How much the whole question asks for, and how much of it the chart does not answer."""
    symptom, disease = lexicon.of_types("symptom"), lexicon.of_types("disease", "procedure")
    single = [(one.part, best[at] < _PARTIAL) for at, one in enumerate(asked) if not one.part.whole]
    symptoms = [silent for part, silent in single if part.named.names & symptom]
    diseases = [silent for part, silent in single if part.named.names & disease]
    mains = reduce(or_, (clause.main for clause in clauses), 0)
    return [sum(symptoms), sum(diseases), len(symptoms), len(diseases), mains.bit_count()]


def _left_open(whole: list[float], well: Floats, nothing_else: Floats) -> Floats:
    """The number of unanswered things that a statement such as "no other symptoms" would cover."""
    symptoms, diseases = whole[:2]
    return np.asarray(diseases * well + symptoms * ((nothing_else > 0) | (well > 0)))


# ---- trees


@dataclass(frozen=True)
class _Trees:
    """All trees at once. A pair starts with all leaves of a tree; where it goes right, it loses those on the left, and
    ends in the first that remains (Lucchese et al., 2015)."""

    feature: NDArray[np.intp]
    bound: Floats
    """Different splits: left if the feature is at most the bound."""
    split: NDArray[np.intp]
    """The splits of the trees: the first of each tree, then the second, ..."""
    keeps: NDArray[np.uint8]
    """The leaves that remain after going right, as bits."""
    value: Floats
    """The leaves of all trees, eight each."""
    threshold: float

    def probabilities(self, table: Floats) -> Floats:
        """One for each pair; the features are the rows of the table."""
        goes_left = np.where(table.take(self.feature, axis=0) <= self.bound, np.uint8(255), np.uint8(0))
        leaves = np.full((self.split.shape[1], table.shape[1]), 255, np.uint8)
        for split, keeps in zip(self.split, self.keeps, strict=True):
            leaves &= goes_left.take(split, axis=0) | keeps
        first = _FIRST_BIT.take(leaves.T) + np.arange(0, len(self.value), _LEAVES)
        return np.asarray(1 / (1 + np.exp(-self.value.take(first).sum(axis=1))))


_LEAVES = 8
_FIRST_BIT = np.array([(bits & -bits).bit_length() - 1 for bits in range(2**_LEAVES)])


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
        data["threshold"],
    )
