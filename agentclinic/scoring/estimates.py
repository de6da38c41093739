"""Numbers with their intervals: what every metric returns."""

from __future__ import annotations

import math

from pydantic import BaseModel


class Estimate(BaseModel):
    """A number with its 95 % interval and on how many units it rests; null where it cannot be known."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: str | None = None


class Proportion(BaseModel):
    """A share with its 95 % Wilson interval; `value` is null when there is nothing to count."""

    count: int
    of: int
    value: float | None
    low: float | None
    high: float | None


def proportion(count: int, of: int) -> Proportion:
    """The Wilson score interval: (p + z²/2n ± z·sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), z = 1.96."""
    if of == 0:
        return Proportion(count=count, of=of, value=None, low=None, high=None)
    z = 1.959963984540054
    p = count / of
    centre = p + z * z / (2 * of)
    margin = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    low = 0.0 if count == 0 else (centre - margin) / scale
    high = 1.0 if count == of else (centre + margin) / scale
    return Proportion(count=count, of=of, value=p, low=low, high=high)
