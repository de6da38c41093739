"""Whether one run is really better than another: paired by case, clustered, with warnings about other differences."""

from __future__ import annotations

import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel

from agentclinic.cases.model import age_in_years, sex
from agentclinic.errors import InputError
from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData
from agentclinic.scoring.differentials import confidence
from agentclinic.scoring.format import as_points
from agentclinic.scoring.information import key_facts, recall
from agentclinic.scoring.judges.against_labels import judged_by, paired_units
from agentclinic.scoring.judges.correction import correct, corrected_difference
from agentclinic.scoring.labels import BEFORE_0_3, SETTINGS, run_labels, setting_text
from agentclinic.scoring.outcome import cost_of, judged_by_itself, tokens_of
from agentclinic.scoring.stats import (
    Clusters,
    Estimate,
    bootstrap_interval,
    detectable_difference,
    holm,
    mcnemar_p,
    permutation_p,
    proportion,
)
from agentclinic.scoring.verdicts import case_key, decided, lenient, strict
from agentclinic.vocabulary.text import fold

# --- what is compared: a number for one record, or None if the record does not say ----------------------------------

DOCTORS_PARTS = ("doctor", "planner", "synthesis", "memory", "embedding")
"""The roles on the doctor's side that use models."""


def tests(record: Record) -> float | None:
    if record.transcript is None:
        return None
    return sum(turn.action is not None and turn.action.kind == "test" for turn in record.transcript)


def _used(record: Record, *keys: str) -> float | None:
    """What the models on the doctor's side used; None if it is not all known."""
    usage = record.usage or {}
    amounts = [usage[part].get(key) for part in DOCTORS_PARTS if part in usage for key in keys]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if amounts and len(known) == len(amounts) else None


def brier(record: Record) -> float | None:
    """(p - right)² with p the probability the doctor gave to its diagnosis.

    Uses the first available of posterior, stated and elicited probabilities; never a planner's scores. None for an
    answer that could not be read.
    """
    right, (p, _) = decided(record), confidence(record)
    return None if right is None or p is None else (p - right) ** 2


Measure = Callable[[Record], float | None]
RULES: Mapping[str, Measure] = {"strict": strict, "lenient": lenient}
"""An answer that could not be read is not right, as in the headline of a run."""
SECONDARY: Mapping[str, Measure] = {
    "turns": lambda record: record.num_turns,
    "tests": tests,
    "key findings found": lambda record: recall(key_facts(record) or ()),
    "requests to models": lambda record: _used(record, "requests"),
    "tokens": lambda record: _used(record, "input_tokens", "output_tokens"),
    "Brier score of the diagnosis": brier,
}
_AT_MOST = "at most"
"""Right by the strict rule, or not readable."""
_MEASURES: Mapping[str, Measure] = {
    **RULES,
    **SECONDARY,
    _AT_MOST: lambda record: True if record.status == "not_readable" else strict(record),
}
LEVEL = 0.05

# What must be equal for a difference between runs to be due to the doctor: record field and label.
_CONDITIONS = {
    "patient_llm": "patient model",
    "measurement_llm": "laboratory model",
    "moderator_llm": "judge",
    "simulator": "simulator",
    "dialogue": "dialogue form",
    "max_infs": "turn limit",
    "missing_test": "missing_test",
    "silent_symptom": "silent_symptom",
    "patient_bias": "patient bias",
    "unsupported_bias": "biases that were ignored",
    "image_request_enabled": "images",
}


