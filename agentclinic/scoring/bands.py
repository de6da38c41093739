"""What chance alone would show, for drawing behind what was seen."""

from __future__ import annotations

import numpy as np


def binomial_band(n: int, p: float, level: float = 0.95) -> tuple[float, float]:
    """The central band of k ÷ n for k ~ Binomial(n, p): from the quantile at (1 - level)/2 to that at (1 + level)/2.

    For a bin of a reliability diagram p is the mean forecast: were every forecast true, the share right would lie
    within the band. Forecasts that differ within the bin make it a little too wide, never too narrow.
    """
    if n <= 0 or not 0 < p < 1:
        return (p, p)
    k = np.arange(n + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    log_pmf = log_factorial[n] - log_factorial[k] - log_factorial[n - k] + k * np.log(p) + (n - k) * np.log1p(-p)
    below = np.cumsum(np.exp(log_pmf))
    low, high = np.searchsorted(below, [(1 - level) / 2, (1 + level) / 2])
    return float(low) / n, float(min(high, n)) / n
