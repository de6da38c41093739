"""Whether one run is really better than another: paired by case, clustered, with warnings about other differences."""

from __future__ import annotations

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import sub
from statistics import fmean
from typing import Literal, NamedTuple

from pydantic import BaseModel

from agentclinic.clinic.desk import EXACT
from agentclinic.config import DRAWN_TRAITS
from agentclinic.doctors.solvable import CHOICES
from agentclinic.errors import InputError
from agentclinic.results.record import Record
from agentclinic.results.regret import KINDS, Kind
from agentclinic.results.run_data import RunData
from agentclinic.scoring.clusters import case_key, cluster_keys, joined
from agentclinic.scoring.differentials import truth_score
from agentclinic.scoring.format import as_points
from agentclinic.scoring.frontier import BUDGETS, SHOWN, price, worth
from agentclinic.scoring.information import key_facts, recall
from agentclinic.scoring.judges.against_labels import judged_by, paired_units
from agentclinic.scoring.judges.correction import correct, corrected_difference
from agentclinic.scoring.labels import BEFORE_0_3, OF_RUN, SETTINGS, run_labels, setting_text
from agentclinic.scoring.orders import Tests, ordered_in
from agentclinic.scoring.outcome import cost_of, judged_by_itself, tokens_of
from agentclinic.scoring.stats import (
    Difference,
    Estimate,
    Proportion,
    holm,
    mcnemar_p,
    mean,
    mean_against_zero,
    paired_difference,
    share,
)
from agentclinic.scoring.twins import TwinPair, Waiting, meet, twin_in
from agentclinic.scoring.verdicts import lenient, strict

# --- what is compared: a number for one record, or None if the record does not say ----------------------------------


class Seen(NamedTuple):
    """A record, and the tests in it, which several measures need."""

    record: Record
    tests: Tests | None


DOCTORS_PARTS = ("doctor", "planner", "synthesis", "memory", "embedding")
"""The roles on the doctor's side that use models."""


def _used(seen: Seen, *keys: str) -> float | None:
    """What the models on the doctor's side used; None if it is not all known."""
    usage = seen.record.usage or {}
    amounts = [usage[part].get(key) for part in DOCTORS_PARTS if part in usage for key in keys]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if amounts and len(known) == len(amounts) else None


def brier(record: Record) -> float | None:
    """Of the probability that the final differential gives to the truth; None if it is not a distribution."""
    scores = truth_score(record)
    return scores.brier if scores else None


def _regret_of(kind: Kind, seen: Seen) -> float | None:
    """The regret of one kind of turn, in points."""
    found = seen.record.regret
    return math.fsum(turn.regret for turn in found.turns if turn.kind == kind) if found else None


def _divergence(seen: Seen) -> float | None:
    """Mean over the turns with a stated belief, in nats; None if there is none."""
    turns = seen.record.regret.turns if seen.record.regret else ()
    found = [turn.kl for turn in turns if turn.kl is not None]
    return fmean(found) if found else None


def _price_of_right(seen: Seen) -> float | None:
    """What the tests before a right diagnosis cost; infinite if it is not right: no budget is enough."""
    right = strict(seen.record)
    if right is None or seen.tests is None:
        return None
    return price(seen.tests.bill) if right else math.inf


def _right_within(budget: float, seen: Seen) -> float | None:
    usd = _price_of_right(seen)
    return None if usd is None else float(usd <= budget)


def _worth_of_right(seen: Seen) -> float | None:
    usd = _price_of_right(seen)
    return None if usd is None else worth(usd)