@dataclass(slots=True)
class CaseOutcomes:
    """The outcomes of one case in one run, in a few numbers: a run may have 100,000 cases."""

    scenario_id: int
    name: str
    cluster: str
    """Truth, age and sex, which near copies of a case share."""
    repeats: int = 0
    sums: tuple[float, ...] = (0.0,) * len(_MEASURES)
    """In the order of `_MEASURES`: sums over the repeats with a value."""
    known: tuple[int, ...] = (0,) * len(_MEASURES)
    """In the order of `_MEASURES`: repeats with a value."""
    dialogue: int = 0
    """Hash of the last repeat's dialogue."""
    same: bool = True
    """Whether every repeat had the same dialogue."""

    def add(self, record: Record) -> None:
        dialogue = zlib.crc32(record.doctor_hist.encode())
        self.same = self.same and (self.repeats == 0 or dialogue == self.dialogue)
        self.dialogue = dialogue
        self.repeats += 1
        values = [measure(record) for measure in _MEASURES.values()]
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
    records: int = 0
    tokens: int | None = 0
    cost_usd: float | None = 0.0
    """Tokens and cost of all models; None if they are not all known."""
    lenient_known: bool = True
    unread: int = 0
    own_judge: bool = False

    @property
    def repeats(self) -> int:
        return max((case.repeats for case in self.cases.values()), default=0)

    @property
    def deterministic(self) -> bool:
        """Whether repeats of a case never differ: their dialogues are equal, or every role is builtin."""
        if self.repeats > 1:
            return all(case.same for case in self.cases.values())
        roles = ("doctor_llm", "patient_llm", "measurement_llm", "moderator_llm")
        builtin = all(set(self.conditions[role]) == {"builtin"} for role in roles)
        return builtin and set(self.conditions["doctor"]) <= {"plain", "uncertainty", "None"}

    def add(self, record: Record) -> None:
        self.records += 1
        case = self.cases.get(case_key(record))
        if case is None:
            case = CaseOutcomes(record.scenario_id, record.case_name, sys.intern(cluster_of(record)))
            self.cases[case_key(record)] = case
        case.add(record)
        if strict(record) is not None and lenient(record) is None:
            self.lenient_known = False
        self.unread += record.status == "not_readable"
        self.own_judge = self.own_judge or (not self.run.judge_elsewhere and judged_by_itself(record))
        for key in (*_CONDITIONS, "doctor_llm", "doctor"):
            value = getattr(record, key)
            value = BEFORE_0_3.get(key) if value is None else value
            named = [f"{name} {asked}" for name, asked in value.items()] if isinstance(value, dict) else [str(value)]
            self.conditions[key][", ".join(named)] += 1
        for key in SETTINGS:
            value = record.setting(key)
            if value is not None:
                self.settings[key][setting_text(value)] += 1
        used, cost = tokens_of(record, "input_tokens", "output_tokens"), cost_of(record)
        self.tokens = None if self.tokens is None or used is None else self.tokens + used
        self.cost_usd = None if self.cost_usd is None or cost is None else self.cost_usd + cost

    @property
    def scored(self) -> int:
        """Records that are not missing."""
        return sum(case.known[0] for case in self.cases.values())

    def mean(self, measure: str) -> float | None:
        """The mean of a measure over the cases that have it."""
        values = [value for case in self.cases.values() if (value := case.mean(measure)) is not None]
        return sum(values) / len(values) if values else None


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


def cluster_of(record: Record) -> str:
    """The truth with the patient's age and sex, if the record has them."""
    door = record.door.demographics if record.door else ""
    return f"{fold(record.ground_truth or str(record.scenario_id))}|{age_in_years(door)}|{sex(door)}"


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
    clustered_by: str
    before: float
    after: float
    difference: Estimate
    p_permutation: float
    p_mcnemar: float | None
    """Exact McNemar; null with repeats or clusters of several cases, since its pairs are then not independent."""
    p_holm: float | None = None
    """The permutation p-value adjusted for all comparisons."""
    detectable: float | None
    """The smallest difference these data would detect with 80% power."""
    gained: list[Flip]
    lost: list[Flip]
    conclusion: str = ""


class SecondaryMetric(BaseModel):
    """A measure other than accuracy in two runs, over the cases for which both have it."""

    measure: str
    cases: int
    before: float
    after: float
    difference: Estimate


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
    warnings: list[str]
    notes: list[str]
    corrected: CorrectedComparison | None = None


