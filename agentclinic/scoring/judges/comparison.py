"""The judges of a run compared with each other and with labels."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from pydantic import BaseModel

from agentclinic.errors import InputError
from agentclinic.results.outcome import Verdict
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.judges.agreement import fleiss_estimate, kappa_estimate
from agentclinic.scoring.judges.correction import JudgedUnit, corrected_accuracy
from agentclinic.scoring.judges.labels import match_labels, read_labels
from agentclinic.scoring.judges.panel import Panel, load_panel

_REPEATS = (
    "some cases were played more than once: the intervals of shares treat their units as independent and are too "
    "narrow; those of the kappas and of the corrected accuracy are by case"
)


class JudgeSummary(BaseModel):
    """One judge."""

    name: str
    models: list[str]
    majority_of: list[str] = []
    judged: int
    not_judged: int
    stale: int = 0
    """Those not judged because the verdict is on a diagnosis other than the one now in the records."""
    right: Proportion
    """Yes ÷ judged."""


class Confusion(BaseModel):
    """Verdicts of two judges on the units both judged."""

    both_yes: int = 0
    only_first_yes: int = 0
    only_second_yes: int = 0
    both_no: int = 0


class Agreement(BaseModel):
    """How well two judges agree."""

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
    """By the first judge's relation, then the second's; null if no unit has one from both."""
    same_relation: Proportion | None = None


class Dispute(BaseModel):
    """A diagnosis on which the judges disagree."""

    scenario_id: int
    repeat: int
    case_hash: str | None
    truth: str | None
    diagnosis: str | None
    label: bool | None = None
    opinions: dict[str, Verdict]


class AgainstLabels(BaseModel):
    """A judge measured against the labels."""

    judge: str
    labelled: int
    """Labelled units that this judge judged."""
    sensitivity: Proportion
    """The share it calls right among the diagnoses labelled right."""
    specificity: Proportion
    """The share it calls wrong among the diagnoses labelled wrong."""
    accuracy: Proportion
    """The run's strict accuracy as this judge sees it."""
    corrected: Estimate
    """The same, corrected for the judge's errors."""
    note: str | None = None


class LabelReport(BaseModel):
    """What the label file shows."""

    file: str
    used: int
    unused: int
    """Labels that are not about any of the run's diagnoses."""
    judges: list[AgainstLabels]


class JudgeComparison(BaseModel):
    """Everything `agentclinic judge compare` prints."""

    run: str
    diagnoses: int
    """Units with a diagnosis to judge."""
    wrong_unjudged: int
    """Units that are wrong without a judge: no diagnosis, or the doctor failed."""
    failed: int
    """Units that ended before a diagnosis through no fault of the doctor: missing."""
    note: str | None = None
    judges: list[JudgeSummary]
    pairs: list[Agreement]
    fleiss: Estimate | None = None
    fleiss_judges: list[str] = []
    """Without majorities of other judges, which agree with their own members."""
    disputed: list[Dispute]
    labels: LabelReport | None = None


def compare_judges(
    place: Path, judges: Sequence[str] | None = None, labels: Path | None = None, seed: int = 0
) -> JudgeComparison:
    """Compare the named judges of a run (default: all) with each other and with labels."""
    panel = load_panel(place, judges)
    if len(panel.names) < 2 and labels is None:
        raise InputError(
            f"{place}: only one judge, {panel.names[0]}; add another with `agentclinic regrade`, "
            "or compare with labels: --labels FILE"
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
    verdicts = [verdict.correct for verdict in panel.column(name)]
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
    columns = [[verdict.correct for verdict in panel.column(name)] for name in names]
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
            opinions=dict(zip(panel.names, unit.verdicts, strict=True)),
        )
        for place, unit in enumerate(panel.units)
        if {True, False} <= {verdict.correct for verdict in unit.verdicts}
    ]


def _against_labels(panel: Panel, name: str, labels: Mapping[int, bool], seed: int) -> AgainstLabels:
    verdicts = [verdict.correct for verdict in panel.column(name)]
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
    """A warning if the share of yes differs between labelled and other units by more than 3 standard errors.

    Labels collected where the judges disagree, or where one said No, give the sensitivity and specificity of the
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
        f"this judge says yes to {yes[0] / n[0]:.0%} of the labeled and {yes[1] / n[1]:.0%} of the other diagnoses: "
        "the labels are not a random sample, and its sensitivity and specificity may not hold for the rest"
    )
