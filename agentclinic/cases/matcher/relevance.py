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
    table = features(clauses, facts)
    found = np.zeros(table.shape[:2])
    possible = (table[:, :, _SIGNS] > 0).any(axis=2)
    if possible.any():
        found[possible] = _trees().probabilities(table[possible])
    return found


def threshold() -> float:
    """The probability above which a statement is told."""
    return _trees().threshold


# ---- features


def features(clauses: Sequence[Clause], facts: Sequence[Fact]) -> Floats:
    asked = parts_of(clauses)
    chart = [statement(fact) for fact in facts]
    rows, columns = len(chart), len(asked)
    if not rows or not columns:
        return np.zeros((rows, columns, len(FEATURES)))
    words = _Words.of(chart)
    wanted = [(one.part, words.weight(one.part.stems) or 1.0, _nothing_shared(one.part)) for one in asked]
    pairs = np.array([[_pair(*one, told, words) for one in wanted] for told in chart])
    matches = _matches(pairs)
    place = [one.at for one in asked]
    begins = [place.index(at) for at in range(len(clauses))]
    main = reduce(or_, (told.named.closed & ~lexicon.roots() for told in chart if told.primary), 0)
    of_chart = (
        matches, matches.max(axis=0), matches.sum(axis=0), _rank(matches),
        matches[:, begins][:, place], matches.max(axis=1, keepdims=True),
        np.array([bool(one.part.main & main) for one in asked]),
        np.array([[bool(told.main & main)] for told in chart]),
    )  # fmt: skip
    with_clause = np.array([[_clause_pair(clause, told) for clause in clauses] for told in chart])[:, place]
    of_clause = np.array([[*_clause_alone(clause), len(clauses), at] for at, clause in enumerate(clauses)])[place]
    alone = np.array([[*_alone(told), row / rows] for row, told in enumerate(chart)])
    whole = _whole(clauses, asked, matches.max(axis=0))
    mains = _mains(clauses)
    of_question = np.array(
        [[*whole, *_left_open(whole, told), (mains & told.named.closed).bit_count()] for told in chart]
    )
    blocks = (pairs, *(np.broadcast_to(one, (rows, columns))[..., None] for one in of_chart), with_clause,
              of_clause[None], alone[:, None], of_question[:, None])  # fmt: skip
    return np.concatenate([np.broadcast_to(b, (rows, columns, b.shape[2])) for b in blocks], axis=2, dtype=np.float64)


def _matches(pairs: Floats) -> Floats:
    """A rough match score of a statement and a part, to see which parts the chart answers."""
    hit = (pairs[:, :, _EXACT] + pairs[:, :, _CHILD]) > 0
    value = np.where(hit, 1.0, np.where(pairs[:, :, _PARENT] > 0, _PARTIAL, 0.0))
    return np.asarray(np.where(pairs[:, :, _PLACE] == _OTHER_PLACE, value * _ELSEWHERE, value))


def _rank(matches: Floats) -> Floats:
    """How many statements match a part better than this one; there are only a few different scores."""
    better = ((matches < score) * (matches == score).sum(axis=0) for score in np.unique(matches))
    return np.asarray(sum(better), dtype=np.float64)


_EXACT, _CHILD, _PARENT, _PLACE = (FEATURES.index(name) for name in ("exact", "child", "parent", "place"))
_OTHER_PLACE = 2


@dataclass(frozen=True)
class _Words:
    """Weights of the words in a chart: rare words say more than common ones."""

    weights: dict[str, float]
    unknown: float

    @classmethod
    def of(cls, chart: Sequence[Statement]) -> _Words:
        counts = Counter(word for told in chart for word in told.stems)
        weights = {word: math.log((len(chart) + 1) / (count + 0.5)) for word, count in counts.items()}
        return cls(weights, math.log(2 * (len(chart) + 1)))

    def weight(self, words: Iterable[str]) -> float:
        return sum(self.weights.get(word, self.unknown) for word in words)


@lru_cache(maxsize=1)
def _masks() -> tuple[int, ...]:
    return tuple(lexicon.of_types(kind) for kind in (*MAIN_TYPES, "trigger", "quality", "time", "place"))


