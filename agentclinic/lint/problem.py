"""What a check reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How sure a check is that something must be fixed."""

    ERROR = "error"
    """Wrong whatever the author meant."""
    WARNING = "warning"
    """Unusual: a person should look at it and may keep it."""


@dataclass(frozen=True)
class Problem:
    """One defect of a case."""

    code: str
    severity: Severity
    path: str
    """Path in the chart, or key of the annotation."""
    message: str


def error(code: str, path: str, message: str) -> Problem:
    """A defect that must be fixed."""
    return Problem(code, Severity.ERROR, path, message)


def warning(code: str, path: str, message: str) -> Problem:
    """Something a person should look at."""
    return Problem(code, Severity.WARNING, path, message)
