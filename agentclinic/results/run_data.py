"""Reading a run for scoring: its records one at a time, with the verdicts of a chosen judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import FiniteFloat, TypeAdapter, ValidationError

from agentclinic.errors import InputError
from agentclinic.jsonl import read_json_lines
from agentclinic.results.journal import read_records
from agentclinic.results.labels import Decisions
from agentclinic.results.record import JUDGEABLE, Fault, Record, Verdict
from agentclinic.results.run_folder import ARMS, read_used
from agentclinic.results.utterance import parse_action


@dataclass(frozen=True)
class RunData:
    path: Path
    """The file of records."""
    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    """`config.used.json`; empty if there is none."""
    verdicts: Mapping[str, Mapping[str, Any]] | None = None
    """Another judge's verdicts by unit; None to use those in the records."""
    judge: str | None = None

    @property
    def planned(self) -> int | None:
        """How many encounters the complete run has; None if this program did not write it."""
        units = (self.config.get("agentclinic") or {}).get("units")
        return units if isinstance(units, int) else None

    def asked(self, key: str) -> Any:
        """A setting in the section `run` of the settings, 300 for 300.0; None if it is not there."""
        run = self.config.get("run")
        value = run.get(key) if isinstance(run, dict) else None
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @property
    def judge_elsewhere(self) -> bool:
        """Whether the settings say that the judge's model was at another endpoint than the doctor's."""
        run = self.config.get("run")
        if self.verdicts is not None or not isinstance(run, dict):
            return False
        return bool(run.get("doctor_endpoint") != run.get("moderator_endpoint"))

    def records(self) -> Iterator[Record]:
        """The records by the chosen judge; people's labels decide what that judge could not read."""
        people = Decisions(self.path.parent)
        for read in read_records(self.path):
            record = read if self.verdicts is None else _rejudged(read, self.verdicts.get(read.unit))
            yield people.applied(record, diagnosis_of(record))


def load_run(place: Path, judge: str | None = None) -> RunData:
    """Load a run by its folder or its file of records; `judge` names a file under `judgements/`."""
    path = place / "scenarios.jsonl" if place.is_dir() else place
    if not path.is_file():
        if (place / ARMS).is_dir():
            raise InputError(f"{place}: is a sweep; name one of the runs in {place / ARMS}")
        raise InputError(f"{place}: not a run (it has no scenarios.jsonl)")
    folder = path.parent
    config = read_used(folder)
    verdicts = None
    if judge is not None:
        verdicts = {unit_of(entry): entry for entry in read_judgements(folder / "judgements" / f"{judge}.jsonl")}
    return RunData(path, folder.name if place.is_dir() else path.stem, config, verdicts, judge)


def read_judgements(path: Path) -> list[dict[str, Any]]:
    """The lines of a judgements file. If a unit was judged more than once, the last one that did not fail counts."""
    if not path.is_file():
        known = sorted(p.stem for p in path.parent.glob("*.jsonl")) if path.parent.is_dir() else []
        have = f"the run has {', '.join(known)}" if known else "`agentclinic regrade` creates one"
        raise InputError(f"{path}: no such judgements; {have}")
    entries: dict[str, dict[str, Any]] = {}
    for entry in judgement_lines(path):
        key = unit_of(entry)
        if not entry.get("fault") or key not in entries:
            entries[key] = entry
    return list(entries.values())


def judgement_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a judgements file, in order; none if there is no file."""
    for number, entry in read_json_lines(path, "a judgement", journal=True) if path.exists() else ():
        for key, (form, described) in _FORMS.items():
            try:
                form.validate_python(entry.get(key), strict=True)
            except ValidationError:
                raise InputError(f"{path} line {number}: not a judgement ({key} must be {described} or null)") from None
        yield entry


_FORMS: Mapping[str, tuple[TypeAdapter[Any], str]] = {
    **dict.fromkeys(("correct", "correct_lenient"), (TypeAdapter(bool | None), "true, false")),
    **dict.fromkeys(("relation", "reason", "diagnosis", "moderator_llm"), (TypeAdapter(str | None), "text")),
    "decided_by": (TypeAdapter(Literal["code", "model", "person"] | None), "code, model or person"),
    "fault": (TypeAdapter(dict[str, Any] | None), "an object"),
    "usage": (TypeAdapter(dict[str, dict[str, int | None]] | None), "an object with numbers of tokens by role"),
    "cost_usd": (TypeAdapter(dict[str, FiniteFloat | None] | None), "an object with a number by role"),
}


def unit_of(entry: Mapping[str, Any]) -> str:
    """The unit a judgement is about, as in `Record.unit`."""
    return f"{entry.get('scenario_id')}:{entry.get('case_hash') or ''}:{entry.get('repeat') or 0}"


def _rejudged(record: Record, verdict: Mapping[str, Any] | None) -> Record:
    if record.status not in JUDGEABLE:
        return record
    correct, fault = (verdict or {}).get("correct"), (verdict or {}).get("fault")
    if verdict is None or (correct is None and fault):
        changes: dict[str, Any] = {"status": "judge_failed", "correct": None, "judgement": None}
        if fault:
            changes["fault"] = Fault("moderator", str(fault.get("error")), str(fault.get("message") or ""))
        return record.model_copy(update=changes)
    status = "not_readable" if correct is None else "diagnosed"
    changes = {"status": status, "fault": None, "correct": correct, "judgement": verdict_of(verdict)}
    changes["moderator_llm"] = verdict.get("moderator_llm")
    if verdict.get("synthesis"):  # a new synthesis was judged: probabilities are compared with that diagnosis
        changes["diagnosis_text"] = verdict.get("diagnosis")
    return record.model_copy(update=changes)


def verdict_of(entry: Mapping[str, Any]) -> Verdict:
    """The verdict in a line of a judgements file; for a line without one, the reason."""
    correct, lenient = entry.get("correct"), entry.get("correct_lenient")
    if correct is None:
        return Verdict(reason=(entry.get("fault") or {}).get("message") or entry.get("reason"))
    lenient = True if lenient is None and correct else lenient
    return Verdict(correct, entry.get("relation"), entry.get("reason"), lenient, entry.get("decided_by"))


def diagnosis_of(record: Record) -> str | None:
    """The diagnosis to judge, possibly empty; None if the encounter ended without one."""
    if record.status not in JUDGEABLE:
        return None
    said = record.diagnosis_text if record.diagnosis_text is not None else record.final_doctor_dialogue or None
    return parse_action(said).content if said else said
