"""The study of stress: what patients that forget, hold back, misunderstand or talk too much cost a doctor.

The same cases are played with the same seeds at every level of every trait; level 0 is played once, for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple

from pydantic import BaseModel

from agentclinic.cases.model import Case
from agentclinic.clinic.traits import WORD
from agentclinic.config import STRONGEST, TRAITS, Settings, is_at_endpoint, suggestion
from agentclinic.doctors.reference import REFERENCES
from agentclinic.errors import ConfigError, InputError
from agentclinic.learn.study import play_parts, refuse_unstudied
from agentclinic.results.record import Record
from agentclinic.results.run_data import load_run
from agentclinic.results.turn import Disclosure
from agentclinic.runs.budget import Spent
from agentclinic.runs.plan import make_plan
from agentclinic.runs.progress import Progress
from agentclinic.runs.sweep import Arm
from agentclinic.scoring.clusters import case_clusters, case_key
from agentclinic.scoring.compare import LEVEL, Comparison, accuracies, adjusted, brier, compare_two, load_arm
from agentclinic.scoring.compare import Arm as Outcomes
from agentclinic.scoring.differentials import confidence
from agentclinic.scoring.format import as_number, as_points
from agentclinic.scoring.information import key_facts, recall
from agentclinic.scoring.labels import is_program
from agentclinic.scoring.orders import ordered_in
from agentclinic.scoring.stats import Estimate, Proportion, holm, mean, mean_against_zero, share
from agentclinic.scoring.verdicts import strict

TOGETHER = "all together"
"""The arms in which every named trait has the level."""
PATIENT = "patient"
"""What differs between the arms."""


@dataclass(frozen=True)
class Stress:
    """The parts of a study in its folder."""

    folder: Path
    settings: Settings
    cases: Sequence[Case]
    traits: tuple[str, ...]
    levels: tuple[int, ...]
    """From 0 upwards."""
    together: bool

    @property
    def doses(self) -> tuple[str, ...]:
        """What is given in doses: each trait alone, and all of them together if wanted."""
        return (*self.traits, *((TOGETHER,) if self.together else ()))

    def arm(self, dose: str, level: int) -> Arm:
        """The patient with a trait at a level; at level 0 it is the same for all."""
        name = _name(dose, level)
        traits = dict.fromkeys(self.traits if dose == TOGETHER else (dose,), level) if level else {}
        settings = self.settings.changed(patient_traits=traits)
        return Arm({PATIENT: name}, settings, self.folder / "runs" / name.replace(" ", "_"))

    @property
    def arms(self) -> list[Arm]:
        """Level 0 first, then the lower levels of every trait before the higher ones."""
        first, *others = self.levels
        return [self.arm(self.doses[0], first), *(self.arm(dose, level) for level in others for dose in self.doses)]


def _name(dose: str, level: int) -> str:
    return f"{dose} {level}" if level else "level 0"


def read_traits(text: str) -> tuple[str, ...]:
    """Traits as named in `--traits`."""
    named = tuple(dict.fromkeys(filter(None, (word.strip() for word in text.split(",")))))
    for name in named:
        if name not in TRAITS:
            raise ConfigError(f"--traits: there is no trait {name!r}{suggestion(name, TRAITS)}")
    if not named:
        raise ConfigError(f"--traits names no trait; choose from {', '.join(TRAITS)}")
    return named


def read_levels(text: str) -> tuple[int, ...]:
    """Levels as named in `--levels`, in order; level 0, which the others are compared with, need not be named."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if not word.isdecimal() or int(word) > STRONGEST:
            raise ConfigError(f"--levels: {word!r} is not a whole number from 0 to {STRONGEST}; write, e.g., 0,1,2,3")
    levels = {0, *map(int, words)}
    if levels == {0}:
        raise ConfigError("--levels names no level above 0, so there is nothing to compare; write, e.g., 0,1,2,3")
    return tuple(sorted(levels))