class Accuracy(BaseModel):
    """A run's own accuracy over its cases."""

    arm: str
    rule: str
    accuracy: Estimate
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
        accuracies=[a for arm in arms for a in accuracies(arm, seed=seed)],
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
        )
        for arm, label in zip(arms, labels, strict=True)
    ]


def accuracies(arm: Arm, *, seed: int = 0) -> list[Accuracy]:
    """The run's accuracy by rule, with an interval clustered as in comparisons."""
    result = []
    for rule in _rules(arm):
        pairs = [
            (key, case.cluster, value) for key, case in arm.cases.items() if (value := case.mean(rule)) is not None
        ]
        if not pairs:
            continue
        result.append(
            Accuracy(
                arm=arm.name,
                rule=rule,
                accuracy=_share(_clustered(pairs)[0], np.random.default_rng(seed)),
                at_most=arm.mean(_AT_MOST) if rule == "strict" else None,
                cases=len(pairs),
                repeats=arm.repeats,
            )
        )
    return result


def _share(clusters: Clusters, rng: np.random.Generator) -> Estimate:
    """An accuracy with its interval: Wilson's for single yes-or-no outcomes, else the bootstrap's.

    If all clusters agree, the bootstrap sees no variance; Wilson's over the clusters is then used too.
    """
    single = bool(np.all(clusters.sizes == 1) and np.all(np.isin(clusters.sums, (0.0, 1.0))))
    if single or clusters.mean in (0.0, 1.0):
        share = proportion(round(clusters.mean * clusters.number), clusters.number)
        return Estimate(value=share.value, low=share.low, high=share.high, n=clusters.number)
    return bootstrap_interval(clusters, rng, low=0, high=1)


def _difference(clusters: Clusters, rng: np.random.Generator) -> Estimate:
    """A difference with its bootstrap interval.

    If no case differs, the bootstrap sees no variance; the true share of cases that flip one way is then, at the 97.5%
    level, below 1 - 0.025^(1/k) for k clusters, and the difference lies within that.
    """
    k = clusters.number
    if not clusters.sums.any():
        most = 1 - 0.025 ** (1 / k)
        return Estimate(
            value=0.0, low=-most, high=most, n=k, note="no case differs; the interval follows from that alone"
        )
    return bootstrap_interval(clusters, rng, low=-1, high=1)


def compare_two(baseline: Arm, arm: Arm, *, seed: int = 0, varied: Collection[str] = ()) -> Comparison:
    """One run against another, under every rule both support.

    `varied` names settings that differ on purpose and need no warning.
    """
    common = [key for key in baseline.cases if key in arm.cases]
    if not common:
        raise InputError(f"{baseline.name} and {arm.name} have no case in common, so they cannot be compared")
    rules = [rule for rule in _rules(baseline) if rule in _rules(arm)]
    verdicts = [v for rule in rules if (v := _verdict(baseline, arm, common, rule, seed)) is not None]
    return Comparison(
        baseline=baseline.name,
        arm=arm.name,
        verdicts=verdicts,
        beside=[m for measure in SECONDARY if (m := _secondary(baseline, arm, common, measure, seed)) is not None],
        warnings=incomparable(baseline, arm, len(common), varied),
        notes=_notes(baseline, arm),
    )


class _Paired(NamedTuple):
    """A measure in two runs, over the cases for which both have it."""

    cases: list[tuple[str, float, float]]
    before: float
    after: float
    clusters: Clusters
    clustered_by: str


