"""The metrics of a run: functions of its rows, registered with how they are shown.

To add one, write a function of rows and register it:

    @metric("information.long", title="encounters over 10 turns", unit="share", direction="lower")
    def long_encounters(rows: Rows) -> Proportion:
        known = [row.turns > 10 for row in rows if row.turns is not None]
        return proportion(sum(known), len(known))

The name says where it is in `score --json`: a section, a dot and the key. `score`, the reports and the card draw it
from its title and unit. The value of one encounter alone is a column in CSV and pandas. A function whose interval is
resampled takes the seed as its second argument.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from agentclinic.scoring.differentials import Course
from agentclinic.scoring.information import NOT_RECORDED, LearnedFrom
from agentclinic.scoring.orders import ANSWERED_BY, NO_TESTS, STRATA, UNKNOWN, Tests
from agentclinic.scoring.rows import Dialogue, Row
from agentclinic.scoring.stats import Estimate, Proportion, mean, proportion, ratio

NO_KEY_FACTS = "the records do not show whether any key finding was found"
NO_DOOR = "the records do not say what the doctor was told at the door: facts told there count as not found"
DETERMINISTIC = "deterministic: no variance between repeats"
NOT_REPEATED = "no case was repeated"
REPEATS_AS_INDEPENDENT = "the intervals of the shares treat repeats of a case as independent: they are too narrow"
SERIOUS = 3
"""The two highest levels of the scale of harm, which runs from 0 to 4."""
DEPTHS = (1, 3, 5)

# --- the registry ---------------------------------------------------------------------------------------------------

Rows = Sequence[Row]
Value = Estimate | Proportion
Function = TypeVar("Function", bound=Callable[..., Estimate | Proportion])
Unit = Literal["share", "number"]
SECTIONS = ("repeats", "harm", "information", "key_facts", "orders")
"""The parts of a score that hold metrics; `key_facts` is in `information`."""


@dataclass(frozen=True)
class Metric:
    """A function of rows, and how its value is shown."""

    section: str
    key: str
    title: str
    """Empty if the value is in the JSON only, because another one shows the same."""
    unit: Unit
    direction: Literal["higher", "lower"] | None
    note: str
    """What the value means or how to read it, in a few words."""
    column: bool
    of: Callable[..., Value]
    resampled: bool
    """Whether the function takes a seed."""

    @property
    def remark(self) -> str:
        """What stands beside the value."""
        return self.note or (f"{self.direction} is better" if self.direction else "")

    def of_encounter(self, row: Row) -> float | None:
        """The value of one encounter alone; None if it has none."""
        return self.value([row], 0).value

    def value(self, rows: Rows, seed: int) -> Value:
        return self.of(rows, seed) if self.resampled else self.of(rows)


METRICS: dict[str, Metric] = {}
"""By name, in the order in which they are shown."""


def metric(
    name: str,
    *,
    title: str,
    unit: Unit = "number",
    direction: Literal["higher", "lower"] | None = None,
    note: str = "",
    column: bool = True,
) -> Callable[[Function], Function]:
    """Register a function of rows, or of rows and a seed, as the metric `SECTION.KEY`.

    `column=False` leaves it out of CSV and pandas, where every row is one encounter.
    """
    section, _, key = name.partition(".")
    if section not in SECTIONS or not key.isidentifier():
        raise ValueError(f"metric {name!r}: not SECTION.KEY, with a section of {', '.join(SECTIONS)}")
    if name in METRICS:
        raise ValueError(f"metric {name!r}: registered twice")

    def register(of: Function) -> Function:
        resampled = len(signature(of).parameters) > 1
        METRICS[name] = Metric(section, key, title, unit, direction, note, column, of, resampled)
        return of

    return register


def measured(section: str, rows: Rows, seed: int) -> dict[str, Value]:
    """The values of a section's metrics, by key."""
    return {one.key: one.value(rows, seed) for one in METRICS.values() if one.section == section}


def columns() -> dict[str, Metric]:
    """The metrics that are columns of CSV and pandas, by the name of the column."""
    return {one.key: one for one in METRICS.values() if one.column}


