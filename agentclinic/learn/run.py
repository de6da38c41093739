"""`agentclinic learn`: experiences from finished runs, many encounters at a time; it resumes where it stopped."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar

from agentclinic.cases.model import Case
from agentclinic.clinic.judge import Judge, mode_of
from agentclinic.clinic.prompts import Prompt, load_prompt, user_prompts
from agentclinic.config import Settings
from agentclinic.errors import InputError
from agentclinic.learn.write import Learned, learn_from, only_new
from agentclinic.memory.experience import Lesson, Source, source_of
from agentclinic.memory.split import Split
from agentclinic.memory.store import Known, append, read_lessons
from agentclinic.models.base import ModelError
from agentclinic.models.endpoint import Share
from agentclinic.models.recording import enter_unit
from agentclinic.privacy import DataClass, strictest
from agentclinic.results.record import MISSING, Fault, Record
from agentclinic.results.run_cases import CASES, read_cases
from agentclinic.results.run_data import load_run
from agentclinic.results.turn import Usage
from agentclinic.runs import shards
from agentclinic.runs.budget import Budget, Spent
from agentclinic.runs.build import Models
from agentclinic.runs.campaign import Campaign, check_first
from agentclinic.runs.estimate import Amount, Estimate, rows, tokens_in
from agentclinic.runs.execute import note_attestations
from agentclinic.runs.play import Metered
from agentclinic.runs.progress import Progress
from agentclinic.runs.resume import class_of_run
from agentclinic.runs.shards import Work
from agentclinic.scoring.format import plural
from agentclinic.scoring.outcome import outcome

LEARNER = "doctor"
"""The role whose model writes experiences: in the settings of this command the doctor's model is the learner."""
_ROLES = (LEARNER, "moderator")
_ANSWER = 500
"""How many output tokens five experiences take."""


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
    is not learned from again. `elsewhere` is how much of a study's budget its other parts have used.
    """
    progress = progress or Progress()
    chosen = _choose(runs, every=every, split=split)
    encounters = {each.name: each for each in chosen.encounters}
    prompt = load_prompt("learner", user_prompts(settings.run.prompts_dir))
    stored = _lessons(output)
    known = Known(experience for lesson in stored for experience in lesson.experiences)
    lessons = _by_same_learner(stored, settings, prompt)
    spent = spent_on(lessons.values())

    async def learn_here(each: Encounter) -> Learned:
        return await learned_from(each.record, each.case, models, settings)

    def count(learned: Learned) -> None:
        for role, tokens in learned.usage.items():
            spent.add(role, tokens, models.cost_usd(role, tokens), answered=learned.error is None)

    def write(name: str, learned: Learned) -> None:
        """Keep what was learned; a failed encounter leaves nothing in the store, and the next call tries it again."""
        if learned.error is not None:
            return
        each, new = encounters[name], only_new(learned, known)
        lessons[name] = Lesson(
            source=each.source,
            model=settings.run.doctor_llm,
            prompt=prompt.digest,
            right=each.right,
            experiences=new.experiences,
            removed=new.removed,
            data_class=each.data_class,
            usage=new.usage,
            cost_usd={role: models.cost_usd(role, tokens) for role, tokens in new.usage.items()},
        )
        append(output, lessons[name])

    async with Models(settings, strictest(each.data_class for each in chosen.encounters)) as models:
        models.admit()
        in_use, unlearned = models.in_use(_ROLES), encounters.keys() - lessons.keys()
        await check_first(settings, models, in_use, progress.say, left=bool(unlearned))
        for folder in dict.fromkeys(load_run(run).path.parent for run in runs):
            note_attestations(folder, models.gate)
        campaign = Campaign(
            settings=settings,
            models=models,
            progress=progress,
            what="encounters",
            title="encounters to learn from",
            job=LearnJob(output, models.gate.data_class),
            here=learn_here,
            record=write,
            count=count,
            asked=in_use,
            budget=Budget.of(settings, elsewhere),
            spent=spent,
            done=set(lessons),
        )
        with shards.locked(output) if settings.ray else nullcontext():
            await campaign.run(encounters.values())
    pool, failures = campaign.pool, campaign.failures
    done = [lessons[each.name] for each in chosen.encounters if each.name in lessons]
    return Learnt(
        output,
        len(done),
        sum(len(lesson.experiences) for lesson in done),
        sum((Counter(lesson.removed) for lesson in done), Counter()),
        chosen.in_test_part,
        chosen.right,
        len(failures),
        len(chosen.encounters) - len(done) - len(failures),
        pool.reason or (failures[0].message if failures else None),
        pool.interrupted,
    )


def estimate_learning(
    runs: Sequence[Path], output: Path, settings: Settings, *, every: bool = False, split: Split | None = None
) -> Estimate:
    """What learning would use; nothing is sent or written."""
    chosen = _choose(runs, every=every, split=split).encounters
    prompt = load_prompt("learner", user_prompts(settings.run.prompts_dir))
    models = Models(settings, strictest(each.data_class for each in chosen))
    done = _by_same_learner(_lessons(output), settings, prompt)
    left = [each for each in chosen if each.name not in done]
    texts = (prompt.text("system_base"), prompt.text("user_prompt_template"))
    amount = Amount()
    for each in left:
        said = [turn.text for turn in each.record.transcript or ()]
        amount += Amount(1, tokens_in(*texts, *said, *(fact.text for fact in each.case.facts)), _ANSWER)
    found = rows(models, {LEARNER: amount}, (LEARNER,))
    return Estimate(len(left), "encounters to learn from", found, found, ("one request for each encounter",))


def spent_on(lessons: Iterable[Lesson]) -> Spent:
    spent = Spent()
    for lesson in lessons:
        for role, used in lesson.usage.items():
            spent.add(role, used, lesson.cost_usd.get(role))
    return spent


def _lessons(output: Path) -> list[Lesson]:
    return list(read_lessons(output)) if output.exists() else []


def _by_same_learner(lessons: Iterable[Lesson], settings: Settings, prompt: Prompt) -> dict[str, Lesson]:
    """The lessons written by this model with this prompt, by the encounter they come from."""
    wanted = (settings.run.doctor_llm, prompt.digest)
    return {lesson.source.key: lesson for lesson in lessons if (lesson.model, lesson.prompt) == wanted}


def _choose(runs: Sequence[Path], *, every: bool, split: Split | None) -> _Chosen:
    """The encounters to learn from: failed ones that have a transcript and their case, and no test cases."""
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
            if case is None or not record.transcript or outcome(record) in {*MISSING, "not_readable"}:
                continue  # nothing to compare, or no verdict, which says nothing about the doctor
            part = split.part_of(case.id) if split else "train"
            if part is None:
                raise InputError(
                    f"{place}: {record.unit_name} is in neither part of the split; use the split that the "
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
            f"nothing to learn from: {plural(chosen.in_test_part, 'encounter')} in the test part, from which nothing "
            f"may be learned, and {chosen.right} right"
        )
    if chosen.right:
        return f"nothing to learn from: {plural(chosen.right, 'encounter')}, all right; --all learns from those too"
    return "nothing to learn from: no encounter has a transcript and an outcome"


async def learned_from(record: Record, case: Case, models: Models, settings: Settings) -> Learned:
    usage: dict[str, Usage] = {}
    enter_unit(f"{case.id}:{record.repeat}")
    prompts = user_prompts(settings.run.prompts_dir)
    model = Metered(models.for_role(LEARNER), "learner", usage)
    moderator = Metered(models.for_role("moderator"), "moderator", usage)
    prompt = load_prompt("moderator", prompts)
    judge = Judge(moderator, prompt, mode_of(settings.run, prompt))
    try:
        learned = await learn_from(record, case, model, load_prompt("learner", prompts), judge)
    except ModelError as error:
        learned = Learned(error=error.kind, message=str(error))
    return learned.model_copy(update={"usage": {role: asdict(counted) for role, counted in usage.items()}})


@dataclass(frozen=True)
class Encounter:
    """An encounter to learn from."""

    record: Record
    case: Case
    place: Path
    """Its run."""
    run: str
    right: bool
    data_class: DataClass
    split: str | None
    """Checksum of the split."""

    @cached_property
    def source(self) -> Source:
        """What the experiences say about where they come from."""
        said = "\n".join(f"{turn.role}: {turn.text}" for turn in self.record.transcript or ())
        mark = hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:12]
        return source_of(self.case, self.run, self.record.unit, self.split, mark)

    @property
    def name(self) -> str:
        return self.source.key


@dataclass(frozen=True)
class LearnJob:
    """Learn from encounters; the experiences go to this store."""

    journal: Path
    data_class: DataClass
    final: ClassVar[bool] = False

    @asynccontextmanager
    async def opened(self, settings: Settings, share: Share) -> AsyncIterator[Work[tuple[Path, str], Learned]]:
        """Read runs when they are first asked for, and learn from their encounters."""

        @cache
        def encounters(place: Path) -> dict[str, tuple[Record, Case]]:
            data = load_run(place)
            cases = {case.id: case for case in read_cases(data.path.parent)}
            return {
                record.unit: (record, cases[record.case_hash]) for record in data.records() if record.case_hash in cases
            }

        async with Models(settings, self.data_class, share=share) as models:
            models.prepare()

            async def learn(sent: tuple[Path, str]) -> Learned:
                place, unit = sent
                return await learned_from(*encounters(place)[unit], models, settings)

            yield learn

    def key(self, item: Encounter) -> str:
        return item.name

    def sent(self, item: Encounter) -> tuple[Path, str]:
        return item.place, item.record.unit

    def fault(self, result: Learned) -> Fault | None:
        return Fault(LEARNER, result.error, result.message) if result.error else None

    def encode(self, result: Learned) -> str:
        """As JSON, without the ids, which follow from the texts."""
        return result.model_dump_json(exclude={"experiences": {"__all__": {"id"}}})

    def decode(self, text: str) -> Learned:
        return Learned.model_validate_json(text)
