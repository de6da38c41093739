"""The judges of a run and their verdicts, and the majority of several as one more judge.

A judge is a name: `recorded` for the verdicts in `scenarios.jsonl`, any other for `judgements/<name>.jsonl`.
Only units that ended with a diagnosis can be judged; the others are wrong, or missing, whatever the judge.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agentclinic.errors import InputError
from agentclinic.files import Lock, make_folder, write_whole
from agentclinic.jsonl import sealed
from agentclinic.results.journal import read_records
from agentclinic.results.record import JUDGEABLE, MISSING, Record, Status, Verdict
from agentclinic.results.run_data import diagnosis_of, load_run, read_judgements, unit_of, verdict_of
from agentclinic.scoring.clusters import case_key, cluster_keys, joined


def majority(verdicts: Sequence[bool | None]) -> bool | None:
    """The verdict of more than half of all judges, including those without a verdict; None if there is none.

    A tie gives None, and so do too many missing verdicts: what they could still overturn is not a majority.
    """
    yes = sum(verdict is True for verdict in verdicts)
    no = sum(verdict is False for verdict in verdicts)
    if 2 * yes > len(verdicts):
        return True
    return False if 2 * no > len(verdicts) else None


def _tied(verdicts: Sequence[bool | None]) -> bool:
    return None not in verdicts and 2 * verdicts.count(True) == len(verdicts)


class MajorityWritten(NamedTuple):
    """A file of majority verdicts."""

    path: Path
    decided: int
    undecided: int
    ties: int = 0
    """Those of the undecided on which as many judges said yes as no."""
    unread: int = 0
    """Diagnoses that none of the judges could read; they are not among the undecided."""


def write_majority(place: Path, judges: Sequence[str], name: str | None = None) -> MajorityWritten:
    """Write `judgements/majority_<a>_<b>_<c>.jsonl`, a judge like any other, from the verdicts of named judges.

    A judge that could not read a diagnosis has no vote on it: the others decide. A unit without a majority has no
    verdict. The same majority may be written again; any other file is kept.
    """
    panel = load_panel(place, judges)
    if len(judges) < 2:
        raise InputError("judges: a majority needs at least two judges, preferably three")
    path = judgements_file(panel.path.parent, name or "majority_" + "_".join(judges))
    if path.stem in judges or path.stem == RECORDED:
        raise InputError(f"name: {path.stem} is one of the judges; choose another name")
    make_folder(path.parent)
    with Lock(path.parent):
        if path.exists() and any(entry.get("majority_of") != list(judges) for entry in read_judgements(path)):
            raise InputError(
                f"{path} holds verdicts other than the majority of {', '.join(judges)}; choose another name"
            )
        entries = [_majority_entry(unit, panel.names) for unit in panel.units]
        write_whole(path, "".join(f"{sealed(entry).decode()}\n" for entry in entries))
    decided = sum(entry["correct"] is not None for entry in entries)
    faults = [entry["fault"]["error"] for entry in entries if "fault" in entry]
    return MajorityWritten(path, decided, len(faults), faults.count("tie"), len(entries) - decided - len(faults))


def _majority_entry(unit: Unit, names: Sequence[str]) -> dict[str, Any]:
    cast = [verdict for name, verdict in zip(names, unit.verdicts, strict=True) if name not in unit.unread]
    correct = majority([verdict.correct for verdict in cast])
    votes = "; ".join(f"{name}: {in_words(verdict)}" for name, verdict in zip(names, unit.verdicts, strict=True))
    entry: dict[str, Any] = {
        "scenario_id": unit.scenario_id,
        "case_hash": unit.case_hash,
        "repeat": unit.repeat,
        "moderator_llm": "majority",
        "majority_of": list(names),
        "diagnosis": unit.diagnosis,
        "correct": correct,
    }
    if not cast:
        return {**entry, "reason": votes}
    if correct is None:
        why = "tie" if _tied([verdict.correct for verdict in cast]) else "no_majority"
        return {**entry, "fault": {"error": why, "message": f"{'a tie' if why == 'tie' else 'no majority'} ({votes})"}}
    agreeing = (verdict.relation for verdict in cast if verdict.correct is correct)
    relation, count = Counter(agreeing).most_common(1)[0]
    return {
        **entry,
        "correct_lenient": majority([verdict.correct_lenient for verdict in cast]),
        "relation": relation if 2 * count > len(cast) else None,
        "reason": votes,
    }


def in_words(verdict: Verdict) -> str:
    """A verdict in words: `right, same (names the disease)`."""
    said = {True: "right", False: "wrong", None: "not judged"}[verdict.correct]
    relation = f", {verdict.relation}" if verdict.relation else ""
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return said + relation + reason


RECORDED = "recorded"
"""The judge whose verdicts are in the records themselves."""
UNREAD: Literal["unread"] = "unread"
Said = bool | Literal["unread"] | None
"""A verdict as figures need it: right, wrong, not readable, or none."""


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
    name: str = ""
    unread: frozenset[str] = frozenset()
    """The judges that could not read it."""


@dataclass
class Panel:
    """The judges of a run and everything they have judged."""

    names: tuple[str, ...]
    path: Path
    """The file of records."""
    units: list[Unit] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """The case of each unit that is wrong without a judge."""
    clusters: dict[str, str] = field(default_factory=dict)
    """The cluster of each case."""
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

    def said(self, name: str) -> list[Said]:
        """The same, with what the judge could not read apart from what it did not judge."""
        given = zip(self.units, self.column(name), strict=True)
        return [UNREAD if name in unit.unread else verdict.correct for unit, verdict in given]


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
    keys: dict[str, tuple[str, ...]] = {}
    for record in read_records(path):
        keys.setdefault(case_key(record), cluster_keys(record))
        if record.status in JUDGEABLE:
            panel.units.append(_unit(record, panel, verdicts))
        elif record.status in MISSING:
            panel.failed += 1
        else:
            panel.wrong.append(case_key(record))
    panel.clusters = dict(zip(keys, joined(keys.values()), strict=True))
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
    given, unread = [], set()
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
            failed = record.status != Status.NOT_READABLE if name == RECORDED else entry is None or entry.get("fault")
            if given[-1].correct is None and not failed:
                unread.add(name)
    return Unit(
        record.scenario_id,
        record.case_hash,
        record.repeat,
        case_key(record),
        record.ground_truth,
        diagnosis,
        tuple(given),
        record.unit_name,
        frozenset(unread),
    )


def _recorded(record: Record) -> Verdict:
    correct = record.correct if record.status == "diagnosed" else None
    if correct is None:
        why = record.judgement.reason if record.judgement else None
        return Verdict(reason=record.fault.message if record.fault else why)
    if record.judgement is None:
        return Verdict(correct, correct_lenient=True if correct else None)
    return replace(record.judgement, correct=correct)
