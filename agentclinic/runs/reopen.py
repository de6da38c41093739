"""Going back to a run's folder: resuming it, or judging its records anew."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from agentclinic.agents.prompts import load_prompt
from agentclinic.agents.protocol import parse_action
from agentclinic.agents.roles import Moderator
from agentclinic.cases.formats import answer_key_of
from agentclinic.config import Settings, parse_settings, read_json
from agentclinic.errors import InputError
from agentclinic.jsonl import JsonLines
from agentclinic.models.base import ModelError
from agentclinic.models.select import Models
from agentclinic.record import Record
from agentclinic.runs import folder as folders
from agentclinic.runs.journal import read_records
from agentclinic.runs.plan import Plan, make_plan

_SECTIONS = ("run", "datasets", "endpoints", "openai", "llm")


def settings_of(folder: Path, overrides: Mapping[str, Any] | None = None) -> tuple[Settings, dict[str, Any]]:
    """The settings a run was made with, and the digest that guards it."""
    path = folder / folders.CONFIG
    if not path.is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {folders.CONFIG}")
    used = read_json(path)
    ours = used.get("agentclinic") if isinstance(used, dict) else None
    if not isinstance(ours, dict) or not isinstance(ours.get("digest"), dict):
        raise InputError(f"{path} was not written by this program; such a run can be regraded but not resumed")
    data = {name: used[name] for name in _SECTIONS if name in used}
    data["run"] = {**data.get("run", {}), **(overrides or {})}
    return parse_settings(Settings, data, str(path)), ours["digest"]


def plan_again(folder: Path, overrides: Mapping[str, Any] | None = None, key: Settings | None = None) -> Plan:
    """The plan of a run to be resumed; refused, naming the keys, when what decides results has changed."""
    settings, before = settings_of(folder, overrides)
    if key is not None:
        openai = settings.openai.model_copy(update={"api_key": key.openai.api_key})
        settings = settings.model_copy(update={"openai": openai})
    plan = make_plan(settings)
    changed = sorted(k for k in {*before, *plan.digest} if before.get(k) != plan.digest.get(k))
    if changed:
        details = "; ".join(f"{k} was {_short(before.get(k))}, is {_short(plan.digest.get(k))}" for k in changed)
        raise InputError(
            f"{folder} cannot be resumed: what decides its results has changed ({details}). "
            "Undo the change, or start a new run"
        )
    return plan


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True)
class Regraded:
    """The outcome of judging a run anew."""

    path: Path
    judged: int
    failed: int
    changed: tuple[tuple[int, bool | None, bool], ...]
    """Scenario, the recorded verdict, the new one: where they differ."""


async def regrade(folder: Path, settings: Settings, name: str | None = None) -> Regraded:
    """Judge every diagnosis in a run with another moderator; `scenarios.jsonl` is not touched.

    Writes `judgements/<name>.jsonl`, goes on where an earlier call stopped, tries again what failed.
    """
    moderator_llm = settings.run.moderator_llm
    path = folder / "judgements" / f"{name or re.sub(r'[^A-Za-z0-9._-]+', '_', moderator_llm)}.jsonl"
    records = [r for r in read_records(folder / folders.RECORDS) if _diagnosis(r) is not None]
    path.parent.mkdir(exist_ok=True)
    prompts = Path(settings.run.prompts_dir) if settings.run.prompts_dir else None
    verdicts: dict[str, bool] = {}
    failed = 0
    with JsonLines(path) as sink:
        for entry in _lines(path):
            if entry.get("correct") is not None:
                verdicts[_unit_of(entry)] = bool(entry["correct"])
        queue = iter([record for record in records if record.unit not in verdicts])

        async def worker(moderator: Moderator) -> None:
            nonlocal failed
            for record in queue:
                entry = await _judge(record, moderator)
                sink.append(entry)
                if entry["correct"] is None:
                    failed += 1
                else:
                    verdicts[record.unit] = entry["correct"]

        async with Models(settings) as models:
            moderator = Moderator(models.for_role("moderator"), load_prompt("moderator", prompts))
            async with anyio.create_task_group() as group:
                for _ in range(settings.run.workers):
                    group.start_soon(worker, moderator)
    changed = tuple(
        (r.scenario_id, r.correct, verdicts[r.unit])
        for r in records
        if r.unit in verdicts and r.correct is not verdicts[r.unit]
    )
    return Regraded(path, len(verdicts), failed, changed)


async def _judge(record: Record, moderator: Moderator) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "scenario_id": record.scenario_id,
        "case_hash": record.case_hash,
        "repeat": record.repeat,
        "moderator_llm": moderator.model.name,
    }
    key = answer_key_of((record.annotations or {}).get("Answer_Key"))
    try:
        verdict = await moderator.judge(_diagnosis(record) or "", record.ground_truth or "", key)
    except ModelError as error:
        return {**entry, "correct": None, "fault": {"error": error.kind, "message": str(error)}}
    return {
        **entry,
        "correct": verdict.yes,
        "correct_lenient": verdict.lenient,
        "relation": verdict.relation,
        "reason": verdict.reason,
    }


def _diagnosis(record: Record) -> str | None:
    """What there is to judge; None for an encounter that ended without a diagnosis."""
    if record.status not in ("diagnosed", "judge_failed") or record.ground_truth is None:
        return None
    if record.diagnosis_text is not None:
        return parse_action(record.diagnosis_text).content if record.diagnosis_text else ""
    return parse_action(record.final_doctor_dialogue).content if record.final_doctor_dialogue else None


def _unit_of(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('scenario_id')}:{entry.get('case_hash') or ''}:{entry.get('repeat', 0)}"


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            lines.append(json.loads(line))
        except ValueError:
            raise InputError(f"{path} line {number}: not a judgement; move the file away to judge anew") from None
    return lines
