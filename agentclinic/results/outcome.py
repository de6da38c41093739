"""How an encounter ended: its status, whose fault a failure was, and the judge's verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How an encounter ended."""

    DIAGNOSED = "diagnosed"
    MAX_INFS_REACHED = "max_infs_reached"
    DOCTOR_FAILED = "doctor_failed"
    MODEL_FAILED = "model_failed"
    JUDGE_FAILED = "judge_failed"


MISSING = frozenset({Status.MODEL_FAILED.value, Status.JUDGE_FAILED.value})
"""There is no verdict, through no fault of the doctor: missing data, never a wrong answer."""
JUDGEABLE = frozenset({Status.DIAGNOSED.value, Status.JUDGE_FAILED.value})
"""Statuses that leave a diagnosis to be judged."""


@dataclass(frozen=True)
class Fault:
    """Who failed, and how."""

    role: str
    error: str
    """Kind of a `ModelError`, or the name of an exception raised by a custom doctor."""
    message: str = ""
    traceback: str | None = None
    """Where a custom doctor's program failed."""


@dataclass(frozen=True)
class Verdict:
    """What a judge says about one diagnosis."""

    correct: bool | None = None
    """Yes or No by the strict rule; None if the diagnosis was not judged."""
    relation: str | None = None
    """How the diagnosis relates to the truth, if the judge says so."""
    reason: str | None = None
    """Why; for a diagnosis that was not judged, why not."""
    correct_lenient: bool | None = None
    """Right by the lenient rule: strictly right, or accepted in part by the case's answer key."""
