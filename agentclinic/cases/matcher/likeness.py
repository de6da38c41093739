"""How well a statement answers a part of a question: features of the pair, weighed by trees fitted to labelled questions.

The features are read off the lexicon and the cues; nothing of the case's truth is among them. `benchmarks/fit_patient.py`
fits the trees to questions whose answers readers marked (`benchmarks/labels`) and writes `data/answers.json`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentclinic.cases.matcher import cues, lexicon
from agentclinic.cases.matcher.asking import MAIN_TYPES, Clause, Part
from agentclinic.cases.matcher.statements import Statement, statement
from agentclinic.cases.model import PATIENT_SECTIONS, Fact, Section

Floats = NDArray[np.float64]
_TREES = Path(__file__).parent.parent / "data" / "answers.json"
_SECTIONS = tuple(section for section in Section if section in PATIENT_SECTIONS)
_PARTIAL = 0.6
"""How much a denied parent counts as a match when looking which parts the chart answers at all."""
_ELSEWHERE = 0.3
"""How much a match at another place counts there."""

FEATURES = (
    # the part and the statement
    "exact", "child", "parent", "sibling", "exact_share", "match_share", "link_share", "part_concepts",
    *(f"match_{kind}" for kind in MAIN_TYPES), "parent_symptom", "parent_disease", "root_told", "root_asked",
    "match_trigger", "part_triggers", "match_quality", "part_qualities", "match_time",
    "place", "statement_share", "word_share", "words", "statement_word_share", "whole", "part_at", "conditional",
    # the part and the whole chart
    "own_match", "best_match", "all_matches", "rank", "first_match", "other_match",
    "asks_main_complaint", "tells_main_complaint",
    # the clause and the statement
    "subject", "subject_match", "subject_share", "match_before", "clause_concepts", "known", "only_known",
    *(f"aspect_{aspect.name}" for aspect in cues.ASPECTS), "aspects_asked", "aspects_told", "where", "finer_place",
    "kin", "direction", "changes", "drugs",
    "clause_triggers", "clause_trigger_match", "clause_qualities", "clause_quality_match", "clause_times", "clause_time_match",
    # the clause
    *(f"asks_{part.section.value}" for part in cues.BACKGROUND), "opening", "anything_else", "examined", "past",
    "pronoun", "beginning", "parts", "clauses", "clause",
    # the statement
    "well", "nothing_else", "general", "negative", "denied", "primary", "of_kin", "tells_drugs", "concepts", "length",
    "place_in_script", "first", "has_place", "has_trigger", "has_time", "has_quality",
    *(f"in_{section.value}" for section in _SECTIONS),
    # the question and the chart
    "silent_symptoms", "silent_diseases", "silent_and_general", "symptoms_asked", "diseases_asked", "asked", "asked_told",
)  # fmt: skip
"""What is known of a part of a question and a statement, in the order of the columns."""


@dataclass(frozen=True)
class Asked:
    """A part of a question with the clause it stands in."""

    clause: Clause
    at: int
    part: Part


def parts_of(clauses: Sequence[Clause]) -> list[Asked]:
    """Every part of every clause."""
    return [Asked(clause, at, part) for at, clause in enumerate(clauses) for part in clause.parts]


def likeness(clauses: Sequence[Clause], facts: Sequence[Fact]) -> Floats:
    """How probable it is that a statement (row) answers a part of the question (column of `parts_of`)."""
    table = features(clauses, facts)
    rows, columns, width = table.shape
    if not rows or not columns:
        return np.zeros((rows, columns))
    return _trees().probabilities(table.reshape(-1, width)).reshape(rows, columns)


def threshold() -> float:
    """The probability from which on a statement is told."""
    return _trees().threshold


# ---- features


def features(clauses: Sequence[Clause], facts: Sequence[Fact]) -> Floats:
    """The features of every statement with every part of the question."""
    asked = parts_of(clauses)
    chart = [statement(fact) for fact in facts]
    weights = _word_weights(chart)
    pairs = [[_pair(one, told, weights) for one in asked] for told in chart]
    matches = np.array([[_match(pair) for pair in row] for row in pairs]).reshape(len(chart), len(asked))
    begins = [next(at for at, one in enumerate(asked) if one.at == place) for place in range(len(clauses))]
    firsts = [[matches[row, at] for at in begins] for row in range(len(chart))]
    others = matches.max(axis=1, initial=0.0)
    main = 0
    for told in chart:
        main |= told.named.closed & ~lexicon.roots() if told.primary else 0
    best = matches.max(axis=0, initial=0.0)
    sums = matches.sum(axis=0)
    whole = _whole(clauses, asked, best)
    made = np.zeros((len(chart), len(asked), len(FEATURES)))
    for row, told in enumerate(chart):
        alone = _alone(told, row, len(chart))
        general = [*whole[:2], whole[1] * told.well + whole[0] * (told.nothing_else or told.well), *whole[2:5]]
        general += [*whole[5:], (_mains(clauses) & told.named.closed).bit_count()]
        with_clause = [_clause_pair(clause, told) for clause in clauses]
        for column, one in enumerate(asked):
            rank = int((matches[:, column] > matches[row, column]).sum())
            made[row, column] = [
                *pairs[row][column],
                matches[row, column], best[column], sums[column], rank, firsts[row][one.at], others[row],
                bool(one.part.main & main), bool(told.main & main),
                *with_clause[one.at],
                *_clause_alone(one.clause), len(clauses), one.at,
                *alone,
                *general,
            ]  # fmt: skip
    return made


@lru_cache(maxsize=1)
def _masks() -> tuple[int, ...]:
    return tuple(lexicon.of_types(kind) for kind in (*MAIN_TYPES, "trigger", "quality", "time", "place"))


def _word_weights(chart: Sequence[Statement]) -> dict[str, float]:
    """Rare words of a chart say more than those that every statement has."""
    counts: dict[str, int] = {}
    for told in chart:
        for word in told.stems:
            counts[word] = counts.get(word, 0) + 1
    return {word: float(np.log((len(chart) + 1) / (count + 0.5))) for word, count in counts.items()}


def _pair(one: Asked, told: Statement, weights: dict[str, float]) -> list[float]:
    part = one.part
    *mains, trigger, quality, time, place = _masks()
    names, above = part.named.names, part.named.above
    exact = names & told.named.names
    match = names & told.named.closed
    # What the statement names that is more general than what was asked for.
    wider = above & told.named.names & ~match
    here, linked = part.main & match, part.main
    own = part.main.bit_count()
    exact_main = (part.main & exact).bit_count()
    found = here.bit_count()
    parents = (wider & told.main & ~lexicon.roots()).bit_count()
    siblings = (above & told.named.above & ~wider & ~lexicon.roots()).bit_count()
    rare = np.log(len(weights) + 1) if weights else 1.0
    shared = part.stems & told.stems
    weight = sum(weights[word] for word in shared)
    asked_weight = sum(weights.get(word, rare) for word in part.stems) or 1.0
    told_weight = sum(weights[word] for word in told.stems) or 1.0
    count = max(1, linked.bit_count())
    return [
        exact_main, found - exact_main, parents, siblings,
        exact_main / count, found / count, min(1.0, (found + parents) / count), own,
        *((match & kind).bit_count() for kind in mains), (wider & mains[0]).bit_count(), (wider & mains[1]).bit_count(),
        bool(wider & lexicon.roots()), bool(match & lexicon.roots()),
        (match & trigger).bit_count(), (names & trigger).bit_count(),
        (match & quality).bit_count(), (names & quality).bit_count(), (match & time).bit_count(),
        _same_place(part.named.closed & place, names & place, told),
        (told.main & (names | _below(part, told))).bit_count() / max(1, told.main.bit_count()),
        weight / asked_weight, len(shared), weight / told_weight, part.whole, part.place, part.conditional,
    ]  # fmt: skip


def _below(part: Part, told: Statement) -> int:
    """The statement's concepts that are kinds of one that was asked for, where all hang on one."""
    return told.main if part.main & told.named.above else 0