def plan_stress(
    folder: Path, settings: Settings, traits: Sequence[str], levels: Sequence[int], *, together: bool = False
) -> Stress:
    """Prepare a study, or continue the one in the folder."""
    refuse_unstudied(settings)
    run = settings.run
    if run.patient_traits:
        raise ConfigError("patient_traits: the study decides them; leave it out, and name traits with --traits")
    if (reference := REFERENCES.get(run.doctor)) and not reference.turns:
        raise ConfigError(f"doctor: {run.doctor} asks the patient nothing, so no trait can act; name another")
    if together and len(traits) < 2:
        raise ConfigError("--together needs two traits or more; name them with --traits, or leave it out")
    plan = make_plan(settings)
    if any(case.drawn for case in plan.cases):
        raise ConfigError(
            "dataset: the patient of a solvable world states findings and has no traits; name a data set of charts"
        )
    study = Stress(folder, plan.settings, plan.cases, tuple(traits), tuple(levels), together)
    if folder.exists() and any(folder.iterdir()) and not study.arms[0].folder.exists():
        raise InputError(f"{folder} is not empty and not a study of stress; name another folder with -o")
    return study


async def play_stress(study: Stress, progress: Callable[[], Progress], say: Callable[[str], None]) -> None:
    """Play what the study still lacks, the lower levels first; raises `Stopped` if something is left."""
    await play_parts(study.arms, Spent(), progress, say)


# --- measures: a number for one record, or None if the record does not say ------------------------------------------


class Measure(NamedTuple):
    """What is followed over the levels."""

    of: Callable[[Record], float | None]
    unit: Literal["share", "number"]
    digits: int = 2
    little: float = 0.05
    """A change so small that no picture should make it look large."""


def _price(record: Record) -> float | None:
    ordered = ordered_in(record)
    return ordered.bill.usd if ordered else None


ACCURACY = "accuracy"
MEASURES: Mapping[str, Measure] = {
    ACCURACY: Measure(strict, "share"),
    "turns": Measure(lambda record: record.num_turns, "number", little=1),
    "key findings found": Measure(lambda record: recall(key_facts(record) or ()), "share"),
    "price of tests, $": Measure(_price, "number", little=10),
    "Brier score of the truth": Measure(brier, "number", 3),
    "stated probability": Measure(lambda record: confidence(record)[0], "share"),
}
"""The last two need a differential with probabilities: how good the one of the truth is (0 is best, 2 is worst), and
that of the diagnosis that the doctor gave."""


# --- whether the doctor asked again ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Persisted:
    """What the traits did in one encounter, and what the doctor did about it."""

    acted: bool
    """Some fact was withheld or told vaguely, or something was added."""
    facts: int
    """Facts that were withheld or told vaguely before the doctor had them."""
    again: int
    """Of those, facts that it asked about again."""
    exact: int
    """Of those, facts that it was told exactly in the end."""
    misunderstood: int
    """Questions about a fact with a word that the patient did not know or took for another."""
    rephrased: int
    """Of those, questions that were put in words it understood the next time the patient was asked."""


def persisted(record: Record) -> Persisted:
    """Read from the patient's replies alone.

    Asked about again: a later reply tells, withholds or blurs the fact, and not of the patient's own accord. Rephrased:
    the patient's next reply does so, and this time the words were understood.
    """
    replies = [turn.disclosures for turn in record.transcript or () if turn.role == "patient"]
    facts: set[str] = set()
    again: set[str] = set()
    exact: set[str] = set()
    told: set[str] = set()
    for parts in replies:
        now = {path for part in parts for path in part.paths}
        again |= facts & _about(parts)
        exact |= facts & now
        facts |= _held(parts) - told - now
        told |= now
    following = zip_longest(replies, replies[1:], fillvalue=())
    puzzled = [(paths, after) for now, after in following if (paths := _held(now, "literacy:"))]
    return Persisted(
        acted=any(part.withheld or part.vague or part.added for parts in replies for part in parts),
        facts=len(facts),
        again=len(again),
        exact=len(exact),
        misunderstood=len(puzzled),
        rephrased=sum(bool(paths & _about(after) - _held(after, "literacy:")) for paths, after in puzzled),
    )


