"""The study of stress: what patients that forget, hold back, misunderstand or talk too much cost a doctor.

The same cases are played with the same seeds at every level of every trait; level 0 is played once, for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple

from pydantic import BaseModel

from agentclinic.cases.model import Case
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
from agentclinic.scoring.differentials import confidence
from agentclinic.scoring.format import as_number, as_points
from agentclinic.scoring.information import key_facts, recall
from agentclinic.scoring.labels import is_program
from agentclinic.scoring.orders import ordered_in
from agentclinic.scoring.stats import Estimate, Proportion, holm, mean, mean_against_zero, share
from agentclinic.scoring.verdicts import strict

TOGETHER = "all together"
"""The arms in which every named trait has the level."""


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
        name = f"{dose} {level}" if level else "level 0"
        traits = dict.fromkeys(self.traits if dose == TOGETHER else (dose,), level) if level else {}
        settings = self.settings.changed(patient_traits=traits)
        return Arm({"patient": name}, settings, self.folder / "runs" / name.replace(" ", "_"))

    @property
    def arms(self) -> list[Arm]:
        """Level 0 first, then the lower levels of every trait before the higher ones."""
        first, *others = self.levels
        return [self.arm(self.doses[0], first), *(self.arm(dose, level) for level in others for dose in self.doses)]


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


def _price(record: Record) -> float | None:
    ordered = ordered_in(record)
    return ordered.bill.usd if ordered else None


ACCURACY = "accuracy"
MEASURES: Mapping[str, Measure] = {
    ACCURACY: Measure(strict, "share"),
    "turns": Measure(lambda record: record.num_turns, "number"),
    "key findings found": Measure(lambda record: recall(key_facts(record) or ()), "share"),
    "price of tests, $": Measure(_price, "number"),
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
    following = zip(replies, [*replies[1:], ()], strict=True)
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
    return {effect.path for effect in effects if effect.reason.startswith(reason)}


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


@dataclass
class _Played:
    """One arm in numbers."""

    comparison: Comparison | None
    """With level 0."""
    accuracy: Estimate
    values: dict[str, dict[str, float]]
    """By measure and case, the mean over its repeats."""
    persisted: list[tuple[str, Persisted]] = field(default_factory=list)
    """By case."""


def stress_report(study: Stress) -> StressReport:
    run, clusters = study.settings.run, case_clusters(study.cases)
    simulators: dict[str, None] = {}
    controlled = True
    played: dict[str, _Played] = {}
    base = None
    for arm in study.arms:
        (name,) = arm.values.values()
        data = load_run(arm.folder)
        loaded = load_arm(data, name)
        base = base or loaded
        rows: dict[str, dict[str, list[float]]] = {measure: defaultdict(list) for measure in MEASURES}
        one = _Played(None, Estimate(value=None), {})
        for record in data.records():
            simulators[(record.simulator or {}).get("patient", "unknown")] = None
            controlled = controlled and record.traits_controlled is not False
            if record.status == "model_failed":  # cut short by a failure that was not the doctor's
                continue
            one.persisted.append((case_key(record), persisted(record)))
            for measure, (of, _, _) in MEASURES.items():
                if (value := of(record)) is not None:
                    rows[measure][case_key(record)].append(value)
        one.values = {measure: {case: fmean(each) for case, each in found.items()} for measure, found in rows.items()}
        if right := next((each.accuracy for each in accuracies(loaded) if each.rule == "strict"), None):
            one.accuracy = Estimate(value=right.value, low=right.low, high=right.high, n=right.of)
        if loaded is not base:
            one.comparison = compare_two(base, loaded, seed=run.seed, varied=("patient_traits",))
        played[name] = one
    compared = adjusted([one.comparison for one in played.values() if one.comparison])
    responses = _adjusted(
        [r for dose in study.doses for m in MEASURES if (r := _response(study, played, clusters, dose, m))]
    )
    persistence = [
        _persistence(dose, level, played[f"{dose} {level}"].persisted, clusters)
        for dose in study.doses
        for level in study.levels[1:]
    ]
    return StressReport(
        dataset=study.cases[0].dataset,
        doctor=f"{run.doctor}{' with policy' if study.settings.planner else ''}",
        doctor_llm=run.doctor_llm,
        patient=" ".join([run.patient_llm, *(f"({name})" for name in simulators if is_at_endpoint(run.patient_llm))]),
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


def _response(
    study: Stress, played: Mapping[str, _Played], clusters: Mapping[str, str], dose: str, measure: str
) -> Response | None:
    """None if no case has the measure at every level."""
    seed, unit = study.settings.run.seed, MEASURES[measure].unit
    arms = {level: played[_name(dose, level)] for level in study.levels}
    values = {level: arm.values[measure] for level, arm in arms.items()}
    whole = [case for case in clusters if all(case in each for each in values.values())]
    if not whole:
        return None
    slopes = [(clusters[case], slope([(level, values[level][case]) for level in values])) for case in whole]
    found = mean_against_zero(slopes, seed)
    levels = []
    for level, arm in arms.items():
        changes = [(clusters[case], values[level][case] - values[0][case]) for case in whole]
        difference = mean(changes, seed) if level else None
        at = mean(((clusters[case], values[level][case]) for case in whole), seed)
        if measure == ACCURACY:
            at = arm.accuracy
            if arm.comparison and arm.comparison.verdicts:
                difference = arm.comparison.verdicts[0].difference
        levels.append(AtLevel(level=level, value=at, difference=difference))
    return Response(
        dose=dose,
        measure=measure,
        unit=unit,
        cases=len(whole),
        slope=found.estimate,
        p=found.p,
        unchanged=all(values[level][case] == values[0][case] for level in values for case in whole),
        levels=levels,
    )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Least squares: Σ (x - mean x)·y ÷ Σ (x - mean x)²."""
    middle = fmean(x for x, _ in points)
    return sum((x - middle) * y for x, y in points) / sum((x - middle) ** 2 for x, _ in points)


def _name(dose: str, level: int) -> str:
    return f"{dose} {level}" if level else "level 0"


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
        if controlled and not any(one.acted.count for one in persistence if one.dose == dose):
            yield f"{dose}. It touched no fact that this doctor asked for, so this says little about it."
        parts = {
            "Clear change per level": [_said(one) for one in own if one.clear],
            "Not shown, and not excluded": [_said(one) for one in own if not one.clear and not one.unchanged],
            "The same in every case": [one.measure for one in own if one.unchanged],
        }
        told = [f"{what}: {'; '.join(named)}" for what, named in parts.items() if named]
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
        notes.append("With builtin roles, repeats are identical and add nothing.")
    if not controlled:
        notes.append("Use --simulator voiced or grounded for a dose that code controls and records.")
    return notes
