"""The runs in a folder, one line each: what was played, the result, the cost, and whether it is complete."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from agentclinic.config import read_json
from agentclinic.errors import ConfigError, InputError
from agentclinic.files import is_locked
from agentclinic.report.encounter_data import section_of
from agentclinic.results.journal import read_records
from agentclinic.results.labels import Decisions
from agentclinic.results.record import BriefRecord, Record, bias_label
from agentclinic.results.run_data import diagnosis_of
from agentclinic.results.run_folder import CONFIG, RECORDS, SUMMARY, read_used
from agentclinic.scoring.format import headline_text, interval, percent, unread_text
from agentclinic.scoring.labels import doctor_label, setting_text
from agentclinic.scoring.outcome import RunningSummary, Summary
from agentclinic.scoring.stats import Proportion

State = Literal["complete", "incomplete", "running", "unreadable"]


class ListedRun(BaseModel):
    """One run."""

    path: str
    name: str
    state: State
    dataset: str | None = None
    doctor: str | None = None
    """The kind of doctor, with policy, memory and bias if it has them."""
    model: str | None = None
    encounters: int = 0
    planned: int | None = None
    """Encounters that the run has when complete; null if it was not written by this program."""
    accuracy: Proportion | None = None
    not_readable: int = 0
    """Answers that the judge could not read: they count as not right."""
    accuracy_at_most: float | None = None
    """The accuracy if all of those were right."""
    cost_usd: float | None = None
    """What the models cost; null if part of it is not known."""
    tokens: int | None = None
    problem: str | None = None
    """Why it cannot be read."""
    note: str | None = None
    """How `summary.json` differs from the records; the other fields are counted from the records."""

    def right_text(self, unknown: str) -> str:
        """The accuracy in short: `48% (37% to 60%), at most 55%: 5 of 64 not readable`."""
        share = self.accuracy
        if share is None or share.value is None:
            return unknown
        unread = unread_text(self.accuracy_at_most, self.not_readable, share.of, 0)
        limits = interval(share, 0) + ", clustered" * share.clustered
        return headline_text(f"{percent(share.value, 0)} ({limits})", unread)


def list_runs(folder: Path) -> list[ListedRun]:
    """The runs in a folder and in the folders below it, by name; a folder that is itself a run is listed alone."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; runs are written to run.output_dir, by default `runs`")
    return [describe_run(place, folder) for place in run_places(folder)]


def run_places(folder: Path) -> list[Path]:
    """The folders of runs in a folder and below it, by name."""
    begun = (path.parent for name in (RECORDS, CONFIG) for path in folder.rglob(name))
    return sorted(set(begun))  # a run without records has just begun


def describe_run(place: Path, root: Path, summary: Summary | None = None) -> ListedRun:
    """One run below a folder of runs; without a summary of its records, they are read."""
    name = place.name if place == root else str(place.relative_to(root))
    try:
        used = read_used(place)
        first, counted, judged = _counted(place / RECORDS, whole=summary is None)
        note = _note(place, judged) if summary is None and not is_locked(place) else None
    except InputError as error:
        return ListedRun(path=str(place), name=name, state="unreadable", problem=str(error))
    summary = summary or counted
    run, ours = (section_of(used, name) for name in ("run", "agentclinic"))
    named = {key: value for key, value in run.items() if isinstance(value, str)}
    planned = ours.get("units") if isinstance(ours.get("units"), int) else None
    done = planned is None or summary.presented >= planned
    return ListedRun(
        path=str(place),
        name=name,
        state="running" if is_locked(place) else "complete" if done else "incomplete",
        dataset=(first.dataset if first else None) or named.get("dataset"),
        doctor=_doctor(run, first.doctor if first else None, section_of(ours, "unsupported_bias")),
        model=(first.doctor_llm if first else None) or named.get("doctor_llm"),
        encounters=summary.presented,
        planned=planned,
        accuracy=summary.accuracy_strict if summary.presented else None,
        not_readable=summary.not_readable,
        accuracy_at_most=summary.accuracy_at_most,
        cost_usd=summary.cost,
        tokens=summary.tokens,
        note=note,
    )


def _counted(path: Path, *, whole: bool) -> tuple[Record | None, Summary, Summary]:
    """The first record (None if there is none yet), and a summary: of all records if `whole`, else of the first.

    The last is the same as the judge alone has it: what people decided is not in `summary.json`.
    """
    running, alone, first, people = RunningSummary(), RunningSummary(), None, Decisions(path.parent)
    for record in read_records(path, BriefRecord) if path.is_file() else ():
        first = first or record
        running.add(people.applied(record, diagnosis_of(record)))
        alone.add(record)
        if not whole:
            break
    return first, running.summary(), alone.summary()


def _note(place: Path, counted: Summary) -> str | None:
    """How the summary in the folder differs from that of the records; None if it does not."""
    if not (place / SUMMARY).is_file():
        return None
    try:
        written = read_json(place / SUMMARY)
    except ConfigError:
        written = None
    if not isinstance(written, dict):
        return f"{SUMMARY} cannot be read; these numbers are from {RECORDS}"
    found = counted.model_dump(mode="json")
    found |= {"total_presented": counted.presented, "total_correct": counted.correct}
    other = [key for key in _COUNTED if key in written and written[key] != found[key]]
    return f"{SUMMARY} says otherwise ({', '.join(other)}); these numbers are from {RECORDS}" if other else None


_COUNTED = (
    "presented",
    "correct",
    "accuracy_strict",
    "outcomes",
    "usage",
    "cost_usd",
    "total_presented",
    "total_correct",
)


def _doctor(run: Mapping[str, Any], played: str | None, ignored: Mapping[str, Any]) -> str:
    """The doctor as the settings describe it: a run that has just begun has no records."""
    settings = {
        "doctor": played or run.get("doctor"),
        "test_policy": run.get("doctor_test_policy") if run.get("doctor_test_policy_enabled") else None,
        "memory": (run.get("memory_retrieval") or "bm25") if run.get("memory") else None,
    }
    for name in ("doctor_bias", "patient_bias"):
        bias = bias_label(ignored[name]) if name in ignored else run.get(name)
        settings[name] = None if bias in (None, "", "None", "none", "null") else bias
    settings["patient_traits"] = setting_text(run.get("patient_traits") or {})
    return doctor_label({key: str(value) for key, value in settings.items() if value})