class Measured(BaseModel):
    """A section of a score: its registered metrics, and what it counts besides."""

    model_config = ConfigDict(extra="allow")

    def value(self, key: str) -> Value | None:
        found: Value | None = getattr(self, key)
        return found


# --- the rank of the truth in the final differential -----------------------------------------------------------------


class SourceRanking(BaseModel):
    """Ranks of the truth in the final differentials of one source."""

    records: int
    cases: int
    top: dict[int, Proportion]
    """By k: differentials with the truth among the first k ÷ all; Wilson interval."""
    mean_reciprocal_rank: Estimate
    """Mean of 1 ÷ rank, 0 if the truth is absent; interval by bootstrap over cases."""
    note: str | None = None


class Ranking(BaseModel):
    """Ranks by source, never pooled, and what could not be ranked."""

    by_source: dict[str, SourceRanking] = {}
    without_differential: int = 0
    without_truth: int = 0
    """Records that do not state the truth."""
    missing: int = 0
    """Encounters cut short by a failure that was not the doctor's."""


def ranking(rows: Rows, seed: int = 0) -> Ranking:
    """Top-k shares and mean reciprocal rank, by source.

    Hypotheses are compared with the truth by written rules, not by the run's judge: a record whose judge failed, or
    could not read the answer, counts. A hypothesis that the rules cannot read is not the truth.
    """
    ranks: dict[str, list[tuple[str, int | None]]] = {}
    for row in rows:
        for source, rank in row.ranks:
            ranks.setdefault(source, []).append((row.case, rank))
    whole = [row for row in rows if not row.cut_short]
    return Ranking(
        by_source={source: _source_ranking(given, seed) for source, given in sorted(ranks.items())},
        without_differential=sum(not row.has_differential for row in whole),
        without_truth=sum(row.has_differential and not row.ranks for row in whole),
        missing=len(rows) - len(whole),
    )


def _source_ranking(ranks: Sequence[tuple[str, int | None]], seed: int) -> SourceRanking:
    n, cases = len(ranks), len({case for case, _ in ranks})
    return SourceRanking(
        records=n,
        cases=cases,
        top={k: proportion(sum(rank is not None and rank <= k for _, rank in ranks), n) for k in DEPTHS},
        mean_reciprocal_rank=mean(((case, 1 / rank if rank else 0.0) for case, rank in ranks), seed, low=0, high=1),
        note=REPEATS_AS_INDEPENDENT if n > cases else None,
    )


# --- repeats of a case ------------------------------------------------------------------------------------------------


class Repeats(Measured):
    """How the repeats of the same cases compare."""

    cases: int = 0
    """Cases with at least one repeat that is not missing."""
    repeated: int = 0
    """Cases with two or more of those."""
    missing: int = 0
    """Records without a verdict: left out."""
    deterministic: bool | None = None
    """Whether the transcripts of every repeated case are identical; null if there is nothing to compare."""
    flip_rate: Estimate
    pass_k: dict[int, Estimate] = {}
    """By k: mean over the cases with at least k repeats of C(c, k) ÷ C(n, k)."""
    majority_vote: Estimate
    note: str | None = None


def verdicts_by_case(rows: Rows) -> list[tuple[str, int, int]]:
    """Each case with its right repeats and all that are not missing; one that could not be read is not right."""
    verdicts: defaultdict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row.right is not None:
            verdicts[row.case].append(row.right)
    return [(case, sum(given), len(given)) for case, given in verdicts.items()]


def flipped_pairs(right: int, of: int) -> int:
    """Pairs of a case's repeats of which one is right and one is wrong: c · (n - c)."""
    return right * (of - right)


def pass_k(right: int, of: int, k: int) -> float:
    """Chance that k repeats drawn without replacement are all right: C(c, k) ÷ C(n, k); unbiased for p^k."""
    return math.comb(right, k) / math.comb(of, k)


def majority(right: int, of: int) -> float:
    """1 if more than half of the repeats are right, 0 if fewer; a tie counts ½, as a fair coin would break it."""
    return 0.5 if 2 * right == of else float(2 * right > of)


