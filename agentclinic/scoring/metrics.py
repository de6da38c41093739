"""The metrics of a run: functions of its rows, registered with how they are shown.

To add one, write a function of rows and register it:

    @metric("information.long", title="encounters over 10 turns", unit="share", direction="lower")
    def long_encounters(rows: Rows) -> Proportion:
        return share((row.cluster, row.turns > 10, 1) for row in rows if row.turns is not None)

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

import numpy as np
from pydantic import BaseModel, ConfigDict

from agentclinic.results.regret import KINDS, Kind
from agentclinic.scoring.differentials import Course, TruthScore
from agentclinic.scoring.exclusion import Danger
from agentclinic.scoring.format import plural
from agentclinic.scoring.frontier import BUDGETS, price, worth
from agentclinic.scoring.information import NOT_RECORDED, LearnedFrom
from agentclinic.scoring.orders import ANSWERED_BY, NO_TESTS, STRATA, UNKNOWN, Bill, Tests
from agentclinic.scoring.regret import Regrets
from agentclinic.scoring.rows import Dialogue, Row
from agentclinic.scoring.stats import Z95, Clusters, Estimate, Proportion, mean, ratio, share, shares, stretch_for
from agentclinic.scoring.twins import twin_pairs
from agentclinic.worlds.model import DEFER

NO_KEY_FACTS = "the records do not show whether any key finding was found"
NO_DOOR = "the records do not say what the doctor was told at the door: facts told there count as not found"
SHOWN = "the doctor was shown the chart"
DETERMINISTIC = "deterministic: no variance between repeats"
NOT_REPEATED = "no case was repeated"
SERIOUS = 3
"""The two highest levels of the scale of harm, which runs from 0 to 4."""
DEPTHS = (1, 3, 5)

# --- the registry ---------------------------------------------------------------------------------------------------

Rows = Sequence[Row]
Value = Estimate | Proportion
Function = TypeVar("Function", bound=Callable[..., Estimate | Proportion])
Unit = Literal["share", "number"]
SECTIONS = ("twins", "repeats", "harm", "information", "key_facts", "orders", "budget", "regret")
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


# --- the truth in the final differential ------------------------------------------------------------------------------


class TruthScores(BaseModel):
    """Proper scores of the truth's probability, and those of the prior alone on the same encounters."""

    encounters: int
    """Encounters whose differential is a distribution."""
    brier: Estimate
    """Multiclass, with `other` spread over the diseases that are not listed: 0 is best, 2 worst."""
    log_score: Estimate
    """In nats, with a floor: 0 is best, 6.9 worst."""
    prior_brier: float
    prior_log_score: float
    brier_skill: float
    """1 - score ÷ that of the prior: 1 is best, 0 no better than the prior."""
    log_skill: float
    even_log_score: float
    """What giving every possible disease the same probability would get."""


class SourceRanking(BaseModel):
    """The truth in the final differentials of one source."""

    records: int
    top: dict[int, Proportion]
    """By k: differentials with the truth among the first k ÷ all."""
    mean_reciprocal_rank: Estimate
    """Mean of 1 ÷ rank, 0 if the truth is absent."""
    truth: TruthScores | None = None
    """Null if no differential is a distribution."""


class Ranking(BaseModel):
    """Ranks by source, never pooled, and what could not be ranked."""

    by_source: dict[str, SourceRanking] = {}
    without_differential: int = 0
    without_truth: int = 0
    """Records that do not state the truth."""
    missing: int = 0
    """Encounters cut short by a failure that was not the doctor's."""


