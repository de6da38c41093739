"""Everything a report shows, collected from runs on disk in one pass over each run's records."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import BaseModel

from agentclinic.config import RunSettings
from agentclinic.errors import InputError
from agentclinic.report.encounter_data import RunFolder, encounter_data, section_of
from agentclinic.report.encounters import Encounter, encounter_of
from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData
from agentclinic.scoring.breakdown import Breakdown, breakdown
from agentclinic.scoring.compare import Arm, ComparisonReport, compare_arms, labels_of
from agentclinic.scoring.format import headline_text
from agentclinic.scoring.labels import SETTINGS, setting_text
from agentclinic.scoring.rows import Row, with_clusters
from agentclinic.scoring.score import Score, score
from agentclinic.scoring.stats import Proportion, binomial_band, proportion

BLOCK = 64 * 1024
"""Characters of JSON per block: a browser unpacks that in a few milliseconds, and deflate, whose window is 32 KB, gains
little from more. A longer transcript gets its own block."""


class Known(BaseModel):
    """How many records have what the original's format lacks."""

    records: int = 0
    transcripts: int = 0
    hashes: int = 0
    costs: int = 0
    """Records that state what the models cost."""


class ReliabilityPoint(BaseModel):
    """One tenth of the probability scale of one source."""

    source: str
    low: float
    high: float
    mean_forecast: float
    right: Proportion
    band_low: float
    band_high: float
    """Holds 95% of the shares right if the forecasts are true."""


class RunReport(BaseModel):
    """One run."""

    name: str
    label: str = ""
    """What distinguishes it from the other runs in the report."""
    score: Score
    headline: Proportion
    """Strict accuracy."""
    breakdown: Breakdown
    reliability: list[ReliabilityPoint]
    reasons: dict[str, int]
    """How many encounters that are not right have each kind of reason; one encounter may have several."""
    settings: dict[str, str]
    """Settings as recorded; several values if the records differ."""
    known: Known
    planned: int | None
    """Planned encounters; None if the run has no settings."""
    deterministic: bool
    version: str | None

    def headlined(self, shown: str) -> str:
        """The headline as it is shown, with what a reader must know beside it."""
        outcome = self.score.outcome
        return headline_text(shown, outcome.unread_text, own_judge=bool(outcome.own_judge))


class Report(BaseModel):
    """Every number in a report."""

    seed: int
    runs: list[RunReport]
    comparison: ComparisonReport | None
    """Each run against the first; null for a single run, or if the runs have no case in common."""
    not_compared: str | None = None
    """Why the runs were not compared."""


@dataclass
class Collected:
    """A report's numbers and, for each run, its encounters and packed transcripts."""

    report: Report
    arms: list[Arm] = field(default_factory=list)
    encounters: list[list[Encounter]] = field(default_factory=list)
    rows: list[list[Row]] = field(default_factory=list)
    """What the metrics know of each encounter, in the same order."""
    blocks: list[list[str]] = field(default_factory=list)
    charts: list[str] = field(default_factory=list)
    """Packed charts of the cases, which runs and repeats share."""


def collect(
    runs: Sequence[RunData],
    names: Sequence[str],
    *,
    seed: int = 0,
    also: Callable[[Record], None] | None = None,
) -> Collected:
    """Score the runs, compare them with the first, and pack their transcripts; `also` gets every record."""
    collected = Collected(Report(seed=seed, runs=[], comparison=None))
    arms, charts = collected.arms, Packer()
    for run, name in zip(runs, names, strict=True):
        arm = Arm(name, run)
        seen = _Seen(run, charts, arm, also)
        # One pass over the records: they are too large to keep, and reading them is most of the work.
        scored = score(run, seed=seed, seen=seen.add)
        if not arm.records:
            raise InputError(f"{run.path}: contains no records")
        seen.packer.close()
        # Workers finish in any order; readers look for a number.
        order = sorted(
            zip(seen.encounters, seen.rows, strict=True),
            key=lambda pair: (pair[0].scenario_id, pair[0].repeat, pair[0].dataset or ""),
        )
        arms.append(arm)
        collected.report.runs.append(_run_report(run, scored, arm, seen))
        collected.encounters.append([one for one, _ in order])
        collected.rows.append([row for _, row in order])
        collected.blocks.append(seen.packer.blocks)
    charts.close()
    collected.charts = charts.blocks
    for run_report, label in zip(collected.report.runs, labels_of(arms), strict=True):
        run_report.label = label
    if len(arms) > 1:
        try:
            collected.report.comparison = compare_arms(arms, seed=seed)
        except InputError as error:
            collected.report.not_compared = str(error)
    return collected