Measure = Callable[[Seen], float | None]
RULES: Mapping[str, Measure] = {
    "strict": lambda seen: strict(seen.record),
    "lenient": lambda seen: lenient(seen.record),
}
"""An answer that could not be read is not right, as in the headline of a run."""
REGRET = "regret, points"
SECONDARY: Mapping[str, Measure] = {
    "turns": lambda seen: seen.record.num_turns,
    "tests": lambda seen: len(seen.tests.items) if seen.tests else None,
    "key findings found": lambda seen: recall(key_facts(seen.record) or ()),
    "requests to models": lambda seen: _used(seen, "requests"),
    "tokens": lambda seen: _used(seen, "input_tokens", "output_tokens"),
    "Brier score of the truth": lambda seen: brier(seen.record),
    REGRET: lambda seen: seen.record.regret.regret if seen.record.regret else None,
    **{f"regret, {words}": partial(_regret_of, kind) for kind, words in KINDS.items()},
    "utility, points": lambda seen: seen.record.regret.utility if seen.record.regret else None,
    "KL from the exact to the stated belief": _divergence,
}
OF_TWINS: Mapping[str, Callable[[TwinPair], bool | None]] = {
    "both twins right": lambda pair: pair.both_right,
    "same answer to both twins": lambda pair: pair.same_answer,
}
"""What is compared pair by pair; None if the pair does not say."""
AREA = "area under accuracy by budget"
_WITHIN = {usd: f"right within ${usd:,}" for usd in SHOWN}
OF_BUDGETS: Mapping[str, Measure] = {
    **{name: partial(_right_within, usd) for usd, name in _WITHIN.items()},
    AREA: _worth_of_right,
}
"""What a budget for tests leaves of accuracy, by the strict rule."""
_MEASURES: Mapping[str, Measure] = {**RULES, **SECONDARY, **OF_BUDGETS}
LEVEL = 0.05
DETERMINISTIC = {"plain", "uncertainty", "None", *CHOICES} - {"random_actions"}
"""Doctors that do the same in every repeat, with builtin models."""

# What must be equal for a difference between runs to be due to the doctor: record field and label.
_CONDITIONS = {
    "patient_llm": "patient model",
    "measurement_llm": "laboratory model",
    "moderator_llm": "judge",
    "simulator": "simulator",
    "dialogue": "dialogue form",
    "max_infs": "turn limit",
    "missing_test": "missing_test",
    "pending_results": "pending_results",
    "silent_symptom": "silent_symptom",
    "patient_bias": "patient bias",
    "patient_traits": "patient traits",
    "unsupported_bias": "biases that were ignored",
    "image_request_enabled": "images",
    "price_table": "prices of tests",
    "test_budget": "budget for tests, USD",
    "order_limit": "items in an order",
}
_UNSAID = {
    **BEFORE_0_3,
    "price_table": "our table",
    "pending_results": False,
    "patient_traits": "none",
    **dict.fromkeys(OF_RUN, "no limit"),
}
"""What a record that does not name a condition was played with."""


@dataclass(slots=True)
class CaseOutcomes:
    """The outcomes of one case in one run, in a few numbers: a run may have 100,000 cases."""

    scenario_id: int
    name: str
    keys: tuple[str, ...]
    """By which clusters are found."""
    place: tuple[str, int, str]
    """Data set, row and diagnosis, by which a run that does not record its cases is paired."""
    repeats: int = 0
    sums: tuple[float, ...] = (0.0,) * len(_MEASURES)
    """In the order of `_MEASURES`: sums over the repeats with a value."""
    known: tuple[int, ...] = (0,) * len(_MEASURES)
    """In the order of `_MEASURES`: repeats with a value."""
    dialogue: int = 0
    """Hash of the last repeat's dialogue."""
    same: bool = True
    """Whether every repeat had the same dialogue."""

    def add(self, seen: Seen) -> None:
        dialogue = zlib.crc32(seen.record.doctor_hist.encode())
        self.same = self.same and (self.repeats == 0 or dialogue == self.dialogue)
        self.dialogue = dialogue
        self.repeats += 1
        values = [measure(seen) for measure in _MEASURES.values()]
        self.sums = tuple(n + (value or 0.0) for n, value in zip(self.sums, values, strict=True))
        self.known = tuple(n + (value is not None) for n, value in zip(self.known, values, strict=True))

    def mean(self, measure: str) -> float | None:
        """Mean over the repeats, for a rule the share that is right; None if none has a value."""
        place = list(_MEASURES).index(measure)
        return self.sums[place] / self.known[place] if self.known[place] else None