@metric("repeats.flip_rate", title="flip rate between repeats", unit="share", direction="lower", column=False)
def flip_rate(rows: Rows, seed: int) -> Estimate:
    """Share of pairs of repeats of a case that disagree in strict correctness: Σ c(n-c) ÷ Σ n(n-1)/2.

    Answers that could not be read are left out: they neither agree nor disagree.
    """
    read = verdicts_by_case([row for row in rows if not row.unread])
    pairs = [(case, flipped_pairs(c, n), math.comb(n, 2)) for case, c, n in read if n > 1]
    return ratio(pairs, seed, low=0, high=1) if pairs else Estimate(value=None, note=NOT_REPEATED)


@metric("repeats.majority_vote", title="accuracy of a majority vote", unit="share", direction="higher", column=False)
def majority_vote(rows: Rows, seed: int) -> Estimate:
    """Accuracy if each case were decided by most of its repeats; a tie counts half.

    The vote is on being right, not on a name: a plurality for the truth against scattered errors is not credited.
    """
    cases = verdicts_by_case(rows)
    if all(n < 2 for _, _, n in cases):
        return Estimate(value=None, note=NOT_REPEATED)
    return mean(((case, majority(c, n)) for case, c, n in cases), seed, low=0, high=1)


def repeats(rows: Rows, seed: int = 0) -> Repeats:
    """Flip rate, pass^k and majority vote over cases."""
    cases = verdicts_by_case(rows)
    transcripts: defaultdict[str, list[bytes]] = defaultdict(list)
    for row in rows:
        if row.transcript is not None:
            transcripts[row.case].append(row.transcript)
    same = [len(set(given)) == 1 for given in transcripts.values() if len(given) > 1]
    found = Repeats(
        cases=len(cases),
        repeated=sum(n > 1 for _, _, n in cases),
        missing=sum(row.right is None for row in rows),
        deterministic=all(same) if same else None,
        pass_k={
            k: mean(((case, pass_k(c, n, k)) for case, c, n in cases if n >= k), seed, low=0, high=1)
            for k in range(1, max((n for _, _, n in cases), default=0) + 1)
        },
        **measured("repeats", rows, seed),
    )
    if not found.repeated:
        found.note = NOT_REPEATED
    elif found.deterministic:
        differ = "; the verdicts on identical transcripts differ" if found.flip_rate.value else ""
        found.note = f"{DETERMINISTIC}{differ}"
    return found


# --- what wrong answers could do --------------------------------------------------------------------------------------


class Harm(Measured):
    """What the errors could have done; null if the cases or records do not say.

    The loss and the share of wrong diagnoses leave out answers that could not be read: they are not errors.
    """

    stated: int = 0
    """Records of cases that state their harm, without missing data and answers that could not be read."""
    not_stated: int = 0
    missing: int = 0
    not_readable: int = 0
    weighted_loss: Estimate
    serious_wrong: Proportion
    must_not_miss_missed: Estimate
    encounters_with_a_miss: Proportion
    not_assessable: int = 0
    """Records of cases with must-not-miss diseases whose doctor gave no differential."""


def _with_harm(rows: Rows) -> list[tuple[Row, float]]:
    return [(row, row.harm) for row in rows if row.right is not None and not row.unread and row.harm is not None]


def _with_dangers(rows: Rows) -> list[Row]:
    return [row for row in rows if row.dangers and not row.cut_short]


@metric("harm.weighted_loss", title="harm-weighted loss", unit="share", direction="lower", column=False)
def weighted_loss(rows: Rows, seed: int) -> Estimate:
    """Σ harm over records not right ÷ Σ harm over all that state it; between 0 and 1."""
    losses = ((row.case, 0.0 if row.right else harm, harm) for row, harm in _with_harm(rows))
    return ratio(losses, seed, low=0, high=1)


@metric("harm.serious_wrong", title="wrong on cases of harm 3 or more", unit="share", direction="lower", column=False)
def serious_wrong(rows: Rows) -> Proportion:
    """Wrong diagnoses ÷ records of cases with a harm of 3 or more; ending without a diagnosis is not one."""
    serious = [row for row, harm in _with_harm(rows) if harm >= SERIOUS]
    return proportion(sum(row.diagnosed and not row.right for row in serious), len(serious))