class _Seen:
    """What only the report needs from a run's records."""

    def __init__(self, run: RunData, charts: Packer, arm: Arm, also: Callable[[Record], None] | None) -> None:
        self.packer = Packer()
        self._arm, self._also = arm, also
        self._folder = RunFolder(run)
        self._judge = run.judge
        self._charts = charts
        self.encounters: list[Encounter] = []
        self.rows: list[Row] = []
        self.known: Counter[str] = Counter()

    def add(self, record: Record, row: Row) -> None:
        self._arm.add(record)
        if self._also:
            self._also(record)
        self.rows.append(row)
        one = encounter_of(record, row.tests.bill if row.tests else None)
        why = [reason.text for reason in one.reasons]
        shown = encounter_data(record, self._folder.context(record), judge=self._judge, why=why)
        # The page does not need the facts' ids, which are a fifth of a packed chart.
        chart = [{key: fact[key] for key in fact if key != "id"} for fact in shown.pop("chart", ())]
        place = self.packer.add(shown)
        packed_at = self._charts.add_once(chart) if chart else None
        self.encounters.append(replace(one, block=place.block, position=place.position, chart=packed_at))
        self.known.update(
            records=1,
            transcripts=record.transcript is not None,
            hashes=record.case_hash is not None,
            costs=record.cost_usd is not None,
        )


def _run_report(run: RunData, scored: Score, arm: Arm, seen: _Seen) -> RunReport:
    ours = section_of(run.config, "agentclinic")
    reasons = Counter(kind for one in seen.encounters for kind in {reason.kind for reason in one.reasons})
    return RunReport(
        name=arm.name,
        score=scored,
        headline=scored.outcome.accuracy_strict or proportion(0, 0),
        breakdown=breakdown(with_clusters(seen.rows)),
        reliability=_reliability(scored),
        reasons=dict(sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))),
        settings={named.name: _values(arm.settings[key]) for key, named in SETTINGS.items() if key in arm.settings}
        | _chosen(run.config),
        known=Known(**seen.known),
        planned=run.planned,
        deterministic=arm.deterministic,
        version=str(ours["version"]) if "version" in ours else None,
    )


def _chosen(config: Mapping[str, Any]) -> dict[str, str]:
    """The seed, and the settings of models and cases that are not the defaults and that records do not repeat."""
    usual = {key: value for key, value in RunSettings().model_dump(mode="json").items() if key not in _ELSEWHERE}
    run, requests = section_of(config, "run"), section_of(section_of(config, "llm"), "responses")
    changed = {key: run[key] for key in usual if key in run and (key == "seed" or run[key] != usual[key])}
    return {key.replace("_", " "): setting_text(value) for key, value in (changed | {**requests}).items()}


_ELSEWHERE = frozenset(SETTINGS) | {
    *("total_inferences", "doctor_image_request", "doctor_test_policy_enabled", "doctor_test_policy", "memory"),
    *("output_dir", "record", "name", "workers", "engine", "address", "processes", "check", "inf_type"),
}
"""Settings that the records hold, and those that do not change what is played."""


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
                    right=part.right,
                    band_low=low,
                    band_high=high,
                )
            )
    return points


def _values(counter: Counter[str], most: int = 3) -> str:
    shown = [value if len(counter) == 1 else f"{value} ({count})" for value, count in counter.most_common(most)]
    more = len(counter) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


# --- packing --------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where a value is packed."""

    block: int
    position: int


class Packer:
    """Packs values in small compressed blocks: a page holds thousands and unpacks only the block it needs."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        """Finished blocks: each is a JSON list, compressed (zlib) and encoded in base64."""
        self._open: list[str] = []
        self._size = 0
        self._places: dict[bytes, Place] = {}

    def add(self, value: Any) -> Place:
        return self._add(json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    def add_once(self, value: Any) -> Place:
        """Pack a value, unless an equal one is packed, and return its place."""
        written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        key = hashlib.sha256(written.encode("utf-8", "backslashreplace")).digest()
        if key not in self._places:
            self._places[key] = self._add(written)
        return self._places[key]

    def _add(self, written: str) -> Place:
        if self._open and self._size + len(written) > BLOCK:
            self.close()
        self._open.append(written)
        self._size += len(written)
        return Place(len(self.blocks), len(self._open) - 1)

    def close(self) -> None:
        if self._open:
            self.blocks.append(packed(f"[{','.join(self._open)}]"))
            self._open, self._size = [], 0


def packed(text: str) -> str:
    """The text compressed and in base64, which has no character that could end an element."""
    return base64.b64encode(zlib.compress(text.encode("utf-8", "backslashreplace"), 9)).decode("ascii")
