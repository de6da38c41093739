"""The planner's table with `scoring: bayes`: hypotheses with priors, and findings with how expected each of them is.

    posterior(h) ~ prior(h) x product over the known findings of P(finding as observed | h)

The planner gives priors and words, code does the rest. The table is kept: a plan can add hypotheses, findings and
ratings, say what has become known, correct ratings, and withdraw findings. "Something else" is a hypothesis like the
others. Findings that are unknown or cannot be had count nothing, and of a group of findings only the most telling known
one counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Literal

from agentclinic.doctors.planner.schema import (
    NewFinding,
    Rating,
    TableReply,
    TableState,
    Word,
    read_share,
)
from agentclinic.doctors.planner.weighing import meaning
from agentclinic.results.utterance import REQUEST_TEST
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import fold

WORDS: dict[Word, float] = {
    "almost never": 0.02,
    "rarely": 0.1,
    "sometimes": 0.3,
    "often": 0.6,
    "usually": 0.85,
    "almost always": 0.97,
}
"""How probable a finding is. A finding that all but decides changes the odds by a factor of 48 (0.97 / 0.02), and one
that is absent where it should be present by a factor of 33 (0.98 / 0.03). The planner is told these numbers."""
_OTHER_WORDS: dict[str, Word] = {
    **dict.fromkeys(("never", "very rarely", "very rare", "very unlikely"), "almost never"),
    **dict.fromkeys(("rare", "seldom", "unlikely", "uncommon", "uncommonly", "infrequently"), "rarely"),
    **dict.fromkeys(("occasionally", "possible", "possibly", "maybe"), "sometimes"),
    **dict.fromkeys(("common", "commonly", "frequent", "frequently", "half"), "often"),
    **dict.fromkeys(("usual", "typical", "typically", "likely", "very often", "mostly"), "usually"),
    **dict.fromkeys(("always", "nearly always", "very likely"), "almost always"),
}
OTHER = "other"
REST = "rest"
"""In a rating: all hypotheses, and `other`, that have no rating of their own."""
OTHER_NAME = "something else"
LEAST_OTHER = 0.05
"""The list of hypotheses is never complete, so the priors always leave at least this much for something else."""
_LEAST_PRIOR = 0.001
"""A prior of 0 could never be moved by any finding."""
_UNSTATED_PRIOR = 0.05
MOST_HYPOTHESES = 15
"""More than a plan may name, because hypotheses stay and new ones must find room."""
MOST_ROWS = 60
"""Twenty turns with three new findings each."""
_MOST_AT_ONCE = 8
"""Findings of one request that are considered together: 2^8 results."""


@dataclass(frozen=True)
class Row:
    """A finding, how expected it is, and what is known of it."""

    finding: str
    request: str = ""
    """How to find it out: a question, or REQUEST TEST: and a test."""
    group: str = ""
    rated: Mapping[str, Word] = field(default_factory=dict)
    """By name of the hypothesis, and `other`."""
    observed: TableState | Literal["withdrawn"] = "unknown"
    """What is withdrawn keeps its number and counts nothing."""

    @property
    def is_test(self) -> bool:
        """Whether a test finds it out, and not a question."""
        return self.request.upper().startswith(REQUEST_TEST)

    @property
    def known(self) -> bool:
        return self.observed in ("present", "absent")


@dataclass(frozen=True)
class Belief:
    """A hypothesis and its probability."""

    diagnosis: str
    confidence: float
    """The posterior."""
    coverage: float
    """Share of the findings that are known."""
    unknowns: tuple[str, ...]
    """What would speak for it and is not known, the most telling first."""


@dataclass(frozen=True)
class Step:
    """A question or test that has not been done, and what it may tell."""

    request: str
    is_test: bool
    bits: float
    """Expected information about whether the leader is right."""
    lowest: float
    """The leader's probability after its least favorable result."""


