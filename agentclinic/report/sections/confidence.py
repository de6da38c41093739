"""How sure the doctor was: reliability, risk and coverage, and how that changes from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.report import charts
from agentclinic.report.collect import ReliabilityPoint, RunReport
from agentclinic.report.numbers import calibration_section
from agentclinic.report.parts import View, details, figure, section
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
        "Confidence is the probability that the final differential gives to the doctor's diagnosis. Differentials from "
        "different sources are never pooled."
    )
    title = "Is its confidence justified?"
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
        x, y = "confidence", "share right"
        chart = charts.together(f"rel-all-{key}", "Reliability", bins, x=x, y=y, ideal=True)
        about = "On the dashed line, it is right as often as it says. Larger dots stand for more diagnoses."
        figures.append(figure("Reliability", about, chart))
    if len(risks) > 1:
        x, y = "diagnoses kept, most confident first", "share wrong"
        chart = charts.together(f"risk-all-{key}", "Risk against coverage", risks, x=x, y=y)
        about = "How often it is wrong if only its most confident diagnoses count. Lower is better."
        figures.append(figure("Risk against coverage", about, chart))
    title = tag("h3", f"{_named(found[0][1].source.value)}, all runs")
    return tag("div", title, tag("div", figures, class_="figures")) if figures else None


def _source(name: str, run: RunReport, source: SourceCalibration, colour: str) -> Html:
    counted = tag("small", f" {plural(source.n, 'diagnosis', 'diagnoses')}")
    title = tag("h3", _named(source.source.value), counted)
    figures = [_reliability(name, _points(run, source), colour), _risk(name, source, colour)]
    return tag("div", title, tag("div", figures, class_="figures"), calibration_section(source).html())


_SOURCES = {
    "posterior": "Probabilities computed by the doctor's program",
    "stated": "Probabilities stated by the doctor",
    "elicited": "Probabilities asked for after the diagnosis",
    "planner_score": "Scores of the planner, which are not probabilities",
    "planner_posterior": "Probabilities computed from the planner's table",
}


def _named(source: str) -> str:
    return f"{_SOURCES.get(source, 'Other numbers')} ({source.replace('_', ' ')})"


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
    head = ["confidence", "n", "mean", "right", "interval", "band"]
    about = (
        "Shaded: where 95% of the dots would lie if the confidence were justified. Lines through the dots: 95% "
        "intervals. Below: the number of diagnoses in each tenth."
    )
    chart = charts.reliability(f"rel-{name}", points, colour)
    return figure("Reliability", about, chart, details("Numbers", table("Reliability in numbers", head, rows)))


def _risk(name: str, source: SourceCalibration, colour: str) -> Html | None:
    if not source.risk_coverage or source.accuracy.value is None:
        return None
    points = [(point.coverage, point.risk) for point in source.risk_coverage]
    rows = [[percent(p.coverage, 0), percent(p.risk), f"{p.threshold:.2f}"] for p in source.risk_coverage]
    series, overall = [charts.Series("", colour, points)], 1 - source.accuracy.value
    x, y = "diagnoses kept, most confident first", "share wrong"
    chart = charts.together(f"risk-{name}", "Risk against coverage", series, x=x, y=y, chance=overall)
    numbers = table("Risk and coverage in numbers", ["kept", "wrong", "lowest confidence kept"], rows)
    about = (
        "How often it is wrong if only its most confident diagnoses count. A line that rises to the right means that "
        "it knows when it may be wrong."
    )
    return figure("Risk against coverage", about, chart, details("Numbers", numbers))


# --- turn by turn ---------------------------------------------------------------------------------------------------


def turn_by_turn(view: View) -> Html | None:
    """The uncertainty left in the differential, by turn."""
    found: dict[str, list[charts.Series]] = {}
    for index, run in enumerate(view.runs):
        for source, course in run.score.information.differentials.items():
            series = _entropy(course, view.letters[index] if view.several else "entropy", view.colour(index))
            if len(series.points) > 1:
                found.setdefault(source, []).append(series)
    figures = []
    for source, several in found.items():
        about = (
            f"{_named(source)}. Entropy is the uncertainty left in the differential: 0 bits is none, 1 bit a coin toss "
            "between two diagnoses."
        )
        figures.append(
            figure("Entropy by turn", about, charts.lines(f"bits-{source}", "Entropy by turn", several, y="bits"))
        )
    lede = "Encounters that have ended count with their last value. Shaded: 95% intervals."
    drawn = tag("div", figures, class_="figures")
    return section("turns", "How it narrows the differential", lede, drawn) if figures else None


def _entropy(course: DifferentialCourse, label: str, colour: str) -> charts.Series:
    known = [(float(turn), one.value, one) for turn, one in course.entropy_bits.items() if one.value is not None]
    band = [(turn, e.low, e.high) for turn, _, e in known if e.low is not None and e.high is not None]
    return charts.Series(label, colour, [(turn, value) for turn, value, _ in known], band)
