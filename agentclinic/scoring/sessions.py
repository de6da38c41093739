"""What the sessions of a run say that its records do not: how notes were kept, and what the synthesis made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from agentclinic.doctors.uncertainty.store import FOLDER, Session, SessionError, read_session
from agentclinic.doctors.uncertainty.tools import top_of
from agentclinic.errors import InputError
from agentclinic.results.record import Record
from agentclinic.results.run_data import RunData, diagnosis_of, load_run
from agentclinic.scoring.estimates import Estimate, Proportion, proportion
from agentclinic.scoring.sample import Cases, Sample
from agentclinic.scoring.verdicts import names_truth, strict
from agentclinic.vocabulary.compare import Relation, compare


@dataclass(frozen=True)
class Kept:
    """A session and the record of its encounter, where there is one."""

    session: Session
    record: Record | None

    @property
    def final(self) -> str | None:
        """The diagnosis: the one that was judged, which `regrade --resynthesize` may have made anew, else its own."""
        own = getattr(self.session, "final_diagnosis", None)
        return (diagnosis_of(self.record) if self.record else None) or own


@dataclass(frozen=True)
class Sessions:
    """The sessions of a run, or of a folder that is none."""

    folder: Path
    run: RunData | None
    kept: tuple[Kept, ...]
    damaged: tuple[str, ...]
    """What is wrong with files that cannot be read."""


def load_sessions(place: Path, judge: str | None = None) -> Sessions:
    """The sessions of a run's folder, with its records, or of a folder of session files."""
    folder = place / FOLDER if (place / FOLDER).is_dir() else place
    if not folder.is_dir():
        raise InputError(f"{place}: no such folder")
    run = load_run(place, judge) if (place / "scenarios.jsonl").is_file() else None
    if run is not None and folder is place:
        raise InputError(f"{place}: its doctor kept no sessions; they are made by --doctor uncertainty")
    if run is None and judge is not None:
        raise InputError(f"{place}: not the folder of a run, so that there are no verdicts of {judge!r}")
    records = {record.session_id: record for record in run.records() if record.session_id} if run else {}
    kept, damaged = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            session = read_session(path)
        except SessionError as error:
            damaged.append(str(error))
        else:
            kept.append(Kept(session, records.get(session.session_id)))
    damaged += [f"{path}: put aside as damaged" for path in sorted(folder.glob("*.damaged*"))]
    if not kept and not damaged:
        raise InputError(f"{folder}: holds no sessions")
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
    """Diagnoses in the differential, mean over the steps of a session."""
    with_probabilities: Proportion
    """Steps whose differential states a probability for each diagnosis."""
    recorded_by_clinic: Proportion
    """Steps that the clinic wrote because the doctor gave none that could be used."""
    concluded: Proportion
    synthesis_failed: Proportion
    """Of the concluded: the top of the differential was taken instead."""
    synthesis_differs: Proportion
    """Of the concluded: the synthesis names another disease, and no synonym, than the doctor's own favourite."""
    mended: int = 0
    """Of those, where the truth is known: favourite wrong, synthesis right."""
    spoiled: int = 0
    """Favourite right, synthesis wrong."""


def summarise_sessions(sessions: Sessions, seed: int = 0) -> SessionsSummary:
    """Count over sessions; intervals by bootstrap over cases, where sessions belong to some."""
    cases = Cases()
    steps, facts, width = Sample(0), Sample(0), Sample(0)
    stated = written = number = concluded = failed = differs = mended = spoiled = 0
    for place, kept in enumerate(sessions.kept):
        case = cases.number(kept.record) if kept.record else place
        session = kept.session
        steps.add(case, len(session.steps))
        facts.add(case, len(session.facts))
        sizes = [len(step.current_uncertainties) for step in session.steps]
        if sizes:
            width.add(case, sum(sizes) / len(sizes))
        number += len(sizes)
        stated += sum(_stated(session))
        written += sum(getattr(step, "recorded_by", None) == "clinic" for step in session.steps)
        final, favourite = kept.final, top_of(session)
        if not final:
            continue
        concluded += 1
        failed += bool(getattr(session, "synthesis_error", None))
        if favourite is None or compare(final, favourite).relation is Relation.SAME:
            continue
        differs += 1
        if kept.record is not None and kept.record.ground_truth and strict(kept.record) is not None:
            before, after = names_truth(favourite, kept.record), bool(strict(kept.record))
            mended += after and not before
            spoiled += before and not after
    return SessionsSummary(
        sessions=len(sessions.kept),
        steps=steps.estimate(seed),
        facts=facts.estimate(seed),
        hypotheses=width.estimate(seed),
        with_probabilities=proportion(stated, number),
        recorded_by_clinic=proportion(written, number),
        concluded=proportion(concluded, len(sessions.kept)),
        synthesis_failed=proportion(failed, concluded),
        synthesis_differs=proportion(differs, concluded),
        mended=mended,
        spoiled=spoiled,
    )


def _stated(session: Session) -> Iterator[bool]:
    for step in session.steps:
        items = getattr(step, "differential", None) or []
        yield bool(items) and all(isinstance(item, dict) and item.get("probability") is not None for item in items)
