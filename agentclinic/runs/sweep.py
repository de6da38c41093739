"""A matrix of runs as one experiment that can be stopped and resumed."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.cases.model import Case
from agentclinic.config import RunSettings, Settings, layered, parse_settings, read_json, suggestion, traits_text
from agentclinic.errors import ConfigError, InputError
from agentclinic.models.gate import Gate
from agentclinic.privacy import DataClass, shown_name
from agentclinic.results import run_folder as folders
from agentclinic.results.journal import read_records
from agentclinic.runs.auto import decide
from agentclinic.runs.budget import Budget, Spent, refuse_unpriced, spent_on
from agentclinic.runs.build import Models, Used
from agentclinic.runs.campaign import check_engine
from agentclinic.runs.check import failures, report
from agentclinic.runs.execute import (
    Finished,
    begin_folder,
    changed_keys,
    make_ready,
    note_attestations,
    play_missing,
    units_left,
)
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import settings_of

MOST_ARMS = 1000
"""Combinations in a sweep: each is a run of its own, and more are a slip, which would take hours only to list."""


class SweepFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    """Name of the sweep, also of its folder."""
    run: dict[str, Any] = Field(default_factory=dict)
    """Settings of the `run` section that all arms share; they win over the config file."""
    matrix: dict[str, list[Any]] = Field(min_length=1)
    """Settings that vary, with their values; every combination is an arm."""
    baseline: dict[str, Any] = Field(default_factory=dict)
    """Value of each varied setting in the baseline, the arm that the others are compared with. Without one, the value
    that `run` or the config file gives to the setting if it is in the list, otherwise the first."""


@dataclass(frozen=True)
class Arm:
    """One combination of the matrix."""

    values: Mapping[str, Any]
    settings: Settings
    folder: Path
    cases: Sequence[Case] = ()
    """Played instead of those of the data set, if given."""

    @property
    def label(self) -> str:
        return _label(self.values)


def read_sweep(path: Path, base: Settings) -> tuple[SweepFile, list[Arm]]:
    """Read a sweep file and lay out its arms, the baseline first; unknown settings and empty lists are refused.

    In the matrix that is returned, the baseline's value of each setting comes first.
    """
    sweep = parse_settings(SweepFile, read_json(path), str(path))
    for key, values in sweep.matrix.items():
        if key not in RunSettings.model_fields:
            raise ConfigError(
                f"{path}: matrix: unknown setting {shown_name(key)!r}{suggestion(key, RunSettings.model_fields)}"
            )
        if not values:
            raise ConfigError(f"{path}: matrix.{key} is an empty list; give at least one value")
        if len({json.dumps(value) for value in values}) < len(values):
            raise ConfigError(f"{path}: matrix.{key} names a value twice")
    count = math.prod(map(len, sweep.matrix.values()))
    if count > MOST_ARMS:
        raise ConfigError(f"{path}: matrix has {count:,} combinations; {MOST_ARMS:,} are allowed, so name fewer values")
    sweep = sweep.model_copy(update={"matrix": _baseline_first(sweep, base, path)})
    root = Path(str(sweep.run.get("output_dir", base.run.output_dir))) / sweep.name
    arms = []
    for combination in itertools.product(*sweep.matrix.values()):
        chosen = dict(zip(sweep.matrix, combination, strict=True))
        run = layered(base.run.model_dump(exclude_unset=True), sweep.run, chosen)
        parsed = parse_settings(RunSettings, run, f"{path} ({_label(chosen)})")
        arms.append(Arm(chosen, base.model_copy(update={"run": parsed}), root / folders.ARMS / _slug(chosen)))
    return sweep, arms


def _baseline_first(sweep: SweepFile, base: Settings, path: Path) -> dict[str, list[Any]]:
    for key, value in sweep.baseline.items():
        if value not in sweep.matrix.get(key, ()):
            raise ConfigError(f"{path}: baseline.{shown_name(key)}: {value!r} is not among the values in matrix")
    named = layered(base.run.model_dump(exclude_unset=True), sweep.run, sweep.baseline)
    ordered = {}
    for key, values in sweep.matrix.items():
        first = named[key] if key in named and named[key] in values else values[0]
        ordered[key] = [first, *(value for value in values if value != first)]
    return ordered


def effects(sweep: SweepFile, arms: Sequence[Arm]) -> Iterator[tuple[str, Arm, Arm]]:
    """Each factor, the arm with its reference value, and an arm that differs from that one in this factor only."""
    for factor, (reference, *others) in sweep.matrix.items():
        for value in others:
            for arm in arms:
                if arm.values[factor] == value:
                    wanted = {**arm.values, factor: reference}
                    yield factor, next(a for a in arms if a.values == wanted), arm


def plan_arms(arms: Sequence[Arm]) -> list[Plan]:
    """The plans of all arms; an arm that cannot work, or was started with other settings, is refused."""
    plans = [make_plan(arm.settings, arm.cases) for arm in arms]
    for place, arm in enumerate(arms):
        if not (arm.folder / folders.CONFIG).is_file():
            continue
        played, before = settings_of(arm.folder)
        plan = plans[place] = plans[place].decided(played.simulators)
        if changed := changed_keys(before["digest"], plan.digest):
            raise InputError(
                f"{arm.folder} was started with other settings ({', '.join(changed)}); "
                "undo the change, or give the sweep another name, or the study another folder (-o)"
            )
    return plans


async def make_all_ready(arms: Sequence[Arm], plans: Sequence[Plan], progress: Progress) -> list[Plan]:
    """Before any arm is played: refuse what an arm may not send or cannot be priced, and check each model once.

    Returns the plans with what `simulator: auto` decided, also once for each model.
    """
    open_: dict[tuple[DataClass, str, str, str, str], tuple[Used, Gate]] = {}
    for arm, plan in zip(arms, plans, strict=True):
        async with Models(plan.settings, plan.data_class) as models:
            models.admit()
            refuse_unpriced(models, plan.settings, models.in_use())
            check_engine(plan.settings, models.gate)
            if plan.settings.run.check and units_left(plan, arm.folder):
                for used in models.in_use():
                    key, asked = used.key.get_secret_value() if used.key else "", str(used.explicit)
                    open_.setdefault((plan.data_class, used.name, used.base_url, key, asked), (used, models.gate))
    failed = []
    for data_class in dict.fromkeys(kind for kind, *_ in open_):
        chosen = [entry for (kind, *_), entry in open_.items() if kind is data_class]
        failed += await failures([used for used, _ in chosen], plans[0].settings.llm, chosen[0][1])
    report(failed, progress.say)
    return await _decided(arms, plans, progress)


async def _decided(arms: Sequence[Arm], plans: Sequence[Plan], progress: Progress) -> list[Plan]:
    ready = list(plans)
    for place, (arm, plan) in enumerate(zip(arms, plans, strict=True)):
        if plan.undecided and units_left(plan, arm.folder):
            spent = sum((_recorded_spending(*each) for each in zip(arms, ready, strict=True)), Spent())
            async with Models(plan.settings, plan.data_class) as models:
                ready[place] = await decide(plan, models, progress, spent)
    return ready


async def play_arms(
    arms: Sequence[Arm],
    plans: Sequence[Plan],
    announce: Callable[[Arm, Plan], None],
    progress: Callable[[], Progress],
    elsewhere: Spent | None = None,
) -> list[Finished]:
    """Play the arms in turn, or the rest of them, on one budget; ends with the first that is not complete.

    `elsewhere` is what was spent of the budget on anything else.
    """
    spent = [_recorded_spending(arm, plan) for arm, plan in zip(arms, plans, strict=True)]
    played: list[Finished] = []
    for place, (arm, plan) in enumerate(zip(arms, plans, strict=True)):
        announce(arm, plan)
        before = sum((*spent[:place], *spent[place + 1 :]), elsewhere or Spent())
        played.append(await _play_arm(arm, plan, progress(), Budget.of(plan.settings, before)))
        spent[place] = played[-1].spent
        if played[-1].missing:
            break
    return played


async def _play_arm(arm: Arm, plan: Plan, progress: Progress, budget: Budget) -> Finished:
    async with Models(plan.settings, plan.data_class) as models:
        plan = await make_ready(plan, models, progress, check=False)
        arm.folder.mkdir(parents=True, exist_ok=True)
        if models.gate.closed:
            folders.make_private(arm.folder.parent.parent)  # the comparison of all arms is written there
        if (arm.folder / folders.CONFIG).is_file():
            note_attestations(arm.folder, models.gate)
        else:
            begin_folder(plan, arm.folder, models.gate)
        return await play_missing(plan, arm.folder, models, progress, budget=budget)


def _recorded_spending(arm: Arm, plan: Plan) -> Spent:
    """What an arm has used of the sweep's budget so far; not counted if there is no limit."""
    spent, path, runtime = spent_on(plan.settings), arm.folder / folders.RECORDS, plan.settings.llm.runtime
    if path.exists() and (runtime.token_limit is not None or runtime.max_cost is not None):
        models = Models(plan.settings, plan.data_class)
        for record in read_records(path):
            spent.add_record(record, models)
    return spent


def _label(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_shown(value)}" for key, value in values.items())


def _shown(value: object) -> str:
    if isinstance(value, dict):  # traits
        return traits_text(value) or "none"
    return "none" if value is None else str(value)


def _slug(values: Mapping[str, Any]) -> str:
    """A folder name that shows the combination and is always the same."""
    return "__".join(re.sub(r"[^A-Za-z0-9.-]+", "-", f"{key}={_shown(value)}") for key, value in values.items())