@dataclass
class Arm:
    """One run, reduced to what a comparison needs."""

    name: str
    run: RunData
    cases: dict[str, CaseOutcomes] = field(default_factory=dict)
    conditions: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    settings: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """What the records say of how they were played, by the keys of `SETTINGS`."""
    pairs: dict[str, dict[tuple[str, str], list[bool]]] = field(default_factory=lambda: {name: {} for name in OF_TWINS})
    """By the keys of `OF_TWINS`: the value of each pair of twins in every repeat."""
    waiting: Waiting = field(default_factory=dict)
    records: int = 0
    tokens: int | None = 0
    cost_usd: float | None = 0.0
    """Tokens and cost of all models; None if they are not all known."""
    lenient_known: bool = True
    cases_recorded: bool = True
    """False for a run of the original, which has the rows but not the cases."""
    unread: int = 0
    own_judge: bool = False
    spent: bool = False
    """Whether the tests of any encounter cost more than the smallest budget."""

    @property
    def repeats(self) -> int:
        return max((case.repeats for case in self.cases.values()), default=0)

    @property
    def deterministic(self) -> bool:
        """Whether repeats of a case never differ: their dialogues are equal, or every role is builtin."""
        if self.repeats > 1:
            return all(case.same for case in self.cases.values())
        roles = ("doctor_llm", "patient_llm", "measurement_llm", "moderator_llm")
        builtin = all(set(self.conditions[role]) <= {"builtin", EXACT} for role in roles)
        drawn = any(name in said for said in self.conditions["patient_traits"] for name in DRAWN_TRAITS)
        return builtin and not drawn and set(self.conditions["doctor"]) <= DETERMINISTIC

    def add(self, record: Record) -> None:
        self.records += 1
        self.cases_recorded = self.cases_recorded and record.case_hash is not None
        case = self.cases.get(case_key(record))
        if case is None:
            place = str(record.dataset), record.scenario_id, (record.ground_truth or "").strip().casefold()
            case = CaseOutcomes(record.scenario_id, record.case_name, cluster_keys(record), place)
            self.cases[case_key(record)] = case
        seen = Seen(record, ordered_in(record))
        case.add(seen)
        self.spent = self.spent or (seen.tests is not None and price(seen.tests.bill) > BUDGETS[0])
        twin = twin_in(record)
        if twin is not None and (pair := meet(twin, self.waiting)) is not None:
            for name, measure in OF_TWINS.items():
                if (found := measure(pair)) is not None:
                    self.pairs[name].setdefault(pair.cases, []).append(found)
        if strict(record) is not None and lenient(record) is None:
            self.lenient_known = False
        self.unread += record.status == "not_readable"
        self.own_judge = self.own_judge or (not self.run.judge_elsewhere and judged_by_itself(record))
        for key in (*_CONDITIONS, "doctor_llm", "doctor"):
            value = self.run.asked(key) if key in OF_RUN else getattr(record, key)
            if key == "price_table":  # prices of a setting, and estimates, are no table of the user's
                value = record.setting(key)
            value = _UNSAID.get(key) if value is None else value
            named = [f"{name} {asked}" for name, asked in value.items()] if isinstance(value, dict) else [str(value)]
            self.conditions[key][", ".join(named)] += 1
        for key in SETTINGS:
            value = self.run.asked(key) if key in OF_RUN else record.setting(key)
            if value is not None:
                self.settings[key][setting_text(value)] += 1
        used, cost = tokens_of(record, "input_tokens", "output_tokens"), cost_of(record)
        self.tokens = None if self.tokens is None or used is None else self.tokens + used
        self.cost_usd = None if self.cost_usd is None or cost is None else self.cost_usd + cost

    @property
    def scored(self) -> int:
        """Records that are not missing."""
        return sum(case.known[0] for case in self.cases.values())

    def pooled(self, measure: str) -> float | None:
        """The mean of a measure over the records that have it, as in the run's score."""
        place = list(_MEASURES).index(measure)
        known = sum(case.known[place] for case in self.cases.values())
        return math.fsum(case.sums[place] for case in self.cases.values()) / known if known else None

    def mean(self, measure: str) -> float | None:
        """The mean of a measure over the cases that have it."""
        values = [value for case in self.cases.values() if (value := case.mean(measure)) is not None]
        return fmean(values) if values else None