def ranking(rows: Rows, seed: int = 0) -> Ranking:
    """Top-k shares, mean reciprocal rank and proper scores, by source.

    Hypotheses are compared with the truth by written rules, not by the run's judge: a record whose judge failed, or
    could not read the answer, counts. A hypothesis that the rules cannot read is not the truth.
    """
    ranks: dict[str, list[_Ranked]] = {}
    for row in rows:
        for source, rank, score in row.ranks:
            ranks.setdefault(source, []).append((row.cluster, rank, score))
    whole = [row for row in rows if not row.cut_short]
    return Ranking(
        by_source={source: _source_ranking(given, seed) for source, given in sorted(ranks.items())},
        without_differential=sum(not row.has_differential for row in whole),
        without_truth=sum(row.has_differential and not row.ranks for row in whole),
        missing=len(rows) - len(whole),
    )


_Ranked = tuple[str, int | None, TruthScore | None]


def _source_ranking(ranks: Sequence[_Ranked], seed: int) -> SourceRanking:
    return SourceRanking(
        records=len(ranks),
        top={k: share((case, rank is not None and rank <= k, 1) for case, rank, _ in ranks) for k in DEPTHS},
        mean_reciprocal_rank=mean(((case, 1 / rank if rank else 0.0) for case, rank, _ in ranks), seed, low=0, high=1),
        truth=_truth_scores([(case, score) for case, _, score in ranks if score is not None], seed),
    )


def _truth_scores(scores: Sequence[tuple[str, TruthScore]], seed: int) -> TruthScores | None:
    if not scores:
        return None
    brier = mean(((case, score.brier) for case, score in scores), seed, low=0, high=2)
    log = mean(((case, score.log) for case, score in scores), seed, low=0)
    prior_brier = math.fsum(score.prior_brier for _, score in scores) / len(scores)
    prior_log = math.fsum(score.prior_log for _, score in scores) / len(scores)
    return TruthScores(
        encounters=len(scores),
        brier=brier,
        log_score=log,
        prior_brier=prior_brier,
        prior_log_score=prior_log,
        brier_skill=1 - (brier.value or 0) / prior_brier,
        log_skill=1 - (log.value or 0) / prior_log,
        even_log_score=math.fsum(math.log(score.diseases) for _, score in scores) / len(scores),
    )


# --- twins ------------------------------------------------------------------------------------------------------------


class Twins(Measured):
    """How the doctor did on pairs of cases that look alike at the door and have different diagnoses."""

    both_right: Proportion
    same_answer: Proportion
    without_partner: int = 0
    """Records left out of `both_right`: the twin was not played in the same repeat, or one of the two is missing."""


@metric(
    "twins.both_right",
    title="both twins right",
    unit="share",
    direction="higher",
    note="the same answer to both gets no pair",
    column=False,
)
def both_right(rows: Rows) -> Proportion:
    """Pairs of twins with both right ÷ pairs with none missing; an answer that could not be read is not right."""
    pairs = twin_pairs(row.twin for row in rows)
    return share((pair.cases, pair.both_right, 1) for pair in pairs if pair.both_right is not None)


@metric("twins.same_answer", title="same answer to both twins", unit="share", direction="lower", column=False)
def same_answer(rows: Rows) -> Proportion:
    """Pairs of twins with the same diagnosis by the written rules ÷ pairs with two diagnoses."""
    pairs = twin_pairs(row.twin for row in rows)
    return share((pair.cases, pair.same_answer, 1) for pair in pairs if pair.same_answer is not None)


def twins(rows: Rows, seed: int = 0) -> Twins:
    """Pair accuracy and how often both twins got the same answer."""
    found = Twins(**measured("twins", rows, seed))
    found.without_partner = sum(row.twin is not None for row in rows) - 2 * found.both_right.of
    return found


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
    """The cluster of each case, its right repeats and all that are not missing; an unread answer is not right."""
    verdicts: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in rows:
        if row.right is not None:
            verdicts[row.case, row.cluster].append(row.right)
    return [(cluster, sum(given), len(given)) for (_, cluster), given in verdicts.items()]


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
    excluded: Estimate
    minutes_to_exclusion: Estimate
    diseases: int = 0
    """Must-not-miss diseases for which the records show whether they were excluded; `excluded` is over these."""
    encounters: int = 0
    """Encounters with at least one of those."""
    not_assessable: dict[str, int] = {}
    """The other must-not-miss diseases, by why."""


