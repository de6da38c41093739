"""A matrix of runs as one experiment that can be stopped and resumed."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agentclinic.cases.registry import load_cases
from agentclinic.config import RunSettings, Settings, parse_settings, read_json, suggestion
from agentclinic.errors import ConfigError, InputError
from agentclinic.privacy import DataClass, strictest
from agentclinic.results import run_folder as folders
from agentclinic.runs.build import Models
from agentclinic.runs.execute import Finished, begin_folder, note_attestations, play_missing
from agentclinic.runs.plan import Plan, make_plan
from agentclinic.runs.progress import Progress


class SweepFile(BaseModel):
    """What a sweep file says."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    """Name of the sweep, also of its folder."""
    run: dict[str, Any] = Field(default_factory=dict)
    """Settings of the `run` section that all arms share; they win over the config file."""
    matrix: dict[str, list[Any]] = Field(min_length=1)
    """Settings that vary, with their values; every combination is an arm, the first value of each is the reference."""


@dataclass(frozen=True)
class Arm:
    """One combination of the matrix."""

    values: Mapping[str, Any]
    settings: Settings
    folder: Path

    @property
    def label(self) -> str:
        """The combination as a person would write it."""
        return _label(self.values)


@dataclass(frozen=True)
class Effect:
    """Two arms that differ in one factor only."""

    factor: str
    reference: Arm
    arm: Arm


def read_sweep(path: Path, base: Settings) -> tuple[SweepFile, list[Arm]]:
    """Read a sweep file and lay out its arms; unknown settings and empty lists are refused."""
    sweep = parse_settings(SweepFile, read_json(path), str(path))
    for key, values in sweep.matrix.items():
        if key not in RunSettings.model_fields:
            raise ConfigError(f"{path}: matrix: unknown setting {key!r}{suggestion(key, RunSettings.model_fields)}")
        if not values:
            raise ConfigError(f"{path}: matrix.{key} is an empty list; give at least one value")
        if len({json.dumps(value) for value in values}) < len(values):
            raise ConfigError(f"{path}: matrix.{key} names a value twice")
    root = Path(str(sweep.run.get("output_dir", base.run.output_dir))) / sweep.name
    arms = []
    for combination in itertools.product(*sweep.matrix.values()):
        chosen = dict(zip(sweep.matrix, combination, strict=True))
        run = {**base.run.model_dump(exclude_unset=True), **sweep.run, **chosen}
        parsed = parse_settings(RunSettings, run, f"{path} ({_label(chosen)})")
        arms.append(Arm(chosen, base.model_copy(update={"run": parsed}), root / "arms" / _slug(chosen)))
    return sweep, arms


def effects(sweep: SweepFile, arms: Sequence[Arm]) -> Iterator[Effect]:
    """Every arm against the one that has the factor's reference value and all else equal."""
    for factor, (reference, *others) in sweep.matrix.items():
        for value in others:
            for arm in arms:
                if arm.values[factor] == value:
                    wanted = {**arm.values, factor: reference}
                    yield Effect(factor, next(a for a in arms if a.values == wanted), arm)


async def admit(arms: Sequence[Arm]) -> None:
    """Before any arm is played, refuse a sweep in which an arm would send its cases where they may not go."""
    classes: dict[str, DataClass] = {}
    for arm in arms:
        dataset = arm.settings.run.dataset
        if dataset not in classes:
            classes[dataset] = strictest(case.data_class for case in load_cases(dataset, arm.settings.datasets))
        if classes[dataset] is DataClass.CREDENTIALED:
            async with Models(arm.settings, classes[dataset]) as models:
                models.admit()


async def play_arm(arm: Arm, progress: Progress) -> Finished:
    """Play an arm, or the rest of it; refused if its settings have changed since it was started."""
    plan = make_plan(arm.settings)
    config = arm.folder / folders.CONFIG
    async with Models(plan.settings, plan.data_class) as models:
        models.prepare()
        if config.is_file():
            _refuse_changed(arm, plan, config)
        else:
            arm.folder.mkdir(parents=True, exist_ok=True)
        if models.gate.closed:
            folders.make_private(arm.folder.parent.parent)  # the comparison of all arms is written there
        if config.is_file():
            note_attestations(arm.folder, models.gate)
        else:
            begin_folder(plan, arm.folder, models.gate)
        return await play_missing(plan, arm.folder, models, progress)


def _refuse_changed(arm: Arm, plan: Plan, config: Path) -> None:
    before = read_json(config)["agentclinic"]["digest"]
    changed = sorted(key for key in {*before, *plan.digest} if before.get(key) != plan.digest.get(key))
    if changed:
        raise InputError(
            f"{arm.folder} was started with other settings ({', '.join(changed)}); "
            "undo the change, or give the sweep another name"
        )


def _label(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_shown(value)}" for key, value in values.items())


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _slug(values: Mapping[str, Any]) -> str:
    """A folder name that shows the combination and is always the same."""
    return "__".join(re.sub(r"[^A-Za-z0-9.-]+", "-", f"{key}={_shown(value)}") for key, value in values.items())
