"""The majority of several judges, written as a separate judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentclinic.errors import InputError
from agentclinic.files import Lock, make_folder, write_whole
from agentclinic.jsonl import sealed
from agentclinic.results.record import Verdict
from agentclinic.results.run_data import read_judgements
from agentclinic.scoring.judges.panel import RECORDED, Unit, judgements_file, load_panel


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


def write_majority(place: Path, judges: Sequence[str], name: str | None = None) -> MajorityWritten:
    """Write `judgements/majority_<a>_<b>_<c>.jsonl`, a judge like any other, from the verdicts of named judges.

    A unit without a majority has no verdict. The same majority may be written again; any other file is kept.
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
    ties = sum(_tied([verdict.correct for verdict in unit.verdicts[: len(judges)]]) for unit in panel.units)
    return MajorityWritten(path, decided, len(entries) - decided, ties)


def _majority_entry(unit: Unit, names: Sequence[str]) -> dict[str, Any]:
    correct = majority([verdict.correct for verdict in unit.verdicts])
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
    if correct is None:
        why = "tie" if _tied([verdict.correct for verdict in unit.verdicts]) else "no_majority"
        return {**entry, "fault": {"error": why, "message": f"{'a tie' if why == 'tie' else 'no majority'} ({votes})"}}
    agreeing = (verdict.relation for verdict in unit.verdicts if verdict.correct is correct)
    relation, count = Counter(agreeing).most_common(1)[0]
    return {
        **entry,
        "correct_lenient": majority([verdict.correct_lenient for verdict in unit.verdicts]),
        "relation": relation if 2 * count > len(names) else None,
        "reason": votes,
    }


def in_words(verdict: Verdict) -> str:
    """A verdict in words: `right, same (names the disease)`."""
    said = {True: "right", False: "wrong", None: "not judged"}[verdict.correct]
    relation = f", {verdict.relation}" if verdict.relation else ""
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return said + relation + reason
