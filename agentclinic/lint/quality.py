"""Automatic checks of a case's quality: what a second reader would find with a pocket calculator.

Every check is a small function from a `Chart` to the problems it sees. They find what contradicts itself, is
impossible or is missing; whether a case is good medicine they cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from agentclinic.cases.model import Case
from agentclinic.lint import person, physiology, ranges, timeline
from agentclinic.lint.annotations import (
    check_annotations,
    check_answer_key,
    check_called_normal,
    check_enough,
    check_key_findings,
    check_leaks,
    check_panels,
    check_quoted_numbers,
    check_refutations,
)
from agentclinic.lint.chart import Chart
from agentclinic.lint.files import Located, check_identities, check_specialties, check_twins, differences
from agentclinic.lint.problem import Problem, Severity

__all__ = ["CHECKS", "Located", "Problem", "Severity", "check_file_quality", "check_quality", "differences"]

CHECKS: tuple[Callable[[Chart], Iterator[Problem]], ...] = (
    check_annotations,
    check_enough,
    check_answer_key,
    check_key_findings,
    check_refutations,
    check_quoted_numbers,
    check_called_normal,
    check_leaks,
    check_panels,
    ranges.check_units,
    ranges.check_possible,
    ranges.check_age_bands,
    physiology.check_temperature,
    physiology.check_blood_pressure,
    physiology.check_anion_gap,
    physiology.check_red_cells,
    physiology.check_white_cells,
    physiology.check_blood_gas,
    physiology.check_heart_rates,
    physiology.check_rhythm_name,
    physiology.check_sums,
    physiology.check_clotting,
    physiology.check_osmolality,
    physiology.check_spirometry,
    physiology.check_flags,
    person.check_sex,
    person.check_pronouns,
    person.check_pregnancy,
    person.check_age,
    person.check_drugs,
    timeline.check_timeline,
)
"""Every check of a single case, in the order in which problems are listed."""


def check_quality(case: Case) -> list[Problem]:
    """Everything the checks find in one case."""
    chart = Chart(case)
    return [problem for check in CHECKS for problem in check(chart)]


def check_file_quality(cases: Sequence[Case]) -> list[Located]:
    """Everything the checks find in the cases of a file, by row, and between them."""
    single = [
        Located(case.scenario_id, str(case.annotations.get("case_id", "")), problem)
        for case in cases
        for problem in check_quality(case)
    ]
    together = [*check_identities(cases), *check_specialties(cases), *check_twins(cases)]
    return sorted([*single, *together], key=lambda located: located.scenario_id)
