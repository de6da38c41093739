"""Resuming a run: the plan it was made with, guarded by a digest of what decides its results."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from agentclinic.config import (
    EndpointSettings,
    OpenAISettings,
    Settings,
    parse_settings,
    variable,
    with_limits,
    without_credentials,
)
from agentclinic.doctors.custom import program_digest
from agentclinic.doctors.uncertainty.agent_config import UNCERTAINTY, load_agent
from agentclinic.errors import InputError
from agentclinic.privacy import DataClass, strictest
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import class_of, read_records
from agentclinic.results.record import Record
from agentclinic.results.run_cases import CASES, read_cases
from agentclinic.runs.auto import remember
from agentclinic.runs.build import Models
from agentclinic.runs.execute import (
    AUTO,
    Finished,
    changed_keys,
    make_ready,
    note_attestations,
    play_missing,
    units_left,
    with_own_files,
)
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.progress import Progress

Endpoint = TypeVar("Endpoint", OpenAISettings, EndpointSettings)
_SECTIONS = ("run", "datasets", "endpoints", "openai", "llm")


async def resume(plan: Plan, folder: Path, progress: Progress, *, retry_failed: bool = False) -> Finished:
    """Play what is missing in a run's folder; with `retry_failed` also what failed without a verdict."""
    async with Models(plan.settings, plan.data_class) as models:
        left = bool(units_left(plan, folder, retry_failed=retry_failed))
        plan = await make_ready(plan, models, progress, check=left)
        note_attestations(folder, models.gate)
        return await play_missing(plan, folder, models, progress, retry_failed=retry_failed)


def settings_of(folder: Path, overrides: Mapping[str, Any] | None = None) -> tuple[Settings, dict[str, Any]]:
    """The settings a run was made with, and what else was written with them: `digest` guards resuming."""
    path = folder / folders.CONFIG
    if not path.is_file():
        raise InputError(f"{folder} is not the folder of a run: it has no {folders.CONFIG}")
    used = folders.read_used(folder)
    ours = used.get("agentclinic")
    if not isinstance(ours, dict) or not isinstance(ours.get("digest"), dict):
        raise InputError(
            f"{path} was not written by this program: it does not say what the results depend on, so the run cannot be "
            "resumed. It can be scored, reported, compared, audited and regraded. To play a new run with its settings: "
            f"agentclinic run --config {path}"
        )
    data = {name: used[name] for name in _SECTIONS if name in used}
    ignored = ours.get("unsupported_bias") or {}
    if not isinstance(data.setdefault("run", {}), dict) or not isinstance(ignored, dict):
        raise InputError(f"{path}: not as it was written (run and agentclinic.unsupported_bias must be objects)")
    changes = dict(overrides or {})
    if changes.get("engine") == "local":  # those of the cluster that the run was on
        changes |= {"address": None, "processes": None}
    data["run"] = {**data["run"], **changes}
    data["run"].pop("judge_relation", None)  # of older versions
    settings = parse_settings(Settings, data | {"simulators": ours.get(AUTO) or {}}, str(path))
    remember(settings.simulators.values())
    return settings, ours


def plan_again(
    folder: Path,
    overrides: Mapping[str, Any] | None = None,
    key: Settings | None = None,
    token_limit: int | None = None,
    max_cost: float | None = None,
) -> Plan:
    """The plan of a run to be resumed; refused, naming the keys, when what decides results has changed."""
    settings, ours = settings_of(folder, overrides)
    before = ours["digest"]
    _refuse_other_program(settings, before, folder)
    if key is not None:
        settings = _with_secrets(settings, key)
    settings = settings.model_copy(update={"given": settings.given._replace(flags=dict(overrides or {}))})
    settings = with_limits(with_own_files(settings, folder), token_limit, max_cost)
    cases = read_cases(folder)
    if not cases:
        raise InputError(f"{folder} cannot be resumed: {CASES}, which holds the cases it was played on, is missing")
    plan = make_plan(settings, cases)
    journal = folder / folders.RECORDS
    played = class_of_run(folder, read_records(journal) if journal.is_file() else ())
    ignored = ours.get("unsupported_bias") or {}
    plan = replace(plan, data_class=strictest((plan.data_class, played)), unsupported_bias=ignored)
    _refuse_changed(before, plan.digest, folder)
    return plan


def _refuse_changed(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    changed = changed_keys(before, now)
    if changed:
        details = "; ".join(f"{k} was {_short(before.get(k))}, is {_short(now.get(k))}" for k in changed)
        raise InputError(
            f"{folder} cannot be resumed: what decides its results has changed ({details}). "
            "Undo the change, or start a new run"
        )


def _refuse_other_program(settings: Settings, before: Mapping[str, Any], folder: Path) -> None:
    """Refuse a custom doctor's file or an agent's configuration that is not the recorded one, before it is used."""
    run, now = settings.run, dict(before)
    if digest := program_digest(run.doctor):
        now["doctor_file"] = digest
    if run.doctor == "uncertainty" and run.agent_config:
        with warnings.catch_warnings(action="ignore"):  # they are shown when it is used
            now["agent"] = load_agent(Path(run.agent_config), run.uncertainty_agent_type or UNCERTAINTY).digest
    _refuse_changed(before, now, folder)


def _with_secrets(settings: Settings, given: Settings) -> Settings:
    """Put back what is never written to a file: keys, and credentials in addresses. Prices set since then count."""

    def renewed(used: Endpoint, now: Endpoint, address: str | None) -> Endpoint:
        same = address and without_credentials(address) == used.base_url
        prices = now.prices or used.prices
        return used.model_copy(update={"base_url": address if same else used.base_url, "prices": prices})

    openai = renewed(settings.openai, given.openai, given.openai.base_url or variable("OPENAI_BASE_URL"))
    openai = openai.model_copy(update={"api_key": given.openai.api_key})
    endpoints = {
        name: renewed(used, now, now.base_url) if (now := given.endpoints.get(name)) else used
        for name, used in settings.endpoints.items()
    }
    # A host must be attested now: being allowed in an earlier run does not count.
    attested = {"privacy": given.privacy, "allow_hosts": given.allow_hosts}
    said = {"given": given.given, "beside_key": given.beside_key}
    return settings.model_copy(update={"openai": openai, "endpoints": endpoints, **attested, **said})


def class_of_run(folder: Path, records: Iterable[Record]) -> DataClass:
    """The class of data in a run's folder, by its settings and its records; a run that was credentialed stays so."""
    stated = folders.stated_class(folders.read_used(folder))
    return strictest((stated or DataClass.PUBLIC, *map(class_of, records)))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