def _same_place(closed: int, names: int, told: Statement) -> int:
    """0: no place asked for; 1: none told; 2: another one; 3: the same, a part of it or the greater part."""
    if not names:
        return 0
    if not told.places:
        return 1
    return 3 if names & told.named.closed or closed & told.places else 2


def _match(pair: list[float]) -> float:
    """How far a statement is about a part, roughly: enough to see which parts the chart answers."""
    exact, child, parent = pair[:3]
    place = pair[_PLACE]
    value = 1.0 if exact or child else _PARTIAL if parent else 0.0
    return value * _ELSEWHERE if place == 2 else value


_PLACE = FEATURES.index("place")


def _clause_pair(clause: Clause, told: Statement) -> list[float]:
    closed = told.named.closed
    subject = (clause.subject & closed).bit_count()
    count = clause.subject.bit_count()
    asked = [told.aspects[at] for at, on in enumerate(clause.aspects) if on]
    where = bool(cues.WHERE.search(clause.text))
    worse, better = _directions(clause.text)
    only_known = bool(clause.known & closed) and not clause.main & ~clause.known & closed
    return [
        count, subject, subject / max(1, count), (clause.before & closed).bit_count(), clause.main.bit_count(),
        clause.known.bit_count(), only_known,
        *((1 + tells if on else 0) for on, tells in zip(clause.aspects, told.aspects, strict=True)),
        len(asked) + where, (sum(asked) / len(asked) if asked else 0.5), where * (1 + bool(told.places)),
        where and bool(told.places & ~clause.places),
        clause.of_kin * 2 + told.of_kin,
        (worse and told.worse) or (better and told.better), (worse or better) * (1 + (told.worse or told.better)),
        clause.background[_DRUGS] * (1 + told.drugs),
        *(
            count
            for kind in _masks()[len(MAIN_TYPES) : -1]
            for count in ((clause.names & kind).bit_count(), (clause.names & kind & closed).bit_count())
        ),
    ]  # fmt: skip


