"""The study of learning: split, play the training half, learn, and play the test half with and without memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from agentclinic.cases.facts import chart_text
from agentclinic.cases.model import Case
from agentclinic.config import NEEDS, Settings, defaults
from agentclinic.errors import ConfigError, InputError
from agentclinic.learn.run import Learnt, estimate_learning, learn, spent_on, with_learner
from agentclinic.memory.retrieval import DETAILS
from agentclinic.memory.split import Split, make_split, read_split, write_split
from agentclinic.memory.store import read_lessons
from agentclinic.results.record import Record
from agentclinic.results.run_data import diagnosis_of, load_run
from agentclinic.results.run_folder import CONFIG
from agentclinic.runs.budget import Spent
from agentclinic.runs.plan import Plan, make_plan, refuse_unusable_memory
from agentclinic.runs.progress import Progress
from agentclinic.runs.sweep import Arm, make_all_ready, plan_arms, play_arms
from agentclinic.scoring.clusters import case_key
from agentclinic.scoring.compare import (
    Accuracy,
    Comparison,
    accuracies,
    adjusted,
    compare_two,
    load_arm,
)
from agentclinic.scoring.compare import Arm as Outcomes
from agentclinic.scoring.format import plural
from agentclinic.scoring.outcome import summarise
from agentclinic.scoring.stats import Estimate
from agentclinic.scoring.verdicts import strict
from agentclinic.vocabulary.text import content_words

SPLIT, STORE = "split.json", "experiences.jsonl"
TRAIN, WITHOUT, WITH, SHUFFLED = "train", "without memory", "with memory", "shuffled memory"
_NO_MEMORY = defaults(*NEEDS["memory"])
ARMS: Mapping[str, Mapping[str, Any]] = {
    TRAIN: {**_NO_MEMORY, "part": "train", "repeats": 1},
    WITHOUT: {**_NO_MEMORY, "part": "test"},
    WITH: {"part": "test", "memory": STORE},
    SHUFFLED: {**_NO_MEMORY, "part": "test", "memory": STORE, "memory_retrieval": "shuffled"},
}
"""What each arm changes in the settings of the study's runs; files are in the study's folder."""
_GROUPS = 3
"""Test cases are divided by similarity into this many groups of equal size; the halves hold too few cases for more."""


@dataclass(frozen=True)
class Study:
    """The parts of a study in its folder."""

    folder: Path
    settings: Settings
    learner: tuple[str, str | None]
    every: bool
    """Learn from all encounters, not only from failed ones."""
    split: Split
    cases: Sequence[Case]

    @property
    def store(self) -> Path:
        return self.folder / STORE

    def arm(self, name: str) -> Arm:
        run: dict[str, Any] = {**ARMS[name], "split": str(self.folder / SPLIT)}
        if "memory" in run:
            run["memory"] = str(self.store)
        return Arm({"memory": name}, self.settings.changed(**run), self.folder / "runs" / name.replace(" ", "_"))


class Stopped(Exception):  # noqa: N818 - not an error: the same command continues
    """A part of the study is not complete."""

    def __init__(self, message: str, *, interrupted: bool) -> None:
        super().__init__(message)
        self.interrupted = interrupted


def plan_study(folder: Path, settings: Settings, learner: tuple[str, str | None], *, every: bool) -> Study:
    """Prepare a study, or continue the one in the folder; its split must be the one it was begun with."""
    run = settings.run
    refuse_unstudied(settings)
    # The doctor must be able to use memory: better to say so now than after the training half.
    refuse_unusable_memory(settings.changed(memory=str(folder / STORE)))
    chosen = make_plan(settings.changed(**_NO_MEMORY)).cases
    path = folder / SPLIT
    made = make_split(chosen, run.seed)
    if path.exists():
        if read_split(path).checksum != made.checksum:
            raise InputError(f"{path} is the split of other cases or another seed; name another folder with -o")
    elif folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty and not a study; name another folder with -o")
    return Study(folder, settings, learner, every, made, chosen)


def refuse_unstudied(settings: Settings) -> None:
    """Refuse settings that no study can be made with."""
    run = settings.run
    if run.split or run.part or run.memory:
        raise ConfigError("split, part and memory are decided by the study; leave them out")
    if run.people:
        raise ConfigError("a study plays hundreds of encounters; name models for doctor and patient, not a person")


async def play_study(study: Study, progress: Callable[[], Progress], say: Callable[[str], None]) -> Learnt:
    """Play what the study still lacks, with new progress for each part; raises `Stopped` if something is left."""
    if not (study.folder / SPLIT).exists():
        study.folder.mkdir(parents=True, exist_ok=True)
        write_split(study.folder / SPLIT, study.split)
    settings = with_learner(study.settings, *study.learner)
    _refuse_other_lessons(study, settings)
    spent = await play_parts([study.arm(TRAIN), study.arm(WITHOUT)], Spent(), progress, say)
    say("learning from the training half")
    train, shown = [study.arm(TRAIN).folder], progress()
    learned = await learn(
        train, study.store, settings, every=study.every, split=study.split, progress=shown, elsewhere=spent
    )
    if learned.not_tried or learned.failed:
        left = learned.not_tried + learned.failed
        raise Stopped(
            f"{plural(left, 'encounter')} not learned from: {learned.reason}", interrupted=learned.interrupted
        )
    if not learned.experiences:
        raise InputError(
            f"{plural(learned.encounters, 'encounter')} gave no experience, so there is nothing to test; "
            "learn from every encounter with --all, or use another learner"
        )
    spent += spent_on(read_lessons(study.store))
    await play_parts([study.arm(WITH), study.arm(SHUFFLED)], spent, progress, say)
    return learned


def _refuse_other_lessons(study: Study, settings: Settings) -> None:
    """Refuse to add to experiences that another learner wrote, or that a run of the study has begun to use."""
    lessons = read_lessons(study.store) if study.store.exists() else ()
    others = {lesson.model for lesson in lessons} - {study.learner[0]}
    begun = any((study.arm(name).folder / CONFIG).is_file() for name in (WITH, SHUFFLED))
    train = [study.arm(TRAIN).folder]
    if others or (
        begun and estimate_learning(train, study.store, settings, every=study.every, split=study.split).count
    ):
        raise InputError(
            f"{study.store} was made with another learner or prompt, or without --all; use the same as before, or name "
            "another folder with -o"
        )


async def play_parts(
    arms: Sequence[Arm], elsewhere: Spent, progress: Callable[[], Progress], say: Callable[[str], None]
) -> Spent:
    """Play arms, which differ in one thing, as a sweep does; returns what was spent so far, on them and `elsewhere`."""

    def announce(arm: Arm, plan: Plan) -> None:
        say(f"{_name(arm)}: {plural(len(plan.units), 'encounter')}")

    plans = await make_all_ready(arms, plan_arms(arms), progress())
    played = await play_arms(arms, plans, announce, progress, elsewhere)
    last, arm = played[-1], arms[len(played) - 1]
    if last.missing:
        raise Stopped(
            f"{plural(last.missing, 'encounter')} of the arm {_name(arm)!r} not played: {last.reason}",
            interrupted=last.interrupted,
        )
    return sum((finished.spent for finished in played), elsewhere)


def _name(arm: Arm) -> str:
    (name,) = arm.values.values()
    return str(name)


# --- results --------------------------------------------------------------------------------------------------------


class Similar(BaseModel):
    """The effect of memory on test cases that are about as similar to their nearest training case."""

    least: float
    most: float
    """Similarity to the nearest training case, 0 to 1."""
    cases: int
    difference: Estimate


class Changed(BaseModel):
    """A case that memory changed from wrong to right, or from right to wrong."""

    scenario_id: int
    name: str
    truth: str | None
    before: str | None
    after: str | None
    """The diagnosis without and with memory, in the first repeat that differs."""
    followed: list[str]
    """Ids of the experiences that the doctor followed."""


class StudyReport(BaseModel):
    """Everything a study prints."""

    dataset: str
    doctor: str
    doctor_llm: str
    learner: str
    seed: int
    repeats: int
    train: int
    test: int
    split: str
    """Checksum of the split."""
    encounters: int
    experiences: int
    removed: dict[str, int]
    accuracies: list[Accuracy]
    comparisons: list[Comparison]
    by_similarity: list[Similar]
    use: dict[str, dict[str, int]]
    """How memory was used in each arm that had one (`Summary.memory`)."""
    fixed: list[Changed]
    broken: list[Changed]
    limits: list[str]


def study_report(study: Study, learned: Learnt) -> StudyReport:
    run = study.settings.run
    arms = {name: load_arm(load_run(study.arm(name).folder), name) for name in ARMS}
    tested = [arms[WITHOUT], arms[WITH], arms[SHUFFLED]]
    pairs = [(arms[WITHOUT], arms[WITH]), (arms[WITHOUT], arms[SHUFFLED]), (arms[SHUFFLED], arms[WITH])]
    compared = [compare_two(before, after, seed=run.seed, varied=("memory",)) for before, after in pairs]
    records = {name: list(load_run(study.arm(name).folder).records()) for name in (WITHOUT, WITH, SHUFFLED)}
    fixed, broken = _changed(records[WITHOUT], records[WITH])
    return StudyReport(
        dataset=study.cases[0].dataset,
        doctor=f"{run.doctor}{' with policy' if study.settings.planner else ''}",
        doctor_llm=run.doctor_llm,
        learner=study.learner[0],
        seed=run.seed,
        repeats=run.repeats,
        train=len(study.split.train),
        test=len(study.split.test),
        split=study.split.checksum,
        encounters=learned.encounters,
        experiences=learned.experiences,
        removed=dict(learned.removed),
        accuracies=[each for arm in (arms[TRAIN], *tested) for each in accuracies(arm)],
        comparisons=adjusted(compared),
        by_similarity=_by_similarity(study, arms[WITHOUT], arms[WITH]),
        use={name: summarise(records[name]).memory for name in (WITH, SHUFFLED)},
        fixed=fixed,
        broken=broken,
        limits=_limits(study),
    )


def _changed(without: Sequence[Record], with_: Sequence[Record]) -> tuple[list[Changed], list[Changed]]:
    """The units that were wrong without memory and right with it, and vice versa."""
    before = {(case_key(record), record.repeat): record for record in without}
    fixed: dict[str, Changed] = {}
    broken: dict[str, Changed] = {}
    for record in with_:
        other = before.get((case_key(record), record.repeat))
        if other is None or strict(other) is None or strict(record) is None or strict(other) == strict(record):
            continue
        given = [(turn.details or {}).get(DETAILS) or {} for turn in record.transcript or ()]
        followed = [each["id"] for one in given for each in one.get("offered", ()) if each.get("followed")]
        changed = Changed(
            scenario_id=record.scenario_id,
            name=record.unit_name,
            truth=record.ground_truth,
            before=diagnosis_of(other),
            after=diagnosis_of(record),
            followed=list(dict.fromkeys(followed)),
        )
        (fixed if strict(record) else broken).setdefault(case_key(record), changed)
    return list(fixed.values()), list(broken.values())


def _by_similarity(study: Study, without: Outcomes, with_: Outcomes) -> list[Similar]:
    """The effect in groups of test cases, from the least to the most similar to the training cases."""
    nearest = similarity_to(study.cases, study.split)
    known = sorted((value, case) for case, value in nearest.items() if case in without.cases and case in with_.cases)
    groups = []
    for part in np.array_split(np.arange(len(known)), _GROUPS):
        members = [known[place] for place in part]
        if not members:
            continue
        cases = {case for _, case in members}
        sides = [
            replace(arm, cases={key: each for key, each in arm.cases.items() if key in cases})
            for arm in (without, with_)
        ]
        verdict = next(
            (v for v in compare_two(*sides, seed=study.settings.run.seed).verdicts if v.rule == "strict"), None
        )
        if verdict:
            groups.append(
                Similar(least=members[0][0], most=members[-1][0], cases=verdict.cases, difference=verdict.difference)
            )
    return groups


def similarity_to(cases: Sequence[Case], split: Split) -> Mapping[str, float]:
    """For each test case, the similarity of its chart to the nearest training case: the cosine of TF-IDF vectors."""
    texts = {case.id: content_words(chart_text(case.facts)) for case in cases}
    column = {word: place for place, word in enumerate(sorted(frozenset[str]().union(*texts.values())))}
    table = np.zeros((len(texts), len(column)), dtype=np.float32)
    for row, words in enumerate(texts.values()):
        table[row, [column[word] for word in words]] = 1.0
    table *= np.log(len(texts) / table.sum(axis=0))
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    ids = list(texts)
    train = np.array([case in split.train for case in ids])
    nearest = (table[~train] @ table[train].T).max(axis=1)
    tested = [case for case, learned in zip(ids, train, strict=True) if not learned]
    return {case: round(float(value), 4) for case, value in zip(tested, nearest, strict=True)}


def _limits(study: Study) -> list[str]:
    run = study.settings.run
    notes = [
        "No test case shares its diagnosis with a training case: memory can help by better questions and tests, not by "
        "recognizing a disease.",
    ]
    if run.doctor_llm == "builtin":
        notes.append(
            "The builtin doctor follows the step of an experience by its id and does not read the prose: this shows "
            "whether useful steps are retrieved at the right moment, and says nothing about language models."
        )
    if run.doctor_llm == "builtin" and run.repeats > 1:
        notes.append("With builtin roles, repeats are identical and add nothing.")
    return notes
