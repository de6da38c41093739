"""Accuracy against what the tests of an encounter may cost: being right counts only within a budget.

Prices are those of `orders`: a world's own, the user's own table, or ours. A test that has none is estimated, as a run
with a budget charges for it, so that runs with and without one can be compared. Examinations cost time, not dollars.
"""

from __future__ import annotations

import math

from agentclinic.scoring.orders import Bill

BUDGETS = (50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000)
"""Dollars per encounter at which accuracy is given, about even on a log axis and the same for every run: from two or
three plain blood tests to more than the dearest test of our table costs."""
SHOWN = (100, 300, 1_000)
"""Those in short tables and in comparisons."""


def price(bill: Bill) -> float:
    """What the tests cost, with estimates for those that have no price."""
    return bill.usd + bill.estimated


def worth(usd: float) -> float:
    """The share of the budgets, on the log axis, that pay for tests at this price: ln(5,000 ÷ usd) ÷ ln(5,000 ÷ 50).

    1 up to $50, 0 from $5,000 on. The mean of right × worth is the exact area under the curve of accuracy.
    """
    least, most = BUDGETS[0], BUDGETS[-1]
    return math.log(most / min(max(usd, least), most)) / math.log(most / least)
