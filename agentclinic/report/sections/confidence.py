"""How sure the doctor was: reliability, risk and coverage, and how that changes from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentclinic.report import charts
from agentclinic.report.collect import ReliabilityPoint, RunReport
from agentclinic.report.numbers import calibration_section
from agentclinic.report.parts import View, details, figure
from agentclinic.report.tables import Html, plural, tag
from agentclinic.report.tables import html_table as table
from agentclinic.scoring.calibration import SourceCalibration
from agentclinic.scoring.format import interval, percent
from agentclinic.scoring.metrics import DifferentialCourse


def confidence(view: View) -> Html | None:
    drawn = []
    shared: dict[str, list[tuple[int, SourceCalibration]]] = {}
    for index, run in enumerate(view.runs):
        for source in run.score.calibration.sources:
            if source.n:
                key = f"{source.source.value}-{source.scale}"
                shared.setdefault(key, []).append((index, source))
                drawn.append((index, _source(f"r{index}-{key}", run, source, view.colour(index))))
    parts = [part for key, found in shared.items() if len(found) > 1 and (part := _overlaid(view, key, found))]
    overlaid = tag("div", parts, class_="overlaid") if parts else None
    lede = (
        "A forecast is the probability that the final differential gives to the doctor's diagnosis. Numbers from "
        "different sources are never pooled."
    )
    title = "How sure it was, and whether it should have been"
    return view.section("confidence", title, lede, drawn, overlaid, fold=overlaid is not None)


def _overlaid(view: View, key: str, found: Sequence[tuple[int, SourceCalibration]]) -> Html | None:
    """The runs that have a source of probabilities or scores, in one chart."""
    risks, bins = [], []
    for index, source in found:
        label, colour, points = view.letters[index], view.colour(index), _points(view.runs[index], source)
        if points:
            dots = [(p.mean_forecast, p.right.value or 0.0) for p in points]
            bins.append(charts.Series(label, colour, dots, sizes=[p.right.of for p in points]))
        if source.risk_coverage:
            risks.append(charts.Series(label, colour, [(p.coverage, p.risk) for p in source.risk_coverage]))
    figures = []
    if len(bins) > 1:
        x, y = "how sure it was", "how often it was right"
        chart = charts.together(f"rel-all-{key}", "Reliability", bins, x=x, y=y, ideal=True)
        about = "On the dashed line, it is right as often as it says. Large dots stand for many diagnoses."
        figures.append(figure("Reliability", about, chart))
    if len(risks) > 1:
        x, y = "share of diagnoses kept", "share wrong"
        chart = charts.together(f"risk-all-{key}", "Risk against coverage", risks, x=x, y=y)
        about = "How often it is wrong if only its surest diagnoses count. Lower is better."
        figures.append(figure("Risk against coverage", about, chart))
    title = tag("h3", f"{_named(found[0][1].source.value)} of all runs")
    return tag("div", title, tag("div", figures, class_="figures")) if figures else None


def _source(name: str, run: RunReport, source: SourceCalibration, colour: str) -> Html:
    kind = "probabilities" if source.scale == "probability" else "scores"
    counted = tag("small", f" {plural(source.n, 'diagnosis', 'diagnoses')}")
    title = tag("h3", f"{_named(source.source.value)} {kind}", counted)
    figures = [_reliability(name, _points(run, source), colour), _risk(name, source, colour)]
    return tag("div", title, tag("div", figures, class_="figures"), calibration_section(source).html())


def _named(source: str) -> str:
    return source.replace("_", " ").capitalize()


def _points(run: RunReport, source: SourceCalibration) -> list[ReliabilityPoint]:
    return [point for point in run.reliability if point.source == source.source.value and source.bins is not None]


def _reliability(name: str, points: Sequence[ReliabilityPoint], colour: str) -> Html | None:
    if not points:
        return None
    rows = [
        [
            f"{percent(point.low, 0)} to {percent(point.high, 0)}",
            *(point.right.of, percent(point.mean_forecast), percent(point.right.value), interval(point.right, 0)),
            f"{percent(point.band_low, 0)} to {percent(point.band_high, 0)}",
        ]
        for point in points
    ]
    head = ["forecast", "n", "mean", "right", "interval", "band"]
    about = (
        "Shaded: where 95% of the dots would lie if every forecast were true. Lines through the dots: 95% intervals. "
        "Below: the number of diagnoses in each tenth."
    )
    chart = charts.reliability(f"rel-{name}", points, colour)
    return figure("Reliability", about, chart, details("Numbers", table("Reliability in numbers", head, rows)))


def _risk(name: str, source: SourceCalibration, colour: str) -> Html | None:
    if not source.risk_coverage or source.accuracy.value is None:
        return None
    points = [(point.coverage, point.risk) for point in source.risk_coverage]
    rows = [[percent(p.coverage, 0), percent(p.risk), f"{p.threshold:.2f}"] for p in source.risk_coverage]
    chart = charts.risk_coverage(f"risk-{name}", points, 1 - source.accuracy.value, colour)
    numbers = table("Risk and coverage in numbers", ["kept", "wrong", "lowest forecast kept"], rows)
    about = (
        "How often it is wrong if only its surest diagnoses count. A line that rises to the right means that it knows "
        "when it may be wrong."
    )
    return figure("Risk against coverage", about, chart, details("Numbers", numbers))


# --- turn by turn ---------------------------------------------------------------------------------------------------


def turn_by_turn(view: View) -> Html | None:
    """The doubt left in the differential, by turn."""
    drawn = []
    shared: dict[str, list[charts.Series]] = {}
    for index, run in enumerate(view.runs):
        figures = []
        for source, course in run.score.information.differentials.items():
            series = _entropy(course, view.colour(index))
            if len(series.points) > 1:
                shared.setdefault(source, []).append(replace(series, label=view.letters[index]))
                about = f"{_named(source)}: the doubt left in the differential. 1 bit is a coin toss."
                chart = charts.lines(f"bits-r{index}-{source}", "Entropy by turn", [series], y="bits")
                figures.append(figure("Entropy by turn", about, chart))
        if figures:
            drawn.append((index, tag("div", figures, class_="figures")))
    together = [
        figure(
            "Entropy by turn",
            f"{_named(source)}: the doubt left in the differential.",
            charts.lines(f"bits-all-{source}", "Entropy by turn", several, y="bits"),
        )
        for source, several in shared.items()
        if len(several) > 1
    ]
    overlaid = tag("div", together, class_="figures overlaid") if together else None
    lede = "Encounters that have ended keep their last value. Shaded: 95% intervals."
    return view.section("turns", "Turn by turn", lede, drawn, overlaid, fold=overlaid is not None)


def _entropy(course: DifferentialCourse, colour: str) -> charts.Series:
    known = [(float(turn), one.value, one) for turn, one in course.entropy_bits.items() if one.value is not None]
    band = [(turn, e.low, e.high) for turn, _, e in known if e.low is not None and e.high is not None]
    return charts.Series("entropy", colour, [(turn, value) for turn, value, _ in known], band)
