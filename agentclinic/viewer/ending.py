"""What a player sees when a game is over: the verdict, the chart, their calibration, and how others did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from agentclinic.config import is_person
from agentclinic.report.debriefing import debriefing
from agentclinic.report.encounter_data import RunFolder, encounter_data
from agentclinic.results.record import Record
from agentclinic.results.run_data import load_run
from agentclinic.results.run_folder import RECORDS
from agentclinic.scoring.differentials import confidence
from agentclinic.scoring.verdicts import decided, strict
from agentclinic.viewer.game import Game
from agentclinic.viewer.moves import same

PEOPLE = "other people"
"""All other players together: no player is shown what another one did."""


class Band(BaseModel):
    """Diagnoses stated with about the same confidence."""

    low: float
    high: float
    n: int
    right: int


class Calibration(BaseModel):
    """How sure a player was, and how often they were right, over all their games with a verdict."""

    n: int
    right: int
    mean_stated: float
    brier: float
    """Mean squared distance between stated probability and outcome (1 right, 0 wrong); 0 is best."""
    bands: list[Band]


class Others(BaseModel):
    """How one kind of doctor did on a case."""

    doctor: str
    n: int
    right: int
    turns: float
    """Mean."""


def ending(game: Game) -> dict[str, Any]:
    """What to tell the player of a finished game. Reads other runs, so do not call it on the event loop."""
    record = game.record
    assert record is not None
    case, run = game.unit.case, game.run
    verdict = record.judgement
    encounter = encounter_data(record, RunFolder(load_run(run.open())).context(record))
    return {
        **asdict(debriefing(record, case)),
        "reason": verdict.reason if verdict else None,
        "relation": verdict.relation.replace("_", " ") if verdict and verdict.relation else None,
        "stated": confidence(record)[0],
        "fault": record.fault.message if record.fault else None,
        "turns": record.num_turns,
        "tests_usd": (record.test_economics_totals or {}).get("total_estimated_cost_usd"),
        "tests_unpriced": (record.test_economics_totals or {}).get("tests_without_price"),
        "seconds": (record.timing or {}).get("on_task_seconds"),
        "calibration": _as_json(calibration(run.records.values())) if run.seat == "doctor" else None,
        "encounter": {**encounter, "same": one_name_each(encounter)},
        "others": [_as_json(other) for other in others(Path(run.plan.settings.run.output_dir), case.id, run.folder)],
    }


def _as_json(model: BaseModel | None) -> Any:
    return model.model_dump() if model else None


def one_name_each(encounter: dict[str, Any]) -> dict[str, str]:
    """For each name in the differentials, the one that stands for its disease: the last that was used for it."""
    names: dict[str, str] = {}
    for turn in reversed(encounter.get("turns", ())):
        for name, *_ in turn.get("differential", {}).get("rows", ()):
            names.setdefault(name, next((one for one in names.values() if same(one, name)), name))
    return names


def calibration(records: Iterable[Record]) -> Calibration | None:
    """The player's stated probabilities compared with the outcomes; None if there are none."""
    given = ((confidence(record)[0], decided(record)) for record in records)
    stated = [(sure, right) for sure, right in given if sure is not None and right is not None]
    if not stated:
        return None
    bands: dict[int, list[bool]] = {}
    for sure, right in stated:
        bands.setdefault(min(int(sure * 5), 4), []).append(right)
    return Calibration(
        n=len(stated),
        right=sum(right for _, right in stated),
        mean_stated=sum(sure for sure, _ in stated) / len(stated),
        brier=sum((sure - right) ** 2 for sure, right in stated) / len(stated),
        bands=[Band(low=b / 5, high=(b + 1) / 5, n=len(here), right=sum(here)) for b, here in sorted(bands.items())],
    )


def others(runs: Path, case: str, but: Path | None) -> list[Others]:
    """How the doctors of other runs in a folder did on a case, the most accurate first."""
    found: dict[str, list[Record]] = {}
    for path in sorted(runs.rglob(RECORDS)):
        for record in () if path.parent == but else _on_case(path, case):
            found.setdefault(_doctor(record), []).append(record)
    doctors = [
        Others(
            doctor=doctor,
            n=len(played),
            right=sum(bool(strict(record)) for record in played),
            turns=sum(record.num_turns or 0 for record in played) / len(played),
        )
        for doctor, played in found.items()
    ]
    return sorted(doctors, key=lambda other: (-other.right / other.n, other.doctor))


def _on_case(path: Path, case: str) -> Iterator[Record]:
    """The judged records of a case; only lines that name it are parsed, since a folder may hold many runs."""
    mark = case.encode()
    with path.open("rb") as lines:
        for line in lines:
            if mark in line:
                try:
                    record = Record.model_validate_json(line)
                except ValidationError:
                    continue  # an incomplete last line, or another program's: the viewer and `score` say so
                if record.case_hash == case and strict(record) is not None:
                    yield record


def _doctor(record: Record) -> str:
    if is_person(record.doctor_llm):
        return PEOPLE
    kind, model = record.doctor or "plain", record.doctor_llm or "unknown"
    return model if kind == "plain" else f"{kind} ({model})"
