"""`agentclinic learn`: experiences from the encounters of finished runs, many at a time, continued where it stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agentclinic.clinic.prompts import Prompt, load_prompt, user_prompts
from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.learn.job import LEARNER, Encounter, LearnJob, Outcome, learned_from
from agentclinic.learn.write import only_new
from agentclinic.memory.experience import Lesson
from agentclinic.memory.split import Split
from agentclinic.memory.store import Known, append, read_lessons
from agentclinic.models.base import FATAL
from agentclinic.privacy import strictest
from agentclinic.results.record import MISSING
from agentclinic.results.run_cases import CASES, read_cases
from agentclinic.results.run_data import load_run
from agentclinic.runs import shards
from agentclinic.runs.budget import Budget, Spent, refuse_unpriced
from agentclinic.runs.build import Models
from agentclinic.runs.check import check_models, gone
from agentclinic.runs.engine import check_engine, engine
from agentclinic.runs.estimate import Amount, Estimate, rows, tokens_in
from agentclinic.runs.execute import note_attestations
from agentclinic.runs.job import EngineError, Work
from agentclinic.runs.outage import OUTAGE, Outage
from agentclinic.runs.pool import Pool, one_by_one
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import class_of_run
from agentclinic.scoring.outcome import outcome

_ROLES = (LEARNER, "moderator")
_ANSWER = 500
"""Output tokens of five experiences."""


@dataclass(frozen=True)
class Learnt:
    """The result of learning from runs."""

    path: Path
    encounters: int
    """Encounters that were learned from, now or earlier."""
    experiences: int
    """Experiences in the store that come from them."""
    removed: Counter[str]
    """Experiences that were written and not kept, by reason."""
    in_test_part: int
    """Encounters left out because their case is in the test part of the split."""
    right: int
    """Encounters left out because the diagnosis was right."""
    failed: int
    not_tried: int
    reason: str | None = None
    interrupted: bool = False


@dataclass
class _Chosen:
    encounters: list[Encounter]
    in_test_part: int = 0
    right: int = 0


def with_learner(settings: Settings, model: str, endpoint: str | None) -> Settings:
    """Settings in which the learner's model takes the doctor's place."""
    return settings.changed(doctor_llm=model, doctor_endpoint=endpoint, doctor="plain", record=None)


async def learn(
    runs: Sequence[Path],
    output: Path,
    settings: Settings,
    *,
    every: bool = False,
    split: Split | None = None,
    progress: Progress | None = None,
    elsewhere: Spent | None = None,
) -> Learnt:
    """Learn from the failed encounters of runs, or from `every` one, and add the experiences to a store.

    The settings are those of `with_learner`. An encounter that is already in the store, from the same model and prompt,
    is not learned from again. `elsewhere` is what the other parts of a study have used of its budget.
    """
    progress = progress or Progress()
    chosen = _choose(runs, every=every, split=split)
    prompt = load_prompt("learner", user_prompts(settings.run.prompts_dir))
    data_class = strictest(each.data_class for each in chosen.encounters)
    async with Models(settings, data_class) as models:
        models.admit()
        refuse_unpriced(models, settings, _ROLES)
        task = _Task(chosen.encounters, output, settings, models, prompt, progress, elsewhere)
        if task.left and settings.run.check:
            await check_models(models, settings.llm, progress.say, _ROLES)
        check_engine(settings, models.gate)
        for folder in dict.fromkeys(load_run(run).path.parent for run in runs):
            note_attestations(folder, models.gate)
        await task.work()
    done = [task.done[each.name] for each in chosen.encounters if each.name in task.done]
    removed: Counter[str] = Counter()
    for lesson in done:
        removed.update(lesson.removed)
    return Learnt(
        output,
        len(done),
        sum(len(lesson.experiences) for lesson in done),
        removed,
        chosen.in_test_part,
        chosen.right,
        task.failed,
        len(chosen.encounters) - len(done) - task.failed,
        task.pool.reason or task.first_failure,
        task.pool.interrupted,
    )


def estimate_learning(
    runs: Sequence[Path], output: Path, settings: Settings, *, every: bool = False, split: Split | None = None
) -> Estimate:
    """What learning would use; nothing is sent or written."""
    chosen = _choose(runs, every=every, split=split).encounters
    prompt = load_prompt("learner", user_prompts(settings.run.prompts_dir))
    models = Models(settings, strictest(each.data_class for each in chosen))
    left = _left(chosen, _done(output, settings.run.doctor_llm, prompt))
    texts = (prompt.text("system_base"), prompt.text("user_prompt_template"))
    amount = Amount()
    for each in left:
        said = [turn.text for turn in each.record.transcript or ()]
        amount += Amount(1, tokens_in(*texts, *said, *(fact.text for fact in each.case.facts)), _ANSWER)
    found = rows(models, {LEARNER: amount}, (LEARNER,))
    return Estimate(len(left), "encounters to learn from", found, found, ("one request for each encounter",))


class _Task:
    """The work of one call: the encounters that are left, and what came of them."""

    def __init__(
        self,
        encounters: Sequence[Encounter],
        output: Path,
        settings: Settings,
        models: Models,
        prompt: Prompt,
        progress: Progress,
        elsewhere: Spent | None,
    ) -> None:
        self.pool = Pool(settings.run.workers, progress.say, what="encounters")
        self.failed = 0
        self.first_failure: str | None = None
        self._output = output
        self._settings = settings
        self._models = models
        self._prompt = prompt
        self._progress = progress
        self._spent = Spent()
        self._known = Known()
        self.done: dict[str, Lesson] = {}
        for lesson in read_lessons(output) if output.exists() else ():
            for experience in lesson.experiences:
                self._known.add(experience)
            if (lesson.model, lesson.prompt) == (settings.run.doctor_llm, prompt.digest):
                self.done[lesson.source.key] = lesson
                self._count(lesson)
        self._total = len(encounters)
        self.left = _left(encounters, self.done)
        self._budget = Budget.of(settings, elsewhere)
        self._outage = Outage(settings.run.workers, self._gone if settings.run.check else None)

    async def work(self) -> None:
        """Learn from what is left; the first lesson creates the store."""
        self._stop_if_used_up()
        job = LearnJob(self._output, self._models.gate.data_class)
        with nullcontext() if self._settings.ray is None else shards.locked(job.journal):
            left = await self._without_finished(job)
            gate, say = self._models.gate, self._progress.say
            async with engine(self._settings, gate, job, self._here, say=say, idle=not left) as work:
                self._progress.start(self._total, self._total - len(left), "encounters to learn from")
                try:
                    await self.pool.work_off(one_by_one(left), partial(self._learn, work))
                finally:
                    self._progress.stop()
            await self._without_finished(job)

    async def _without_finished(self, job: LearnJob) -> list[Encounter]:
        """What is left after taking over the lessons that workers of a cluster had finished when they were stopped."""
        known = {each.name: each for each in self.left if each.name not in self.done}
        for name, learned in shards.left_over(job, known):
            await self._settle(known[name], learned)
        shards.remove(job.journal)
        return [each for each in self.left if each.name not in self.done]

    async def _here(self, each: Encounter) -> Outcome:
        return await learned_from(each.record, each.case, self._models, self._settings)

    async def _learn(self, work: Work[Encounter, Outcome], each: Encounter) -> None:
        try:
            await self._settle(each, await work(each))
        except (InputError, EngineError) as error:
            self.pool.stop(str(error))
            return
        self._progress.advance(f"{self.failed} failed" if self.failed else "")
        self._stop_if_used_up()

    async def _settle(self, each: Encounter, outcome: Outcome) -> None:
        """Keep what was learned; a failed encounter leaves nothing in the store, and the next call tries it again."""
        costs = {role: self._models.cost_usd(role, tokens) for role, tokens in outcome.usage.items()}
        if outcome.error is None:
            learned = only_new(outcome.learned, self._known)
            lesson = Lesson(
                source=each.source,
                model=self._settings.run.doctor_llm,
                prompt=self._prompt.digest,
                right=each.right,
                experiences=tuple(learned.experiences),
                removed=dict(learned.removed),
                data_class=each.data_class,
                usage=outcome.usage,
                cost_usd=costs,
            )
            append(self._output, lesson)
            self.done[each.name] = lesson
            self._count(lesson)
            self._outage.answered()
            return
        self.failed += 1
        self.first_failure = self.first_failure or outcome.message
        for role, tokens in outcome.usage.items():
            self._spent.add(role, tokens, costs[role], answered=False)
        if outcome.error in FATAL:
            self.pool.stop(outcome.message)
        elif outcome.error in OUTAGE:
            reason = await self._outage.failed(LEARNER, outcome.message)
            if reason is not None:
                self.pool.stop(reason)
        else:
            self._outage.answered()

    async def _gone(self, _: Collection[str]) -> str | None:
        return await gone(self._models.in_use(_ROLES), self._settings.llm, self._models.gate)

    def _count(self, lesson: Lesson) -> None:
        for role, used in lesson.usage.items():
            self._spent.add(role, used, lesson.cost_usd.get(role))

    def _stop_if_used_up(self) -> None:
        reason = self._budget.used_up(self._spent)
        if reason is not None:
            self.pool.stop(reason)


def _done(output: Path, model: str, prompt: Prompt) -> set[str]:
    lessons = read_lessons(output) if output.exists() else ()
    wanted = (model, prompt.digest)
    return {each.source.key for each in lessons if (each.model, each.prompt) == wanted}


def _left(encounters: Sequence[Encounter], done: Collection[str]) -> list[Encounter]:
    return [each for each in encounters if each.name not in done]


def _choose(runs: Sequence[Path], *, every: bool, split: Split | None) -> _Chosen:
    """The encounters to learn from: failed ones, with a transcript and their case, and none of a test case."""
    chosen = _Chosen([])
    checksum = split.checksum if split else None
    for place in dict.fromkeys(runs):
        data = load_run(place)
        cases = {case.id: case for case in read_cases(data.path.parent)}
        if not cases:
            raise InputError(
                f"{place}: this run does not contain its cases (there is no {CASES}), and without charts there is "
                "nothing to learn from"
            )
        records = list(data.records())
        data_class = class_of_run(data.path.parent, records)
        for record in records:
            case = cases.get(record.case_hash or "")
            if case is None or not record.transcript or outcome(record) in MISSING:
                continue  # nothing to compare, or a failure that says nothing about the doctor
            part = split.part_of(case.id) if split else "train"
            if part is None:
                raise InputError(
                    f"{place}: scenario {record.scenario_id} is in neither part of the split; use the split that the "
                    "run was made with"
                )
            if part == "test":
                chosen.in_test_part += 1
            elif record.correct and not every:
                chosen.right += 1
            else:
                chosen.encounters.append(
                    Encounter(record, case, place.absolute(), data.name, bool(record.correct), data_class, checksum)
                )
    if not chosen.encounters:
        raise InputError(_nothing(chosen))
    return chosen


def _nothing(chosen: _Chosen) -> str:
    if chosen.in_test_part:
        return (
            f"nothing to learn from: {chosen.in_test_part} encounters are of the test part, from which nothing may be "
            f"learned, and {chosen.right} others were right"
        )
    if chosen.right:
        return f"nothing to learn from: all {chosen.right} encounters were right; --all learns from those too"
    return "nothing to learn from: no encounter has a transcript and an outcome"