def _held(parts: Iterable[Disclosure], reason: str = "") -> set[str]:
    """The facts that a reply withheld or told vaguely, for a reason that begins like this."""
    effects = (effect for part in parts for effect in (*part.withheld, *part.vague))
    facts = (effect for effect in effects if not effect.path.startswith(f"{WORD}/"))
    return {effect.path for effect in facts if effect.reason.startswith(reason)}


def _about(parts: Iterable[Disclosure]) -> set[str]:
    """The facts that a reply was asked for."""
    listed = list(parts)
    added = {effect.path for part in listed for effect in part.added}
    return _held(listed) | {path for part in listed for path in part.paths} - added


# --- results --------------------------------------------------------------------------------------------------------


class AtLevel(BaseModel):
    """A measure at one level."""

    level: int
    value: Estimate
    difference: Estimate | None
    """From level 0, over the cases that have both; null at level 0."""


class Response(BaseModel):
    """How a measure follows the level of a trait."""

    dose: str
    measure: str
    unit: Literal["share", "number"]
    cases: int
    """Cases with a value at every level; only these count for the slope and for the values of measures but accuracy."""
    slope: Estimate
    """Mean over the cases of the change per level, each case's by least squares over its levels."""
    p: float
    p_holm: float = 1.0
    """`p` adjusted for all slopes of the study."""
    clear: bool = False
    """Whether `p_holm` is below 0.05."""
    unchanged: bool
    """The same at every level in every case."""
    levels: list[AtLevel]


class Persistence(BaseModel):
    """What a trait did at one level, and whether the doctor asked again."""

    dose: str
    level: int
    encounters: int
    acted: Proportion
    """Encounters in which a fact was withheld or told vaguely, or something was added."""
    facts: int
    """Facts withheld or told vaguely before the doctor had them, over all encounters."""
    asked_again: Proportion
    exact: Proportion
    """Of those facts, those that the doctor asked about again, and those that it was told exactly in the end."""
    misunderstood: int
    rephrased: Proportion
    """Of the questions about facts that the patient did not understand, those put in other words at once."""


class StressReport(BaseModel):
    """Everything the study prints."""

    dataset: str
    doctor: str
    doctor_llm: str
    patient: str
    """Who plays the patient, and how."""
    controlled: bool
    """Whether code decides what a trait does; if not, a language model was only asked to play it."""
    seed: int
    repeats: int
    cases: int
    clusters: int
    levels: list[int]
    responses: list[Response]
    persistence: list[Persistence]
    comparisons: list[Comparison]
    """Each arm against level 0."""
    findings: list[str]
    limits: list[str]


class _Played(NamedTuple):
    """One arm in numbers."""

    outcomes: Outcomes
    values: Mapping[str, Mapping[str, float]]
    """By measure and case, the mean over its repeats."""
    persisted: Sequence[tuple[str, Persisted]]
    """Each encounter, with its case."""
    simulators: Sequence[str]
    """How the patient was played."""
    controlled: bool


def _read(arm: Arm) -> _Played:
    run = load_run(arm.folder)
    records = [record for record in run.records() if record.status != "model_failed"]  # not the doctor's failures
    rows: dict[str, dict[str, list[float]]] = {measure: defaultdict(list) for measure in MEASURES}
    for record in records:
        for measure, kind in MEASURES.items():
            if (value := kind.of(record)) is not None:
                rows[measure][case_key(record)].append(value)
    return _Played(
        load_arm(run, str(arm.values[PATIENT])),
        {measure: {case: fmean(each) for case, each in found.items()} for measure, found in rows.items()},
        [(case_key(record), persisted(record)) for record in records],
        sorted({(record.simulator or {}).get("patient", "unknown") for record in records}),
        all(record.traits_controlled is not False for record in records),
    )