def _paired(baseline: Arm, arm: Arm, common: Sequence[str], measure: str) -> _Paired | None:
    values = [(key, baseline.cases[key].mean(measure), arm.cases[key].mean(measure)) for key in common]
    known = [(key, before, after) for key, before, after in values if before is not None and after is not None]
    if not known:
        return None
    clusters, by = _clustered([(key, baseline.cases[key].cluster, after - before) for key, before, after in known])
    return _Paired(
        cases=known,
        before=sum(before for _, before, _ in known) / len(known),
        after=sum(after for _, _, after in known) / len(known),
        clusters=clusters,
        clustered_by=by,
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
        difference=bootstrap_interval(paired.clusters, np.random.default_rng(seed)),
    )


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Holm over all comparisons, rule by rule, and the conclusion in words."""
    for rule in RULES:
        raw = {str(i): v.p_permutation for i, c in enumerate(comparisons) for v in c.verdicts if v.rule == rule}
        for index, p in holm(raw).items():
            for verdict in comparisons[int(index)].verdicts:
                if verdict.rule == rule:
                    verdict.p_holm = p if len(raw) > 1 else None
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
    copies = len({baseline.cases[key].cluster for key in known}) < len(known)
    clusters = {key: baseline.cases[key].cluster if copies else key for key in known}
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


def _verdict(baseline: Arm, arm: Arm, common: Sequence[str], rule: str, seed: int) -> RuleComparison | None:
    paired = _paired(baseline, arm, common, rule)
    if paired is None:
        return None
    clusters, cases = paired.clusters, len(paired.cases)
    flips = [
        Flip(scenario_id=case.scenario_id, name=case.name, before=before, after=after)
        for key, before, after in paired.cases
        for case in [baseline.cases[key]]
    ]
    gained, lost = [one for one in flips if one.after > one.before], [one for one in flips if one.after < one.before]
    rng = np.random.default_rng(seed)
    single = baseline.repeats == arm.repeats == 1 and clusters.number == cases
    error = clusters.standard_error
    return RuleComparison(
        rule=rule,
        cases=cases,
        clusters=clusters.number,
        clustered_by=paired.clustered_by,
        before=paired.before,
        after=paired.after,
        difference=_difference(clusters, rng),
        p_permutation=permutation_p(clusters, rng),
        p_mcnemar=mcnemar_p(len(gained), len(lost)) if single else None,
        detectable=detectable_difference(error) if error > 0 else None,
        gained=gained,
        lost=lost,
    )


def _clustered(pairs: Sequence[tuple[str, str, float]]) -> tuple[Clusters, str]:
    """Cluster (case, cluster, value): by case, or by the cluster that near copies share if there are any."""
    values = [value for _, _, value in pairs]
    if len({cluster for _, cluster, _ in pairs}) == len(pairs):
        return Clusters.of(values, [key for key, _, _ in pairs]), "case"
    return Clusters.of(values, [cluster for _, cluster, _ in pairs]), "diagnosis, age and sex (near copies together)"


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
    if not (baseline.lenient_known and arm.lenient_known):
        notes.append("no comparison under the lenient rule: a judge gave no relation")
    return notes


def clear(verdict: RuleComparison) -> bool:
    """Whether a difference is more than chance would explain, adjusted for all comparisons."""
    p = verdict.p_permutation if verdict.p_holm is None else verdict.p_holm
    return p < LEVEL and bool(verdict.difference.value)


def sentence(verdict: RuleComparison, arm: str, baseline: str) -> str:
    """What a comparison shows, in one sentence without a full stop."""
    difference = as_points(verdict.difference, label="95%")
    if clear(verdict):
        better = "better" if (verdict.difference.value or 0) > 0 else "worse"
        return f"{arm} is clearly {better} than {baseline}: {difference}"
    unclear = f"No clear difference: {arm} {difference}"
    if verdict.p_holm is not None and verdict.p_permutation < LEVEL:
        unclear += f", p = {verdict.p_holm:.2g} after adjusting for the number of comparisons"
    return f"{unclear}; {unseen([verdict])}"


def unseen(verdicts: Sequence[RuleComparison]) -> str:
    """Which differences so few cases may fail to show."""
    cases = min(verdict.cases for verdict in verdicts)
    sizes = [verdict.detectable for verdict in verdicts if verdict.detectable is not None]
    if not sizes and any(verdict.difference.value for verdict in verdicts):
        return f"{'the one case differs' if cases == 1 else f'all {cases} cases differ'}, which is too few to tell"
    if not sizes:
        return "the one case does not differ" if cases == 1 else f"none of the {cases} cases differs"
    return f"with {cases} case{'s' * (cases != 1)} a difference under {100 * max(sizes):.1f} points may not show"