def _pair(part: Part, asked_weight: float, unshared: list[float], told: Statement, words: _Words) -> list[float]:
    *mains, trigger, quality, time, place = _masks()
    names, above = part.named.names, part.named.above
    match = names & told.named.closed
    # Concepts in the statement that are more general than what was asked.
    wider = above & told.named.names & ~match
    shared = part.stems & told.stems
    kin = above & told.named.above & ~wider & ~lexicon.roots()
    if not (match or wider or shared or kin):
        nothing = unshared.copy()
        nothing[_PLACE] = _same_place(part.named.closed & place, names & place, told)
        return nothing
    own = part.main.bit_count()
    exact = (part.main & told.named.names).bit_count()
    found = (part.main & match).bit_count()
    parents = (wider & told.main & ~lexicon.roots()).bit_count()
    siblings = kin.bit_count()
    weight = words.weight(shared) if shared else 0.0
    count = max(1, own)
    return [
        exact, found - exact, parents, siblings,
        exact / count, found / count, min(1.0, (found + parents) / count), own,
        *([(match & kind).bit_count() for kind in mains] if match else _NO_TYPES),
        (wider & mains[0]).bit_count(), (wider & mains[1]).bit_count(),
        bool(wider & lexicon.roots()), bool(match & lexicon.roots()),
        (match & trigger).bit_count(), (names & trigger).bit_count(),
        (match & quality).bit_count(), (names & quality).bit_count(), (match & time).bit_count(),
        _same_place(part.named.closed & place, names & place, told),
        (told.main & (names | _below(part, told))).bit_count() / max(1, told.main.bit_count()),
        weight / asked_weight, len(shared),
        weight / (words.weight(told.stems) or 1.0) if shared else 0.0,
        part.whole, part.place, part.conditional,
        bool(own and not found and not parents and match & (trigger | quality | time)),
    ]  # fmt: skip


_NO_TYPES = [0] * len(MAIN_TYPES)


def _nothing_shared(part: Part) -> list[float]:
    """The features of a part and a statement with nothing in common, which most pairs have."""
    *_, trigger, quality, _, _ = _masks()
    names = part.named.names
    values = {
        "part_concepts": part.main.bit_count(), "part_triggers": (names & trigger).bit_count(),
        "part_qualities": (names & quality).bit_count(), "whole": part.whole, "part_at": part.place,
        "conditional": part.conditional,
    }  # fmt: skip
    return [values.get(name, 0) for name in FEATURES[: FEATURES.index("own_match")]]


def _below(part: Part, told: Statement) -> int:
    """The statement's concepts, if one of them is a kind of something asked for."""
    return told.main if part.main & told.named.above else 0


def _same_place(closed: int, names: int, told: Statement) -> int:
    """0: no place asked for; 1: none told; 2: a different one; 3: the same, part of it, or containing it."""
    if not names:
        return 0
    if not told.places:
        return 1
    return 3 if names & told.named.closed or closed & told.places else 2


def _clause_pair(clause: Clause, told: Statement) -> list[float]:
    closed = told.named.closed
    subject, count = (clause.subject & closed).bit_count(), clause.subject.bit_count()
    trigger, quality, time = _masks()[len(MAIN_TYPES) : -1]
    asked = [tells for on, tells in zip(clause.aspects, told.aspects, strict=True) if on]
    aspects = (
        [1 + tells if on else 0 for on, tells in zip(clause.aspects, told.aspects, strict=True)] if asked else _NONE
    )
    names = clause.names
    return [
        count, subject, subject / max(1, count), (clause.before & closed).bit_count(), clause.main.bit_count(),
        clause.known.bit_count(), bool(clause.known & closed) and not clause.main & ~clause.known & closed,
        *aspects, len(asked) + clause.where, (sum(asked) / len(asked) if asked else 0.5),
        clause.where * (1 + bool(told.places)), clause.where and bool(told.places & ~clause.places),
        clause.of_kin * 2 + told.of_kin,
        (clause.worse and told.worse) or (clause.better and told.better),
        (clause.worse or clause.better) * (1 + (told.worse or told.better)),
        clause.background[_DRUGS] * (1 + told.drugs),
        (names & trigger).bit_count(), (names & trigger & closed).bit_count(),
        (names & quality).bit_count(), (names & quality & closed).bit_count(),
        (names & time).bit_count(), (names & time & closed).bit_count(),
    ]  # fmt: skip


