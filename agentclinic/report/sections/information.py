"""What the doctor found out, and what it cost: key findings, tests, prices."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.report import charts
from agentclinic.report.collect import RunReport
from agentclinic.report.numbers import LEARNED, by_budget, tests_section
from agentclinic.report.parts import View, figure, note
from agentclinic.report.tables import Html, dollars, line, plural, tag
from agentclinic.report.tables import html_table as table
from agentclinic.scoring.breakdown import MOST_UNPRICED, FactSection, PriceAccuracy
from agentclinic.scoring.format import as_percent, percent
from agentclinic.scoring.frontier import BUDGETS, SHOWN

MOST_TESTS = 12


def facts(view: View) -> Html | None:
    """Key findings by section of the chart and by how the doctor first got them."""
    drawn = [(index, _facts_of(run)) for index, run in enumerate(view.runs) if run.breakdown.fact_sections]
    legend = [tag("li", tag("i", class_=f"key w-{way}"), name) for way, name in LEARNED.items()]
    legend.append(tag("li", tag("i", class_="key w-none"), "not found"))
    lede = (
        "What the cases' authors marked as important and the doctor had to find: where it is in the chart, and how the "
        "doctor first learned it."
    )
    return view.section("facts", "Key findings", lede, drawn, tag("ul", legend, class_="legend"))


def _facts_of(run: RunReport) -> Html:
    ways = [way for way in LEARNED if any(part.by_way.get(way) for part in run.breakdown.fact_sections)]
    head = ["section", "", "share", "found", *(LEARNED[way] for way in ways)]
    rows = [_fact_row(part, ways) for part in run.breakdown.fact_sections]
    found, closed = run.score.information.key_facts, run.score.information.premature_closure
    said = []
    if closed.of:
        said.append(
            "Premature closure (a wrong diagnosis with turns left, when no decisive finding had been requested): "
            f"{as_percent(closed)}."
        )
    if found.at_the_door:
        said.append(f"{plural(found.at_the_door, 'finding')} left out: told at the door.")
    if found.not_assessable:
        unseen = plural(found.not_assessable, "finding")
        said.append(f"{unseen} left out: the records do not show whether they were found.")
    shown = table("Key findings by section", head, rows, (0, 1), stacked=True)
    return tag("div", shown, note(" ".join(said)) if said else None)


def _fact_row(part: FactSection, ways: Sequence[str]) -> list[object]:
    got = [(part.by_way.get(way, 0), f"w-{way}", LEARNED[way]) for way in ways]
    parts = [*got, (part.not_found, "w-none", "not found")]
    bar = charts.stacked([(n / part.total, colour, f"{name}: {n}") for n, colour, name in parts], width=400, height=16)
    found = part.total - part.not_found
    counts = [n or "" for n, *_ in got]
    return [part.section.replace("_", " "), bar, percent(found / part.total, 0), f"{found} of {part.total}", *counts]


# --- tests ----------------------------------------------------------------------------------------------------------


def tests(view: View) -> Html | None:
    """The tests ordered, their prices, and price against accuracy."""
    drawn = [(index, _tests_of(view, index)) for index, run in enumerate(view.runs) if run.breakdown.tests]
    lede = (
        "Prices are estimates, from the table named with the counts. A panel is charged once per encounter. "
        "Tests that were not available or not answered do not count as done."
    )
    both = [part for part in (_by_budget(view), _between(view) if view.several else None) if part]
    before = tag("div", both, class_="figures") if both else None
    return view.section("tests", "Tests and prices", lede, drawn, before)


def _by_budget(view: View) -> list[Html] | None:
    """Accuracy by budget, all runs in one picture, and the same in numbers; None if no budget makes a difference."""
    shown = by_budget(view.budgets)
    if not shown.rows:
        return None
    series = [
        charts.Series(
            letter,
            view.colour(index),
            [(one.usd, one.right.value or 0.0) for one in budget.within],
            [(one.usd, one.right.low or 0.0, one.right.high or 0.0) for one in budget.within],
        )
        for index, (letter, budget) in enumerate(view.budgets.items())
        if budget.within
    ]
    about = (
        "An encounter counts if it is right and its tests cost no more than the budget. Bands are 95% intervals, for "
        "each budget alone. A doctor that knew its budget might have ordered differently."
    )
    chart = charts.by_budget("budget", series, (BUDGETS[0], *SHOWN, BUDGETS[-1]))
    numbers = tag("div", tag("h3", f"{shown.title}, in numbers"), shown.html())
    return [figure(shown.title, about, chart), numbers]


def _between(view: View) -> Html | None:
    points = [
        charts.Point(
            view.letters[index],
            view.colour(index),
            price.mean_usd,
            head.value,
            head.low,
            head.high,
            plural(head.of, "encounter"),
        )
        for index, (price, head) in enumerate((run.breakdown.price, run.headline) for run in view.runs)
        if price.mean_usd is not None and head.value is not None and (price.unpriced.value or 0) <= MOST_UNPRICED
    ]
    if len(points) < 2:
        return None
    about = "Only tests with a price count. A run is not drawn if more than a tenth of its tests have no price."
    return figure("Price against accuracy, run by run", about, charts.price_by_run("price-runs", points))


def _tests_of(view: View, index: int) -> Html:
    run = view.runs[index]
    answered = tag("div", tag("h3", "How tests were answered"), tests_section(run.score).html())
    upper = [_price(run.breakdown.price), answered]
    lower = [_most_expensive(run), _most_repeated(run)]
    return tag("div", tag("div", upper, class_="figures"), tag("div", lower, class_="figures"))


def _price(price: PriceAccuracy) -> Html:
    if not price.groups:
        said = f"Not given: {price.note}."
        if price.mean_usd is not None and price.mean_usd_most is not None and price.unpriced.count:
            said += (
                f" The mean is between {dollars(price.mean_usd)} (if those cost nothing) and "
                f"{dollars(price.mean_usd_most)} (if each costs as much as the most expensive test in the price list)."
            )
        return tag("div", tag("h3", "Price against accuracy"), note(said))
    rows = [
        [_span(g.usd_low, g.usd_high), g.n, dollars(g.mean_usd), dollars(g.mean_usd_most), as_percent(g.accuracy)]
        for g in price.groups
    ]
    about = (
        "Encounters in groups of about equal size, by the price of their tests. Expensive encounters are often the "
        "hard ones, so this does not show what spending more would do."
    )
    if price.unpriced.count:
        about += f" {price.unpriced.count} of {price.unpriced.of} tests have no price and are not counted."
    about += " At most: if every test without a price cost as much as the most expensive one in the price list."
    head = ["tests per encounter", "n", "mean", "at most", "right"]
    numbers = table("Price and accuracy in numbers", head, rows)
    return tag("div", tag("h3", "Price against accuracy"), note(about), numbers)


def _span(low: float, high: float) -> str:
    return dollars(low) if low == high else f"{dollars(low)}–{dollars(high).lstrip('$')}"


def _most_expensive(run: RunReport) -> Html | None:
    costly = [use for use in run.breakdown.tests if use.total_usd]
    costly.sort(key=lambda use: (-(use.total_usd or 0), use.name))
    rows = [
        [line(use.name, 60), f"{use.done:,}", dollars(use.usd), dollars(use.total_usd)] for use in costly[:MOST_TESTS]
    ]
    head = ["test", "encounters", "each", "total"]
    title = "Highest total price"
    return tag("div", tag("h3", title), table("Most expensive tests", head, rows)) if rows else None


def _most_repeated(run: RunReport) -> Html:
    again = sorted((use for use in run.breakdown.tests if use.again), key=lambda use: (-use.again, use.name))
    rows = [[line(use.name, 60), use.again, use.ordered, use.unanswered] for use in again[:MOST_TESTS]]
    head = ["test", "ordered before", "ordered", "no answer"]
    shown = table("Most repeated tests", head, rows) if rows else note("No test was ordered twice in an encounter.")
    return tag("div", tag("h3", "Most often ordered again in the same encounter"), shown)
