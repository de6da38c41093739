"""Who judged a run, how often that judge errs, measured against labels, and the accuracy corrected for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from pydantic import BaseModel

from agentclinic.clinic.desk import EXACT
from agentclinic.config import is_builtin_or_person
from agentclinic.errors import InputError
from agentclinic.results.labels import FOLDER, labels_in, read_labels
from agentclinic.results.run_data import RunData, load_run
from agentclinic.scoring.format import percent
from agentclinic.scoring.judges.correction import JudgedUnit, correct, labels_to_halve
from agentclinic.scoring.judges.labels import Matched, draw, drawing_judges, match_labels, sampled_from, strata
from agentclinic.scoring.judges.panel import RECORDED, UNREAD, Panel, Said, judgements_file, judges_of, load_panel
from agentclinic.scoring.stats import Estimate, Proportion, share

_NEXT_SHOWN = 5
"""Diagnoses to label next that are named: enough to begin with."""


class LabelNext(BaseModel):
    """A diagnosis that should be labeled next."""

    scenario_id: int
    name: str
    repeat: int
    stratum: str


class AgainstLabels(BaseModel):
    """A judge measured against the labels."""

    judge: str
    decided: Proportion
    """The share that it called right or wrong of the diagnoses it was asked about; the rest it could not read."""
    labeled: int
    """Labeled units that this judge decided or could not read."""
    unread: int
    """Those of them that it could not read; counts, shares and kappa are of the others."""
    unsure: int
    """Units about which every labeler is unsure; they are left out."""
    labelers: list[str]
    both_right: float
    only_judge_right: float
    only_label_right: float
    both_wrong: float
    """Labels as they were given; halves where labelers disagree."""
    kappa: Estimate
    """The shares and the kappa are of all diagnoses it decided: each label stands for its part of the run."""
    missed: Estimate
    """The share that the judge calls wrong of the right diagnoses."""
    credited: Estimate
    """The share that the judge calls right of the wrong diagnoses."""
    accuracy: Proportion
    """The run's strict accuracy as this judge sees it; what it could not read counts as not right."""
    corrected: Estimate
    """The same, corrected for the judge's errors: prediction-powered."""
    labels_to_halve: int | None = None
    """How many more labels would halve the interval of `corrected`; null if no number of labels would."""
    half_width_if_all_labeled: float | None = None
    label_next: list[LabelNext] = []
    note: str | None = None


def panel_and_labels(place: Path, judges: Sequence[str] = (), labels: Path | None = None) -> tuple[Panel, Matched]:
    """All of a run's judges, the named ones first, and the labels in a file (default: all in the run's folder)."""
    folder = load_run(place).path.parent
    panel = load_panel(place, [*judges, *(name for name in judges_of(folder) if name not in judges)])
    matched = match_labels(panel.units, labels_in(folder) if labels is None else read_labels(labels))
    for name in (name for design in matched.designs for name in design if name not in panel.names):
        gone = judgements_file(folder, name)
        raise InputError(f"{gone}: missing; labels were drawn by this judge's verdicts, so restore it to use them")
    return panel, matched


def labeled_run(place: Path, judge: str | None, seed: int = 0) -> AgainstLabels | None:
    """A run's judge (default: the recorded one) against the labels in its folder; None if there are none."""
    folder = place if place.is_dir() else place.parent
    if not any((folder / FOLDER).glob("*.jsonl")):
        return None
    panel, matched = panel_and_labels(place, [judge or RECORDED])
    return against_labels(panel, judge or RECORDED, matched, seed) if matched.by_unit else None


def need_labels(place: Path) -> InputError:
    """What to say if a correction is asked for and nothing is labeled."""
    folder = place if place.is_dir() else place.parent
    return InputError(f"{folder}: no labels to correct by; label some diagnoses with: agentclinic judge label {folder}")


def judged_units(panel: Panel, name: str, matched: Matched) -> list[JudgedUnit]:
    """A judge's verdicts with the labels, and the encounters that are wrong without a judge."""
    parts = sampled_from(panel, matched.designs)
    units = [
        JudgedUnit(unit.case, said, matched.by_unit.get(place), parts[place])
        for place, (unit, said) in enumerate(zip(panel.units, panel.said(name), strict=True))
        if said is not None
    ]
    return [*units, *(JudgedUnit(case, None) for case in panel.wrong)]


def paired_units(place: Path, judge: str | None, clusters: Mapping[str, str]) -> list[JudgedUnit]:
    """A run's units of these cases for a paired comparison: each case counts once, and `clusters` names its cluster."""
    panel, matched = panel_and_labels(place, [judge or RECORDED])
    if not matched.by_unit:
        raise need_labels(place)
    units = [unit for unit in judged_units(panel, judge or RECORDED, matched) if unit.case in clusters]
    repeats = Counter(unit.case for unit in units)
    return [unit._replace(case=clusters[unit.case], share=1 / repeats[unit.case]) for unit in units]