_NONE = [0] * len(cues.ASPECTS)
_DRUGS = [part.section for part in cues.BACKGROUND].index(Section.DRUGS)


def _clause_alone(clause: Clause) -> tuple[float, ...]:
    text = clause.text
    return (
        *clause.background,
        bool(cues.OPENING.search(text)), bool(cues.ANYTHING_ELSE.search(text)), bool(cues.EXAMINED.search(text)),
        bool(cues.BEFORE.search(text)), bool(cues.PRONOUN.search(text)), cues.beginning(text), len(clause.parts),
    )  # fmt: skip


@lru_cache(maxsize=32768)
def _alone(told: Statement) -> tuple[float, ...]:
    *_, trigger, quality, time, _ = _masks()
    names, fact = told.named.names, told.fact
    return (
        told.well, told.nothing_else, bool(cues.IN_GENERAL.search(fact.text)), told.negative, fact.denied, told.primary,
        told.of_kin, told.drugs, told.main.bit_count(), told.length,
        fact.path.endswith(("#0", "History")),
        bool(told.places), bool(names & trigger), bool(names & time), bool(names & quality),
        *(fact.section is section for section in _SECTIONS),
    )  # fmt: skip


def _mains(clauses: Sequence[Clause]) -> int:
    return reduce(or_, (clause.main for clause in clauses), 0)


def _whole(clauses: Sequence[Clause], asked: Sequence[Asked], best: Floats) -> list[float]:
    """How much the whole question asks for, and how much of it the chart does not answer."""
    symptom, disease = lexicon.of_types("symptom"), lexicon.of_types("disease", "procedure")
    single = [(one.part, best[at] < _PARTIAL) for at, one in enumerate(asked) if not one.part.whole]
    symptoms = [silent for part, silent in single if part.named.names & symptom]
    diseases = [silent for part, silent in single if part.named.names & disease]
    return [sum(symptoms), sum(diseases), len(symptoms), len(diseases), _mains(clauses).bit_count()]


def _left_open(whole: list[float], told: Statement) -> tuple[float]:
    """The number of unanswered things that a statement such as "no other symptoms" would cover."""
    symptoms, diseases = whole[:2]
    return (diseases * told.well + symptoms * (told.nothing_else or told.well),)


# ---- trees


@dataclass(frozen=True)
class _Trees:
    """All trees in flat arrays, one entry per node: feature, bound and next node. A leaf points to itself."""

    feature: NDArray[np.int64]
    bound: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats
    roots: NDArray[np.int64]
    """The first node of each tree."""
    depth: int
    threshold: float

    def probabilities(self, table: Floats) -> Floats:
        width = table.shape[1]
        flat = np.ascontiguousarray(table).ravel()
        offset = (np.arange(len(table)) * width)[:, None]
        node = np.broadcast_to(self.roots, (len(table), len(self.roots)))
        for _ in range(self.depth):
            low = flat.take(self.feature.take(node) + offset) <= self.bound.take(node)
            node = np.where(low, self.left.take(node), self.right.take(node))
        return np.asarray(1 / (1 + np.exp(-self.value.take(node).sum(axis=1))))


@lru_cache(maxsize=1)
def _trees() -> _Trees:
    data = json.loads(_TREES.read_text(encoding="utf-8"))
    if tuple(data["features"]) != FEATURES:
        raise ValueError(f"{_TREES.name} was fitted to different features; run benchmarks/fit_patient.py --write")
    nodes = len(data["feature"][0])
    roots = np.arange(len(data["feature"])) * nodes
    left, right = (np.array(data[key], dtype=np.int64) + roots[:, None] for key in ("left", "right"))
    return _Trees(
        np.array(data["feature"], dtype=np.int64).ravel(),
        np.array(data["bound"]).ravel(),
        left.ravel(),
        right.ravel(),
        np.array(data["value"]).ravel(),
        roots,
        data["depth"],
        data["threshold"],
    )