@dataclass(frozen=True)
class Table:
    """Hypotheses and findings of one encounter; never changed, only replaced."""

    priors: Mapping[str, float] = field(default_factory=dict)
    """By name, as the planner gave them."""
    rows: tuple[Row, ...] = ()

    @cached_property
    def counting(self) -> tuple[Row, ...]:
        """The findings that have not been withdrawn."""
        return tuple(row for row in self.rows if row.observed != "withdrawn")

    # --- what follows from it -----------------------------------------------------------------------------------------

    @cached_property
    def prior(self) -> dict[str, float]:
        """The priors as probabilities: what they leave of 1 is `other`, at least 0.05."""
        total = math.fsum(self.priors.values())
        most = min(total, 1 - LEAST_OTHER)
        return {name: p * most / total for name, p in self.priors.items()} | {OTHER: 1 - most}

    @cached_property
    def posterior(self) -> dict[str, float]:
        """The probability of each hypothesis and of `other`."""
        logs = {name: math.log(p) for name, p in self.prior.items()}
        for row in self._counted():
            for name, p in self._expected(row).items():
                logs[name] += math.log(p if row.observed == "present" else 1 - p)
        highest = max(logs.values())
        shares = {name: math.exp(value - highest) for name, value in logs.items()}
        total = math.fsum(shares.values())
        return {name: share / total for name, share in shares.items()}

    @property
    def ranked(self) -> tuple[Belief, ...]:
        """The hypotheses, most probable first; ties go to the one named first."""
        known = sum(row.known for row in self.rows) / len(self.counting) if self.counting else 0.0
        names = sorted(self.priors, key=lambda name: -self.posterior[name])
        return tuple(Belief(name, self.posterior[name], known, self._unknowns(name)) for name in names)

    def steps(self, is_done: Callable[[str], bool]) -> tuple[Step, ...]:
        """What has not been done, most informative between the leader and the rest first."""
        by_request: dict[str, list[Row]] = {}
        for row in self.rows:
            if row.observed == "unknown" and row.request:
                by_request.setdefault(fold(row.request), []).append(row)
        open_ = [rows for rows in by_request.values() if not is_done(rows[0].request)]
        return tuple(sorted(map(self._step, open_), key=lambda step: -step.bits))

    def _step(self, rows: Sequence[Row]) -> Step:
        leader = max(self.priors, key=lambda name: self.posterior[name])
        p = self.posterior
        telling = sorted(self._adding(rows), key=lambda row: -self._spread(row))[:_MOST_AT_ONCE]
        expected = [self._expected(row) for row in telling]
        bits, lowest = _entropy(p[leader]), p[leader]
        for results in product((True, False), repeat=len(expected)):
            joint = {
                name: share
                * math.prod(e[name] if found else 1 - e[name] for e, found in zip(expected, results, strict=True))
                for name, share in p.items()
            }
            chance = math.fsum(joint.values())
            after = joint[leader] / chance
            bits -= chance * _entropy(after)
            lowest = min(lowest, after)
        return Step(rows[0].request, rows[0].is_test, max(0.0, bits), lowest)

    def _counted(self) -> list[Row]:
        """The known findings that count: of each group, the most telling one."""
        return self._one_of_each_group([row for row in self.rows if row.known])

    def _adding(self, rows: Sequence[Row]) -> list[Row]:
        """Those of some unknown findings that would count if they were known."""
        counted = {fold(row.group): self._spread(row) for row in self._counted() if row.group}
        return [
            row
            for row in self._one_of_each_group(rows)
            if not row.group or self._spread(row) > counted.get(fold(row.group), 0.0)
        ]

    def _one_of_each_group(self, rows: Sequence[Row]) -> list[Row]:
        groups: dict[str | int, list[Row]] = {}
        for place, row in enumerate(rows):
            if row.rated:
                groups.setdefault(fold(row.group) or place, []).append(row)
        return [max(group, key=self._spread) for group in groups.values()]

    def _spread(self, row: Row) -> float:
        """How far apart a finding puts the hypotheses, as observed; if not known, at most."""
        expected = self._expected(row).values()
        sides = [[math.log(p) for p in expected], [math.log(1 - p) for p in expected]]
        known = {"present": sides[:1], "absent": sides[1:]}.get(row.observed, sides)
        return max(max(logs) - min(logs) for logs in known)

    def _expected(self, row: Row) -> dict[str, float]:
        """P(finding | hypothesis). If a rating is missing, that of `other`; if that is missing too, the mean."""
        given = {name: WORDS[word] for name, word in row.rated.items()}
        mean = math.fsum(given.values()) / len(given) if given else 0.5
        other = given.get(OTHER, mean)
        return {name: given.get(name, other) for name in self.prior}

    def _unknowns(self, name: str) -> tuple[str, ...]:
        """Unknown findings by how much they would speak for a hypothesis, in the direction it expects."""
        rest = {other: p for other, p in self.posterior.items() if other != name}
        total = math.fsum(rest.values()) or 1.0
        found = []
        for row in self._one_of_each_group([row for row in self.rows if row.observed == "unknown"]):
            expected = self._expected(row)
            elsewhere = math.fsum(expected[other] * p for other, p in rest.items()) / total
            present, absent = math.log(expected[name] / elsewhere), math.log((1 - expected[name]) / (1 - elsewhere))
            found.append((max(present, absent), row.finding if present >= absent else f"absence of {row.finding}"))
        return tuple(words for telling, words in sorted(found, key=lambda each: -each[0]) if telling > 0)

    # --- how it is shown and what is added ----------------------------------------------------------------------------

    def letter(self, name: str) -> str:
        """The letter of a hypothesis, by which a plan refers to it."""
        return name if name == OTHER else _letter(list(self.priors).index(name))

    @property
    def shown(self) -> str:
        """The table as the planner reads it."""
        if not self.priors:
            return "(empty)"
        lines = [f"{self.letter(name)}: {name}, prior {probability(prior)}" for name, prior in self.priors.items()]
        lines.append(f"{OTHER}: {OTHER_NAME}, prior {probability(self.prior[OTHER])}")
        for place, row in enumerate(self.rows, start=1):
            if row.observed == "withdrawn":
                lines.append(f"{place}. (withdrawn)")
                continue
            cells = "; ".join(f"{word} {' '.join(names)}" for word, names in self._by_word(row))
            group = f" [{row.group}]" if row.group else ""
            lines.append(f"{place}. {row.finding}{group}: {cells} | {row.observed}")
        return "\n".join(lines)

    def _by_word(self, row: Row) -> list[tuple[str, list[str]]]:
        """The ratings of a finding: who has which word, and last the word of the rest."""
        by_word: dict[str, list[str]] = {}
        for name in (*self.priors, OTHER):
            by_word.setdefault(row.rated.get(name, "?"), []).append(self.letter(name))
        common = max(by_word, key=lambda word: len(by_word[word]))
        rest = {} if common == "?" or len(by_word[common]) < 2 else {common: [REST]}
        return [*((word, names) for word, names in by_word.items() if word not in rest), *rest.items()]

    @property
    def recorded(self) -> dict[str, object]:
        """Every cell, for the record."""
        return {
            OTHER: {"prior": round(self.prior[OTHER], 4), "posterior": round(self.posterior[OTHER], 6)},
            "findings": [
                {
                    "finding": row.finding,
                    "request": row.request,
                    "group": row.group,
                    "expected": dict(row.rated),
                    "observed": row.observed,
                }
                for row in self.rows
            ],
        }

    def added(self, plan: TableReply) -> tuple[Table, list[str]]:
        """The table with what a plan adds to it, and remarks on what could not be taken as it was said."""
        return _Adding(self).take(plan)


