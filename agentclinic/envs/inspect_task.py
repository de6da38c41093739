"""The clinic in Inspect: `inspect eval agentclinic/openosce --model MODEL`.

Inspect's model is the doctor. It is sent what the plain doctor's model is sent in a run, and the clinic answers, judges
and records as in a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import to_thread

from agentclinic.cases.solvable import PREFIX, is_world
from agentclinic.clinic.doctor import door_text
from agentclinic.envs.episode import SELECTION, Clinic, Episode, open_clinic
from agentclinic.envs.inspect_log import SCORER, figures, score_of
from agentclinic.errors import AgentClinicError, ConfigError
from agentclinic.privacy import DataClass
from agentclinic.results.record import Record
from agentclinic.runs.plan import Unit, make_plan, unit_seed
from agentclinic.scoring import stats
from agentclinic.scoring.clusters import case_clusters

# After `inspect_log`, which checks the library first.
# isort: split
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import CORRECT, Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import LimitExceededError
from rich.markup import escape

Result = TypeVar("Result")

RECORD = "agentclinic_record"
"""Where a sample's store in the log has the record."""
_MESSAGES: dict[str, Callable[..., ChatMessage]] = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}
_played: dict[str, tuple[Clinic, Episode]] = {}
"""Encounters that are not judged yet, by the id of the sample's run."""


@task
def openosce(**options: Any) -> Task:
    """The OpenOSCE cases; options are those of a run, such as part, patient_llm or simulator."""
    return _task("OpenOSCE", options)


@task
def clinic(dataset: str = "OpenOSCE", **options: Any) -> Task:
    """A data set or a case file."""
    return _task(dataset, options)


@task
def solvable(world: str = "chest-pain", **options: Any) -> Task:
    """Patients drawn from a world whose best play is known."""
    return _task(f"{PREFIX}{_text(world)}", options)


def _task(dataset: str, options: dict[str, Any]) -> Task:
    try:
        given = {name: _text(value) for name, value in options.items()}
        chosen = {name: given.pop(name) for name in SELECTION if is_world(dataset) and name in given}
        opened = open_clinic(_text(dataset), **given)
        if opened.plan.data_class is DataClass.CREDENTIALED:
            raise ConfigError(
                "dataset: credentialed data stays out of Inspect, which sends it to models itself; use agentclinic run"
            )
        samples = _samples(opened, chosen)
    except AgentClinicError as error:
        raise PrerequisiteError(escape(str(error))) from None  # Inspect prints it without a traceback
    return Task(MemoryDataset(samples, name=opened.plan.dataset), solver=doctor(opened), scorer=diagnosis())


def _text(value: Any) -> Any:
    """Inspect reads `chest-pain,invented` as a list."""
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _samples(opened: Clinic, chosen: dict[str, Any]) -> list[Sample]:
    """One sample for each case. Only what is known at the door is its input; the rest is for the scorer."""
    settings, cases = opened.plan.settings, opened.plan.cases
    if is_world(settings.run.dataset):  # an environment draws its patients as they come
        cases = make_plan(settings.changed(**{"num_scenarios": None, **chosen})).cases
    clusters = case_clusters(cases)
    return [
        Sample(door_text(case.door), target=case.diagnosis, id=case.name, metadata={"cluster": clusters[case.id]})
        for case in cases
    ]


async def _wait(opened: Clinic, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call something of an episode; beside the event loop, if one of the clinic's models is at an endpoint."""
    return await to_thread.run_sync(function, *arguments) if opened.waits else function(*arguments)


@solver
def doctor(opened: Clinic) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        case, repeat = opened.unit(0, state.sample_id).case, state.epoch - 1
        episode = Episode(opened, Unit(case, repeat, unit_seed(opened.plan.settings.run.seed, case, repeat)))
        _played[state.uuid] = opened, episode
        try:
            while not episode.done:
                state.messages = [_MESSAGES[said.role](content=said.content) for said in episode.messages()]
                state = await generate(state)
                await _wait(opened, episode.say, state.output.completion)
        except LimitExceededError:
            raise  # a limit of Inspect's ends the encounter without a diagnosis
        except Exception:  # the model failed: there is nothing to judge
            del _played[state.uuid]
            raise
        return state

    return solve


@metric(scores="unreduced")
def with_intervals() -> Metric:
    """The figures of `agentclinic score`; epochs of a case, twins and near copies are taken together."""

    def measure(scores: list[SampleScore]) -> dict[str, float]:
        known = [((one.sample_metadata or {})["cluster"], one.score) for one in scores]

        def points(name: str, low: float = -math.inf) -> stats.Estimate:
            given = ((cluster, one.metadata) for cluster, one in known if one.metadata and name in one.metadata)
            return stats.mean(((cluster, told[name]) for cluster, told in given), low=low)

        right = stats.share((cluster, one.value == CORRECT, 1) for cluster, one in known)
        return figures(accuracy=right, utility=points("utility"), regret=points("regret", 0))

    return measure


@scorer(metrics=[with_intervals()], name=SCORER)
def diagnosis() -> Scorer:
    """The verdict of the clinic's judge; a log that is scored again keeps it."""

    async def judge(state: TaskState, target: Target) -> Score:
        del target  # the judge knows the case
        if played := _played.pop(state.uuid, None):
            record = await _wait(played[0], played[1].record)
            state.store.set(RECORD, record.model_dump(mode="json"))
        if found := state.store.get(RECORD):
            return score_of(Record.model_validate(found))
        return Score.unscored(reason="scoring_failed", explanation="the doctor's model failed")

    return judge
