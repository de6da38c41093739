"""Reading a run for scoring: records one at a time, judged by whom the reader chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agentclinic.cases.formats import answer_key_of
from agentclinic.cases.model import AnswerKey
from agentclinic.errors import InputError
from agentclinic.results.actions import parse_action
from agentclinic.results.journal import read_records
from agentclinic.results.record import JudgementRecord, Record
from agentclinic.scoring.outcome import MISSING
from agentclinic.vocabulary.compare import STRICT, compare


class Estimate(BaseModel):
    """A number with its 95 % interval and on how many units it rests; null where it cannot be known."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: str | None = None


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
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            entry = json.loads(line)
            key = unit_of(entry)
        except (ValueError, TypeError, AttributeError):
            raise InputError(f"{path} line {number}: not a judgement") from None
        if entry.get("correct") is not None or key not in entries:
            entries[key] = entry
    return list(entries.values())


def unit_of(entry: Mapping[str, Any]) -> str:
    """The unit a judgement is about, as in `Record.unit`."""
    return f"{entry.get('scenario_id')}:{entry.get('case_hash') or ''}:{entry.get('repeat') or 0}"


def _rejudged(record: Record, verdict: Mapping[str, Any] | None) -> Record:
    if record.status not in ("diagnosed", "judge_failed"):
        return record
    if verdict is None or verdict.get("correct") is None:
        return record.model_copy(update={"status": "judge_failed", "correct": None, "judgement": None})
    judgement = JudgementRecord(
        relation=verdict.get("relation"), reason=verdict.get("reason"), correct_lenient=verdict.get("correct_lenient")
    )
    # A diagnosis made anew from the session's facts is what was judged, and what probabilities are compared with.
    anew = {"diagnosis_text": verdict.get("diagnosis")} if verdict.get("synthesis") else {}
    return record.model_copy(
        update={"status": "diagnosed", "correct": bool(verdict["correct"]), "judgement": judgement, **anew}
    )


def diagnosis_of(record: Record) -> str | None:
    """The diagnosis there is to judge, possibly empty; None for an encounter that ended without one."""
    if record.status not in ("diagnosed", "judge_failed"):
        return None
    said = record.diagnosis_text if record.diagnosis_text is not None else record.final_doctor_dialogue or None
    return parse_action(said).content if said else said


def case_key(record: Record) -> str:
    """What pairs a case between runs: its hash, or data set and row where a record has none."""
    return record.case_hash or f"{record.dataset}:{record.scenario_id}"


def strict(record: Record) -> bool | None:
    """Right by the strict rule; None when missing."""
    return None if record.status in MISSING else bool(record.correct)


def lenient(record: Record) -> bool | None:
    """Right by the lenient rule; None when missing or when the judge gave no relation."""
    if record.status in MISSING:
        return None
    if record.status != "diagnosed":
        return False
    if record.judgement is None:
        return True if record.correct else None
    return record.judgement.correct_lenient


def answer_key(record: Record) -> AnswerKey:
    """The case's answer key as kept in the record."""
    return answer_key_of((record.annotations or {}).get("Answer_Key"))


def names_truth(diagnosis: str, record: Record) -> bool:
    """Whether a hypothesis is the truth, by the written rules of the builtin judge."""
    return _names_truth(diagnosis, record.ground_truth or "", answer_key(record))


@lru_cache(maxsize=65536)
def _names_truth(diagnosis: str, truth: str, key: AnswerKey) -> bool:
    return compare(diagnosis, truth, key.accept, key.partial, key.reject).relation in STRICT