def _letter(place: int) -> str:
    return chr(ord("A") + place)


def probability(p: float) -> str:
    """A probability as it is printed; what the table leaves open is never printed as 0 or 1."""
    if round(p, 2) < _LEAST_SHOWN:
        return f"less than {_LEAST_SHOWN:g}"
    return f"{p:.2f}" if round(p, 2) <= 1 - _LEAST_SHOWN else f"more than {1 - _LEAST_SHOWN:g}"


_LEAST_SHOWN = 0.01


def _entropy(p: float) -> float:
    return -math.fsum(x * math.log2(x) for x in (p, 1 - p) if x > 0)


def read_word(said: str) -> Word | None:
    """A rating in the planner's words: one of ours, another word for it, or the nearest to a number."""
    word = " ".join(said.lower().replace("_", " ").replace("-", " ").split()).strip(" .")
    if word in WORDS:
        return word
    if word in _OTHER_WORDS:
        return _OTHER_WORDS[word]
    share = read_share(word)
    return None if share is None else nearest_word(share)


def nearest_word(p: float) -> Word:
    """The word whose number is nearest to a probability, by odds."""

    def logit(value: float) -> float:
        bounded = min(max(value, 1e-6), 1 - 1e-6)
        return math.log(bounded / (1 - bounded))

    return min(WORDS, key=lambda word: abs(logit(WORDS[word]) - logit(p)))


