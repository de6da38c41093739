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
    told: NDArray[np.uint64]
    """Those that each statement names with what they are kinds of, and then those it names, as bits."""
    kinds: NDArray[np.uint64]
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

    def shared(self, sets: NDArray[np.uint64]) -> Floats:
        """How many concepts each set shares with what each statement names, first with and then without its kinds."""
        counts = np.bitwise_count(sets[:, :, None] & self.told[:, None]).sum(axis=0, dtype=np.float64)
        return counts.reshape(sets.shape[1], 2, -1).transpose(1, 0, 2)


def _bits(sets: Sequence[int]) -> NDArray[np.uint8]:
    width = lexicon.everything().bit_length() // 8 + 1
    packed = np.frombuffer(b"".join([one.to_bytes(width, "little") for one in sets]), np.uint8)
    return np.unpackbits(packed.reshape(len(sets), width), axis=1, bitorder="little")


def _packed(sets: Sequence[int], concepts: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Sets as columns of bits, as far as they are about these concepts."""
    return np.packbits(_bits(sets).take(concepts, axis=1), axis=1).view(np.uint64).T


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
    concepts = np.pad(concepts, (0, -len(concepts) % 64), constant_values=-1)  # the last bit is no concept
    named = [*(one.named.closed for one in told), *(one.named.names for one in told)]
    main = reduce(or_, (one.named.closed & ~lexicon.roots() for one in told if one.primary), 0)
    return Chart(
        told, weights, math.log(2 * (len(told) + 1)), saying,
        np.array([sum(weights[word] for word in one.stems) or 1.0 for one in told]),
        concepts, np.ascontiguousarray(_packed(named, concepts)), _packed(_masks(), concepts),
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
    parts, place = [one.part for one in asked], [one.at for one in asked]
    table = np.empty((len(FEATURES), len(parts), len(chart.statements)))
    if not table.size:
        return table
    mains = reduce(or_, (clause.main for clause in clauses), 0)
    of_parts = [part.named.names for part in parts] + [part.named.above for part in parts]
    of_clauses = [one for several in zip(*map(_sets, clauses), strict=True) for one in several]
    sets = _packed([*of_parts, *of_clauses, mains], chart.concepts)
    by_kind = sets[:, None, : len(of_parts)] & chart.kinds[:, :, None]
    with_kinds, named = chart.shared(np.hstack([by_kind.reshape(len(sets), -1), sets[:, len(of_parts) :]]))
    ends = by_kind.shape[1] * by_kind.shape[2]
    at = _fill(table, 0, _pairs(parts, chart, *(one[:ends].reshape(-1, 2, *table.shape[1:]) for one in (with_kinds, named))))
    matches = _matches(*table[[_EXACT, _CHILD, _PARENT, _PLACE]])
    best = matches.max(axis=1)
    begins = [place.index(at) for at in range(len(clauses))]
    at = _fill(table, at, (
        # The sum goes down the rows, as it did when the trees were fitted: in another order it may end differently.
        matches, best[:, None], np.ascontiguousarray(matches.T).sum(axis=0)[:, None],
        (matches[:, None] > matches[:, :, None]).sum(axis=2), matches[begins][place],
        matches.max(axis=0), np.array([[bool(part.main & chart.main)] for part in parts]), chart.tells_main,
    ))  # fmt: skip
    shape = (-1, len(clauses), table.shape[2])
    with_clause = np.empty((FEATURES.index("asks_family_history") - at, *shape[1:]))
    _fill(with_clause, 0, _clause_pairs(clauses, chart, *(one[ends:-1].reshape(shape) for one in (with_kinds, named))))
    of_clause = np.array([[*_clause_alone(clause), len(clauses), at] for at, clause in enumerate(clauses)])
    whole = _whole(asked, best)
    for block in (with_clause[:, place], of_clause[place].T[:, :, None], chart.alone[:, None]):
        table[at : at + len(block)] = block
        at += len(block)
    _fill(table, at, (*whole, mains.bit_count(), _left_open(whole, *chart.alone[:2]), with_kinds[-1]))
    return table


def _fill(table: Floats, at: int, planes: Iterable[Floats | float]) -> int:
    """Write features into a table from a place on, and return the place after them."""
    for plane in planes:
        table[at] = plane
        at += 1
    return at


def _matches(exact: Floats, child: Floats, parent: Floats, place: Floats) -> Floats:
    """A rough match score of a statement and a part, to see which parts the chart answers."""
    value = np.where(exact + child > 0, 1.0, np.where(parent > 0, _PARTIAL, 0.0))
    return np.where(place == _OTHER_PLACE, value * _ELSEWHERE, value)


_EXACT, _CHILD, _PARENT, _PLACE = (FEATURES.index(name) for name in ("exact", "child", "parent", "place"))
_OTHER_PLACE = 2


def _pairs(parts: Sequence[Part], chart: Chart, with_kinds: Floats, named: Floats) -> Iterable[Floats | float]:
    """The features of each part and each statement.

    Given how many concepts of each type the part names, or names a kind of, that the statement names too.
    """
    masks = _masks()
    (closed, above_closed), (told, wider) = with_kinds.swapaxes(0, 1), named.swapaxes(0, 1)
    own, triggers, qualities, placed, whole, place, conditional = np.array(
        [
            (part.main.bit_count(), *((part.named.names & masks[kind]).bit_count() for kind in (_TRIGGER, _QUALITY, _AT)),
             part.whole, part.place, part.conditional)
            for part in parts
        ]
    ).T[:, :, None]  # fmt: skip
    exact, found, parents = told[_MAINS].sum(axis=0), closed[_MAINS].sum(axis=0), wider[_MAIN]
    count = np.maximum(1, own)
    concepts = chart.alone[_CONCEPTS]
    near = closed[_AT] + told[_AT] + wider[_AT] > 0
    weight, shared = np.zeros((2, *exact.shape))
    for at, part in enumerate(parts):
        for word in part.stems & chart.saying.keys():
            weight[at, chart.saying[word]] += chart.weights[word]
            shared[at, chart.saying[word]] += 1
    return (
        exact, found - exact, parents, above_closed[_ANY] - wider[_ANY],
        exact / count, found / count, np.minimum(1.0, (found + parents) / count), own,
        *closed[_MAINS], wider[0], wider[1], wider[_ROOT] > 0, closed[_ROOT] > 0,
        closed[_TRIGGER], triggers, closed[_QUALITY], qualities, closed[_TIME],
        (placed > 0) * np.where(chart.places > 0, np.where(near, 3, _OTHER_PLACE), 1),
        # All of it, if one of its concepts is a kind of something asked for.
        np.where(found > exact, concepts, exact) / np.maximum(1, concepts),
        weight / np.array([[chart.weight(part.stems)] for part in parts]), shared, weight / chart.stems,
        whole, place, conditional,
        (own > 0) & (found + parents == 0) & (closed[_TRIGGER] + closed[_QUALITY] + closed[_TIME] > 0),
    )  # fmt: skip


def _sets(clause: Clause) -> tuple[int, ...]:
    """What a clause is about, and what it names of the types that narrow a question down."""
    narrow = (clause.names & mask for mask in _masks()[_TRIGGER:_AT])
    return (clause.subject, clause.before, clause.known, clause.main & ~clause.known, clause.places, *narrow)


def _clause_pairs(clauses: Sequence[Clause], chart: Chart, closed: Floats, told: Floats) -> Iterable[Floats | float]:
    """The features of each clause and each statement, given how many concepts of `_sets` the statement names."""
    where, of_kin, worse, better, drugs, main, *own = np.array(
        [
            (c.where, c.of_kin, c.worse, c.better, c.background[_DRUGS], c.main.bit_count(),
             *(one.bit_count() for one in _sets(c)))
            for c in clauses
        ]
    ).T[:, :, None]  # fmt: skip
    on = np.array([clause.aspects for clause in clauses]).T[:, :, None]
    asked = on.sum(axis=0)
    tells = on & chart.aspects[:, None]
    return (
        own[0], closed[0], closed[0] / np.maximum(1, own[0]), closed[1], main, own[2],
        (closed[2] > 0) & (closed[3] == 0),
        *np.add(on, tells, dtype=np.int64), asked + where,
        np.where(asked, tells.sum(axis=0) / np.maximum(1, asked), 0.5),
        where * (1 + (chart.places > 0)), where * (chart.places > told[4]), of_kin * 2 + chart.alone[_OF_KIN],
        (worse & chart.worse) | (better & chart.better), (worse | better) * (1 + (chart.worse | chart.better)),
        drugs * (1 + chart.alone[_TELLS_DRUGS]),
        own[5], closed[5], own[6], closed[6], own[7], closed[7],
    )  # fmt: skip


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


_OF_KIN, _TELLS_DRUGS, _CONCEPTS = (
    FEATURES.index(name) - FEATURES.index("well") for name in ("of_kin", "tells_drugs", "concepts")
)


def _whole(asked: Sequence[Asked], best: Floats) -> list[float]:
    """How much the whole question asks for, and how much of it the chart does not answer."""
    symptom, disease = lexicon.of_types("symptom"), lexicon.of_types("disease", "procedure")
    single = [(one.part, best[at] < _PARTIAL) for at, one in enumerate(asked) if not one.part.whole]
    symptoms = [silent for part, silent in single if part.named.names & symptom]
    diseases = [silent for part, silent in single if part.named.names & disease]
    return [sum(symptoms), sum(diseases), len(symptoms), len(diseases)]


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