def load_arm(run: RunData, name: str | None = None) -> Arm:
    """Read a run one record at a time."""
    arm = Arm(name or run.name, run)
    for record in run.records():
        arm.add(record)
    if not arm.records:
        raise InputError(f"{run.path}: no records in this file")
    return arm


def labels_of(arms: Sequence[Arm]) -> list[str]:
    """What to call each of several runs: by what differs between them."""
    before = {key: setting_text(value) for key, value in BEFORE_0_3.items()}
    said = [before | {key: ", ".join(sorted(values)) for key, values in arm.settings.items()} for arm in arms]
    return run_labels([arm.run for arm in arms], said)


class Flip(BaseModel):
    """A case on which two runs differ."""

    scenario_id: int
    name: str
    before: float
    after: float


class RuleComparison(BaseModel):
    """A run against a baseline under one rule of judging."""

    rule: str
    cases: int
    """Cases with a verdict in both runs."""
    clusters: int
    """Groups of cases that belong together: twins and near copies."""
    before: float
    after: float
    difference: Estimate
    p: float
    """Of the score test that the interval inverts: below 0.05 if and only if the interval leaves out 0."""
    p_mcnemar: float | None
    """Exact McNemar; null with repeats or clusters of several cases, since its pairs are then not independent."""
    p_holm: float | None = None
    """`p` adjusted for all comparisons."""
    gained: list[Flip]
    lost: list[Flip]
    conclusion: str = ""


class SecondaryMetric(BaseModel):
    """A measure other than accuracy in two runs, over the cases for which both have it."""

    measure: str
    cases: int
    unit: Literal["case", "pair"] = "case"
    """What `cases` counts; a measure of pairs of twins is a share."""
    before: float
    after: float
    difference: Estimate


class AtBudget(BaseModel):
    """Being right within a budget for tests in two runs, over the cases for which both have it."""

    usd: int | None
    """Null for the area under the curve over all budgets."""
    cases: int
    before: float
    after: float
    difference: Estimate
    p: float
    """Below 0.05 if the interval leaves out 0."""
    p_holm: float | None = None
    """`p` adjusted for all comparisons: that of an area for the other areas, that of a budget for all budgets."""


class CorrectedComparison(BaseModel):
    """Strict accuracy of two runs, corrected for the judge's errors by their labels."""

    before: Estimate
    after: Estimate
    difference: Estimate
    p: float | None
    p_holm: float | None = None


class Comparison(BaseModel):
    """A run against a baseline."""

    baseline: str
    arm: str
    verdicts: list[RuleComparison]
    beside: list[SecondaryMetric] = []
    at_budgets: list[AtBudget] = []
    """Empty if the smallest budget is enough in both runs, or if the records do not say."""
    warnings: list[str]
    notes: list[str]
    corrected: CorrectedComparison | None = None


class Accuracy(BaseModel):
    """A run's own accuracy over its cases."""

    arm: str
    rule: str
    accuracy: Proportion
    at_most: float | None = None
    """By the strict rule, if every answer that could not be read were right."""
    cases: int
    repeats: int


