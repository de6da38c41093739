"""What the planner is asked for: diagnoses with weighted findings, and what distinguishes the leaders.

The docstrings of these classes are part of the JSON schema that the planner gets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from agentclinic.vocabulary.denial import says_absent

FindingState = Literal["present", "absent", "unknown"]
_STATES: dict[str, FindingState] = {
    **dict.fromkeys(("present", "yes", "positive", "true", "confirmed", "found"), "present"),
    **dict.fromkeys(("absent", "no", "negative", "false", "denied", "denies", "none", "ruled out"), "absent"),
    **dict.fromkeys(("", "unknown", "unclear", "untested", "pending", "n/a", "na", "?", "null"), "unknown"),
}


def read_state(said: object) -> FindingState:
    """Whether a finding is present, absent or unknown; only a plain statement counts as known."""
    if isinstance(said, bool):
        return "present" if said else "absent"
    word = " ".join(str(said if said is not None else "").split()).strip(" .").lower()
    # "present (39 °C)", "no; denied twice": the state, then an explanation.
    for candidate in (word, re.split(r"[,;:(]| [-–—] ", word, maxsplit=1)[0].strip()):
        if candidate in _STATES:
            return _STATES[candidate]
    return "absent" if says_absent(word) else "unknown"


class _Planned(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)


class PlannedFinding(_Planned):
    """A finding that speaks for a hypothesis, and what is known of it."""

    finding: str = Field(min_length=1)
    weight: int = Field(ge=1, le=5)
    """How much it tells, from 1 to 5."""
    expected: Literal["present", "absent"] = "present"
    """How it would be found if the hypothesis were true."""
    observed: FindingState = "unknown"
    """How it was found in this dialogue; unknown if it was not."""
    remark: SkipJsonSchema[str | None] = None
    """What was corrected in it; ours, not the planner's."""

    @model_validator(mode="before")
    @classmethod
    def _corrected(cls, given: object) -> object:
        """Move weights into the range 1 to 5, and read states in other words as one of the three."""
        if not isinstance(given, Mapping):
            return given
        data = dict(given)
        if "finding" not in data and isinstance(data.get("name"), str):
            data["finding"] = data.pop("name")
        observed = read_state(data.get("observed"))
        expected = "absent" if read_state(data.get("expected", "present")) == "absent" else "present"
        corrected = {"weight": _fitting(data.get("weight")), "expected": expected, "observed": observed}
        remarks = [
            f"{key} {_short(data[key])} taken as {value}" if key in data else f"no {key}, taken as {value}"
            for key, value in corrected.items()
            if _changed(data.get(key), value) and (key == "weight" or data.get(key) is not None)
        ]
        name = str(data.get("finding", "")).strip()[:60]
        return {**data, **corrected, "remark": f"{name}: {', '.join(remarks)}" if remarks else None}


def _fitting(weight: object) -> int:
    """The nearest weight from 1 to 5; 1 if it is not a number."""
    try:
        return round(min(5.0, max(1.0, float(weight))))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 1


def _changed(said: object, taken: object) -> bool:
    return said != taken and str(said).strip().lower() != str(taken)


def _short(value: object) -> str:
    return repr(value)[:40]


class PlannedHypothesis(_Planned):
    """A diagnosis with the findings that would speak for it."""

    diagnosis: str = Field(min_length=1)
    findings: list[PlannedFinding]


class Discriminator(_Planned):
    """A question or test that tells hypotheses apart."""

    request: str = Field(min_length=1)
    """A question to the patient, or a test as REQUEST TEST: name."""
    tells_apart: list[str] = Field(default_factory=list)
    """The diagnoses it separates."""


class WeightedDifferential(BaseModel):
    """What a planner is asked for: diagnoses with weighted findings."""

    hypotheses: list[PlannedHypothesis]


class PlannerReply(WeightedDifferential):
    """A weighted differential, and what would tell its leaders apart."""

    discriminators: list[Discriminator] = Field(default_factory=list)
    """What would best tell the leading diagnoses apart; empty when none are close."""


class Discriminators(BaseModel):
    """What tells close hypotheses apart, asked for on its own."""

    discriminators: list[Discriminator]
