"""Numbers, shares and their intervals as text: the one formatter behind the commands and the report.

`percent`, `points` and `number` show a bare number; `as_percent`, `as_points`, `as_number` and `interval` an `Estimate`
or a `Proportion`. `label="95% interval"` is written before the interval, and `n=True` adds `n = 20`. A value that is
not known reads `unknown`, and a value or interval that is missing is followed by the estimate's note, if it has one:
`unknown (no forecasts)`, `50.0% (no interval: fewer than three cases)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy is slow to import, and `--help` needs only this module
    from agentclinic.scoring.stats import Estimate, Proportion

UNKNOWN = "unknown"
OWN_JUDGE = "judged by the doctor's own model"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 case`, `2 cases`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def plural_title(count: int, title: str) -> str:
    """`1 diagnosis to judge` for the title `diagnoses to judge`."""
    many, space, rest = title.partition(" ")
    one = {"diagnoses": "diagnosis", "replies": "reply"}.get(many, many.removesuffix("s"))
    return f"{plural(count, one, many)}{space}{rest}"


def percent(value: float | None, digits: int = 1, unknown: str = UNKNOWN) -> str:
    """A share as a percentage: `50.0%`."""
    return unknown if value is None else f"{value:z.{digits}%}"


def points(value: float | None, digits: int = 1, unknown: str = UNKNOWN) -> str:
    """A difference of shares in percentage points, with its sign: `+5.0`."""
    return unknown if value is None else f"{100 * value:+z.{digits}f}"


def number(value: float | None, digits: int = 2, unknown: str = UNKNOWN, *, signed: bool = False) -> str:
    """A number with thousands separators: `1,234.50`."""
    return unknown if value is None else f"{value:{'+' if signed else ''}z,.{digits}f}"


def as_percent(estimate: Estimate | Proportion | None, *, label: str = "") -> str:
    """A share with its interval and counts: `50.0% (40.4% to 59.6%; 50 of 100)`."""
    return _text(estimate, percent, "", label)


def as_points(estimate: Estimate | None, *, label: str = "") -> str:
    """A difference of shares with its interval: `+5.0 points (-1.2 to +11.2)`."""
    return _text(estimate, points, " points", label)


def as_number(estimate: Estimate | None, digits: int = 2, *, signed: bool = False, n: bool = False) -> str:
    """A number with its interval: `0.82 (0.74 to 0.90)`."""
    return _text(estimate, lambda value: number(value, digits, signed=signed), "", "", n=n)


def unread_text(at_most: float | None, unread: int, of: int, digits: int = 1) -> str:
    """What an accuracy is if every answer that could not be read were right: `at most 56.2%: 5 of 64 not readable`.

    Empty if all were read.
    """
    return f"at most {percent(at_most, digits)}: {unread:,} of {of:,} not readable" if unread else ""


def headline_text(shown: str, unread: str, *, own_judge: bool = False) -> str:
    """An accuracy, with its interval as a caller shows it, and what a reader must know beside it.

    `48.4% (36.6% to 60.4%), at most 56.2%: 5 of 64 not readable; judged by the doctor's own model`. The interval is
    that of the first figure, which counts answers that could not be read as not right.
    """
    return ", ".join(filter(None, (shown, unread))) + (f"; {OWN_JUDGE}" if own_judge else "")


def interval(estimate: Estimate | Proportion | None, digits: int = 1) -> str:
    """The interval of a share alone: `40.4% to 59.6%`; empty if there is none."""
    return _range(estimate, lambda value: percent(value, digits)) if estimate else ""


def _text(
    estimate: Estimate | Proportion | None, show: Callable[[float], str], unit: str, label: str, *, n: bool = False
) -> str:
    from agentclinic.scoring.stats import Estimate, Proportion

    note = estimate.note if isinstance(estimate, Estimate) and estimate.note else ""
    if estimate is None or estimate.value is None:
        return f"{UNKNOWN} ({note})" if note else UNKNOWN
    limits = _range(estimate, show)
    if limits and isinstance(estimate, Proportion) and estimate.clustered:
        limits += ", clustered"
    details = [f"{label} {limits}".strip() if limits else note]
    if isinstance(estimate, Proportion):
        details.append(f"{estimate.count:,} of {estimate.of:,}")
    elif n:
        details.append(f"n = {estimate.n:,}")
    inner = "; ".join(filter(None, details))
    return f"{show(estimate.value)}{unit}" + (f" ({inner})" if inner else "")


def _range(estimate: Estimate | Proportion, show: Callable[[float], str]) -> str:
    """Two clusters or fewer have no finite interval: infinite limits are left out like missing ones."""
    low, high = estimate.low, estimate.high
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{show(low)} to {show(high)}"
