"""The study of contamination: whether the doctor's model has seen these cases before.

The same cases are played with their charts, at the door alone, and with the charts of other patients, and the model
continues lines of the charts from their beginnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel

from agentclinic.cases.model import Case
from agentclinic.config import ALL_GENERATION, NEEDS, Settings, defaults, is_at_endpoint
from agentclinic.errors import ConfigError, InputError
from agentclinic.learn.completion import (
    VERBATIM,
    Completion,
    Line,
    chosen_lines,
    complete,
    controls,
    similarity,
    spent_on,
)
from agentclinic.learn.shuffle import apart, names, partners, with_chart_of
from agentclinic.learn.study import Stopped, play_parts, refuse_unstudied
from agentclinic.privacy import DataClass
from agentclinic.results.run_data import diagnosis_of, load_run
from agentclinic.runs.budget import Spent
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.sweep import Arm
from agentclinic.scoring.clusters import case_clusters
from agentclinic.scoring.compare import (
    Accuracy,
    Comparison,
    RuleComparison,
    accuracies,
    adjusted,
    clear,
    compare_two,
    load_arm,
)
from agentclinic.scoring.format import percent, plural
from agentclinic.scoring.stats import Estimate, Proportion, mean, share

WHOLE, DOOR, SHUFFLED, GUESS = "own chart", "door only", "shuffled chart", "builtin at the door"
COMPLETIONS = "completions.jsonl"
_AT_THE_DOOR = {
    **defaults(
        "doctor_test_policy_enabled",
        "elicit_confidence",
        *NEEDS["doctor_test_policy_enabled"],
        *NEEDS["doctor uncertainty"],
    ),
    "doctor": "door_only",
}
_BUILTIN = {
    **dict.fromkeys(ALL_GENERATION),
    **{f"{role}_llm": "builtin" for role in ("doctor", "patient", "measurement")},
    **{f"{role}_endpoint": None for role in ("doctor", "patient", "measurement")},
    **defaults("doctor_bias", "patient_bias"),
}
_VARIED = ("patient_llm", "measurement_llm", "simulator", "patient_bias")
"""Settings in which arms differ on purpose: at the door no one but the judge is asked."""


@dataclass(frozen=True)
class Contamination:
    """The parts of a study in its folder."""

    folder: Path
    settings: Settings
    data_class: DataClass
    cases: Sequence[Case]
    partners: Mapping[str, Case]
    """The case whose chart is shown, by the id of the case whose door it is."""
    shuffled: Sequence[Case]
    """For each case, its door and truth with its partner's chart."""
    lines: Sequence[Line]
    """To be continued; none if the doctor is builtin."""

    @property
    def arms(self) -> Mapping[str, Arm]:
        run, door = self.settings.run, self.settings.changed(**_AT_THE_DOOR)
        judge = run.generation_of("moderator") if is_at_endpoint(run.moderator_llm) else {}
        builtin = door.changed(**_BUILTIN | {f"moderator_{key}": value for key, value in judge.items()})
        settings = {GUESS: builtin, DOOR: door, WHOLE: self.settings, SHUFFLED: self.settings}
        if run.doctor_llm == "builtin":
            del settings[GUESS]
        runs, other = self.folder / "runs", {SHUFFLED: self.shuffled}
        return {
            name: Arm({"chart": name}, each, runs / name.replace(" ", "_"), other.get(name, ()))
            for name, each in settings.items()
        }


def plan_contamination(folder: Path, settings: Settings) -> Contamination:
    """Prepare a study, or continue the one in the folder."""
    refuse_unstudied(settings)
    if settings.run.doctor in ("prior_only", "door_only"):
        raise ConfigError(
            f"doctor: {settings.run.doctor} reads no chart, so there is nothing to exchange; name another"
        )
    plan = make_plan(settings)
    found = partners(plan.cases, settings.run.seed)
    study = Contamination(
        folder,
        plan.settings,
        plan.data_class,
        plan.cases,
        found,
        [with_chart_of(found[case.id], case, plan.data_class) for case in plan.cases],
        chosen_lines(plan.cases) if is_at_endpoint(plan.settings.run.doctor_llm) else (),
    )
    if folder.exists() and any(folder.iterdir()) and not next(iter(study.arms.values())).folder.exists():
        raise InputError(f"{folder} is not empty and not a study of contamination; name another folder with -o")
    return study


