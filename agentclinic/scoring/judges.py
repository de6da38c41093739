"""Several judges of one run: their majority, how far they agree, and what their errors do to the accuracy.

A judge is a name: `recorded` for the verdicts in `scenarios.jsonl`, any other for `judgements/<name>.jsonl`.
Only units that ended with a diagnosis are there to be judged; the others are wrong, or missing, whoever judges.

Intervals come from a Bayesian bootstrap over cases (Rubin 1981): all units of a case get one random weight from
Exp(1), in place of the number of times it would be drawn. Half a random unit is added to each cell (Jeffreys'
prior), so that 20 of 20 does not come out as "certainly all"; without repeats a share then gets Jeffreys' interval.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError

from agentclinic.errors import InputError
from agentclinic.files import Lock, make_folder, write_whole
from agentclinic.results.journal import read_records
from agentclinic.results.outcome import MISSING
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of, load_run, read_judgements, unit_of
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.verdicts import case_key

Floats = NDArray[np.float64]

RECORDED = "recorded"
"""The judge whose verdicts stand in the records themselves."""
JUDGEABLE = frozenset({"diagnosed", "judge_failed"})
"""Ways to end that leave a diagnosis to be judged."""
RESAMPLES = 4_000
"""The ends of a 95 % interval then have a Monte Carlo error of about 4 % of its width."""
MIN_CASES = 5
"""With fewer cases an interval says more about the prior than about the judges."""
MIN_LABELS = 5
"""Cases of each class: after 5 of 5 the Wilson interval still begins at 57 %; below that a correction is guesswork."""
_REPEATS = (
    "some cases were played more than once: the intervals of shares take their units as independent and are too "
    "narrow; those of the kappas and of the corrected accuracy are by case"
)
_CHUNK = 2_000_000  # weights drawn at a time: 16 MB


def majority(verdicts: Sequence[bool | None]) -> bool | None:
    """The verdict of more than half of all judges, those without a verdict included; None when there is none.

    So a tie gives None, and so do too many missing: what the missing judges could still overturn is no majority.
    """
    yes = sum(verdict is True for verdict in verdicts)
    no = sum(verdict is False for verdict in verdicts)
    if 2 * yes > len(verdicts):
        return True
    return False if 2 * no > len(verdicts) else None


# --- the statistics -------------------------------------------------------------------------------------------------


def cohen_kappa(cells: Floats) -> Floats:
    """Cohen's kappa of two judges: (po - pe) / (1 - pe), for any number of tables at once.

    The last axis is (both yes, only the first yes, only the second yes, both no). po is the share of agreement,
    pe = p1·p2 + (1 - p1)(1 - p2) that expected of judges with these shares of yes who do not look.
    NaN when pe is 1: both judges gave one and the same verdict throughout.
    """
    both, first, second, neither = (cells[..., column] for column in range(4))
    total = cells.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        p1, p2 = (both + first) / total, (both + second) / total
        return _kappa((both + neither) / total, p1 * p2 + (1 - p1) * (1 - p2))


def fleiss_kappa(counts: Floats) -> Floats:
    """Fleiss' kappa of k judges on units that all have judged, for any number of tables at once.

    The last axis counts the units by their number of yes, 0 to k. po is the mean over units of the share of pairs
    of judges that agree, (r(r-1) + (k-r)(k-r-1)) / k(k-1) for r yes; pe = p² + (1-p)² with p the share of yes.
    NaN when all verdicts are the same.
    """
    k = counts.shape[-1] - 1
    r = np.arange(k + 1)
    agreeing = (r * (r - 1) + (k - r) * (k - r - 1)) / (k * (k - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        total = counts.sum(axis=-1)
        p = counts @ r / (k * total)
        return _kappa(counts @ agreeing / total, p**2 + (1 - p) ** 2)


def _kappa(observed: Floats, expected: Floats) -> Floats:
    beyond = 1 - expected
    kappa: Floats = (observed - expected) / np.where(beyond < 1e-12, np.nan, beyond)
    return kappa


def rogan_gladen(apparent: Floats, sensitivity: Floats, specificity: Floats) -> Floats:
    """The true share behind an apparent one: (apparent + specificity - 1) / (sensitivity + specificity - 1).

    Clipped to [0, 1]; NaN when sensitivity + specificity is at most 1, for such a judge is no better than a coin.
    """
    better = sensitivity + specificity - 1
    with np.errstate(invalid="ignore"):
        true: Floats = np.clip((apparent + specificity - 1) / np.where(better <= 1e-12, np.nan, better), 0.0, 1.0)
    return true


def case_draws(
    totals: Floats, prior: Floats, rng: np.random.Generator, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Redraw the cases: weighted column sums of `totals` (one row a case), one row for each resample.

    A case has weight Exp(1), so c equal cases together have Gamma(c): the cost grows with the distinct rows only.
    """
    distinct, counts = np.unique(totals, axis=0, return_counts=True)
    step = max(1, _CHUNK // max(1, len(distinct)))
    draws = [
        rng.standard_gamma(counts, size=(min(step, resamples - start), len(counts))) @ distinct
        for start in range(0, resamples, step)
    ]
    return np.concatenate(draws) + rng.standard_gamma(prior, size=(resamples, len(prior)))


def totals_by_case(rows: Sequence[Sequence[float]] | Floats, cases: Sequence[str]) -> Floats:
    """Sum the rows of each case."""
    index: dict[str, int] = {}
    codes = [index.setdefault(case, len(index)) for case in cases]
    array = np.asarray(rows, dtype=np.float64)
    totals = np.zeros((len(index), array.shape[1]))
    np.add.at(totals, codes, array)
    return totals


def _interval(value: float, low_draws: Floats, high_draws: Floats) -> tuple[float, float]:
    """The 95 % percentile interval, at least as wide as to hold the estimate (the prior can pull it off an edge)."""
    low, high = float(np.quantile(low_draws, 0.025)), float(np.quantile(high_draws, 0.975))
    return min(low, value), max(high, value)


def kappa_estimate(rows: Sequence[Sequence[float]], cases: Sequence[str], seed: int = 0) -> Estimate:
    """Cohen's kappa with its interval; each row marks one of the four cells of `cohen_kappa`."""
    if not rows:
        return Estimate(value=None, note="no unit was judged by both")
    totals = totals_by_case(rows, cases)
    value = float(cohen_kappa(totals.sum(axis=0)))
    if math.isnan(value):
        return Estimate(value=None, n=len(rows), note="both judges gave the same verdict throughout: chance agrees too")
    if len(totals) < MIN_CASES:
        return Estimate(value=value, n=len(rows), note=f"no interval from fewer than {MIN_CASES} cases")
    draws = cohen_kappa(case_draws(totals, np.full(4, 0.5), np.random.default_rng(seed)))
    low, high = _interval(value, draws, draws)
    return Estimate(value=value, low=low, high=high, n=len(rows))


def fleiss_estimate(yes: Sequence[int], k: int, cases: Sequence[str], seed: int = 0) -> Estimate:
    """Fleiss' kappa with its interval, from each unit's number of yes among k judges."""
    if not yes:
        return Estimate(value=None, note="no unit was judged by all")
    totals = totals_by_case(np.eye(k + 1)[list(yes)], cases)
    value = float(fleiss_kappa(totals.sum(axis=0)))
    if math.isnan(value):
        return Estimate(value=None, n=len(yes), note="all verdicts are the same: chance agrees too")
    if len(totals) < MIN_CASES:
        return Estimate(value=value, n=len(yes), note=f"no interval from fewer than {MIN_CASES} cases")
    # Two units in all, as with two judges.
    prior = np.full(k + 1, 2 / (k + 1))
    draws = fleiss_kappa(case_draws(totals, prior, np.random.default_rng(seed)))
    low, high = _interval(value, draws, draws)
    return Estimate(value=value, low=low, high=high, n=len(yes))


class JudgedUnit(NamedTuple):
    """What the corrected accuracy needs of a unit."""

    case: str
    verdict: bool | None
    """None: wrong without a judge (no diagnosis, or the doctor failed)."""
    label: bool | None = None
    """The truth about the diagnosis, where somebody looked."""


def corrected_accuracy(units: Sequence[JudgedUnit], seed: int = 0) -> Estimate:
    """The run's accuracy corrected for the judge's sensitivity and specificity on the labelled units.

    accuracy = judged ÷ all · rogan_gladen(yes ÷ judged, sensitivity, specificity): only what was judged can be
    misjudged. Each resample redraws the run's cases and with them the labelled ones, so that all three shares move,
    together where they rest on the same cases. A resample in which the judge is no better than a coin tells
    nothing; it counts as 0 for the lower end and as 1 for the upper.
    """
    rows = [_cells(unit) for unit in units]
    judged = sum(unit.verdict is not None for unit in units)
    if not judged:
        return Estimate(value=None, note="nothing was judged")
    totals = totals_by_case(rows, [unit.case for unit in units])
    _, _, _, tp, fn, tn, fp = sums = totals.sum(axis=0)
    right, wrong = (np.count_nonzero(totals[:, i] + totals[:, i + 1]) for i in (3, 5))
    if min(right, wrong) < MIN_LABELS:
        have = f"{right} cases with one labelled right, {wrong} with one labelled wrong"
        return Estimate(value=None, n=len(units), note=f"too few labels: {have}, {MIN_LABELS} of each are needed")
    value = float(_corrected(sums))
    if math.isnan(value):
        reason = f"sensitivity + specificity is {tp / (tp + fn) + tn / (tn + fp):.2f}, no better than a coin"
        return Estimate(value=None, n=len(units), note=reason)
    prior = np.array([0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.5])
    draws = _corrected(case_draws(totals, prior, np.random.default_rng(seed)))
    lost = np.isnan(draws)
    low, high = _interval(value, np.where(lost, 0.0, draws), np.where(lost, 1.0, draws))
    share = sums[0] / (sums[0] + sums[1])
    clipped = not 1 - tn / (tn + fp) <= share <= tp / (tp + fn)
    note = "clipped: the judge's share of yes lies outside what its errors alone would give" if clipped else None
    return Estimate(value=value, low=low, high=high, n=len(units), note=note)


def _cells(unit: JudgedUnit) -> tuple[float, ...]:
    """(yes, no, wrong without a judge, then true positive, false negative, true negative, false positive)."""
    yes, no = unit.verdict is True, unit.verdict is False
    right, wrong = unit.label is True, unit.label is False
    return (yes, no, unit.verdict is None, yes and right, no and right, no and wrong, yes and wrong)


def _corrected(sums: Floats) -> Floats:
    yes, no, unjudged, tp, fn, tn, fp = (sums[..., column] for column in range(7))
    judged = yes + no
    share: Floats = judged / (judged + unjudged)
    return share * rogan_gladen(yes / judged, tp / (tp + fn), tn / (tn + fp))


# --- the judges of a run --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opinion:
    """One judge on one unit."""

    correct: bool | None = None
    lenient: bool | None = None
    relation: str | None = None
    reason: str | None = None
    """Why; for a unit that was not judged, why not."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A diagnosis and what each judge says of it."""

    scenario_id: int
    case_hash: str | None
    repeat: int
    case: str
    truth: str | None
    diagnosis: str | None
    opinions: tuple[Opinion, ...]
    """In the order of the panel's names."""


@dataclass
class Panel:
    """The judges of a run and all they have judged."""

    names: tuple[str, ...]
    path: Path
    """The file of records."""
    units: list[Unit] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Cases of the units that are wrong without a judge, one entry a unit."""
    failed: int = 0
    """Units that ended before there was a diagnosis, through no fault of the doctor."""
    models: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    stale: Counter[str] = field(default_factory=Counter)
    """Verdicts on another diagnosis than the one now in the records; they do not count."""
    majority_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """For a judge that is the majority of others: which."""

    def column(self, name: str) -> list[Opinion]:
        """All one judge says."""
        index = self.names.index(name)
        return [unit.opinions[index] for unit in self.units]


def judges_of(folder: Path) -> tuple[str, ...]:
    """The names of a run's judges: `recorded` and each file of judgements."""
    return (RECORDED, *sorted(path.stem for path in (folder / "judgements").glob("*.jsonl") if path.stem != RECORDED))


def load_panel(place: Path, judges: Sequence[str] | None = None) -> Panel:
    """The verdicts of the named judges, by default of all, on a run given by its folder or file of records."""
    path = load_run(place).path
    names = judges_of(path.parent) if judges is None else tuple(judges)
    if not names:
        raise InputError(f"judges: none named; there are {', '.join(judges_of(path.parent))}")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"judges: {name} is named twice")
    if RECORDED in names and _file(path.parent, RECORDED).exists():
        raise InputError(f"{_file(path.parent, RECORDED)}: that name is for the verdicts in {path.name}; rename it")
    panel = Panel(names, path)
    verdicts = {name: _verdicts(path.parent, name, panel) for name in names if name != RECORDED}
    for record in read_records(path):
        if record.status in JUDGEABLE:
            panel.units.append(_unit(record, panel, verdicts))
        elif record.status in MISSING:
            panel.failed += 1
        else:
            panel.wrong.append(case_key(record))
    return panel


