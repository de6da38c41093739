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
from agentclinic.agents.roles import Moderator
from agentclinic.cases.facts import chart_text
from agentclinic.cases.formats import answer_key_of
from agentclinic.cases.registry import load_cases
from agentclinic.config import Settings, parse_settings, read_json, without_credentials
from agentclinic.errors import AgentClinicError, InputError
from agentclinic.journal import read_records
from agentclinic.jsonl import JsonLines, repair
from agentclinic.models.base import ModelError
from agentclinic.models.recording import enter_unit
from agentclinic.models.select import Models, variable
from agentclinic.record import Record
from agentclinic.runs import folder as folders
from agentclinic.runs.engine import FATAL
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.scoring.run_data import diagnosis_of, unit_of

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


def plan_again(
    folder: Path,
    overrides: Mapping[str, Any] | None = None,
    key: Settings | None = None,
    token_limit: int | None = None,
) -> Plan:
    """The plan of a run to be resumed; refused, naming the keys, when what decides results has changed."""
    settings, before = settings_of(folder, overrides)
    if key is not None:
        settings = _with_secrets(settings, key)
    if token_limit is not None:
        runtime = settings.llm.runtime.model_copy(update={"token_limit": token_limit})
        settings = settings.model_copy(update={"llm": settings.llm.model_copy(update={"runtime": runtime})})
    plan = make_plan(settings)
    changed = sorted(k for k in {*before, *plan.digest} if before.get(k) != plan.digest.get(k))
    if changed:
        details = "; ".join(f"{k} was {_short(before.get(k))}, is {_short(plan.digest.get(k))}" for k in changed)
        raise InputError(
            f"{folder} cannot be resumed: what decides its results has changed ({details}). "
            "Undo the change, or start a new run"
        )
    return plan


def _with_secrets(settings: Settings, given: Settings) -> Settings:
    """Put back what is never written down: the key, and what an address held beside itself."""

    def whole(address: str | None, known: str | None) -> str | None:
        return known if known and without_credentials(known) == address else address

    known = given.openai.base_url or variable("OPENAI_BASE_URL")
    base_url = whole(settings.openai.base_url, known)
    openai = settings.openai.model_copy(update={"api_key": given.openai.api_key, "base_url": base_url})
    endpoints = {
        name: endpoint.model_copy(update={"base_url": whole(endpoint.base_url, given.endpoints[name].base_url)})
        if name in given.endpoints
        else endpoint
        for name, endpoint in settings.endpoints.items()
    }
    return settings.model_copy(update={"openai": openai, "endpoints": endpoints})


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
    not_tried: int = 0
    reason: str | None = None
    """What the judge's first failure was, or why the rest was not tried."""


async def regrade(folder: Path, settings: Settings, name: str | None = None) -> Regraded:
    """Judge every diagnosis in a run with another moderator; `scenarios.jsonl` is not touched.

    Writes `judgements/<name>.jsonl`, goes on where an earlier call stopped, tries again what failed.
    """
    path = _judgements(folder, settings.run.moderator_llm, name)
    records = [
        r for r in read_records(folder / folders.RECORDS) if r.ground_truth is not None and diagnosis_of(r) is not None
    ]
    prompts = Path(settings.run.prompts_dir) if settings.run.prompts_dir else None
    charts = _charts(records, settings)
    failures: list[str] = []
    stop = False
    async with Models(_unrecorded(settings)) as models:
        prompt = load_prompt("moderator", prompts)
        moderator = Moderator(models.for_role("moderator"), prompt, relation=settings.run.judge_relation)
        with folders.Lock(path.parent):
            verdicts = _kept(path, records, moderator.model.name)
            queue = iter([record for record in records if record.unit not in verdicts])
            tried = len(verdicts)
            with JsonLines(path) as sink:

                async def worker() -> None:
                    nonlocal stop, tried
                    while not stop and (record := next(queue, None)) is not None:
                        entry = await _judge(record, moderator, charts.get(record.case_hash or "", ""))
                        if entry["correct"] is None:
                            failures.append(entry["fault"]["message"])
                            stop = entry["fault"]["error"] in FATAL
                        else:
                            verdicts[record.unit] = entry["correct"]
                        tried += 1
                        sink.append(entry)

                async with anyio.create_task_group() as group:
                    for _ in range(settings.run.workers):
                        group.start_soon(worker)
    changed = tuple(
        (r.scenario_id, r.correct, verdicts[r.unit])
        for r in records
        if r.unit in verdicts and r.correct is not verdicts[r.unit]
    )
    return Regraded(
        path, len(verdicts), len(failures), changed, len(records) - tried, failures[0] if failures else None
    )