async def play_contamination(
    study: Contamination, progress: Callable[[], Progress], say: Callable[[str], None]
) -> Mapping[str, Completion]:
    """Play what the study still lacks, the cheap parts first; raises `Stopped` if something is left."""
    arms = study.arms
    done: Mapping[str, Completion] = {}
    spent = await play_parts([arm for name, arm in arms.items() if name in (DOOR, GUESS)], Spent(), progress, say)
    if study.lines:
        say(f"completion: {plural(len(study.lines), 'chart line')}")
        path = study.folder / COMPLETIONS
        done, pool = await complete(study.lines, path, study.settings, study.data_class, progress(), spent)
        if left := sum(line.key not in done for line in study.lines):
            raise Stopped(f"{plural(left, 'chart line')} not continued: {pool.reason}", interrupted=pool.interrupted)
    await play_parts([arms[WHOLE], arms[SHUFFLED]], spent + spent_on(done.values()), progress, say)
    return done


# --- results --------------------------------------------------------------------------------------------------------


class Completions(BaseModel):
    """How well the model continued lines of charts, and by chance another patient's."""

    lines: int
    refused: int
    """Lines to which the model gave no usable answer; they count as not continued."""
    recited: list[str]
    """Case and path of each line that was continued nearly word for word."""
    verbatim: Proportion
    verbatim_control: Proportion
    """Cases with such a line: continued as it goes on, and as another patient's line does."""
    excess: Estimate
    """Lines continued nearly word for word less those continued so as another patient's, as a share of all."""
    similarity: Estimate
    control: Estimate
    difference: Estimate


class ContaminationReport(BaseModel):
    """Everything the study prints."""

    dataset: str
    doctor: str
    doctor_llm: str
    seed: int
    repeats: int
    cases: int
    accuracies: list[Accuracy]
    comparisons: list[Comparison]
    encounters: int
    followed: int
    """Encounters with a shuffled chart, and those in which the doctor named its disease, by the builtin judge."""
    completions: Completions | None
    sign: bool
    """Whether any part gives a sign that the model knows the cases."""
    findings: list[str]
    limits: list[str]


def contamination_report(study: Contamination, done: Mapping[str, Completion]) -> ContaminationReport:
    run, own = study.settings.run, {made.id: case for made, case in zip(study.shuffled, study.cases, strict=True)}
    runs = {name: load_run(arm.folder) for name, arm in study.arms.items()}
    arms = {name: load_arm(data, name) for name, data in runs.items()}
    # A case with another chart has another hash: under its own again, it is paired with the other arms.
    moved = {own[key].id: each for key, each in arms[SHUFFLED].cases.items()}
    arms[SHUFFLED] = replace(arms[SHUFFLED], cases=moved)
    pairs = [(GUESS, DOOR), (DOOR, SHUFFLED), (GUESS, SHUFFLED), (DOOR, WHOLE)]
    both = [(arms[before], arms[after]) for before, after in pairs if before in arms]
    compared = adjusted([compare_two(*pair, seed=run.seed, varied=_VARIED) for pair in both])
    said = [(own[record.case_hash or ""], diagnosis_of(record)) for record in runs[SHUFFLED].records()]
    followed = sum(names(diagnosis, study.partners[case.id]) for case, diagnosis in said if diagnosis)
    found = _completions(study, done) if study.lines else None
    told = list(_findings(found, {(c.baseline, c.arm): c.verdicts[0] for c in compared if c.verdicts}))
    return ContaminationReport(
        dataset=study.cases[0].dataset,
        doctor=run.doctor,
        doctor_llm=run.doctor_llm,
        seed=run.seed,
        repeats=run.repeats,
        cases=len(study.cases),
        accuracies=[each for arm in arms.values() for each in accuracies(arm)],
        comparisons=compared,
        encounters=len(said),
        followed=followed,
        completions=found,
        sign=any(sign for sign, _ in told),
        findings=[text for _, text in told],
        limits=_limits(study),
    )