def _verdicts(folder: Path, name: str, panel: Panel) -> dict[str, dict[str, Any]]:
    path = _file(folder, name)
    verdicts = {}
    for entry in read_judgements(path):
        correct = entry.get("correct")
        if correct is not None and not isinstance(correct, bool):
            raise InputError(f"{path}: scenario {entry.get('scenario_id')}: correct must be true, false or null")
        if entry.get("majority_of"):
            panel.majority_of[name] = tuple(entry["majority_of"])
        verdicts[unit_of(entry)] = entry
    return verdicts


def _file(folder: Path, name: str) -> Path:
    if not re.fullmatch(r"[^/\\:]+", name) or name.startswith("."):
        raise InputError(f"judges: {name!r} cannot name a file in {folder / 'judgements'}")
    return folder / "judgements" / f"{name}.jsonl"


def _unit(record: Record, panel: Panel, verdicts: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Unit:
    diagnosis = diagnosis_of(record)
    opinions = []
    for name in panel.names:
        entry = None if name == RECORDED else verdicts[name].get(record.unit)
        model = record.moderator_llm if name == RECORDED else entry and entry.get("moderator_llm")
        if model:
            panel.models[name][model] += 1
        if entry is not None and entry.get("diagnosis") not in (None, diagnosis):
            panel.stale[name] += 1
            opinions.append(Opinion(reason="judged another diagnosis"))
        else:
            opinions.append(_recorded(record) if name == RECORDED else _opinion(entry or {}))
    return Unit(
        record.scenario_id,
        record.case_hash,
        record.repeat,
        case_key(record),
        record.ground_truth,
        diagnosis,
        tuple(opinions),
    )


def _recorded(record: Record) -> Opinion:
    correct = record.correct if record.status == "diagnosed" else None
    if correct is None:
        return Opinion(reason=record.fault.message if record.fault else None)
    said = record.judgement
    if said is None:
        return Opinion(correct, True if correct else None)
    return Opinion(correct, said.correct_lenient, said.relation, said.reason)


def _opinion(entry: Mapping[str, Any]) -> Opinion:
    correct = entry.get("correct")
    if correct is None:
        return Opinion(reason=(entry.get("fault") or {}).get("message"))
    lenient = entry.get("correct_lenient")
    if lenient is None and correct:
        lenient = True
    return Opinion(correct, lenient, entry.get("relation"), entry.get("reason"))


class MajorityWritten(NamedTuple):
    """A file of majority verdicts."""

    path: Path
    decided: int
    undecided: int


def write_majority(place: Path, judges: Sequence[str], name: str | None = None) -> MajorityWritten:
    """Write `judgements/majority_<a>_<b>_<c>.jsonl`, a judge like any other, from the verdicts of named judges.

    A unit without a majority has no verdict. Written anew when it is there; another's file is not overwritten.
    """
    panel = load_panel(place, judges)
    if len(judges) < 2:
        raise InputError("judges: a majority needs at least two, better three")
    path = _file(panel.path.parent, name or "majority_" + "_".join(judges))
    if path.stem in judges or path.stem == RECORDED:
        raise InputError(f"name: {path.stem} is one of the judges; choose another")
    make_folder(path.parent)
    with Lock(path.parent):
        if path.exists() and any(entry.get("majority_of") != list(judges) for entry in read_judgements(path)):
            raise InputError(f"{path} holds other verdicts than the majority of {', '.join(judges)}; choose a name")
        entries = [_majority_entry(unit, panel.names) for unit in panel.units]
        write_whole(path, "".join(json.dumps(e, ensure_ascii=False, separators=(",", ":")) + "\n" for e in entries))
    decided = sum(entry["correct"] is not None for entry in entries)
    return MajorityWritten(path, decided, len(entries) - decided)


def _majority_entry(unit: Unit, names: Sequence[str]) -> dict[str, Any]:
    correct = majority([opinion.correct for opinion in unit.opinions])
    votes = "; ".join(f"{name}: {shown(opinion)}" for name, opinion in zip(names, unit.opinions, strict=True))
    entry: dict[str, Any] = {
        "scenario_id": unit.scenario_id,
        "case_hash": unit.case_hash,
        "repeat": unit.repeat,
        "moderator_llm": "majority",
        "majority_of": list(names),
        "diagnosis": unit.diagnosis,
        "correct": correct,
    }
    if correct is None:
        return {**entry, "fault": {"error": "no_majority", "message": f"no majority ({votes})"}}
    agreeing = (opinion.relation for opinion in unit.opinions if opinion.correct is correct)
    relation, count = Counter(agreeing).most_common(1)[0]
    return {
        **entry,
        "correct_lenient": majority([opinion.lenient for opinion in unit.opinions]),
        "relation": relation if 2 * count > len(names) else None,
        "reason": votes,
    }


def shown(opinion: Opinion) -> str:
    """An opinion in words: `right, same (names the disease)`."""
    verdict = {True: "right", False: "wrong", None: "not judged"}[opinion.correct]
    relation = f", {opinion.relation}" if opinion.relation else ""
    reason = f" ({opinion.reason})" if opinion.reason else ""
    return verdict + relation + reason


# --- labels ---------------------------------------------------------------------------------------------------------


class Label(BaseModel):
    """A line of a label file: the truth about one diagnosis, by a person or by adjudication."""

    model_config = ConfigDict(extra="forbid")

    scenario_id: StrictInt
    correct: StrictBool
    case_hash: str | None = None
    """Where given, the label counts only for this case."""
    repeat: int = Field(default=0, ge=0)
    diagnosis: str | None = None
    """Where given, the label counts only for this diagnosis."""
    labeller: str | None = None
    reason: str | None = None


def read_labels(path: Path) -> list[Label]:
    """The labels of a file of JSON lines."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    labels = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            labels.append(Label.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InputError(
                f"{path} line {number}: {where + ': ' if where else ''}{first['msg']}; "
                'a label looks like {"scenario_id": 3, "correct": true}'
            ) from None
    return labels


class Matched(NamedTuple):
    """Labels brought to a run's units."""

    by_unit: dict[int, bool]
    """By the unit's place in the panel."""
    unused: int
    """Labels on something that is not among the run's diagnoses."""


def match_labels(units: Sequence[Unit], labels: Iterable[Label]) -> Matched:
    """Find each label's unit by row and repeat; hash and diagnosis must be the same where both sides have them."""
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, unit in enumerate(units):
        places[unit.scenario_id, unit.repeat].append(place)
    found: dict[int, bool] = {}
    unused = 0
    for label in labels:
        fitting = [place for place in places[label.scenario_id, label.repeat] if _fits(label, units[place])]
        if len(fitting) > 1:
            raise InputError(f"labels: scenario {label.scenario_id} is several cases in this run; give case_hash")
        for place in fitting:
            if found.setdefault(place, label.correct) != label.correct:
                raise InputError(
                    f"labels: scenario {label.scenario_id}, repeat {label.repeat} is labelled both right and wrong; "
                    "settle it and leave one line"
                )
        unused += not fitting
    return Matched(found, unused)


def _fits(label: Label, unit: Unit) -> bool:
    return (label.case_hash is None or unit.case_hash in (None, label.case_hash)) and (
        label.diagnosis is None or unit.diagnosis in (None, label.diagnosis)
    )


# --- the comparison -------------------------------------------------------------------------------------------------


class JudgeSummary(BaseModel):
    """One judge."""

    name: str
    models: list[str]
    majority_of: list[str] = []
    judged: int
    not_judged: int
    stale: int = 0
    """Of those not judged: verdicts on another diagnosis than the one now in the records."""
    right: Proportion
    """Yes among the judged."""


class Confusion(BaseModel):
    """Verdicts of two judges on the units both have judged."""

    both_yes: int = 0
    only_first_yes: int = 0
    only_second_yes: int = 0
    both_no: int = 0


class Agreement(BaseModel):
    """How far two judges agree."""

    first: str
    second: str
    judged_by_both: int
    only_first_judged: int
    only_second_judged: int
    neither_judged: int
    agreement: Proportion
    kappa: Estimate
    confusion: Confusion
    relations: dict[str, dict[str, int]] | None = None
    """By the first judge's relation, then the second's; null where no unit has one from both."""
    same_relation: Proportion | None = None


class Dispute(BaseModel):
    """A diagnosis on which the judges are not of one mind."""

    scenario_id: int
    repeat: int
    case_hash: str | None
    truth: str | None
    diagnosis: str | None
    label: bool | None = None
    opinions: dict[str, Opinion]


class AgainstLabels(BaseModel):
    """A judge measured by the labels."""

    judge: str
    labelled: int
    """Labelled units this judge has judged."""
    sensitivity: Proportion
    """Of the diagnoses labelled right, the share it calls right."""
    specificity: Proportion
    """Of the diagnoses labelled wrong, the share it calls wrong."""
    accuracy: Proportion
    """The run's strict accuracy as this judge sees it."""
    corrected: Estimate
    """The same, corrected for the judge's errors."""
    note: str | None = None


class LabelReport(BaseModel):
    """What the label file tells."""

    file: str
    used: int
    unused: int
    """Labels on something that is not among the run's diagnoses."""
    judges: list[AgainstLabels]


class JudgeComparison(BaseModel):
    """All of `agentclinic judge compare`."""

    run: str
    diagnoses: int
    """Units there are to judge."""
    wrong_unjudged: int
    """Units that are wrong without a judge: no diagnosis, or the doctor failed."""
    failed: int
    """Units that ended before a diagnosis through no fault of the doctor: missing."""
    note: str | None = None
    judges: list[JudgeSummary]
    pairs: list[Agreement]
    fleiss: Estimate | None = None
    fleiss_judges: list[str] = []
    """A majority of other judges is not one of them: it agrees with its own members."""
    disputed: list[Dispute]
    labels: LabelReport | None = None


def compare_judges(
    place: Path, judges: Sequence[str] | None = None, labels: Path | None = None, seed: int = 0
) -> JudgeComparison:
    """Compare the named judges of a run, by default all it has, with each other and with labels."""
    panel = load_panel(place, judges)
    if len(panel.names) < 2 and labels is None:
        raise InputError(
            f"{place}: only one judge, {panel.names[0]}; `agentclinic regrade` makes another, "
            "or give labels with --labels"
        )
    matched = None
    if labels is not None:
        matched = match_labels(panel.units, read_labels(labels))
        if not matched.by_unit:
            raise InputError(f"{labels}: none of its labels is about a diagnosis in {place}")
    single = [name for name in panel.names if name not in panel.majority_of]
    return JudgeComparison(
        run=str(place),
        diagnoses=len(panel.units),
        wrong_unjudged=len(panel.wrong),
        failed=panel.failed,
        note=None if len({unit.case for unit in panel.units}) == len(panel.units) else _REPEATS,
        judges=[_summary(panel, name) for name in panel.names],
        pairs=[_agreement(panel, first, second, seed) for first, second in combinations(panel.names, 2)],
        fleiss=_fleiss(panel, single, seed) if len(single) > 2 else None,
        fleiss_judges=single if len(single) > 2 else [],
        disputed=_disputes(panel, matched.by_unit if matched else {}),
        labels=None
        if matched is None
        else LabelReport(
            file=str(labels),
            used=len(matched.by_unit),
            unused=matched.unused,
            judges=[_against_labels(panel, name, matched.by_unit, seed) for name in panel.names],
        ),
    )


def _summary(panel: Panel, name: str) -> JudgeSummary:
    verdicts = [opinion.correct for opinion in panel.column(name)]
    judged = len(verdicts) - verdicts.count(None)
    return JudgeSummary(
        name=name,
        models=sorted(panel.models[name]),
        majority_of=list(panel.majority_of.get(name, ())),
        judged=judged,
        not_judged=len(verdicts) - judged,
        stale=panel.stale[name],
        right=proportion(verdicts.count(True), judged),
    )


def _agreement(panel: Panel, first: str, second: str, seed: int) -> Agreement:
    kinds = ((True, True), (True, False), (False, True), (False, False))
    rows, cases = [], []
    judged: Counter[tuple[bool, bool]] = Counter()
    relations: dict[str, Counter[str]] = defaultdict(Counter)
    for unit, one, other in zip(panel.units, panel.column(first), panel.column(second), strict=True):
        judged[one.correct is not None, other.correct is not None] += 1
        if one.correct is None or other.correct is None:
            continue
        rows.append([float((one.correct, other.correct) == kind) for kind in kinds])
        cases.append(unit.case)
        if one.relation and other.relation:
            relations[one.relation][other.relation] += 1
    counts = [int(sum(column)) for column in zip(*rows, strict=True)] or [0, 0, 0, 0]
    same = sum(row[relation] for relation, row in relations.items())
    return Agreement(
        first=first,
        second=second,
        judged_by_both=len(rows),
        only_first_judged=judged[True, False],
        only_second_judged=judged[False, True],
        neither_judged=judged[False, False],
        agreement=proportion(counts[0] + counts[3], len(rows)),
        kappa=kappa_estimate(rows, cases, seed),
        confusion=Confusion(both_yes=counts[0], only_first_yes=counts[1], only_second_yes=counts[2], both_no=counts[3]),
        relations={relation: dict(sorted(row.items())) for relation, row in sorted(relations.items())} or None,
        same_relation=proportion(same, sum(row.total() for row in relations.values())) if relations else None,
    )


def _fleiss(panel: Panel, names: Sequence[str], seed: int) -> Estimate:
    columns = [[opinion.correct for opinion in panel.column(name)] for name in names]
    yes, cases = [], []
    for unit, *verdicts in zip(panel.units, *columns, strict=True):
        if None not in verdicts:
            yes.append(verdicts.count(True))
            cases.append(unit.case)
    return fleiss_estimate(yes, len(names), cases, seed)


def _disputes(panel: Panel, labels: Mapping[int, bool]) -> list[Dispute]:
    return [
        Dispute(
            scenario_id=unit.scenario_id,
            repeat=unit.repeat,
            case_hash=unit.case_hash,
            truth=unit.truth,
            diagnosis=unit.diagnosis,
            label=labels.get(place),
            opinions=dict(zip(panel.names, unit.opinions, strict=True)),
        )
        for place, unit in enumerate(panel.units)
        if {True, False} <= {opinion.correct for opinion in unit.opinions}
    ]


def _against_labels(panel: Panel, name: str, labels: Mapping[int, bool], seed: int) -> AgainstLabels:
    verdicts = [opinion.correct for opinion in panel.column(name)]
    units = [
        JudgedUnit(unit.case, verdict, labels.get(place))
        for place, (unit, verdict) in enumerate(zip(panel.units, verdicts, strict=True))
        if verdict is not None
    ]
    cells = Counter((unit.verdict, unit.label) for unit in units)
    right = cells[True, True] + cells[False, True]
    wrong = cells[True, False] + cells[False, False]
    whole = [*units, *(JudgedUnit(case, None) for case in panel.wrong)]
    return AgainstLabels(
        judge=name,
        labelled=right + wrong,
        sensitivity=proportion(cells[True, True], right),
        specificity=proportion(cells[False, False], wrong),
        accuracy=proportion(sum(unit.verdict is True for unit in units), len(whole)),
        corrected=corrected_accuracy(whole, seed),
        note=_chosen_by_verdict(cells),
    )


def _chosen_by_verdict(cells: Mapping[tuple[bool | None, bool | None], int]) -> str | None:
    """A warning when the share of yes differs between labelled and other units by over 3 standard errors.

    Labels sought where the judges disagree, or where one said No, make sensitivity and specificity those of the
    hard cases.
    """
    yes = [cells.get((True, True), 0) + cells.get((True, False), 0), cells.get((True, None), 0)]
    no = [cells.get((False, True), 0) + cells.get((False, False), 0), cells.get((False, None), 0)]
    n = [yes[0] + no[0], yes[1] + no[1]]
    if not all(n) or not sum(yes) or not sum(no):
        return None
    pooled = sum(yes) / sum(n)
    z = (yes[0] / n[0] - yes[1] / n[1]) / math.sqrt(pooled * (1 - pooled) * (1 / n[0] + 1 / n[1]))
    if abs(z) <= 3:
        return None
    return (
        f"this judge says yes to {yes[0] / n[0]:.0%} of the labelled and {yes[1] / n[1]:.0%} of the other diagnoses: "
        "the labels are no random sample, and its sensitivity and specificity may not hold for the rest"
    )