def _judgements(folder: Path, moderator_llm: str, name: str | None) -> Path:
    name = name or re.sub(r"[^A-Za-z0-9._-]+", "_", moderator_llm)
    if name == "recorded":
        raise InputError("name: 'recorded' stands for the verdicts in scenarios.jsonl; choose another")
    if not re.fullmatch(r"[^/\\:]+", name) or name.startswith("."):
        raise InputError(f"name: {name!r} cannot name a file in {folder / 'judgements'}; leave out slashes and dots")
    if not (folder / folders.RECORDS).is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {folders.RECORDS}")
    path = folder / "judgements" / f"{name}.jsonl"
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: cannot be made ({error.strerror})") from None
    return path


def _unrecorded(settings: Settings) -> Settings:
    """A recording belongs to a run; judging anew is none."""
    return settings.model_copy(update={"run": settings.run.model_copy(update={"record": None})})


def _kept(path: Path, records: list[Record], moderator: str) -> dict[str, bool]:
    """The verdicts of an earlier call that still hold; lines without a verdict, or on something else, go."""
    repair(path)
    diagnoses = {record.unit: diagnosis_of(record) for record in records}
    kept: dict[str, bool] = {}
    lines = []
    for entry in _lines(path):
        if entry.get("moderator_llm") != moderator:
            raise InputError(
                f"{path} holds the verdicts of {entry.get('moderator_llm')!r}, not of {moderator!r}; "
                "choose another file with --name"
            )
        unit = unit_of(entry)
        if entry.get("correct") is not None and unit in diagnoses and entry.get("diagnosis") == diagnoses[unit]:
            kept[unit] = bool(entry["correct"])
            lines.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")
    folders.write_text(path, "".join(lines))
    return kept


def _charts(records: list[Record], settings: Settings) -> dict[str, str]:
    """The charts of the records' cases by hash, where their data set is still there: the judge may look into them."""
    charts: dict[str, str] = {}
    for dataset in {record.dataset for record in records if record.dataset}:
        try:
            cases = load_cases(dataset, settings.datasets)
        except AgentClinicError:
            continue  # judged by names alone, as before there were charts
        charts.update((case.id, chart_text(case.facts)) for case in cases)
    return charts


async def _judge(record: Record, moderator: Moderator, chart: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "scenario_id": record.scenario_id,
        "case_hash": record.case_hash,
        "repeat": record.repeat,
        "moderator_llm": moderator.model.name,
        "diagnosis": diagnosis_of(record),
    }
    enter_unit(f"{record.case_hash}:{record.repeat}")
    key = answer_key_of((record.annotations or {}).get("Answer_Key"))
    try:
        verdict = await moderator.judge(diagnosis_of(record) or "", record.ground_truth or "", key, chart)
    except ModelError as error:
        return {**entry, "correct": None, "fault": {"error": error.kind, "message": str(error)}}
    return {
        **entry,
        "correct": verdict.yes,
        "correct_lenient": verdict.lenient,
        "relation": verdict.relation,
        "reason": verdict.reason,
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    lines = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.exists() else (), start=1):
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError
            lines.append(entry)
        except ValueError:
            raise InputError(f"{path} line {number}: not a judgement; move the file away to judge anew") from None
    return lines