def _completions(study: Contamination, done: Mapping[str, Completion]) -> Completions:
    seed, replies = study.settings.run.seed, [done[line.key].reply for line in study.lines]
    others = controls(study.lines, apart(study.cases), seed)
    own, chance = (
        [similarity(said, rest, line.beginning) for said, rest, line in zip(replies, rests, study.lines, strict=True)]
        for rests in ([line.rest for line in study.lines], others)
    )
    clusters = case_clusters(study.cases)
    cases = [clusters[line.case.id] for line in study.lines]

    def estimate(values: Iterable[float], low: float) -> Estimate:
        return mean(zip(cases, values, strict=True), seed, low=low, high=1)

    def verbatim(values: Sequence[float]) -> Proportion:
        found = {line.case.id for line, value in zip(study.lines, values, strict=True) if value >= VERBATIM}
        return share((clusters[case], case in found, 1) for case in {line.case.id for line in study.lines})

    both = list(zip(own, chance, strict=True))
    return Completions(
        lines=len(replies),
        refused=sum(done[line.key].error is not None for line in study.lines),
        recited=[
            f"{line.case.name} {line.path}" for line, value in zip(study.lines, own, strict=True) if value >= VERBATIM
        ],
        verbatim=verbatim(own),
        verbatim_control=verbatim(chance),
        excess=estimate(((a >= VERBATIM) - (b >= VERBATIM) for a, b in both), -1),
        similarity=estimate(own, 0),
        control=estimate(chance, 0),
        difference=estimate((a - b for a, b in both), -1),
    )


def _findings(found: Completions | None, pairs: Mapping[tuple[str, str], RuleComparison]) -> Iterator[tuple[bool, str]]:
    """What each part shows: whether it is a sign that the model knows the cases, and the sentence."""
    if found is None:
        yield False, "Completion of chart lines was left out: the doctor is not a model at an endpoint."
    else:
        count = f"{len(found.recited)} of {plural(found.lines, 'chart line')} nearly word for word"
        if not found.recited:
            yield False, f"No sign that the model can recite the charts: it continues {count}."
        elif (found.excess.low or 0) > 0:
            yield True, f"The model continues {count}: it has probably seen them, or the text they were made from."
        else:
            yield False, f"The model continues {count}: too few to tell from stock phrases; read {COMPLETIONS}."
    if shuffled := pairs.get((DOOR, SHUFFLED)):
        named = (
            f"With another patient's chart, the doctor still names the door's diagnosis in {percent(shuffled.after)}"
        )
        guess = pairs.get((GUESS, SHUFFLED))
        if guess and clear(guess) and guess.after > guess.before:
            yield (
                True,
                (
                    f"{named}, clearly more often than the builtin doctor guesses it at the door "
                    f"({percent(guess.before)}): it holds on to what the door tells it, or reminds it of."
                ),
            )
        elif shuffled.after:
            yield (
                False,
                f"{named}; at the door alone it is right in {percent(shuffled.before)}. Guessing could explain that.",
            )
        else:
            yield (
                False,
                "No sign that it recognizes a case at the door: with another patient's chart it is never right.",
            )
    if door := pairs.get((GUESS, DOOR)):
        better = clear(door) and door.after > door.before
        yield (
            False,
            (
                f"At the door alone the model is right in {percent(door.after)}, and the builtin doctor, which cannot "
                f"know the cases, in {percent(door.before)}."
                + (" Knowing the cases explains that, and so does guessing better." if better else "")
            ),
        )


def _limits(study: Contamination) -> list[str]:
    notes = [
        "No sign is no proof: a model can know a case without being able to recite it.",
        "A door that gives the diagnosis away looks like contamination, and so does a model that guesses well. What "
        "guessing earns is shown by the builtin doctor, which has a table of diseases and cannot know the cases.",
        "A doctor that does not listen names the door's diagnosis with any chart.",
        "Stock phrases, and public text that cases were made from, can be recited without having seen the cases. A "
        "fluent guess is more similar to its own line than to another's, so only nearly word for word counts.",
    ]
    if any("canary" in case.annotations for case in study.cases):
        notes.append(
            "These cases are public, so later models may have seen them. Each has a canary string that no agent is "
            "shown: a model that can write one was trained on the file."
        )
    return notes