class ComparedRun(BaseModel):
    """A run in a comparison: what it is called, and what it took."""

    arm: str
    label: str
    """What differs between the runs."""
    records: int
    turns: float | None
    """Mean turns of a case."""
    tokens: int | None
    """Of all models, in and out; null if they are not all known."""
    cost_usd: float | None
    judged_by: str = ""
    """Which judge the accuracy comes from, and what is known of its errors."""
    own_judge: bool = False
    """Whether the doctor's own model decided verdicts."""
    scored: int = 0
    """Records that are not missing."""
    not_readable: int = 0
    """Of those, answers that the judge could not read: they count as not right."""
    within: dict[int, float] = {}
    """By budget for tests: right within it ÷ all; empty if the records do not say."""
    accuracy_area: float | None = None
    """Area under accuracy by budget."""


class ComparisonReport(BaseModel):
    """Everything `agentclinic compare` prints."""

    runs: list[ComparedRun] = []
    """The runs in the order of the table; the first is the baseline."""
    accuracies: list[Accuracy]
    comparisons: list[Comparison]


def compare_arms(arms: Sequence[Arm], *, seed: int = 0, corrected: bool = False) -> ComparisonReport:
    """Each run against the first; p-values of several comparisons are adjusted by Holm, rule by rule.

    `corrected` adds the differences corrected for the judge's errors by the labels of the runs.
    """
    baseline, *others = arms
    comparisons = [compare_two(baseline, arm, seed=seed) for arm in others]
    if corrected:
        for comparison, arm in zip(comparisons, others, strict=True):
            comparison.corrected = _corrected(baseline, arm, seed)
    return ComparisonReport(
        runs=compared_runs(arms, labels_of(arms)),
        accuracies=[a for arm in arms for a in accuracies(arm)],
        comparisons=adjusted(comparisons),
    )


def compared_runs(arms: Sequence[Arm], labels: Sequence[str]) -> list[ComparedRun]:
    return [
        ComparedRun(
            arm=arm.name,
            label=label,
            records=arm.records,
            turns=arm.mean("turns"),
            tokens=arm.tokens,
            cost_usd=arm.cost_usd,
            judged_by=judged_by(arm.run, arm.conditions["moderator_llm"]),
            own_judge=arm.own_judge,
            scored=arm.scored,
            not_readable=arm.unread,
            within={usd: found for usd, name in _WITHIN.items() if (found := arm.pooled(name)) is not None},
            accuracy_area=arm.pooled(AREA),
        )
        for arm, label in zip(arms, labels, strict=True)
    ]


def accuracies(arm: Arm) -> list[Accuracy]:
    """The run's accuracy by rule, as in its score."""
    clusters = _clusters(arm, list(arm.cases))
    result = []
    for place, rule in enumerate(_rules(arm)):
        found = share((clusters[key], case.sums[place], case.known[place]) for key, case in arm.cases.items())
        if found.value is None:
            continue
        result.append(
            Accuracy(
                arm=arm.name,
                rule=rule,
                accuracy=found,
                at_most=(found.count + arm.unread) / found.of if rule == "strict" else None,
                cases=sum(case.known[place] > 0 for case in arm.cases.values()),
                repeats=arm.repeats,
            )
        )
    return result


def _clusters(arm: Arm, cases: Sequence[str]) -> dict[str, str]:
    """The cluster of each of these cases."""
    return dict(zip(cases, joined(arm.cases[key].keys for key in cases), strict=True))


def _by_place(arm: Arm) -> Arm:
    """The run with its cases by data set, row and diagnosis."""
    return replace(arm, cases={" ".join(map(str, case.place)): case for case in arm.cases.values()})


