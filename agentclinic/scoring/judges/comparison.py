"""The judges of a run compared with each other and with labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from pydantic import BaseModel

from agentclinic.errors import InputError
from agentclinic.results.labels import FOLDER
from agentclinic.results.record import Verdict
from agentclinic.results.run_data import load_run
from agentclinic.scoring.judges.against_labels import AgainstLabels, against_labels, panel_and_labels
from agentclinic.scoring.judges.agreement import fleiss_estimate, kappa_estimate
from agentclinic.scoring.judges.panel import UNREAD, Panel, judges_of
from agentclinic.scoring.stats import Estimate, Proportion, share


class JudgeSummary(BaseModel):
    """One judge."""

    name: str
    models: list[str]
    majority_of: list[str] = []
    judged: int
    not_judged: int
    unread: int = 0
    """Those not judged because this judge could not read the diagnosis."""
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
    name: str
    repeat: int
    case_hash: str | None
    truth: str | None
    diagnosis: str | None
    label: float | None = None
    """1 if it was labeled right, 0 if wrong, between if labelers disagree."""
    opinions: dict[str, Verdict]


class LabelReport(BaseModel):
    """What the labels show."""

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
    """Compare the named judges of a run (default: all) with each other, and with labels (default: the run's own)."""
    if judges is not None and not judges:
        raise InputError(f"judges: none named; this run has {', '.join(judges_of(load_run(place).path.parent))}")
    panel, matched = panel_and_labels(place, judges or (), labels)
    names = panel.names if judges is None else tuple(judges)
    if labels is not None and not matched.by_unit:
        raise InputError(f"{labels}: none of its labels is about a diagnosis in {place}")
    if len(names) < 2 and not matched.by_unit:
        raise InputError(
            f"{place}: only one judge, {names[0]}; add another with `agentclinic regrade`, or label some diagnoses "
            "with `agentclinic judge label`"
        )
    single = [name for name in names if name not in panel.majority_of]
    return JudgeComparison(
        run=str(place),
        diagnoses=len(panel.units),
        wrong_unjudged=len(panel.wrong),
        failed=panel.failed,
        judges=[_summary(panel, name) for name in names],
        pairs=[_agreement(panel, first, second, seed) for first, second in combinations(names, 2)],
        fleiss=_fleiss(panel, single, seed) if len(single) > 2 else None,
        fleiss_judges=single if len(single) > 2 else [],
        disputed=_disputes(panel, names, matched.by_unit),
        labels=LabelReport(
            file=str(labels or panel.path.parent / FOLDER),
            used=len(matched.by_unit),
            unused=matched.unused,
            judges=[against_labels(panel, name, matched, seed) for name in names],
        )
        if matched.by_unit
        else None,
    )


def _summary(panel: Panel, name: str) -> JudgeSummary:
    verdicts = [verdict.correct for verdict in panel.column(name)]
    judged = len(verdicts) - verdicts.count(None)
    clusters = [panel.clusters[unit.case] for unit in panel.units]
    return JudgeSummary(
        name=name,
        models=sorted(panel.models[name]),
        majority_of=list(panel.majority_of.get(name, ())),
        judged=judged,
        not_judged=len(verdicts) - judged,
        unread=panel.said(name).count(UNREAD),
        stale=panel.stale[name],
        right=share((c, right, 1) for c, right in zip(clusters, verdicts, strict=True) if right is not None),
    )


def _agreement(panel: Panel, first: str, second: str, seed: int) -> Agreement:
    kinds = ((True, True), (True, False), (False, True), (False, False))
    rows, cases = [], []
    judged: Counter[tuple[bool, bool]] = Counter()
    relations: dict[str, Counter[str]] = defaultdict(Counter)
    named = []
    for unit, one, other in zip(panel.units, panel.column(first), panel.column(second), strict=True):
        judged[one.correct is not None, other.correct is not None] += 1
        if one.correct is None or other.correct is None:
            continue
        rows.append([float((one.correct, other.correct) == kind) for kind in kinds])
        cases.append(panel.clusters[unit.case])
        if one.relation and other.relation:
            named.append((cases[-1], one.relation == other.relation, 1))
            relations[one.relation][other.relation] += 1
    counts = [int(sum(column)) for column in zip(*rows, strict=True)] or [0, 0, 0, 0]
    return Agreement(
        first=first,
        second=second,
        only_first_judged=judged[True, False],
        only_second_judged=judged[False, True],
        neither_judged=judged[False, False],
        agreement=share((case, row[0] + row[3], 1) for case, row in zip(cases, rows, strict=True)),
        kappa=kappa_estimate(rows, cases, seed),
        confusion=Confusion(both_yes=counts[0], only_first_yes=counts[1], only_second_yes=counts[2], both_no=counts[3]),
        relations={relation: dict(sorted(row.items())) for relation, row in sorted(relations.items())} or None,
        same_relation=share(named) if named else None,
    )


def _fleiss(panel: Panel, names: Sequence[str], seed: int) -> Estimate:
    columns = [[verdict.correct for verdict in panel.column(name)] for name in names]
    yes, cases = [], []
    for unit, *verdicts in zip(panel.units, *columns, strict=True):
        if None not in verdicts:
            yes.append(verdicts.count(True))
            cases.append(panel.clusters[unit.case])
    return fleiss_estimate(yes, len(names), cases, seed)


def _disputes(panel: Panel, names: Sequence[str], labels: Mapping[int, float]) -> list[Dispute]:
    opinions = list(zip(*(panel.column(name) for name in names), strict=True))
    return [
        Dispute(
            scenario_id=unit.scenario_id,
            name=unit.name,
            repeat=unit.repeat,
            case_hash=unit.case_hash,
            truth=unit.truth,
            diagnosis=unit.diagnosis,
            label=labels.get(place),
            opinions=dict(zip(names, opinions[place], strict=True)),
        )
        for place, unit in enumerate(panel.units)
        if {True, False} <= {verdict.correct for verdict in opinions[place]}
    ]