def stress_report(study: Stress) -> StressReport:
    run, clusters = study.settings.run, case_clusters(study.cases)
    played = {arm.values[PATIENT]: _read(arm) for arm in study.arms}
    base, *others = (one.outcomes for one in played.values())
    compared = adjusted([compare_two(base, other, seed=run.seed, varied=("patient_traits",)) for other in others])
    responses = []
    for dose in study.doses:
        arms = {level: played[_name(dose, level)] for level in study.levels}
        right = _right(arms, compared)
        responses += [one for m in MEASURES if (one := _response(dose, m, arms, right, clusters, run.seed))]
    responses = _adjusted(responses)
    persistence = [
        _persistence(dose, level, played[_name(dose, level)].persisted, clusters)
        for dose in study.doses
        for level in study.levels[1:]
    ]
    controlled = all(one.controlled for one in played.values())
    ways = dict.fromkeys(way for one in played.values() for way in one.simulators)
    return StressReport(
        dataset=study.cases[0].dataset,
        doctor=f"{run.doctor}{' with policy' if study.settings.planner else ''}",
        doctor_llm=run.doctor_llm,
        patient=run.patient_llm + (f" ({', '.join(ways)})" if is_at_endpoint(run.patient_llm) else ""),
        controlled=controlled,
        seed=run.seed,
        repeats=run.repeats,
        cases=len(clusters),
        clusters=len(set(clusters.values())),
        levels=list(study.levels),
        responses=responses,
        persistence=persistence if controlled else [],
        comparisons=compared,
        findings=list(_findings(study.doses, responses, persistence, controlled=controlled)),
        limits=[*_limits(study, controlled=controlled), *(f"{c.arm}, {said}" for c in compared for said in c.warnings)],
    )


def _right(arms: Mapping[int, _Played], compared: Sequence[Comparison]) -> list[AtLevel]:
    """Accuracy at each level and against level 0, with the intervals of `score` and `compare`."""
    verdicts = {one.arm: one.verdicts[0] for one in compared if one.verdicts}
    levels = []
    for level, arm in arms.items():
        verdict = verdicts.get(arm.outcomes.name)
        found = next((one.accuracy for one in accuracies(arm.outcomes) if one.rule == "strict"), None)
        value = Estimate(value=found.value, low=found.low, high=found.high, n=found.of) if found else None
        difference = verdict.difference if verdict else None
        levels.append(AtLevel(level=level, value=value or Estimate(value=None), difference=difference))
    return levels


def _response(
    dose: str,
    measure: str,
    arms: Mapping[int, _Played],
    right: list[AtLevel],
    clusters: Mapping[str, str],
    seed: int,
) -> Response | None:
    """None if no case has the measure at every level."""
    values = {level: arm.values[measure] for level, arm in arms.items()}
    whole = [case for case in clusters if all(case in each for each in values.values())]
    if not whole:
        return None

    def average(of: Callable[[str], float]) -> Estimate:
        return mean(((clusters[case], of(case)) for case in whole), seed)

    def at(level: int) -> AtLevel:
        now, before = values[level], values[0]
        difference = average(lambda case: now[case] - before[case]) if level else None
        return AtLevel(level=level, value=average(now.__getitem__), difference=difference)

    slopes = ((clusters[case], slope([(level, each[case]) for level, each in values.items()])) for case in whole)
    found = mean_against_zero(slopes, seed)
    return Response(
        dose=dose,
        measure=measure,
        unit=MEASURES[measure].unit,
        cases=len(whole),
        slope=found.estimate,
        p=found.p,
        unchanged=all(each[case] == values[0][case] for each in values.values() for case in whole),
        levels=right if measure == ACCURACY else [at(level) for level in values],
    )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Least squares: Σ (x - mean x)·y ÷ Σ (x - mean x)²."""
    middle = fmean(x for x, _ in points)
    return sum((x - middle) * y for x, y in points) / sum((x - middle) ** 2 for x, _ in points)


def _adjusted(responses: list[Response]) -> list[Response]:
    """With Holm's adjustment over all slopes."""
    raw = {str(place): one.p for place, one in enumerate(responses)}
    for place, p in holm(raw).items():
        one = responses[int(place)]
        one.p_holm, one.clear = p, p < LEVEL
    return responses


