"""Episodes: encounters in which the words of the doctor come from outside.

They take the place of the replies of the plain doctor's model: the prompts, answers, verdict and record are those of a
run.
"""

from __future__ import annotations

import json
import os
import random
import re
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex, TypeGuard, TypeVar, TypeVarTuple

from agentclinic import sync_bridge
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases, resolve
from agentclinic.cases.solvable import is_world, spec
from agentclinic.clinic.doctor import Assignment, Utterance
from agentclinic.clinic.prompts import user_prompts
from agentclinic.config import Settings, defaults, is_at_endpoint, load_settings, nearest
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.envs.rewards import Reward, reward_of
from agentclinic.errors import ConfigError
from agentclinic.files import exists, expanded
from agentclinic.jsonl import encodable
from agentclinic.models.base import Message, Reply
from agentclinic.results.record import MISSING, Record, Status
from agentclinic.results.turn import Usage
from agentclinic.runs.auto import decide
from agentclinic.runs.build import Models, shared_models
from agentclinic.runs.execute import make_ready
from agentclinic.runs.limits import Prices
from agentclinic.runs.plan import Plan, Unit, make_plan, unit_seed
from agentclinic.runs.play import UnitSeat, open_unit
from agentclinic.runs.progress import Progress
from agentclinic.scoring.outcome import outcome
from agentclinic.scoring.regret import regret_of

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

OUTSIDE = "outside"
"""The doctor's model in the records of episodes."""
_THE_DOCTORS = (
    *("doctor", "doctor_llm", "doctor_endpoint", "doctor_bias", "doctor_test_policy_enabled", "memory"),
    *("doctor_image_request", "elicit_confidence", "agent_config", "synthesis_llm", "repeats"),
)
"""Settings of our own doctors."""
SELECTION = ("num_scenarios", "scenarios", "offset", "sample")
MOST_STATED, LONGEST_NAME = 20, 200
"""Limits on a differential's diseases and their names' characters: more than anyone needs, and quick to score."""


@dataclass(frozen=True, repr=False)  # it would show the truth
class Clinic:
    """Cases, patient, laboratory, judge and reward; shared by all environments with the same settings."""

    plan: Plan
    reward: Reward
    _models: Models

    @property
    def models(self) -> Models:
        """The models; in a forked process, new ones for those at endpoints."""
        return sync_bridge.call(shared_models, self.plan.settings, self.plan.data_class) if self.waits else self._models

    @cached_property
    def waits(self) -> bool:
        """Whether a role is played at an endpoint, so that replies take time."""
        return any(is_at_endpoint(model.name) for model in self.plan.settings.models.values())

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """The cases served, by id and by row; those of a solvable world are drawn when they are needed."""
        return {key: case for case in self.plan.cases for key in (case.name, str(case.scenario_id))}

    def unit(self, seed: SupportsIndex, case: str | int | None = None) -> Unit:
        """The case that is named, else one chosen by the seed: in a solvable world, the one drawn with that number."""
        run = self.plan.settings.run
        if isinstance(seed, bool) or not isinstance(seed, SupportsIndex) or index(seed) < 0:
            raise ConfigError(f"seed: {str(seed)[:200]!r} is not a whole number from 0 up")
        if is_world(run.dataset):
            return self._drawn(index(seed) if case is None else _number(str(case)), case)
        if case is None:
            return random.Random(f"{run.seed} {index(seed)}").choice(self.plan.units)
        if str(case) not in self.cases:
            raise ConfigError(
                f"case: {str(case)[:200]!r} is not served here; it does not exist, is in the lockbox or in the other "
                "half of the data set, or was not selected"
            )
        wanted = self.cases[str(case)]
        return next(unit for unit in self.plan.units if unit.case is wanted)

    def _drawn(self, number: int, named: str | int | None) -> Unit:
        run = self.plan.settings.run
        world = spec(run.dataset)
        case = _draw(run.dataset, run.seed, number, world.path.stat().st_mtime_ns if world else 0)
        if named is not None and str(named) not in (case.name, str(number)):
            raise ConfigError(
                f"case: {str(named)[:200]!r} does not belong to this world and seed, whose ids look like {case.name}"
            )
        return Unit(case, 0, unit_seed(run.seed, case, 0))


