"""All that a report shows, gathered from runs on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from agentclinic.errors import InputError
from agentclinic.report.encounters import Encounter, encounter_of
from agentclinic.report.pack import Packer, transcript_of
from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData
from agentclinic.scoring import breakdown
from agentclinic.scoring.compare import Arm, ComparisonReport, accuracies, compare_arms, load_arm
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.prices import knowledge_prices
from agentclinic.scoring.score import Score, score
from agentclinic.scoring.stats import binomial_band

_SETTINGS = {
    "dataset": "data set",
    "doctor": "doctor",
    "doctor_llm": "doctor's model",
    "test_policy": "test policy",
    "planner_baseline": "the planner knows",
    "patient_llm": "patient's model",
    "measurement_llm": "laboratory's model",
    "moderator_llm": "judge's model",
    "max_infs": "turn limit",
    "doctor_bias": "doctor's bias",
    "patient_bias": "patient's bias",
    "missing_test": "a test not in the chart is",
    "silent_symptom": "a symptom not in the chart is",
    "resource_level": "resource level",
}
"""Fields of a record that say under which conditions a run was played, and how to call them."""


class Known(BaseModel):
    """How many records hold what the original's format does not have."""

    records: int = 0
    transcripts: int = 0
    differentials: int = 0
    annotations: int = 0
    doors: int = 0
    hashes: int = 0
    costs: int = 0
    """Records that tell what the models cost."""


class ReliabilityPoint(BaseModel):
    """One tenth of the probability scale of one source."""

    source: str
    low: float
    high: float
    mean_forecast: float
    right: Proportion
    band_low: float
    band_high: float
    """The band that holds 95 % of the shares right if the forecasts were true."""


class RunReport(BaseModel):
    """One run."""

    name: str
    score: Score
    headline: Estimate
    """Strict accuracy; with repeats or near copies its interval resamples cases, else it is Wilson's."""
    headline_by: str
    breakdown: breakdown.Breakdown
    reliability: list[ReliabilityPoint]
    reasons: dict[str, int]
    """Of the encounters that are not right: how often each kind of reason holds; one may have several."""
    settings: dict[str, str]
    """Conditions as recorded; several values where the records differ."""
    known: Known
    planned: int | None
    """Encounters the run was to have; None where its settings are not there."""
    deterministic: bool
    version: str | None


class Report(BaseModel):
    """Every number of a report."""

    seed: int
    runs: list[RunReport]
    comparison: ComparisonReport | None
    """Each run against the first; null with one run, or where runs have no case in common."""
    not_compared: str | None = None
    """Why the runs were not compared."""


@dataclass
class Collected:
    """A report's numbers, and run by run its encounters and packed transcripts."""

    report: Report
    encounters: list[list[Encounter]] = field(default_factory=list)
    blocks: list[list[str]] = field(default_factory=list)


def collect(runs: Sequence[RunData], names: Sequence[str], *, seed: int = 0) -> Collected:
    """Score the runs, compare them with the first, and pack what was said in them."""
    collected = Collected(Report(seed=seed, runs=[], comparison=None))
    arms = []
    for run, name in zip(runs, names, strict=True):
        arm = load_arm(run, name)
        gathered = _Gathered()
        for record in run.records():
            gathered.add(record)
        gathered.packer.close()
        # Workers finish in any order; readers look for a number.
        gathered.encounters.sort(key=lambda one: (one.scenario_id, one.repeat, one.dataset or ""))
        arms.append(arm)
        collected.report.runs.append(_run_report(run, arm, gathered, seed))
        collected.encounters.append(gathered.encounters)
        collected.blocks.append(gathered.packer.blocks)
    if len(arms) > 1:
        try:
            collected.report.comparison = compare_arms(arms, seed=seed)
        except InputError as error:
            collected.report.not_compared = str(error)
    return collected


class _Gathered:
    """What the report itself keeps of a run's records."""

    def __init__(self) -> None:
        self.packer = Packer()
        self.encounters: list[Encounter] = []
        self.parts: list[breakdown.Observation] = []
        self.known = Known()
        self.settings: dict[str, Counter[str]] = {key: Counter() for key in _SETTINGS}

    def add(self, record: Record) -> None:
        seen = breakdown.observe(record, knowledge_prices)
        self.parts.append(seen)
        place = self.packer.add(transcript_of(record))
        self.encounters.append(encounter_of(record, seen.bill, *place))
        known = self.known
        known.records += 1
        known.transcripts += record.transcript is not None
        known.differentials += record.differential is not None
        known.annotations += bool(record.annotations)
        known.doors += record.door is not None
        known.hashes += record.case_hash is not None
        known.costs += record.cost_usd is not None
        for key, counter in self.settings.items():
            value = getattr(record, key)
            if value is not None:
                counter[str(value)] += 1


def _run_report(run: RunData, arm: Arm, gathered: _Gathered, seed: int) -> RunReport:
    scored = score(run, seed=seed)
    headline, by = _headline(scored, arm, seed)
    ours = run.config.get("agentclinic")
    ours = ours if isinstance(ours, dict) else {}
    units = ours.get("units")
    return RunReport(
        name=arm.name,
        score=scored,
        headline=headline,
        headline_by=by,
        breakdown=breakdown.summarise(gathered.parts),
        reliability=_reliability(scored),
        reasons=_reasons(gathered.encounters),
        settings={_SETTINGS[key]: _values(counter) for key, counter in gathered.settings.items() if counter},
        known=gathered.known,
        planned=units if isinstance(units, int) else None,
        deterministic=arm.deterministic,
        version=str(ours["version"]) if "version" in ours else None,
    )


def _headline(scored: Score, arm: Arm, seed: int) -> tuple[Estimate, str]:
    share = scored.outcome.accuracy_strict
    found = next((a for a in accuracies(arm, seed=seed) if a.rule == "strict"), None)
    if share is None or share.value is None or found is None:
        return Estimate(value=None, note="nothing could be judged"), ""
    if arm.repeats > 1 or found.accuracy.n < found.cases:
        return found.accuracy, "resampling cases, repeats and near copies of a case together"
    return Estimate(value=share.value, low=share.low, high=share.high, n=share.of), "Wilson"


def _reliability(scored: Score) -> list[ReliabilityPoint]:
    points = []
    for source in scored.calibration.sources:
        for part in source.bins or ():
            low, high = binomial_band(part.n, part.mean_forecast)
            points.append(
                ReliabilityPoint(
                    source=source.source.value,
                    low=part.low,
                    high=part.high,
                    mean_forecast=part.mean_forecast,
                    right=proportion(part.right, part.n),
                    band_low=low,
                    band_high=high,
                )
            )
    return points


def _reasons(encounters: Sequence[Encounter]) -> dict[str, int]:
    counts = Counter(kind for one in encounters for kind in {reason.kind for reason in one.reasons})
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _values(counter: Counter[str], most: int = 3) -> str:
    shown = [value if len(counter) == 1 else f"{value} ({count})" for value, count in counter.most_common(most)]
    more = len(counter) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
