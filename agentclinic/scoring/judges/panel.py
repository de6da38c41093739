"""The judges of a run and their verdicts.

A judge is a name: `recorded` for the verdicts in `scenarios.jsonl`, any other for `judgements/<name>.jsonl`.
Only units that ended with a diagnosis can be judged; the others are wrong, or missing, whatever the judge.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentclinic.errors import InputError
from agentclinic.results.journal import read_records
from agentclinic.results.record import JUDGEABLE, MISSING, Record, Verdict
from agentclinic.results.run_data import diagnosis_of, load_run, read_judgements, unit_of, verdict_of
from agentclinic.scoring.verdicts import case_key

RECORDED = "recorded"
"""The judge whose verdicts are in the records themselves."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A diagnosis and what each judge says about it."""

    scenario_id: int
    case_hash: str | None
    repeat: int
    case: str
    truth: str | None
    diagnosis: str | None
    verdicts: tuple[Verdict, ...]
    """In the order of the panel's names."""


@dataclass
class Panel:
    """The judges of a run and everything they have judged."""

    names: tuple[str, ...]
    path: Path
    """The file of records."""
    units: list[Unit] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """The case of each unit that is wrong without a judge."""
    failed: int = 0
    """Units that ended before a diagnosis, through no fault of the doctor."""
    models: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    stale: Counter[str] = field(default_factory=Counter)
    """Verdicts on a diagnosis other than the one now in the records; they do not count."""
    majority_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The members of each judge that is a majority."""

    def column(self, name: str) -> list[Verdict]:
        """Everything one judge says."""
        index = self.names.index(name)
        return [unit.verdicts[index] for unit in self.units]


def judges_of(folder: Path) -> tuple[str, ...]:
    """The names of a run's judges: `recorded` and each file of judgements."""
    return (RECORDED, *sorted(path.stem for path in (folder / "judgements").glob("*.jsonl") if path.stem != RECORDED))


def load_panel(place: Path, judges: Sequence[str] | None = None) -> Panel:
    """The verdicts of the named judges (default: all) on a run, given by its folder or file of records."""
    path = load_run(place).path
    names = judges_of(path.parent) if judges is None else tuple(judges)
    if not names:
        raise InputError(f"judges: none named; this run has {', '.join(judges_of(path.parent))}")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"judges: {name} is named twice")
    if RECORDED in names and judgements_file(path.parent, RECORDED).exists():
        taken = judgements_file(path.parent, RECORDED)
        raise InputError(f"{taken}: this name is reserved for the verdicts in {path.name}; rename the file")
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
    path = judgements_file(folder, name)
    verdicts = {}
    for entry in read_judgements(path):
        if entry.get("majority_of"):
            panel.majority_of[name] = tuple(entry["majority_of"])
        verdicts[unit_of(entry)] = entry
    return verdicts


def judgements_file(folder: Path, name: str) -> Path:
    """Where a judge's verdicts on the run in that folder are."""
    if not re.fullmatch(r"[^/\\:]+", name) or name.startswith("."):
        raise InputError(f"judges: {name!r} cannot be the name of a file in {folder / 'judgements'}")
    return folder / "judgements" / f"{name}.jsonl"


def _unit(record: Record, panel: Panel, verdicts: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Unit:
    diagnosis = diagnosis_of(record)
    given = []
    for name in panel.names:
        entry = None if name == RECORDED else verdicts[name].get(record.unit)
        model = record.moderator_llm if name == RECORDED else entry and entry.get("moderator_llm")
        if model:
            panel.models[name][model] += 1
        if entry is not None and entry.get("diagnosis") not in (None, diagnosis):
            panel.stale[name] += 1
            given.append(Verdict(reason="judged another diagnosis"))
        else:
            given.append(_recorded(record) if name == RECORDED else verdict_of(entry or {}))
    return Unit(
        record.scenario_id,
        record.case_hash,
        record.repeat,
        case_key(record),
        record.ground_truth,
        diagnosis,
        tuple(given),
    )


def _recorded(record: Record) -> Verdict:
    correct = record.correct if record.status == "diagnosed" else None
    if correct is None:
        return Verdict(reason=record.fault.message if record.fault else None)
    if record.judgement is None:
        return Verdict(correct, correct_lenient=True if correct else None)
    return replace(record.judgement, correct=correct)