@metric(
    "harm.must_not_miss_missed",
    title="must-not-miss diseases never considered",
    unit="share",
    direction="lower",
    column=False,
)
def must_not_miss_missed(rows: Rows, seed: int) -> Estimate:
    """Must-not-miss diseases never considered ÷ all of those in records where this can be assessed."""
    assessed = ((row.case, row.missed, row.dangers) for row in _with_dangers(rows) if row.missed is not None)
    return ratio(assessed, seed, low=0, high=1)


@metric(
    "harm.encounters_with_a_miss", title="encounters with such a disease", unit="share", direction="lower", column=False
)
def encounters_with_a_miss(rows: Rows) -> Proportion:
    """Records with at least one such disease never considered ÷ records where this can be assessed."""
    counts = [row.missed for row in _with_dangers(rows) if row.missed is not None]
    return proportion(sum(count > 0 for count in counts), len(counts))


def harm(rows: Rows, seed: int = 0) -> Harm:
    """Loss weighted by harm, and dangerous diseases missed."""
    missing, unread = sum(row.right is None for row in rows), sum(row.unread for row in rows)
    stated = len(_with_harm(rows))
    return Harm(
        stated=stated,
        not_stated=len(rows) - missing - unread - stated,
        missing=missing,
        not_readable=unread,
        not_assessable=sum(row.missed is None for row in _with_dangers(rows)),
        **measured("harm", rows, seed),
    )


# --- how the doctor got its information -------------------------------------------------------------------------------


class KeyFacts(Measured):
    """Key findings of the cases and how they were found; null if the cases or records do not say."""

    encounters: int = 0
    """Encounters with at least one key finding that can be assessed."""
    without: int = 0
    """Encounters whose case names no key findings."""
    not_assessable: int = 0
    """Key findings left out because the record does not show whether they were found."""
    recall: Estimate
    by_way: dict[str, Proportion | None] = {}
    """Key findings first learned this way ÷ all that can be assessed; `door` is null if not recorded."""
    yield_per_request: Estimate
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


class Information(Measured):
    """How the doctor got its information; null, with a note, if the records do not say."""

    encounters: int = 0
    """Records, except those cut short by a failure that was not the doctor's."""
    missing: int = 0
    """Records cut short by such a failure."""
    without_transcript: int = 0
    """Encounters for which only the number of turns is known."""
    turns: Estimate
    questions: Estimate
    tests: Estimate
    images: Estimate
    tokens: dict[str, Estimate] = {}
    """By role: mean input and output tokens, over the encounters that used the role and report them."""
    repeated_questions: Proportion
    repeated_tests: Proportion
    key_facts: KeyFacts
    differentials: dict[str, DifferentialCourse] = {}
    """By source, never pooled."""
    premature_closure: Proportion
    premature_of_wrong: Proportion


def _dialogues(rows: Rows) -> list[tuple[str, Dialogue]]:
    return [(row.case, row.dialogue) for row in rows if row.dialogue is not None]


def _average(values: Iterable[tuple[str, float | None]], seed: int) -> Estimate:
    found = mean(((case, value) for case, value in values if value is not None), seed, low=0)
    return found if found.n else Estimate(value=None, note=NOT_RECORDED)


@metric("information.turns", title="turns per encounter", column=False)
def turns(rows: Rows, seed: int) -> Estimate:
    """Mean turns of the doctor."""
    return _average(((row.case, row.turns) for row in rows if not row.cut_short), seed)


@metric("information.questions", title="questions per encounter")
def questions(rows: Rows, seed: int) -> Estimate:
    """Mean questions to the patient."""
    return _average(((case, talk.questions) for case, talk in _dialogues(rows)), seed)


@metric("information.tests", title="orders for tests per encounter")
def tests(rows: Rows, seed: int) -> Estimate:
    """Mean orders; one may name several tests."""
    return _average(((case, talk.tests) for case, talk in _dialogues(rows)), seed)