@lru_cache(maxsize=1024)  # in training, a whole group meets the same patient
def _draw(dataset: str, seed: int, number: int, _changed: int) -> Case:
    (case,) = load_cases(dataset, seed=seed, count=1, first=number)
    return case


def _number(case: str) -> int:
    """The number at the end of a drawn case's id; 0 if there is none, for an id that is then refused."""
    found = re.search(r"\d{1,18}$", case)
    return int(found[0]) if found else 0


def clinic_of(settings: Settings, reward: str | Mapping[str, float] | None = None) -> Clinic:
    """The clinic with the settings of a run. Those of our own doctors are refused as flags, and ignored in files."""
    run, given = settings.run, settings.given.flags
    for key, default in defaults(*_THE_DOCTORS).items():
        if key in given and given[key] != default:
            raise ConfigError(f"{key} has no effect in an environment, where the doctor comes from outside")
    if run.lockbox:
        raise ConfigError("lockbox: environments never serve the lockbox; it is for one evaluation per release")
    world = is_world(run.dataset)
    chosen = next((key for key in SELECTION if world and key in given), None)
    if chosen:
        raise ConfigError(f"{chosen} has no effect in an environment of a world: the seed of reset chooses the patient")
    changes = {**defaults(*_THE_DOCTORS), **({"num_scenarios": 1} if world else {})}
    plan = make_plan(settings.changed(**changes))
    if plan.people or plan.roles.dialogue["doctor"] != "chat":
        raise ConfigError("an environment is a chat without people: leave out preset, dialogue, inf_type and human")
    models = sync_bridge.call(shared_models, plan.settings, plan.data_class)
    clinic = Clinic(plan, reward_of(reward, world=world), models)
    if not clinic.waits:
        return clinic
    prepare = make_ready if plan.settings.run.check else decide
    return replace(clinic, plan=sync_bridge.call(prepare, plan, models, Progress()))


_open: dict[str, Clinic] = {}
_MOST_OPEN = 32
sync_bridge.after_fork(_open.clear)


def open_clinic(
    dataset: str | Path,
    reward: str | Mapping[str, float] | None = None,
    *,
    config: str | Path | None = None,
    llm_config: str | Path | None = None,
    **options: Any,
) -> Clinic:
    """The clinic with these settings, which are those of a run; opened once in a process unless a file changes."""
    given, weights = json.loads(json.dumps([{**options, "dataset": dataset}, reward], default=_plain))
    settings = load_settings(Path(config) if config else None, Path(llm_config) if llm_config else None, given)
    key = json.dumps(
        [settings.model_dump_json(), weights, [*map(str, _read(settings))], os.environ.get("OPENAI_BASE_URL")]
    )
    if key not in _open:
        if len(_open) >= _MOST_OPEN:
            del _open[next(iter(_open))]
        _open[key] = clinic_of(settings, weights)
    return _open[key]


def _plain(value: Any) -> Any:
    """A number of numpy's as one of Python's, and a path as text."""
    return value.item() if hasattr(value, "item") else str(value)


def _read(settings: Settings) -> Iterator[tuple[Path, int]]:
    """The files that decide what is played, with the times of their last change."""
    run, prompts = settings.run, user_prompts(settings.run.prompts_dir)
    world = spec(run.dataset)
    cases = world.path if world else resolve(run.dataset, settings.datasets)[1]
    files = [cases, *(sorted(prompts.iterdir()) if prompts else ()), *([Path(run.split)] if run.split else ())]
    for path in map(expanded, files):
        yield path.absolute(), path.stat().st_mtime_ns if exists(path) else 0


def refuse_typos(given: Iterable[str], *known: str) -> None:
    """Refuse an argument of `reset` that was probably meant to be another; other ones may be a trainer's columns."""
    for name in given:
        if name not in known and (near := nearest(name, known)):
            raise ConfigError(f"reset: did you mean {near!r} by {name!r}?")


def _is_differential(given: object) -> TypeGuard[Mapping[str, float]]:
    """Whether it can be scored; a model may state anything, which must not stop its training."""
    return (
        isinstance(given, Mapping)
        and 0 < len(given) <= MOST_STATED
        and all(isinstance(name, str) and name.strip() and len(name) <= LONGEST_NAME for name in given)
        and all(isinstance(p, int | float) and 0 <= p <= 1 for p in given.values())
    )


