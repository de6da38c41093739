"""Reading a run for scoring: records one at a time, judged by whom the reader chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentclinic.errors import InputError
from agentclinic.jsonl import read_json_lines
from agentclinic.results.actions import parse_action
from agentclinic.results.journal import read_records
from agentclinic.results.outcome import JUDGEABLE, Verdict
from agentclinic.results.record import Record


@dataclass(frozen=True)
class RunData:
    """A run on disk."""

    path: Path
    """The file of records."""
    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    """`config.used.json`, empty where there is none."""
    verdicts: Mapping[str, Mapping[str, Any]] | None = None
    """Another judge's verdicts by unit; None for those in the records."""
    judge: str | None = None

    def records(self) -> Iterator[Record]:
        """The records, with the chosen judge's verdicts."""
        for record in read_records(self.path):
            yield record if self.verdicts is None else _rejudged(record, self.verdicts.get(record.unit))


def load_run(place: Path, judge: str | None = None) -> RunData:
    """A run by its folder or by its file of records; `judge` names a file under `judgements/`."""
    path = place / "scenarios.jsonl" if place.is_dir() else place
    if not path.is_file():
        raise InputError(f"{place}: no run there (no scenarios.jsonl)")
    folder = path.parent
    config_path = folder / "config.used.json"
    config = _read_config(config_path) if config_path.is_file() else {}
    verdicts = None
    if judge is not None:
        verdicts = {unit_of(entry): entry for entry in read_judgements(folder / "judgements" / f"{judge}.jsonl")}
    return RunData(path, folder.name if place.is_dir() else path.stem, config, verdicts, judge)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); remove it to do without the run's settings") from None
    if not isinstance(config, dict):
        raise InputError(f"{path}: not the settings of a run (no JSON object); remove it to do without them")
    return config


def read_judgements(path: Path) -> list[dict[str, Any]]:
    """The lines of a judgements file; of several on one unit the last that gives a verdict counts."""
    if not path.is_file():
        known = sorted(p.stem for p in path.parent.glob("*.jsonl")) if path.parent.is_dir() else []
        have = f"; there are {', '.join(known)}" if known else "; `agentclinic regrade` makes one"
        raise InputError(f"{path}: no such judgements{have}")
    entries: dict[str, dict[str, Any]] = {}
    for _, entry in read_json_lines(path, "a judgement"):
        key = unit_of(entry)
        if entry.get("correct") is not None or key not in entries:
            entries[key] = entry
    return list(entries.values())


def unit_of(entry: Mapping[str, Any]) -> str:
    """The unit a judgement is about, as in `Record.unit`."""
    return f"{entry.get('scenario_id')}:{entry.get('case_hash') or ''}:{entry.get('repeat') or 0}"


def _rejudged(record: Record, verdict: Mapping[str, Any] | None) -> Record:
    if record.status not in JUDGEABLE:
        return record
    if verdict is None or verdict.get("correct") is None:
        return record.model_copy(update={"status": "judge_failed", "correct": None, "judgement": None})
    judgement = verdict_of(verdict)
    # A diagnosis made anew from the session's facts is what was judged, and what probabilities are compared with.
    anew = {"diagnosis_text": verdict.get("diagnosis")} if verdict.get("synthesis") else {}
    return record.model_copy(
        update={"status": "diagnosed", "correct": bool(verdict["correct"]), "judgement": judgement, **anew}
    )


def verdict_of(entry: Mapping[str, Any]) -> Verdict:
    """The verdict of a line of a judgements file; for a line without one, why there is none."""
    correct, lenient = entry.get("correct"), entry.get("correct_lenient")
    if correct is None:
        return Verdict(reason=(entry.get("fault") or {}).get("message"))
    return Verdict(
        correct, entry.get("relation"), entry.get("reason"), True if lenient is None and correct else lenient
    )


def diagnosis_of(record: Record) -> str | None:
    """The diagnosis there is to judge, possibly empty; None for an encounter that ended without one."""
    if record.status not in JUDGEABLE:
        return None
    said = record.diagnosis_text if record.diagnosis_text is not None else record.final_doctor_dialogue or None
    return parse_action(said).content if said else said