def compare_two(baseline: Arm, arm: Arm, *, seed: int = 0, varied: Collection[str] = ()) -> Comparison:
    """One run against another, under every rule both support.

    `varied` names settings that differ on purpose and need no warning.
    """
    if baseline.cases_recorded != arm.cases_recorded:
        baseline, arm = _by_place(baseline), _by_place(arm)
    # By row, not by time: a comparison must not depend on the order in which workers finish.
    common = sorted(baseline.cases.keys() & arm.cases.keys(), key=lambda key: (baseline.cases[key].scenario_id, key))
    if not common:
        raise InputError(f"{baseline.name} and {arm.name} have no case in common, so they cannot be compared")
    rules = [rule for rule in _rules(baseline) if rule in _rules(arm)]
    verdicts = [v for rule in rules if (v := _verdict(baseline, arm, common, rule)) is not None]
    return Comparison(
        baseline=baseline.name,
        arm=arm.name,
        verdicts=verdicts,
        beside=[
            *(m for measure in SECONDARY if (m := _secondary(baseline, arm, common, measure, seed)) is not None),
            *(m for measure in OF_TWINS if (m := _of_twins(baseline, arm, measure)) is not None),
        ],
        at_budgets=_at_budgets(baseline, arm, common, seed),
        warnings=incomparable(baseline, arm, len(common), varied),
        notes=_notes(baseline, arm),
    )


class _Paired(NamedTuple):
    """A measure in two runs, over the cases for which both have it."""

    cases: list[tuple[str, float, float]]
    before: float
    after: float
    clusters: list[str]
    """The cluster of each case."""


def _paired(baseline: Arm, arm: Arm, common: Sequence[str], measure: str) -> _Paired | None:
    values = [(key, baseline.cases[key].mean(measure), arm.cases[key].mean(measure)) for key in common]
    known = [(key, before, after) for key, before, after in values if before is not None and after is not None]
    if not known:
        return None
    clusters = _clusters(baseline, [key for key, _, _ in known])
    return _Paired(
        cases=known,
        before=fmean(before for _, before, _ in known),
        after=fmean(after for _, _, after in known),
        clusters=[clusters[key] for key, _, _ in known],
    )


def _secondary(baseline: Arm, arm: Arm, common: Sequence[str], measure: str, seed: int) -> SecondaryMetric | None:
    """The mean in both runs and the paired difference, with a bootstrap interval over clusters."""
    paired = _paired(baseline, arm, common, measure)
    if paired is None or all(before == after == 0 for _, before, after in paired.cases):
        return None
    return SecondaryMetric(
        measure=measure,
        cases=len(paired.cases),
        before=paired.before,
        after=paired.after,
        difference=mean(zip(paired.clusters, (after - before for _, before, after in paired.cases), strict=True), seed),
    )


def _at_budgets(baseline: Arm, arm: Arm, common: Sequence[str], seed: int) -> list[AtBudget]:
    """What is right within each budget, as shares, and the area, as a mean: both paired by case and clustered."""
    found = []
    for usd, measure in [*_WITHIN.items(), (None, AREA)]:
        paired = _paired(baseline, arm, common, measure)
        if paired is None or not (baseline.spent or arm.spent):
            return []
        before, after = [one for _, one, _ in paired.cases], [one for *_, one in paired.cases]
        if usd is None:
            by = mean_against_zero(zip(paired.clusters, map(sub, after, before), strict=True), seed)
        else:
            by = _difference(paired.clusters, before, after, _plays(baseline, arm, paired, measure))
        found.append(
            AtBudget(
                usd=usd,
                cases=len(paired.cases),
                before=paired.before,
                after=paired.after,
                difference=by.estimate,
                p=by.p,
            )
        )
    return found


def _plays(baseline: Arm, arm: Arm, paired: _Paired, measure: str) -> list[int]:
    """How often each case was played in both runs."""
    place = list(_MEASURES).index(measure)
    return [min(one.cases[key].known[place] for one in (baseline, arm)) for key, *_ in paired.cases]


def _of_twins(baseline: Arm, arm: Arm, measure: str) -> SecondaryMetric | None:
    """The share of pairs in both runs, each pair as the mean over its repeats, and the paired difference."""
    first, second = (one.pairs[measure] for one in (baseline, arm))
    common = [pair for pair in first if pair in second]
    if not common:
        return None
    before, after = ([fmean(of[pair]) for pair in common] for of in (first, second))
    plays = [min(len(first[pair]), len(second[pair])) for pair in common]
    return SecondaryMetric(
        measure=measure,
        cases=len(common),
        unit="pair",
        before=fmean(before),
        after=fmean(after),
        difference=_difference(common, before, after, plays).estimate,
    )