_DRUGS = [part.section for part in cues.BACKGROUND].index(Section.DRUGS)


@lru_cache(maxsize=8192)
def _directions(clause: str) -> tuple[bool, bool]:
    return bool(cues.WORSE.search(clause)), bool(cues.BETTER.search(clause))


@lru_cache(maxsize=8192)
def _clause_alone(clause: Clause) -> tuple[float, ...]:
    text = clause.text
    return (
        *clause.background,
        bool(cues.OPENING.search(text)), bool(cues.ANYTHING_ELSE.search(text)), bool(cues.EXAMINED.search(text)),
        bool(cues.BEFORE.search(text)), bool(cues.PRONOUN.search(text)), cues.beginning(text), len(clause.parts),
    )  # fmt: skip


def _alone(told: Statement, row: int, rows: int) -> list[float]:
    *_, trigger, quality, time, _ = _masks()
    names, fact = told.named.names, told.fact
    return [
        told.well, told.nothing_else, bool(cues.IN_GENERAL.search(fact.text)), told.negative, fact.denied, told.primary,
        told.of_kin, told.drugs, told.main.bit_count(), told.length, row / rows,
        fact.path.endswith(("#0", "History")),
        bool(told.places), bool(names & trigger), bool(names & time), bool(names & quality),
        *(fact.section is section for section in _SECTIONS),
    ]  # fmt: skip


def _mains(clauses: Sequence[Clause]) -> int:
    mains = 0
    for clause in clauses:
        mains |= clause.main
    return mains


def _whole(clauses: Sequence[Clause], asked: Sequence[Asked], best: Floats) -> list[float]:
    """What the question asks for in all, and what of it the chart is silent on."""
    symptom, disease = lexicon.of_types("symptom"), lexicon.of_types("disease", "procedure")
    single = [(one.part, best[at] < _PARTIAL) for at, one in enumerate(asked) if not one.part.whole]
    symptoms = [silent for part, silent in single if part.named.names & symptom]
    diseases = [silent for part, silent in single if part.named.names & disease]
    return [sum(symptoms), sum(diseases), len(symptoms), len(diseases), _mains(clauses).bit_count()]


# ---- trees


@dataclass(frozen=True)
class _Trees:
    """Trees side by side: node by node the feature asked, the bound, and where to go; a leaf goes to itself."""

    feature: NDArray[np.int64]
    bound: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Floats
    depth: int
    threshold: float

    def probabilities(self, table: Floats) -> Floats:
        """The probability of each row."""
        trees = np.arange(self.feature.shape[0])
        rows = np.arange(len(table))[:, None]
        node = np.zeros((len(table), len(trees)), dtype=np.int64)
        for _ in range(self.depth):
            goes_left = table[rows, self.feature[trees, node]] <= self.bound[trees, node]
            node = np.where(goes_left, self.left[trees, node], self.right[trees, node])
        return np.asarray(1 / (1 + np.exp(-self.value[trees, node].sum(axis=1))))


@lru_cache(maxsize=1)
def _trees() -> _Trees:
    data = json.loads(_TREES.read_text(encoding="utf-8"))
    if tuple(data["features"]) != FEATURES:
        raise ValueError(f"{_TREES.name} was fitted to other features; run benchmarks/fit_patient.py")
    return _Trees(
        *(np.array(data[key], dtype=kind) for key, kind in
          (("feature", np.int64), ("bound", np.float64), ("left", np.int64), ("right", np.int64), ("value", np.float64))),
        data["depth"],
        data["threshold"],
    )  # fmt: skip