def against_labels(panel: Panel, name: str, matched: Matched, seed: int = 0) -> AgainstLabels:
    units = [unit._replace(case=panel.clusters[unit.case]) for unit in judged_units(panel, name, matched)]
    found = correct(units, seed)
    halved = labels_to_halve(units, found.powered)
    said: dict[Said, list[float]] = {True: [], False: [], UNREAD: []}
    for unit in units:
        if unit.label is not None:
            said[unit.verdict].append(unit.label)
    return AgainstLabels(
        judge=name,
        decided=share((unit.case, unit.verdict != UNREAD, 1) for unit in units if unit.verdict is not None),
        labeled=sum(map(len, said.values())),
        unread=len(said[UNREAD]),
        unsure=len(matched.unsure),
        labelers=list(matched.labelers),
        both_right=sum(said[True]),
        only_judge_right=len(said[True]) - sum(said[True]),
        only_label_right=sum(said[False]),
        both_wrong=len(said[False]) - sum(said[False]),
        kappa=found.kappa,
        missed=found.missed,
        credited=found.credited,
        accuracy=share((unit.case, unit.verdict is True, 1) for unit in units),
        corrected=found.powered,
        labels_to_halve=halved.more if halved else None,
        half_width_if_all_labeled=halved.half_width if halved else None,
        label_next=next_to_label(panel, name, matched),
        note=None if matched.designs else _chosen_by_verdict(units),
    )


def next_to_label(panel: Panel, first: str, matched: Matched, number: int = _NEXT_SHOWN) -> list[LabelNext]:
    """The diagnoses whose labels would narrow the interval most, as `judge label` draws them."""
    parts = strata(panel, drawing_judges(panel, first))
    done: Collection[int] = matched.by_unit.keys() | matched.unsure
    return [
        LabelNext(scenario_id=unit.scenario_id, name=unit.name, repeat=unit.repeat, stratum=str(parts[place]))
        for place in islice(draw(panel.units, parts, 0, done), number)
        for unit in [panel.units[place]]
    ]


def _chosen_by_verdict(units: Sequence[JudgedUnit]) -> str | None:
    """A warning if the share of yes differs between labeled and other units by more than 3 standard errors.

    Labels collected where the judges disagree, or where one said No, give the errors of the hard cases.
    """
    judged = Counter((unit.verdict, unit.label is not None) for unit in units if unit.verdict is not None)
    yes = [judged[True, True], judged[True, False]]
    n = [yes[0] + judged[False, True], yes[1] + judged[False, False]]
    if not all(n) or sum(yes) in (0, sum(n)):
        return None
    pooled = sum(yes) / sum(n)
    z = (yes[0] / n[0] - yes[1] / n[1]) / math.sqrt(pooled * (1 - pooled) * (1 / n[0] + 1 / n[1]))
    if abs(z) <= 3:
        return None
    return (
        f"this judge says yes to {yes[0] / n[0]:.0%} of the labeled and {yes[1] / n[1]:.0%} of the other diagnoses: "
        "the labels are not a random sample, and its errors may not be the same for the rest"
    )


# --- in one line -----------------------------------------------------------------------------------------------------

MEASURED = "decided 151 of 200 and got 4 of those wrong"
"""What the builtin judge did with diagnoses that no rule was written with, against readers (benchmarks/README.md)."""

_LONGEST = 200
"""Characters of the judges' names: records of others may hold anything, and a browser lays out a long word slowly."""


def judged_by(run: RunData, models: Iterable[str | None], seed: int = 0) -> str:
    """Which judge the accuracy comes from, and how often it errs: by labels if there are any, else as measured."""
    names = sorted({model for model in models if model})
    if names == [EXACT]:
        return "Judged by name: a diagnosis that names none or several of the world's diseases counts as no answer."
    if run.verdicts is not None:
        entries = run.verdicts.values()
        members = next((entry["majority_of"] for entry in entries if entry.get("majority_of")), None)
        names = sorted({str(entry["moderator_llm"]) for entry in entries if entry.get("moderator_llm")})
        who = f"{run.judge} (the majority of {', '.join(members)})" if members else f"{run.judge}"
    else:
        who = ", ".join(names) or "an unknown judge"
    who = who if len(who) <= _LONGEST else f"{who[:_LONGEST]}..."
    found = labeled_run(run.path, run.judge, seed)
    people = f" People labeled {found.unread} that it could not read." if found and found.unread else ""
    if found is not None and found.labeled > found.unread:
        rates = [percent(rate.value) for rate in (found.missed, found.credited)]
        error = f"called {rates[0]} of right diagnoses wrong and {rates[1]} of wrong ones right"
        if found.decided.count < found.decided.of:
            error = f"decided {percent(found.decided.value)} of the diagnoses; of these it {error}"
        if found.missed.value is None and found.credited.value is None:
            error = "has too few labels to say how often it errs"
        return f"Judged by {who}, which {error} (labels: {found.labeled}; see score --corrected).{people}"
    if names == ["builtin"]:
        return f"Judged by {who}, which {_builtin_error()}.{people}"
    return f"Judged by {who}; how often it errs is not known (agentclinic judge label measures it).{people}"


def _builtin_error() -> str:
    return f"says when it cannot read a diagnosis; it {MEASURED} in our measurement (docs/builtin.md)"


def builtin_judge_warning(doctor_llm: str | None, judge: str | None) -> str | None:
    """How far the builtin judge can be trusted with a language model's diagnoses, and what to use instead.

    None for other judges, and for builtin and human doctors.
    """
    if judge != "builtin" or doctor_llm is None or is_builtin_or_person(doctor_llm):
        return None
    return (
        f"The builtin judge {_builtin_error()}. What it cannot read counts as not right until a language model decides "
        "it (--moderator-llm MODEL, or agentclinic regrade for a finished run) or a person does (agentclinic judge "
        "label RUN --unread)."
    )