@metric("information.images", title="requests for images per encounter", column=False)
def images(rows: Rows, seed: int) -> Estimate:
    """Mean requests for images."""
    return _average(((case, talk.images) for case, talk in _dialogues(rows)), seed)


@metric("information.repeated_questions", title="repeated questions", unit="share", direction="lower")
def repeated_questions(rows: Rows) -> Proportion:
    """Questions that repeat an earlier one of the encounter ÷ questions."""
    talks = [talk for _, talk in _dialogues(rows)]
    return proportion(sum(talk.repeated_questions for talk in talks), sum(talk.questions for talk in talks))


@metric("information.repeated_tests", title="repeated orders", unit="share", direction="lower")
def repeated_tests(rows: Rows) -> Proportion:
    """Orders that repeat an earlier one of the encounter ÷ orders."""
    talks = [talk for _, talk in _dialogues(rows)]
    return proportion(sum(talk.repeated_tests for talk in talks), sum(talk.tests for talk in talks))


@metric("information.premature_closure", title="premature closure", unit="share", direction="lower")
def premature_closure(rows: Rows) -> Proportion:
    """Premature closures ÷ encounters where this can be known."""
    known = [talk.premature for _, talk in _dialogues(rows) if talk.premature is not None]
    return proportion(sum(known), len(known))


@metric(
    "information.premature_of_wrong",
    title="premature closure among wrong diagnoses",
    unit="share",
    direction="lower",
    column=False,
)
def premature_of_wrong(rows: Rows) -> Proportion:
    """How many of the wrong diagnoses stopped short of a finding that could have settled it."""
    known = [row for row in rows if row.dialogue is not None and row.dialogue.premature is not None]
    wrong = sum(row.diagnosed and row.right is False for row in known)
    return proportion(sum(row.dialogue is not None and row.dialogue.premature is True for row in known), wrong)


@metric("key_facts.recall", title="key findings found", unit="share", direction="higher")
def recall(rows: Rows, seed: int) -> Estimate:
    """Mean over encounters of Σ weight found ÷ Σ weight."""
    found = ((case, talk.recall) for case, talk in _dialogues(rows) if talk.recall is not None)
    return mean(found, seed, low=0, high=1)


@metric("key_facts.yield_per_request", title="key findings per request", direction="higher", column=False)
def yield_per_request(rows: Rows, seed: int) -> Estimate:
    """Key findings told by patient or laboratory ÷ questions and tests: Σ over encounters ÷ Σ over encounters."""
    learned = (
        (case, sum(way not in (None, LearnedFrom.DOOR) for _, way in talk.facts), talk.questions + talk.tests)
        for case, talk in _dialogues(rows)
        if talk.recall is not None
    )
    return ratio(learned, seed, low=0)


def information(rows: Rows, seed: int = 0) -> Information:
    """Means per encounter, key facts, differentials by turn and premature closure."""
    seen = [row for row in rows if not row.cut_short]
    roles = sorted({role for row in seen for role, _ in row.tokens})
    return Information(
        encounters=len(seen),
        missing=len(rows) - len(seen),
        without_transcript=sum(row.dialogue is None for row in seen),
        tokens={role: _average(((row.case, dict(row.tokens).get(role)) for row in seen), seed) for role in roles},
        key_facts=_key_facts(rows, seed),
        differentials=_courses(_dialogues(rows), seed),
        **measured("information", rows, seed),
    )