def _difference(
    clusters: Sequence[Hashable], before: Sequence[float], after: Sequence[float], plays: Sequence[int]
) -> Difference:
    """Of shares in two runs, case by case; with repeats by the chances that one play of each gains or loses a case."""
    changes = [(cluster, b * (1 - a), a * (1 - b)) for cluster, a, b in zip(clusters, before, after, strict=True)]
    return paired_difference(changes, fmean(plays))


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Holm over all comparisons, rule by rule, and the conclusion in words."""
    for rule in RULES:
        raw = {str(i): v.p for i, c in enumerate(comparisons) for v in c.verdicts if v.rule == rule}
        for index, p in holm(raw).items():
            for verdict in comparisons[int(index)].verdicts:
                if verdict.rule == rule:
                    verdict.p_holm = p if len(raw) > 1 else None
    at_budgets = [one for comparison in comparisons for one in comparison.at_budgets]
    for family in ([one for one in at_budgets if one.usd is None], [one for one in at_budgets if one.usd is not None]):
        for index, p in holm({str(i): one.p for i, one in enumerate(family)}).items():
            family[int(index)].p_holm = p if len(family) > 1 else None
    found = {str(i): c.corrected for i, c in enumerate(comparisons) if c.corrected}
    for index, p in holm({index: one.p for index, one in found.items() if one.p is not None}).items():
        found[index].p_holm = p
    for comparison in comparisons:
        for verdict in comparison.verdicts:
            verdict.conclusion = sentence(verdict, comparison.arm, comparison.baseline)
    return list(comparisons)


def _corrected(baseline: Arm, arm: Arm, seed: int) -> CorrectedComparison:
    """The strict difference corrected for the judge's errors, over the cases with a verdict in both runs."""
    known = [
        key for key in baseline.cases if key in arm.cases and baseline.cases[key].known[0] and arm.cases[key].known[0]
    ]
    clusters = _clusters(baseline, known)
    before, after = (paired_units(one.run.path, one.run.judge, clusters) for one in (baseline, arm))
    difference, p = corrected_difference(before, after, seed)
    shares = [correct(units, seed).powered for units in (before, after)]
    return CorrectedComparison(before=shares[0], after=shares[1], difference=difference, p=p)


def telling(verdicts: Sequence[RuleComparison]) -> list[RuleComparison]:
    """The verdicts without the lenient one if it is the same as the strict one."""
    told = list(verdicts[:1])
    for verdict in verdicts[1:]:
        if any(getattr(verdict, key) != getattr(told[0], key) for key in ("before", "after", "gained", "lost")):
            told.append(verdict)
    return told


def _rules(arm: Arm) -> list[str]:
    return ["strict", "lenient"] if arm.lenient_known else ["strict"]


def _verdict(baseline: Arm, arm: Arm, common: Sequence[str], rule: str) -> RuleComparison | None:
    paired = _paired(baseline, arm, common, rule)
    if paired is None:
        return None
    cases, clusters = len(paired.cases), len(set(paired.clusters))
    flips = [
        Flip(scenario_id=case.scenario_id, name=case.name, before=before, after=after)
        for key, before, after in paired.cases
        for case in [baseline.cases[key]]
    ]
    gained, lost = [one for one in flips if one.after > one.before], [one for one in flips if one.after < one.before]
    plays = _plays(baseline, arm, paired, rule)
    found = _difference(paired.clusters, [one.before for one in flips], [one.after for one in flips], plays)
    single = baseline.repeats == arm.repeats == 1 and clusters == cases
    return RuleComparison(
        rule=rule,
        cases=cases,
        clusters=clusters,
        before=paired.before,
        after=paired.after,
        difference=found.estimate,
        p=found.p,
        p_mcnemar=mcnemar_p(len(gained), len(lost)) if single else None,
        gained=gained,
        lost=lost,
    )