class Episode:
    """One encounter, word by word."""

    def __init__(self, clinic: Clinic, unit: Unit) -> None:
        self.case = unit.case
        self._clinic = clinic
        self._context = copy_context()  # the unit's models are current in here only
        self._context.run(self._open, unit)
        self._record: Record | None = None

    def _open(self, unit: Unit) -> None:
        plan, run = self._clinic.plan, self._clinic.plan.settings.run
        self._models = open_unit(unit, self._clinic.models)
        self._seat = UnitSeat(plan, unit, self._models)
        model = self._models.for_role("doctor")  # never asked
        self._doctor = PlainDoctor(
            Assignment(unit.case.door, model, plan.prompts, limit=run.total_inferences, dialogue="chat")
        )

    @property
    def done(self) -> bool:
        return self._seat.done

    @property
    def instructions(self) -> str:
        """The plain doctor's system prompt: the rules, and what is known at the door."""
        return self._doctor.system_prompt

    @property
    def told(self) -> str:
        """What reached the doctor, and which message comes next; empty at the end."""
        return "" if self.done else self._doctor.told(self._seat.observe())

    @property
    def heard(self) -> str:
        """What reached the doctor."""
        return self._seat.observe().incoming.text

    @property
    def turns_left(self) -> int:
        return 0 if self.done else self._clinic.plan.settings.run.total_inferences - self._seat.observe().turn + 1

    def messages(self) -> Sequence[Message]:
        """What the plain doctor's model would be sent now."""
        return self._doctor.request(self._seat.observe()).messages

    def say(self, words: str, differential: Mapping[str, float] | None = None) -> None:
        """Say something as the doctor, with the control tokens, and hear the answer; nothing happens after the end.

        A differential counts only if it has at most 20 diseases, each with a probability from 0 to 1.
        """
        if self.done:
            return
        words = encodable(words) if isinstance(words, str) else ""
        said = self._doctor.speak(self._seat.observe(), Reply(words, usage=Usage(requests=0)))
        if _is_differential(differential):
            stated = Utterance("?", differential).stated(said.action)
            said = said.model_copy(update={"differential": stated})
        self._run(self._seat.act, (said,))

    def record(self) -> Record:
        """The record, as a run would write it; an episode that is not over ends here, without a diagnosis."""
        if self._record is None:
            self._seat.done = True
            self._models.usage.setdefault("doctor", Usage(requests=0))
            record = self._run(self._seat.record, self._doctor)
            costs = {**(record.cost_usd or {}), "doctor": None}  # what the doctor did on its own is not known
            self._record = record.model_copy(update={"doctor_llm": OUTSIDE, "cost_usd": costs})
            if fault := record.fault:
                warnings.warn(
                    f"{record.status}: the {fault.role} failed: {fault.message}", RuntimeWarning, stacklevel=2
                )
        return self._record

    def rewards(self) -> dict[str, float]:
        """The parts of the reward earned so far, weighted; `nan` if a patient, a laboratory or a judge failed."""
        if not self.done:
            return self._clinic.reward.parts(self._so_far(), ended=False)
        record = self.record()
        parts = self._clinic.reward.parts(record, ended=True)
        return dict.fromkeys(parts, float("nan")) if outcome(record) in MISSING else parts

    def _so_far(self) -> Record:
        """What the record would say of the turns up to now, without a judgement."""
        run, turns, case = self._clinic.plan.settings.run, self._seat.transcript.turns, self.case
        record = Record(
            scenario_id=case.scenario_id,
            status=Status.DIAGNOSED,  # what another ending costs is charged when it comes
            transcript=turns,
            max_infs=run.total_inferences,
            resource_level=run.resource_level,
            ground_truth=case.diagnosis,
        )
        record.price_table = None if case.drawn else Prices(run, case, self._clinic.plan.costs).used_in(record)
        if case.drawn and (regret := regret_of(case.drawn, record)):
            spoken = sum(turn.role == "doctor" for turn in turns)  # without the ending that has not been said
            record.regret = regret.model_copy(update={"turns": regret.turns[:spoken]})
        return record

    def _run(self, function: Callable[[*Arguments], Coroutine[Any, Any, Result]], *arguments: *Arguments) -> Result:
        if self._clinic.waits:
            return self._context.run(partial(sync_bridge.call, function, *arguments))
        try:
            self._context.run(function(*arguments).send, None)
        except StopIteration as finished:
            result: Result = finished.value
            return result
        raise RuntimeError("a role without an endpoint has to wait for something")