def identity(diagnosis: str) -> str:
    """A disease by its id in the knowledge base, or by its name: what counts as the same hypothesis."""
    known = knowledge().disease_named(diagnosis)
    return known.id if known else fold(diagnosis)


_AROUND = " .#()"


def _is_number(said: str) -> bool:
    """Whether this is the number of a finding, and not its name."""
    number = said.strip(_AROUND)
    return number.isascii() and number.isdigit() and len(number) < 4


def same_disease(one: str, other: str) -> bool:
    return identity(one) == identity(other)


class _Adding:
    """A table while a plan is added to it."""

    def __init__(self, table: Table) -> None:
        self._priors = dict(table.priors)
        self._rows = list(table.rows)
        self._remarks: list[str] = []
        self._by_letter = {_letter(place): name for place, name in enumerate(table.priors)}
        self._names = {identity(name): name for name in table.priors}

    def take(self, plan: TableReply) -> tuple[Table, list[str]]:
        if plan.unread:
            self._remarks.append(f"{plan.unread} entries of the plan could not be read")
        before, alike = len(self._by_letter), dict[str, str]()
        for number, new in enumerate(plan.hypotheses, start=before):
            self._hypothesis(_letter(number), new.diagnosis, new.prior)
            if new.like and new.diagnosis in self._priors:
                alike[new.diagnosis] = new.like
        for finding in plan.findings:
            self._finding(finding)
        for rating in plan.ratings:
            place = self._place(rating.finding)
            if place is None:
                self._remarks.append(f"rating left out: there is no finding {rating.finding!r}")
            else:
                self._rate(place, [rating])
        for seen in plan.observed:
            place = self._place(seen.finding)
            if place is None:
                self._remarks.append(f"observation left out: there is no finding {seen.finding!r}")
            else:
                self._observe(place, seen.observed)
        for said in plan.withdraw:
            self._withdraw(said)
        for name, model in alike.items():
            self._rate_like(name, model)
        table = Table(self._priors, tuple(self._rows))
        gaps = [row.finding for row in table.counting if not row.rated.keys() >= {*self._priors, OTHER}]
        if gaps:
            self._remarks.append(f"ratings are missing for {', '.join(gaps)}")
        return table, self._remarks

    def _hypothesis(self, letter: str, diagnosis: str, prior: float | None) -> None:
        key = identity(diagnosis)
        if fold(diagnosis) in (OTHER, fold(OTHER_NAME)):
            self._by_letter[letter] = OTHER
            return
        if key in self._names:
            name = self._by_letter[letter] = self._names[key]
            self._remarks.append(f"{diagnosis}: in the table as {name}, which stays as it is")
        elif len(self._priors) >= MOST_HYPOTHESES:
            self._remarks.append(f"{diagnosis}: left out, the table has {MOST_HYPOTHESES} hypotheses")
        else:
            if prior is None:
                self._remarks.append(f"{diagnosis}: no prior, taken as {_UNSTATED_PRIOR:g}")
            self._names[key] = self._by_letter[letter] = diagnosis
            self._priors[diagnosis] = max(_LEAST_PRIOR, _UNSTATED_PRIOR if prior is None else prior)

    def _finding(self, new: NewFinding) -> None:
        place = self._place(new.finding)
        if place is None:
            if _is_number(new.finding):
                self._remarks.append(f"change left out: there is no finding {new.finding!r}")
                return
            if len(self._rows) >= MOST_ROWS:
                self._remarks.append(f"{new.finding}: left out, the table has {MOST_ROWS} findings")
                return
            place = len(self._rows)
            self._rows.append(Row(new.finding, new.request, new.group))
        else:
            row = self._rows[place]
            self._rows[place] = replace(row, request=row.request or new.request, group=new.group or row.group)
        self._rate(place, new.ratings)
        self._observe(place, new.observed)

    def _rate(self, place: int, ratings: Sequence[Rating]) -> None:
        """Fill and correct cells; what is said of the rest fills empty ones only."""
        row = self._rows[place]
        rated = dict(row.rated)
        named = sorted(ratings, key=lambda rating: fold(rating.of) == REST)
        for rating in named:
            if fold(rating.of) == REST and (word := read_word(rating.how)):
                rated = dict.fromkeys((*self._priors, OTHER), word) | rated
                continue
            name, word = self._hypothesis_of(rating.of), read_word(rating.how)
            if name is None:
                self._remarks.append(f"{row.finding}: rating left out, there is no hypothesis {rating.of!r}")
            elif word is None:
                self._remarks.append(f"{row.finding}: {rating.how!r} is not a rating, left open for {name}")
            else:
                if rated.get(name, word) != word:
                    self._remarks.append(f"{row.finding}: corrected from {rated[name]} to {word} for {name}")
                rated[name] = word
        self._rows[place] = replace(row, rated=rated)

    def _rate_like(self, name: str, model: str) -> None:
        """Give a new hypothesis the ratings of another where it has none."""
        other = self._hypothesis_of(model)
        if other is None:
            self._remarks.append(f"{name}: there is no hypothesis {model!r} that it could be like")
            return
        for place, row in enumerate(self._rows):
            if other in row.rated:
                self._rows[place] = replace(row, rated={name: row.rated[other]} | dict(row.rated))

    def _withdraw(self, said: str) -> None:
        place = self._place(said)
        if place is None:
            self._remarks.append(f"not withdrawn: there is no finding {said!r}")
        else:
            self._remarks.append(f"{self._rows[place].finding}: withdrawn")
            self._rows[place] = replace(self._rows[place], observed="withdrawn")

    def _observe(self, place: int, observed: TableState) -> None:
        """Take what is known now. What was known is not forgotten, and a correction is noted."""
        row = self._rows[place]
        if observed == row.observed or (row.known and observed in ("unknown", "unavailable")):
            return
        if row.known:
            self._remarks.append(f"{row.finding}: corrected from {row.observed} to {observed}")
        self._rows[place] = replace(row, observed=observed)

    def _hypothesis_of(self, said: str) -> str | None:
        if fold(said) in (OTHER, fold(OTHER_NAME)):
            return OTHER
        return self._by_letter.get(said.strip(" .:()").upper()) or self._names.get(identity(said))

    def _place(self, said: str) -> int | None:
        """The row that a number or a name stands for."""
        if _is_number(said):
            places = [int(said.strip(_AROUND)) - 1]
        else:
            key = meaning(said)
            places = [place for place, row in enumerate(self._rows) if meaning(row.finding) == key]
        there = range(len(self._rows))
        return next((p for p in places if p in there and self._rows[p].observed != "withdrawn"), None)