def incomparable(baseline: Arm, arm: Arm, common: int, varied: Collection[str] = ()) -> list[str]:
    """What differs between two runs besides the doctor and could also explain a difference."""
    fields = {"total_inferences": "max_infs", "doctor_image_request": "image_request_enabled"}
    varied = {fields.get(key, key) for key in varied}
    found = []
    if common < len(baseline.cases) or common < len(arm.cases):
        found.append(
            f"cases: only {common} of {len(baseline.cases)} and {len(arm.cases)} are in both; the rest are left out"
        )
    for key, name in _CONDITIONS.items():
        before, after = set(baseline.conditions[key]), set(arm.conditions[key])
        if before != after and key not in varied:
            found.append(f"{name}: {', '.join(sorted(before))} against {', '.join(sorted(after))}")
    if baseline.run.judge != arm.run.judge:
        found.append(f"judge: {baseline.run.judge or 'recorded'} against {arm.run.judge or 'recorded'}")
    ways = [(one.run.config.get("run") or {}).get("judge") for one in (baseline, arm)]
    if None not in ways and ways[0] != ways[1] and "judge" not in varied:  # builtin differs by its model already
        found.append(f"way of judging: {ways[0]} against {ways[1]}")
    ours = [(arm.run.config.get("agentclinic") or {}).get("digest") or {} for arm in (baseline, arm)]
    if all(ours):
        prompts = sorted(key for key in ours[0].keys() & ours[1].keys() if key.startswith("prompts."))
        found += [f"{key}: different" for key in (*prompts, "version") if ours[0].get(key) != ours[1].get(key)]
    shares = {
        "missing data": [1 - each.scored / each.records for each in (baseline, arm)],
        "answers that could not be read (they count as not right)": [
            each.unread / each.records for each in (baseline, arm)
        ],
    }
    for name, (one, other) in shares.items():
        if abs(one - other) > 0.02:
            found.append(f"{name}: {one:.1%} against {other:.1%} of scenarios")
    return found


def _notes(baseline: Arm, arm: Arm) -> list[str]:
    notes = [
        f"{a.name} is deterministic: running it again changes nothing, and its interval shows only how much "
        "the choice of cases matters"
        for a in (baseline, arm)
        if a.deterministic
    ]
    if baseline.cases_recorded != arm.cases_recorded:
        without = arm if baseline.cases_recorded else baseline
        notes.append(f"{without.name} does not record its cases: they are paired by data set, row and diagnosis")
    if not (baseline.lenient_known and arm.lenient_known):
        notes.append("no comparison under the lenient rule: a judge gave no relation")
    return notes


def clear(verdict: RuleComparison | AtBudget) -> bool:
    """Whether the test behind the interval finds a difference, adjusted for all comparisons."""
    return (verdict.p if verdict.p_holm is None else verdict.p_holm) < LEVEL


def sentence(verdict: RuleComparison, arm: str, baseline: str) -> str:
    """What a comparison shows, in one sentence without a full stop."""
    difference = as_points(verdict.difference, label="95%")
    if clear(verdict):
        better = "better" if (verdict.difference.value or 0) > 0 else "worse"
        return f"{arm} is clearly {better} than {baseline}: {difference}; {changed(verdict)}"
    unclear = f"No clear difference: {arm} {difference}"
    if verdict.p_holm is not None and verdict.p < LEVEL:
        unclear += f", p = {verdict.p_holm:.2g} after adjusting for the number of comparisons"
    return f"{unclear}; {changed(verdict)}"


def changed(verdict: RuleComparison) -> str:
    """How many cases the runs differ on: `3 of 64 cases differ`."""
    differ = len(verdict.gained) + len(verdict.lost)
    if verdict.cases == 1:
        return "the one case differs" if differ else "the one case does not differ"
    if differ == verdict.cases:
        return f"all {differ:,} cases differ"
    return f"{differ or 'none'} of the {verdict.cases:,} cases {'differ' if differ > 1 else 'differs'}"
