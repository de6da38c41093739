"""What can only be seen with a whole file at hand: twins, and identities given twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentclinic.cases.model import Case, Section
from agentclinic.lint.problem import Problem, error, warning
from agentclinic.vocabulary.text import fold, words


@dataclass(frozen=True)
class Located:
    """A problem and the row it is in."""

    scenario_id: int
    case_id: str
    """As annotated; empty where the case has none."""
    problem: Problem


def check_identities(cases: Sequence[Case]) -> Iterator[Located]:
    """No case_id and no canary is given twice."""
    for key in ("case_id", "canary"):
        seen: dict[str, int] = {}
        for case in cases:
            value = case.annotations.get(key)
            if value is None:
                continue
            first = seen.setdefault(str(value), case.scenario_id)
            if first != case.scenario_id:
                yield _at(case, error(f"duplicate_{key}", key, f"{value} is also row {first}'s"))


def check_specialties(cases: Sequence[Case]) -> Iterator[Located]:
    """A specialty is spelled in one way, or reports would count it as two."""
    seen: dict[tuple[str, ...], str] = {}
    for case in cases:
        name = case.annotations.get("Specialty")
        if not isinstance(name, str) or "case_id" not in case.annotations:
            continue
        first = seen.setdefault(words(name), name)
        if first != name:
            yield _at(case, warning("specialty_spelling", "Specialty", f"{name!r}, elsewhere {first!r}"))


MOST_CHANGED = 2
"""Findings in which twins may differ: with more, nobody could say which one a doctor missed."""


def check_twins(cases: Sequence[Case]) -> Iterator[Located]:
    """Twins name each other, share the door and the complaint, and differ in diagnosis and few findings."""
    by_id = {str(case.annotations["case_id"]): case for case in cases if "case_id" in case.annotations}
    for id_, case in by_id.items():
        name = case.annotations.get("twin_of")
        if not name:
            continue
        twin = by_id.get(str(name))
        if twin is None or twin is case:
            yield _at(case, error("twin_missing", "twin_of", f"{name} is not another case of this file"))
            continue
        if twin.annotations.get("twin_of") != id_:
            yield _at(case, error("twin_not_mutual", "twin_of", f"{name} names {twin.annotations.get('twin_of')!r}"))
        if id_ > str(name):
            continue  # what follows is about the pair: said once
        if fold(case.door.objective) != fold(twin.door.objective):
            yield _at(case, error("twin_doors_differ", "Objective_for_Doctor", f"not the objective of {name}"))
        if fold(case.door.demographics) != fold(twin.door.demographics):
            yield _at(case, error("twin_doors_differ", "Demographics", f"not the demographics of {name}"))
        if fold(case.diagnosis) == fold(twin.diagnosis):
            yield _at(case, error("twin_same_truth", "Correct_Diagnosis", f"the diagnosis of {name} as well"))
        if case.annotations.get("lockbox") != twin.annotations.get("lockbox"):
            yield _at(case, error("twin_split", "lockbox", f"{name} is on the other side of the lockbox"))
        if _complaint(case) != _complaint(twin):
            yield _at(case, warning("twin_complaints_differ", "Primary_Symptom", f"not the main symptom of {name}"))
        differing = differences(case, twin)
        if not differing:
            yield _at(case, error("twin_identical_chart", "twin_of", f"no fact differs from {name}"))
        elif len(differing) > MOST_CHANGED:
            yield _at(
                case,
                error(
                    "twin_charts_differ",
                    "twin_of",
                    f"{len(differing)} findings differ from {name}, {MOST_CHANGED} may: {', '.join(differing[:4])}",
                ),
            )


def differences(case: Case, twin: Case) -> list[str]:
    """The chart paths at which two cases do not say the same."""
    # By what is said, not where: one denial more moves the places of all that follow it.
    left = {(fact.section, fact.heads, fold(fact.text)): fact.path for fact in case.facts}
    right = {(fact.section, fact.heads, fold(fact.text)): fact.path for fact in twin.facts}
    only_left = {left[key] for key in left.keys() - right.keys()}
    only_right = {right[key] for key in right.keys() - left.keys()}
    return sorted(only_left | only_right)


def _complaint(case: Case) -> list[str]:
    return [fold(f.text) for f in case.facts if f.section is Section.SYMPTOMS and "primary" in f.path.lower()]


def _at(case: Case, problem: Problem) -> Located:
    return Located(case.scenario_id, str(case.annotations.get("case_id", "")), problem)
