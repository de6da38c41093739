"""What a run's sessions add to its records: the notes the doctor kept, and what the synthesis concluded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pydantic import BaseModel

from agentclinic.doctors.uncertainty.store import FOLDER, Session, SessionError, Step, read_session
from agentclinic.doctors.uncertainty.tools import top_of
from agentclinic.errors import InputError
from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData, diagnosis_of, load_run
from agentclinic.scoring.clusters import cluster_keys, joined
from agentclinic.scoring.stats import Estimate, Proportion, mean, share
from agentclinic.scoring.verdicts import decided, names_truth
from agentclinic.vocabulary.compare import Relation, compare


@dataclass(frozen=True)
class Kept:
    """A session and the record of its encounter, if there is one."""

    session: Session
    record: Record | None

    @property
    def final(self) -> str | None:
        """The diagnosis that was judged, which may come from `regrade --resynthesize`; else the session's own."""
        own = getattr(self.session, "final_diagnosis", None)
        return (diagnosis_of(self.record) if self.record else None) or own


@dataclass(frozen=True)
class Sessions:
    """The sessions of a run, or of a folder of session files."""

    folder: Path
    run: RunData | None
    kept: tuple[Kept, ...]
    damaged: tuple[str, ...]
    """What is wrong with the files that cannot be read."""


def load_sessions(place: Path, judge: str | None = None) -> Sessions:
    """The sessions of a run folder, with its records, or of a folder of session files."""
    folder = place / FOLDER if (place / FOLDER).is_dir() else place
    if not folder.is_dir():
        raise InputError(f"{place}: no such folder")
    run = load_run(place, judge) if (place / "scenarios.jsonl").is_file() else None
    if run is not None and folder is place:
        raise InputError(f"{place}: its doctor kept no sessions; --doctor uncertainty keeps them")
    if run is None and judge is not None:
        raise InputError(f"{place}: not a run folder, so there are no verdicts by {judge!r}")
    records = {record.session_id: record for record in run.records() if record.session_id} if run else {}
    kept, damaged = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            session = read_session(path)
        except SessionError as error:
            damaged.append(str(error))
        else:
            kept.append(Kept(session, records.get(session.session_id)))
    damaged += [f"{path}: set aside as damaged by an older version" for path in sorted(folder.glob("*.damaged*"))]
    if not kept and not damaged:
        raise InputError(f"{folder}: no sessions in this folder")
    kept.sort(key=_in_order)
    return Sessions(folder, run, tuple(kept), tuple(damaged))


def _in_order(kept: Kept) -> tuple[int, int, str]:
    record = kept.record
    return (record.scenario_id, record.repeat, "") if record else (10**9, 0, kept.session.session_id)


class SessionsSummary(BaseModel):
    """Many sessions in numbers."""

    sessions: int
    steps: Estimate
    """Per session."""
    facts: Estimate
    hypotheses: Estimate
    """Diagnoses in the differential: mean over the steps of each session."""
    with_probabilities: Proportion
    """Steps whose differential gives every diagnosis a probability."""
    recorded_by_clinic: Proportion
    """Steps written by the clinic because the doctor gave none that could be used."""
    concluded: Proportion
    synthesis_failed: Proportion
    """Concluded sessions that used the top of the differential instead."""
    synthesis_differs: Proportion
    """Concluded sessions whose synthesis names another disease, not a synonym, than the top of the differential."""
    fixed: int = 0
    """Of those with a known truth and a verdict: the synthesis fixed a wrong top diagnosis."""
    broken: int = 0
    """The synthesis broke a right top diagnosis."""


def summarise_sessions(sessions: Sessions, seed: int = 0) -> SessionsSummary:
    """Count over sessions; intervals by bootstrap over cases, for sessions that belong to one."""
    keys = [cluster_keys(one.record) if one.record else (str(place),) for place, one in enumerate(sessions.kept)]
    kept = list(zip(joined(keys), sessions.kept, strict=True))
    steps = [(case, step) for case, one in kept for step in one.session.steps]
    concluded = [(case, one, final) for case, one in kept if (final := one.final)]
    changed = [
        (case, one, top)
        for case, one, final in concluded
        if (top := top_of(one.session)) is not None and compare(final, top).relation is not Relation.SAME
    ]
    judged = [
        (names_truth(top, one.record), bool(decided(one.record)))
        for _, one, top in changed
        if one.record is not None and one.record.ground_truth and decided(one.record) is not None
    ]
    return SessionsSummary(
        sessions=len(kept),
        steps=mean(((case, len(one.session.steps)) for case, one in kept), seed, low=0),
        facts=mean(((case, len(one.session.facts)) for case, one in kept), seed, low=0),
        hypotheses=mean(
            (
                (case, fmean(len(s.current_uncertainties) for s in given))
                for case, one in kept
                if (given := one.session.steps)
            ),
            seed,
            low=0,
        ),
        with_probabilities=share((case, _states_probabilities(step), 1) for case, step in steps),
        recorded_by_clinic=share((case, getattr(step, "recorded_by", None) == "clinic", 1) for case, step in steps),
        concluded=share((case, bool(one.final), 1) for case, one in kept),
        synthesis_failed=share(
            (case, bool(getattr(one.session, "synthesis_error", None)), 1) for case, one, _ in concluded
        ),
        synthesis_differs=share([*((case, 0, 1) for case, *_ in concluded), *((case, 1, 0) for case, *_ in changed)]),
        fixed=sum(after and not before for before, after in judged),
        broken=sum(before and not after for before, after in judged),
    )


def _states_probabilities(step: Step) -> bool:
    items = getattr(step, "differential", None)
    if not isinstance(items, list) or not items:
        return False
    return all(isinstance(item, dict) and item.get("probability") is not None for item in items)
