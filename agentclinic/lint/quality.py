"""Automatic quality checks of cases: what a second reader with a pocket calculator would find.

Every check is a function from a `Chart` to problems. The checks find contradictions, impossible values and gaps; they
cannot tell whether a case is good medicine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agentclinic.cases.model import Case, Section
from agentclinic.lint import annotations as of_annotations
from agentclinic.lint import completion, person, physiology
from agentclinic.lint.chart import Chart, Problem, error, warning
from agentclinic.vocabulary.text import fold, words


@dataclass(frozen=True)
class Located:
    """A problem and the row it is in."""

    scenario_id: int
    case_id: str
    """As annotated; empty if the case has none."""
    problem: Problem


Check = Callable[[Chart], Iterator[Problem]]

OF_ANNOTATIONS: tuple[Check, ...] = (
    of_annotations.check_annotations,
    of_annotations.check_enough,
    of_annotations.check_answer_key,
    of_annotations.check_panels,
)
"""Checks of cases with OpenOSCE's annotations."""
OF_COMPLETED: tuple[Check, ...] = (
    completion.check_probable_results,
    completion.check_headings,
    completion.check_in_time,
)
"""Checks of charts that are completed with normal results."""
CHECKS: tuple[Check, ...] = (
    *OF_ANNOTATIONS,
    *(of_annotations.check_key_findings, of_annotations.check_must_not_miss, of_annotations.check_leaks),
    of_annotations.check_patient_words,
    *(physiology.check_units, physiology.check_possible, physiology.check_age_bands),
    *(physiology.check_temperature, physiology.check_blood_pressure, physiology.check_anion_gap),
    *(physiology.check_formulas, physiology.check_white_cells, physiology.check_blood_gas),
    *(physiology.check_heart_rates, physiology.check_rhythm_name, physiology.check_sums, physiology.check_clotting),
    *(physiology.check_osmolality, physiology.check_spirometry, physiology.check_flags),
    *(
        person.check_sex,
        person.check_pronouns,
        person.check_pregnancy,
        person.check_age,
        person.check_called,
        person.check_drugs,
    ),
)
"""Every check of a single case, in the order in which problems are listed."""


def check_quality(case: Case) -> list[Problem]:
    chart = Chart(case)
    checks = CHECKS if chart.annotated else [check for check in CHECKS if check not in OF_ANNOTATIONS]
    checks = [*checks, *(OF_COMPLETED if chart.completed else ())]
    return [problem for check in checks for problem in check(chart)]


def check_file_quality(cases: Sequence[Case]) -> list[Located]:
    """Everything the checks find in and between the cases of a file, by row."""
    single = [located(case, problem) for case in cases for problem in check_quality(case)]
    together = [*check_identities(cases), *check_specialties(cases), *check_twins(cases)]
    return sorted([*single, *together], key=lambda found: found.scenario_id)


# --- between the cases of a file ---------------------------------------------------------------------------------


def check_identities(cases: Sequence[Case]) -> Iterator[Located]:
    """No case_id and no canary is used twice."""
    for key in ("case_id", "canary"):
        seen: dict[str, int] = {}
        for case in cases:
            value = case.annotations.get(key)
            if value is None:
                continue
            first = seen.setdefault(str(value), case.scenario_id)
            if first != case.scenario_id:
                yield located(case, error(f"duplicate_{key}", key, f"{value} is also row {first}'s"))


def check_specialties(cases: Sequence[Case]) -> Iterator[Located]:
    """A specialty is always spelled the same, or reports would count it as two."""
    seen: dict[tuple[str, ...], str] = {}
    for case in cases:
        name = case.annotations.get("Specialty")
        if not isinstance(name, str) or "case_id" not in case.annotations:
            continue
        first = seen.setdefault(words(name), name)
        if first != name:
            yield located(case, warning("specialty_spelling", "Specialty", f"{name!r}, elsewhere {first!r}"))


MOST_CHANGED = 12
"""In how many statements of history and examination twins may differ, both charts counted: with more, it would be
unclear which of them a doctor missed. Test results do not count, since they follow from the disease."""


def check_twins(cases: Sequence[Case]) -> Iterator[Located]:
    """Twins name each other, share demographics, objective and complaint, and differ in diagnosis and few findings."""
    by_id = {str(case.annotations["case_id"]): case for case in cases if "case_id" in case.annotations}
    for id_, case in by_id.items():
        name = case.annotations.get("twin_of")
        if not name:
            continue
        twin = by_id.get(str(name))
        if twin is None or twin is case:
            yield located(case, error("twin_missing", "twin_of", f"{name} is not another case of this file"))
            continue
        if twin.annotations.get("twin_of") != id_:
            message = f"{name} names {twin.annotations.get('twin_of')!r}"
            yield located(case, error("twin_not_mutual", "twin_of", message))
        if id_ < str(name):  # the rest is about the pair: reported once
            yield from (located(case, problem) for problem in _compare_twins(case, twin, str(name)))


def _compare_twins(case: Case, twin: Case, name: str) -> Iterator[Problem]:
    if fold(case.door.objective) != fold(twin.door.objective):
        yield error("twin_doors_differ", "Objective_for_Doctor", f"not the objective of {name}")
    if fold(case.door.demographics) != fold(twin.door.demographics):
        yield error("twin_doors_differ", "Demographics", f"not the demographics of {name}")
    if fold(case.diagnosis) == fold(twin.diagnosis):
        yield error("twin_same_truth", "Correct_Diagnosis", f"also the diagnosis of {name}")
    if case.annotations.get("lockbox") != twin.annotations.get("lockbox"):
        yield error("twin_split", "lockbox", f"{name} is on the other side of the lockbox")
    if _complaint(case) != _complaint(twin):
        yield warning("twin_complaints_differ", "Primary_Symptom", f"not the main symptom of {name}")
    differing = differences(case, twin)
    if not differing:
        yield error("twin_identical_chart", "twin_of", f"no fact differs from {name}")
    seen = [path for path in differing if not path.startswith("Test_Results")]
    if len(seen) > MOST_CHANGED:
        message = f"{len(seen)} findings differ from {name}, {MOST_CHANGED} may: {', '.join(seen[:4])}"
        yield error("twin_charts_differ", "twin_of", message)


def differences(case: Case, twin: Case) -> list[str]:
    """The chart paths at which two cases differ."""
    # By content, not place: one more denial shifts the places of everything after it.
    left, right = (
        {(fact.section, fact.heads, fold(fact.text)): fact.path for fact in one.facts} for one in (case, twin)
    )
    return sorted({(left | right)[key] for key in left.keys() ^ right.keys()})


def _complaint(case: Case) -> list[str]:
    return [fold(f.text) for f in case.facts if f.section is Section.SYMPTOMS and "primary" in f.path.lower()]


def located(case: Case, problem: Problem) -> Located:
    return Located(case.scenario_id, str(case.annotations.get("case_id", "")), problem)