def _with_harm(rows: Rows) -> list[tuple[Row, float]]:
    return [(row, row.harm) for row in rows if row.right is not None and not row.unread and row.harm is not None]


def _assessed(rows: Rows) -> list[tuple[str, Danger]]:
    return [(row.cluster, one) for row in rows for one in row.dangers if one.unknown is None]


def _not_assessable(rows: Rows) -> Counter[str]:
    return Counter(one.unknown for row in rows for one in row.dangers if one.unknown is not None)


@metric("harm.weighted_loss", title="harm-weighted loss", unit="share", direction="lower", column=False)
def weighted_loss(rows: Rows, seed: int) -> Estimate:
    """Σ harm over records not right ÷ Σ harm over all that state it; between 0 and 1."""
    losses = ((row.cluster, 0.0 if row.right else harm, harm) for row, harm in _with_harm(rows))
    return ratio(losses, seed, low=0, high=1)


@metric("harm.serious_wrong", title="wrong on cases of harm 3 or more", unit="share", direction="lower", column=False)
def serious_wrong(rows: Rows) -> Proportion:
    """Wrong diagnoses ÷ records of cases with a harm of 3 or more; ending without a diagnosis is not one."""
    serious = [row for row, harm in _with_harm(rows) if harm >= SERIOUS]
    return share((row.cluster, row.diagnosed and not row.right, 1) for row in serious)


@metric(
    "harm.excluded",
    title="dangerous diseases excluded before committing",
    unit="share",
    direction="higher",
    note="weighted by harm; higher is better",
    column=False,
)
def excluded(rows: Rows, seed: int) -> Estimate:
    """Σ harm of the must-not-miss diseases excluded ÷ Σ harm of all that can be assessed.

    Excluded: the doctor obtained what excludes the disease (`exclusion.dangers`). The harm is the disease's own, 3 if
    the case gives none.
    """
    assessed = _assessed(rows)
    if not assessed:
        return Estimate(value=None, note="; ".join(sorted(_not_assessable(rows))) or None)
    return ratio(((key, 0.0 if d.minutes is None else d.harm, d.harm) for key, d in assessed), seed, low=0, high=1)


@metric(
    "harm.minutes_to_exclusion",
    title="simulated minutes until excluded",
    direction="lower",
    note="of those excluded; lower is better",
    column=False,
)
def minutes_to_exclusion(rows: Rows, seed: int) -> Estimate:
    """Mean simulated minutes until a must-not-miss disease was excluded, over those that were.

    A question takes 5 minutes; an order takes as long as its slowest item, until the result is there.
    """
    return mean(((key, one.minutes) for key, one in _assessed(rows) if one.minutes is not None), seed, low=0)


