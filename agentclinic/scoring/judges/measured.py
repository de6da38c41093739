"""What is known of the builtin judge's errors."""

from __future__ import annotations

from agentclinic.config import is_builtin_or_person

FALSE_NO, RIGHT = 17, 80
FALSE_YES, WRONG = 3, 38
"""Verdicts on 118 diagnoses of NEJM_Ext cases that no rule was written with, against two readers who agree (kappa
0.98); measured by `benchmarks/judge.py --rows test` on 15 November 2026, see benchmarks/README.md."""


def builtin_judge_warning(doctor_llm: str | None, judge: str | None) -> str | None:
    """How far the builtin judge can be trusted with a language model's diagnoses, and what to use instead.

    None for other judges, and for builtin and human doctors.
    """
    if judge != "builtin" or doctor_llm is None or is_builtin_or_person(doctor_llm):
        return None
    return (
        f"The builtin judge called {FALSE_NO} of {RIGHT} right diagnoses wrong and {FALSE_YES} of {WRONG} wrong ones "
        "right in our measurement (docs/builtin.md), so accuracy may be too low; --moderator-llm MODEL uses a language "
        "model as the judge, and so does agentclinic regrade for a run that is done."
    )