def _persistence(
    dose: str, level: int, found: Sequence[tuple[str, Persisted]], clusters: Mapping[str, str]
) -> Persistence:
    def of(count: Callable[[Persisted], int], total: Callable[[Persisted], int]) -> Proportion:
        return share((clusters[case], count(one), total(one)) for case, one in found)

    return Persistence(
        dose=dose,
        level=level,
        encounters=len(found),
        acted=of(lambda one: one.acted, lambda _: 1),
        facts=sum(one.facts for _, one in found),
        asked_again=of(lambda one: one.again, lambda one: one.facts),
        exact=of(lambda one: one.exact, lambda one: one.facts),
        misunderstood=sum(one.misunderstood for _, one in found),
        rephrased=of(lambda one: one.rephrased, lambda one: one.misunderstood),
    )


def _findings(
    doses: Sequence[str], responses: Sequence[Response], persistence: Sequence[Persistence], *, controlled: bool
) -> Iterator[str]:
    """What is shown and what is not, trait by trait."""
    if not controlled:
        yield (
            "The dose was not controlled: with simulator free, the patient's model was only asked to play the trait. "
            "How much it forgot or held back is not known, nor whether every fact could still be obtained."
        )
    for dose in doses:
        own = [one for one in responses if one.dose == dose]
        acted = not controlled or any(one.acted.count for one in persistence if one.dose == dose)
        parts = {
            "Clear change per level": [_said(one) for one in own if one.clear],
            "Not shown, and not excluded": [_said(one) for one in own if not one.clear and not one.unchanged],
            "The same in every case": [one.measure for one in own if one.unchanged],
        }
        told = [f"{what}: {'; '.join(named)}" for what, named in parts.items() if named]
        if not acted:
            told.append("It touched nothing that this doctor asked for, so this says little about it")
        yield f"{dose}. {'. '.join(told)}."


def _said(one: Response) -> str:
    """A measure with its change, if that is clear or the one that is asked for first."""
    return f"{one.measure} {amount(one)}" if one.clear or one.measure == ACCURACY else one.measure


def amount(one: Response) -> str:
    """The change per level with its sign and interval."""
    kind = MEASURES[one.measure]
    return as_points(one.slope) if kind.unit == "share" else as_number(one.slope, kind.digits, signed=True)


def _limits(study: Stress, *, controlled: bool) -> list[str]:
    run = study.settings.run
    notes = [
        "The traits are designed, not fitted to real patients: a level is a dose of our rules, and no measure of how "
        "often or how strongly real patients are like that.",
        "A change per level is a straight line through all levels; the values at each level show whether one of them "
        "does most of it.",
        "A fact that was told only vaguely does not count as found: part of a change in key findings is what the trait "
        "itself does to a doctor that does not ask again.",
        "Intervals are 95% each. Only the word clear is adjusted for the number of comparisons (Holm).",
        "Not shown does not mean no effect: every value in the interval agrees with the results. A small change "
        "takes more cases to see.",
    ]
    if run.doctor_llm == "builtin" and not is_program(run.doctor):
        notes.append(
            "The builtin doctor says nothing about language models: it reads the patient's sentences by rules."
        )
    if {run.doctor_llm, run.patient_llm, run.measurement_llm, run.moderator_llm} == {"builtin"} and run.repeats > 1:
        notes.append("With builtin roles, repeats differ only in which facts a trait touches.")
    if is_at_endpoint(run.doctor_llm) and run.repeats == 1:
        notes.append(
            "A model may answer the same prompt differently when it is asked again, so part of every difference is "
            "noise and not the trait's; --repeats averages it out."
        )
    if not controlled:
        notes.append("Use --simulator voiced or grounded for a dose that code controls and records.")
    return notes