def harm(rows: Rows, seed: int = 0) -> Harm:
    """Loss weighted by harm, and dangerous diseases excluded."""
    missing, unread = sum(row.right is None for row in rows), sum(row.unread for row in rows)
    stated = len(_with_harm(rows))
    return Harm(
        stated=stated,
        not_stated=len(rows) - missing - unread - stated,
        missing=missing,
        not_readable=unread,
        diseases=len(_assessed(rows)),
        encounters=sum(any(one.unknown is None for one in row.dangers) for row in rows),
        not_assessable=dict(sorted(_not_assessable(rows).items())),
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
    shown: int = 0
    """Encounters whose doctor was shown the chart: left out, since there was nothing to find."""
    at_the_door: int = 0
    """Key findings left out because the doctor was told them at the door."""
    recall: Estimate
    by_way: dict[str, Proportion] = {}
    """Key findings first learned this way ÷ all that can be assessed."""
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
    images: Estimate
    tokens: dict[str, Estimate] = {}
    """By role: mean input and output tokens, over the encounters that used the role and report them."""
    repeated_questions: Proportion
    key_facts: KeyFacts
    differentials: dict[str, DifferentialCourse] = {}
    """By source, never pooled."""
    premature_closure: Proportion
    premature_of_wrong: Proportion


def _dialogues(rows: Rows) -> list[tuple[str, Dialogue]]:
    return [(row.cluster, row.dialogue) for row in rows if row.dialogue is not None]


def _average(values: Iterable[tuple[str, float | None]], seed: int) -> Estimate:
    found = mean(((case, value) for case, value in values if value is not None), seed, low=0)
    return found if found.n else Estimate(value=None, note=NOT_RECORDED)


@metric("information.turns", title="turns per encounter", column=False)
def turns(rows: Rows, seed: int) -> Estimate:
    """Mean turns of the doctor."""
    return _average(((row.cluster, row.turns) for row in rows if not row.cut_short), seed)


@metric("information.questions", title="questions per encounter")
def questions(rows: Rows, seed: int) -> Estimate:
    """Mean questions to the patient."""
    return _average(((case, talk.questions) for case, talk in _dialogues(rows)), seed)


@metric("information.images", title="requests for images per encounter", column=False)
def images(rows: Rows, seed: int) -> Estimate:
    """Mean requests for images."""
    return _average(((case, talk.images) for case, talk in _dialogues(rows)), seed)


@metric("information.repeated_questions", title="repeated questions", unit="share", direction="lower")
def repeated_questions(rows: Rows) -> Proportion:
    """Questions that repeat an earlier one of the encounter ÷ questions."""
    return share((cluster, talk.repeated_questions, talk.questions) for cluster, talk in _dialogues(rows))


@metric(
    "information.premature_closure",
    title="premature closure",
    unit="share",
    direction="lower",
    note="wrong with turns left and no decisive finding requested",
)
def premature_closure(rows: Rows) -> Proportion:
    """Premature closures ÷ encounters where this can be known."""
    return share((cluster, talk.premature, 1) for cluster, talk in _dialogues(rows) if talk.premature is not None)


@metric("information.premature_of_wrong", title="", unit="share", direction="lower", column=False)
def premature_of_wrong(rows: Rows) -> Proportion:
    """Premature closures ÷ wrong diagnoses where this can be known."""
    known = [row for row in rows if row.dialogue is not None and row.dialogue.premature is not None]
    wrong = [row for row in known if row.diagnosed and row.right is False]
    return share((row.cluster, row.dialogue is not None and row.dialogue.premature is True, 1) for row in wrong)


@metric("key_facts.recall", title="key findings found", unit="share", direction="higher")
def recall(rows: Rows, seed: int) -> Estimate:
    """Mean over encounters of Σ weight found ÷ Σ weight, of what the doctor had to find."""
    talks = _dialogues(rows)
    if talks and all(talk.shown for _, talk in talks):
        return Estimate(value=None, note=SHOWN)
    return mean(((case, talk.recall) for case, talk in talks if talk.recall is not None), seed, low=0, high=1)


@metric("key_facts.yield_per_request", title="key findings per request", direction="higher", column=False)
def yield_per_request(rows: Rows, seed: int) -> Estimate:
    """Key findings told by patient or laboratory ÷ questions and orders: Σ over encounters ÷ Σ over encounters."""
    learned = (
        (row.cluster, sum(way is not None for _, way in talk.facts), talk.questions + row.tests.orders)
        for row in rows
        if (talk := row.dialogue) and row.tests and talk.recall is not None
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
        tokens={role: _average(((row.cluster, dict(row.tokens).get(role)) for row in seen), seed) for role in roles},
        key_facts=_key_facts(rows, seed),
        differentials=_courses(_dialogues(rows), seed),
        **measured("information", rows, seed),
    )


def _key_facts(rows: Rows, seed: int) -> KeyFacts:
    talks = [talk for _, talk in _dialogues(rows)]
    assessed = [talk for talk in talks if talk.recall is not None]
    doors, shown = sum(talk.door for talk in assessed), sum(talk.shown for talk in talks)
    nothing = SHOWN if talks and shown == len(talks) else NO_KEY_FACTS
    found = [(row.cluster, way) for row in rows if row.dialogue for _, way in row.dialogue.facts]
    ways = [way for way in LearnedFrom if way is not LearnedFrom.DOOR]
    by_way = {way.value: share((cluster, learned is way, 1) for cluster, learned in found) for way in ways}
    return KeyFacts(
        encounters=len(assessed),
        without=sum(talk.no_findings for talk in talks),
        not_assessable=sum(talk.not_assessable for talk in talks),
        shown=shown,
        at_the_door=sum(talk.at_the_door for talk in talks),
        by_way=by_way if assessed else {},
        note=nothing if not assessed else NO_DOOR if doors < len(assessed) else None,
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
        truth_appeared=share((case, seen.appeared is not None, 1) for case, seen in followed),
        turn_appeared=mean(appeared, seed, low=1),
        truth_led=share((case, seen.led is not None, 1) for case, seen in followed),
        turn_led=mean(led, seed, low=1),
        truth_dropped=share((case, seen.dropped, seen.led is not None) for case, seen in followed),
    )


# --- the tests the doctor ordered -------------------------------------------------------------------------------------


class Orders(Measured):
    """What was ordered; null, with a note, if the records do not say."""

    encounters: int = 0
    """Records with a transcript, except those cut short by a failure that was not the doctor's."""
    not_recorded: int = 0
    """Records without a transcript."""
    missing: int = 0
    messages: int = 0
    """Orders: each is one message to the laboratory, and may name several tests."""
    tests: int = 0
    """Tests and examinations named in orders, each time that one is."""
    done: int = 0
    orders: Estimate
    items: Estimate
    answered_by: dict[str, Proportion] = {}
    """Tests by provenance ÷ tests."""
    repeated: Proportion
    unanswered: Proportion
    price_usd: Estimate
    price_per_right_usd: Estimate
    priced_usd: float | None = None
    """Sum of the known prices: everything costs at least this. Null if none is known."""
    priced: int = 0
    unpriced: int = 0
    """Tests done without a price, and therefore without a waiting time."""
    waiting_hours: Estimate
    resource_level: dict[str, int] = {}
    """Records by the run's `resource_level`."""
    price_table: dict[str, int] = {}
    """Records by the table that their tests are priced by."""
    accuracy_by_unanswerable: dict[str, Proportion] = {}
    """Strict accuracy, counted as in the headline, by the share of an encounter's tests that the chart could not
    answer."""
    note: str | None = None


def _ordered(rows: Rows) -> list[tuple[str, Tests]]:
    return [(row.cluster, row.tests) for row in rows if row.tests is not None]


@metric("orders.items", title="tests and examinations ordered per encounter")
def items(rows: Rows, seed: int) -> Estimate:
    """Mean tests and examinations named in orders."""
    return _average(((case, len(tests.items)) for case, tests in _ordered(rows)), seed)


@metric("orders.orders", title="")
def order_messages(rows: Rows, seed: int) -> Estimate:
    """Mean messages to the laboratory; one may name several tests."""
    return _average(((case, tests.orders) for case, tests in _ordered(rows)), seed)


@metric("orders.repeated", title="ordered before in the encounter", unit="share", direction="lower")
def repeated_tests(rows: Rows) -> Proportion:
    """Tests that had been ordered before in the same encounter ÷ tests ordered."""
    return share((cluster, tests.again, len(tests.items)) for cluster, tests in _ordered(rows))


@metric("orders.unanswered", title="", unit="share")
def unanswered(rows: Rows) -> Proportion:
    """Tests that were not available, or not answered before the end ÷ tests ordered."""
    return share((cluster, len(tests.items) - tests.done, len(tests.items)) for cluster, tests in _ordered(rows))


def _no_price(seen: Sequence[tuple[str, Tests]], per: int) -> Estimate | None:
    """What stands for a price if a test done has none: the least it can be, in the note."""
    without = sum(tests.bill.unpriced for _, tests in seen)
    if not without:
        return None
    done = plural(sum(tests.done for _, tests in seen), "test")
    least = math.fsum(tests.bill.usd for _, tests in seen) / per
    return Estimate(value=None, note=f"at least {least:,.0f}: {without} of {done} done have no price")


@metric("orders.price_usd", title="price of tests per encounter, USD (estimates)", column=False)
def price_usd(rows: Rows, seed: int) -> Estimate:
    """Mean price per encounter; null if any test done has no price."""
    seen = _ordered(rows)
    return _no_price(seen, len(seen)) or _average(((case, tests.bill.usd) for case, tests in seen), seed)


@metric("orders.price_per_right_usd", title="price of tests per right diagnosis, USD (estimates)", column=False)
def price_per_right_usd(rows: Rows) -> Estimate:
    """Σ price of tests ÷ right diagnoses; null if nothing is right or if any test done has no price.

    The interval is on the log scale, R·exp(±t·SE/R), with the linearized standard error over clusters.
    """
    judged = [row for row in rows if row.tests is not None and row.right is not None]
    right = sum(row.right is True for row in judged)
    if not right:
        return Estimate(value=None, note="no diagnosis is right" if judged else NOT_RECORDED)
    seen = _ordered(judged)
    if unknown := _no_price(seen, right):
        return unknown
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row, (cluster, tests) in zip(judged, seen, strict=True):
        totals[cluster][0] += tests.bill.usd
        totals[cluster][1] += row.right is True
    sums, sizes = np.array(sorted(totals.values())).T
    clusters = Clusters(sums, sizes, np.ones(len(sums), dtype=np.int64))
    value = clusters.mean
    if len(totals) < 3 or not value:
        return Estimate(value=value, n=len(judged))
    factor = math.exp(stretch_for(len(totals)) * Z95 * clusters.standard_error / value)
    return Estimate(value=value, low=value / factor, high=value * factor, n=len(judged))


@metric("orders.waiting_hours", title="hours of waiting per encounter (estimates)")
def waiting_hours(rows: Rows, seed: int) -> Estimate:
    """Mean waiting time per encounter; null if any test done has none."""
    seen = _ordered(rows)
    if without := sum(tests.bill.unpriced for _, tests in seen):
        return Estimate(value=None, note=f"{plural(without, 'test')} done have none")
    return _average(((case, tests.bill.hours) for case, tests in seen), seed)


def orders(rows: Rows, seed: int = 0) -> Orders:
    """Counts, answers, prices and accuracy by what the chart could not answer."""
    seen = [tests for _, tests in _ordered(rows)]
    judged = [(row.tests.stratum, row.cluster, row.right) for row in rows if row.tests and row.right is not None]
    strata = {stratum for stratum, _, _ in judged}
    answers = [(cluster, item.provenance) for cluster, tests in _ordered(rows) for item in tests.items]
    ways = dict.fromkeys((*ANSWERED_BY, *sorted({how for _, how in answers}))) if answers else ()
    priced, unpriced = (sum(getattr(tests.bill, name) for tests in seen) for name in ("priced", "unpriced"))
    missing = sum(row.cut_short for row in rows)
    return Orders(
        encounters=len(seen),
        not_recorded=len(rows) - len(seen) - missing,
        missing=missing,
        messages=sum(tests.orders for tests in seen),
        tests=len(answers),
        done=sum(tests.done for tests in seen),
        answered_by={how: share((cluster, given == how, 1) for cluster, given in answers) for how in ways},
        priced_usd=math.fsum(tests.bill.usd for tests in seen) if priced else None,
        priced=priced,
        unpriced=unpriced,
        resource_level=dict(sorted(Counter(row.resource_level for row in rows).items())),
        price_table=dict(sorted(Counter(row.price_table for row in rows).items())),
        accuracy_by_unanswerable={
            name: share((cluster, right, 1) for stratum, cluster, right in judged if stratum == name)
            for name in (*STRATA, NO_TESTS, UNKNOWN)
            if name in strata
        },
        note=None if seen else NOT_RECORDED,
        **measured("orders", rows, seed),
    )


# --- accuracy against what tests may cost -----------------------------------------------------------------------------


class Within(BaseModel):
    """Encounters that are right and whose tests cost at most so much ÷ all."""

    usd: int
    right: Proportion


class Budget(Measured):
    """Accuracy against a budget for the tests of an encounter; null if the records do not say."""

    accuracy_area: Estimate
    encounters: int = 0
    """Encounters with a transcript and a verdict."""
    estimated: int = 0
    """Those with a test that has no price, and is counted at an estimate."""
    within: list[Within] = []
    """By budget; intervals are for each point alone."""
    without_limit: Proportion

    @property
    def flat(self) -> bool:
        """Whether the smallest budget pays for every right diagnosis, so that the budget makes no difference."""
        return not self.within or self.within[0].right.count == self.without_limit.count


def _billed(rows: Rows) -> list[tuple[str, bool, Bill]]:
    return [(row.cluster, row.right, row.tests.bill) for row in rows if row.tests and row.right is not None]


@metric(
    "budget.accuracy_area",
    title=f"area under accuracy by budget, ${BUDGETS[0]:,} to ${BUDGETS[-1]:,}",
    direction="higher",
    note=f"over log-dollars; 1: always right, with tests for ${BUDGETS[0]} or less",
)
def accuracy_area(rows: Rows, seed: int) -> Estimate:
    """Area under the share that is right within a budget, over its logarithm, ÷ the width: mean of right × worth."""
    billed = _billed(rows)
    return mean(((cluster, right * worth(price(bill))) for cluster, right, bill in billed), seed, low=0, high=1)


def budget_section(rows: Rows, seed: int = 0) -> Budget:
    """The share that is right within each budget, without a limit, and the area."""
    billed = _billed(rows)
    clusters = [cluster for cluster, _, _ in billed]
    right = np.array([right for _, right, _ in billed], dtype=np.bool_)
    usd = np.array([price(bill) for *_, bill in billed])
    within = [right & (usd <= most) for most in (*BUDGETS, math.inf)]
    *by_budget, without_limit = shares(clusters, np.column_stack(within))
    return Budget(
        encounters=len(billed),
        estimated=sum(bill.estimated > 0 for *_, bill in billed),
        within=[Within(usd=usd, right=found) for usd, found in zip(BUDGETS, by_budget, strict=True)] if billed else [],
        without_limit=without_limit,
        **measured("budget", rows, seed),
    )


# --- against the best play, in solvable worlds ------------------------------------------------------------------------


class Regret(Measured):
    """How far encounters in a solvable world fall short of the best play, in points; null elsewhere."""

    regret: Estimate
    utility: Estimate
    encounters: int = 0
    best_value: float | None = None
    """What the best play earns on average."""
    by_turn: dict[int, dict[str, float]] = {}
    """By turn and kind: regret per encounter."""


def _points(rows: Rows, seed: int, value: Callable[[Regrets], float], low: float = -math.inf) -> Estimate:
    return mean(((row.cluster, value(row.regret)) for row in rows if row.regret), seed, low=low)


@metric("regret.utility", title="utility, points", direction="higher")
def utility(rows: Rows, seed: int) -> Estimate:
    """Mean worth of an encounter: its ending minus what it cost."""
    return _points(rows, seed, lambda one: one.utility)


@metric("regret.regret", title="regret, points", direction="lower", note="best play 0; lower is better")
def regret(rows: Rows, seed: int) -> Estimate:
    """Mean over encounters of Σ over turns of the value of the best action minus that of the action taken."""
    return _points(rows, seed, lambda one: one.regret, 0)


def _of_kind(kind: Kind) -> Callable[[Rows, int], Estimate]:
    def found(rows: Rows, seed: int) -> Estimate:
        """Mean over encounters of the regret of one kind of turn."""
        return _points(rows, seed, lambda one: math.fsum(lost for _, named, lost in one.by_turn if named == kind), 0)

    return found


for _kind, _title in KINDS.items():
    metric(f"regret.regret_{_kind}", title=f"- {_title}", direction="lower", note="part of the regret")(_of_kind(_kind))


@metric("regret.luck", title="luck, points", note="0 on average for every doctor")
def luck(rows: Rows, seed: int) -> Estimate:
    """Mean of the best value - utility - regret: what chance took, or gave if negative."""
    return _points(rows, seed, lambda one: one.luck)


@metric("regret.best_actions", title="turns with the best action", unit="share", direction="higher")
def best_actions(rows: Rows) -> Proportion:
    """Turns without regret ÷ all turns."""
    found = [(row.cluster, [kind for _, kind, _ in row.regret.by_turn]) for row in rows if row.regret]
    return share((cluster, kinds.count("best"), len(kinds)) for cluster, kinds in found)


@metric("regret.deferred", title="deferred", unit="share", note="encounters that ended with DEFER; they are not right")
def deferred(rows: Rows) -> Proportion:
    """Encounters that ended with DEFER ÷ all."""
    return share((row.cluster, row.regret.ending == DEFER, 1) for row in rows if row.regret)


@metric("regret.without_answer", title="without an answer", unit="share", direction="lower")
def without_answer(rows: Rows) -> Proportion:
    """Encounters without a diagnosis, or with one that names none or several of the diseases ÷ all."""
    return share((row.cluster, row.regret.ending is None, 1) for row in rows if row.regret)


@metric("regret.world_price", title="price in the world, USD", direction="lower")
def world_price(rows: Rows, seed: int) -> Estimate:
    """Mean price of all that was asked, examined and ordered."""
    return _points(rows, seed, lambda one: one.price, 0)


@metric("regret.belief_divergence", title="KL from the exact to the stated belief, nats", direction="lower")
def belief_divergence(rows: Rows, seed: int) -> Estimate:
    """Σ over turns of Σ p·ln(p / q) ÷ turns with a stated belief; p is exact, q stated, with a floor."""
    given = [
        (row.cluster, math.fsum(row.regret.kl), len(row.regret.kl)) for row in rows if row.regret and row.regret.kl
    ]
    return ratio(given, seed, low=0)


@metric(
    "regret.belief_updating",
    title="stated per exact change of log-odds",
    note="1 is exact, less is too cautious, more overreacts",
)
def updating(rows: Rows, seed: int) -> Estimate:
    """Slope through 0 of the stated on the exact change of each disease's log-odds: Σ exact·stated ÷ Σ exact²."""
    given = [(row.cluster, *row.regret.moved) for row in rows if row.regret and row.regret.moved[1]]
    return ratio(given, seed)


def regret_section(rows: Rows, seed: int = 0) -> Regret:
    """Regret by kind and turn, utility and beliefs."""
    given = [row.regret for row in rows if row.regret]
    found = Regret(encounters=len(given), **measured("regret", rows, seed))
    if not given:
        return found
    found.best_value = math.fsum(one.best_value for one in given) / len(given)
    sums: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for one in given:
        for turn, kind, lost in one.by_turn:
            sums[turn][kind] += lost  # type: ignore[assignment]
    found.by_turn = {
        turn: {kind: sums[turn][kind] / len(given) for kind in KINDS if sums[turn][kind]} for turn in sorted(sums)
    }
    return found
