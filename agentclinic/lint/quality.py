"""Automatic quality checks of cases: what a second reader with a pocket calculator would find.

Every check is a function from a `Chart` to problems. The checks find contradictions, impossible values and gaps; they
cannot tell whether a case is good medicine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from agentclinic.cases.model import Case
from agentclinic.lint import annotations as of_annotations
from agentclinic.lint import person, physiology, ranges, timeline
from agentclinic.lint.chart import Chart
from agentclinic.lint.files import Located, check_identities, check_specialties, check_twins, differences, located
from agentclinic.lint.problem import Problem, Severity

__all__ = ["CHECKS", "Located", "Problem", "Severity", "check_file_quality", "check_quality", "differences"]

Check = Callable[[Chart], Iterator[Problem]]

OF_ANNOTATIONS: tuple[Check, ...] = (
    of_annotations.check_annotations,
    of_annotations.check_enough,
    of_annotations.check_answer_key,
    of_annotations.check_refutations,
    of_annotations.check_quoted_numbers,
    of_annotations.check_called_normal,
    of_annotations.check_panels,
)
"""Checks of cases with OpenOSCE's annotations."""
CHECKS: tuple[Check, ...] = (
    *OF_ANNOTATIONS,
    *(of_annotations.check_key_findings, of_annotations.check_leaks),
    *(ranges.check_units, ranges.check_possible, ranges.check_age_bands),
    *(physiology.check_temperature, physiology.check_blood_pressure, physiology.check_anion_gap),
    *(physiology.check_formulas, physiology.check_white_cells, physiology.check_blood_gas),
    *(physiology.check_heart_rates, physiology.check_rhythm_name, physiology.check_sums, physiology.check_clotting),
    *(physiology.check_osmolality, physiology.check_spirometry, physiology.check_flags),
    *(person.check_sex, person.check_pronouns, person.check_pregnancy, person.check_age, person.check_drugs),
    timeline.check_timeline,
)
"""Every check of a single case, in the order in which problems are listed."""


def check_quality(case: Case) -> list[Problem]:
    """Everything the checks find in one case."""
    chart = Chart(case)
    checks = CHECKS if chart.annotated else [check for check in CHECKS if check not in OF_ANNOTATIONS]
    return [problem for check in checks for problem in check(chart)]


def check_file_quality(cases: Sequence[Case]) -> list[Located]:
    """Everything the checks find in and between the cases of a file, by row."""
    single = [located(case, problem) for case in cases for problem in check_quality(case)]
    together = [*check_identities(cases), *check_specialties(cases), *check_twins(cases)]
    return sorted([*single, *together], key=lambda found: found.scenario_id)
