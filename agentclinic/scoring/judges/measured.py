"""Who judged a run, and what is known of that judge's errors, in one line."""

from __future__ import annotations

from collections.abc import Iterable

from agentclinic.config import is_builtin_or_person
from agentclinic.results.run_data import RunData
from agentclinic.scoring.format import percent
from agentclinic.scoring.judges.against_labels import labeled_run

FALSE_NO, RIGHT = 18, 80
FALSE_YES, WRONG = 3, 38
"""Verdicts on 118 diagnoses of NEJM_Ext cases that no rule was written with, against two readers who agree (kappa
0.98); measured by `benchmarks/judge.py --rows test` on 16 November 2026, see benchmarks/README.md."""

_LONGEST = 200
"""Characters of the judges' names: records of others may hold anything, and a browser lays out a long word slowly."""


def judged_by(run: RunData, models: Iterable[str | None], seed: int = 0) -> str:
    """Which judge the accuracy comes from, and how often it errs: by labels if there are any, else as measured."""
    names = sorted({model for model in models if model})
    if run.verdicts is not None:
        entries = run.verdicts.values()
        members = next((entry["majority_of"] for entry in entries if entry.get("majority_of")), None)
        names = sorted({str(entry["moderator_llm"]) for entry in entries if entry.get("moderator_llm")})
        who = f"{run.judge} (the majority of {', '.join(members)})" if members else f"{run.judge}"
    else:
        who = ", ".join(names) or "an unknown judge"
    who = who if len(who) <= _LONGEST else f"{who[:_LONGEST]}..."
    found = labeled_run(run.path, run.judge, seed)
    if found is not None:
        rates = [percent(rate.value) for rate in (found.missed, found.credited)]
        error = f"called {rates[0]} of right diagnoses wrong and {rates[1]} of wrong ones right"
        if found.corrected.value is None:
            error = "has too few labels to say how often it errs"
        return f"Judged by {who}, which {error} (labels: {found.labeled}; see score --corrected)."
    if names == ["builtin"]:
        return f"Judged by {who}, which {_builtin_error()}."
    return f"Judged by {who}; how often it errs is not known (agentclinic judge label measures it)."


def _builtin_error() -> str:
    return (
        f"called {FALSE_NO} of {RIGHT} right diagnoses wrong and {FALSE_YES} of {WRONG} wrong ones right in our "
        "measurement (docs/builtin.md)"
    )


def builtin_judge_warning(doctor_llm: str | None, judge: str | None) -> str | None:
    """How far the builtin judge can be trusted with a language model's diagnoses, and what to use instead.

    None for other judges, and for builtin and human doctors.
    """
    if judge != "builtin" or doctor_llm is None or is_builtin_or_person(doctor_llm):
        return None
    return (
        f"The builtin judge {_builtin_error()}, so accuracy may be too low; --moderator-llm MODEL uses a language "
        "model as the judge, and so does agentclinic regrade for a run that is done."
    )