def _key_facts(rows: Rows, seed: int) -> KeyFacts:
    talks = [talk for _, talk in _dialogues(rows)]
    assessed = [talk for talk in talks if talk.recall is not None]
    ways = Counter(way for talk in assessed for _, way in talk.facts)
    doors = sum(talk.door for talk in assessed)
    by_way: dict[str, Proportion | None] = {way.value: proportion(ways[way], ways.total()) for way in LearnedFrom}
    if not doors and not ways[LearnedFrom.DOOR]:
        by_way[LearnedFrom.DOOR.value] = None
    return KeyFacts(
        encounters=len(assessed),
        without=sum(talk.no_findings for talk in talks),
        not_assessable=sum(talk.not_assessable for talk in talks),
        by_way=by_way if assessed else {},
        note=NO_KEY_FACTS if not assessed else NO_DOOR if doors < len(assessed) else None,
        **measured("key_facts", rows, seed),
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


# --- the tests the doctor ordered -------------------------------------------------------------------------------------


class Orders(Measured):
    """What was ordered; null, with a note, if the records do not say."""

    encounters: int = 0
    """Records with a transcript, except those cut short by a failure that was not the doctor's."""
    not_recorded: int = 0
    """Records without a transcript."""
    missing: int = 0
    orders: Estimate
    items: Estimate
    answered_by: dict[str, Proportion] = {}
    """Items by provenance ÷ items."""
    repeated: Proportion
    price_usd: Estimate
    priced_usd: float | None = None
    """Sum of the known prices: everything costs at least this. Null if none is known."""
    priced: int = 0
    unpriced: int = 0
    """Items done without a price, and therefore without a waiting time."""
    waiting_hours: Estimate
    resource_level: dict[str, int] = {}
    """Records by the run's `resource_level`."""
    accuracy_by_unanswerable: dict[str, Proportion] = {}
    """Strict accuracy, counted as in the headline, by the share of an encounter's items that the chart could not
    answer."""
    note: str | None = None


def _ordered(rows: Rows) -> list[tuple[str, Tests]]:
    return [(row.case, row.tests) for row in rows if row.tests is not None]


metric("orders.orders", title="", column=False)(tests)
metric("orders.repeated", title="", unit="share", column=False)(repeated_tests)


@metric("orders.items", title="tests and examinations per encounter")
def items(rows: Rows, seed: int) -> Estimate:
    """Mean tests and examinations named in orders."""
    return _average(((case, len(tests.items)) for case, tests in _ordered(rows)), seed)


@metric("orders.price_usd", title="price of tests per encounter, USD (estimates)", column=False)
def price_usd(rows: Rows, seed: int) -> Estimate:
    """Mean price per encounter; null if any item done has no price."""
    seen = _ordered(rows)
    if without := sum(tests.bill.unpriced for _, tests in seen):
        return Estimate(value=None, note=f"{without} items have no price")
    return _average(((case, tests.bill.usd) for case, tests in seen), seed)


@metric("orders.waiting_hours", title="hours of waiting per encounter (estimates)")
def waiting_hours(rows: Rows, seed: int) -> Estimate:
    """Mean waiting time per encounter; null if any item done has none."""
    seen = _ordered(rows)
    if without := sum(tests.bill.unpriced for _, tests in seen):
        return Estimate(value=None, note=f"{without} items have no waiting time")
    return _average(((case, tests.bill.hours) for case, tests in seen), seed)


def orders(rows: Rows, seed: int = 0) -> Orders:
    """Counts, answers, prices and accuracy by what the chart could not answer."""
    seen = [tests for _, tests in _ordered(rows)]
    strata = Counter((row.tests.stratum, row.right) for row in rows if row.tests is not None and row.right is not None)
    answers = Counter(item.provenance for tests in seen for item in tests.items)
    ways = dict.fromkeys((*ANSWERED_BY, *sorted(answers))) if answers else ()
    priced, unpriced = (sum(getattr(tests.bill, name) for tests in seen) for name in ("priced", "unpriced"))
    missing = sum(row.cut_short for row in rows)
    return Orders(
        encounters=len(seen),
        not_recorded=len(rows) - len(seen) - missing,
        missing=missing,
        answered_by={how: proportion(answers[how], answers.total()) for how in ways},
        priced_usd=math.fsum(tests.bill.usd for tests in seen) if priced else None,
        priced=priced,
        unpriced=unpriced,
        resource_level=dict(sorted(Counter(row.resource_level for row in rows).items())),
        accuracy_by_unanswerable={
            name: proportion(strata[name, True], n)
            for name in (*STRATA, NO_TESTS, UNKNOWN)
            if (n := strata[name, True] + strata[name, False])
        },
        note=None if seen else NOT_RECORDED,
        **measured("orders", rows, seed),
    )
