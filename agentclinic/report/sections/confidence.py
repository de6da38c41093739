"""How sure the doctor was: reliability, risk and coverage, and how that changes from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence

from agentclinic.report import charts
from agentclinic.report.collect import RunReport
from agentclinic.report.numbers import calibration_section
from agentclinic.report.parts import View, details, figure, note
from agentclinic.report.tables import Html, plural, tag
from agentclinic.report.tables import html_table as table
from agentclinic.scoring.calibration import SourceCalibration
from agentclinic.scoring.estimates import Estimate
from agentclinic.scoring.format import as_percent, interval, percent
from agentclinic.scoring.metrics import DifferentialCourse


def confidence(view: View) -> Html | None:
    drawn = [
        (index, _source(view, index, run, source))
        for index, run in enumerate(view.runs)
        for source in run.score.calibration.sources
        if source.n
    ]
    lede = (
        "A forecast is the probability that the final differential gives to the doctor's diagnosis. Numbers from "
        "different sources are never pooled."
    )
    title, overlaid = "How sure it was, and whether it should have been", _overlaid(view)
    return view.section("confidence", title, lede, drawn, overlaid, fold=overlaid is not None)


def _overlaid(view: View) -> Html | None:
    """The runs in one chart, for each source of probabilities or scores that several of them have."""
    parts = []
    for key, found in _shared(view).items():
        risks, bins = [], []
        for index, source in found:
            label, colour = view.letters[index], view.colour(index)
            points = [p for p in view.runs[index].reliability if p.source == source.source.value]
            if source.bins is not None and points:
                dots = [(p.mean_forecast, p.right.value or 0.0) for p in points]
                bins.append(charts.Series(label, colour, dots, sizes=[p.right.of for p in points]))
            if source.risk_coverage:
                risks.append(charts.Series(label, colour, [(p.coverage, p.risk) for p in source.risk_coverage]))
        figures = []
        if len(bins) > 1:
            chart = charts.together(
                f"rel-all-{key}", "Reliability", bins, x="how sure it was", y="how often it was right", ideal=True
            )
            about = "On the dashed line, it is right as often as it says. Large dots stand for many diagnoses."
            figures.append(figure("Reliability", about, chart))
        if len(risks) > 1:
            chart = charts.together(
                f"risk-all-{key}", "Risk against coverage", risks, x="share of diagnoses kept", y="share wrong"
            )
            about = "How often it is wrong if only its surest diagnoses count. Lower is better."
            figures.append(figure("Risk against coverage", about, chart))
        if figures:
            parts.append(
                tag("div", tag("h3", f"{_called(found[0][1])} of all runs"), tag("div", figures, class_="figures"))
            )
    return tag("div", parts, class_="overlaid") if parts else None


def _shared(view: View) -> dict[str, list[tuple[int, SourceCalibration]]]:
    """The sources that several runs have, with the runs' numbers."""
    found: dict[str, list[tuple[int, SourceCalibration]]] = {}
    for index, run in enumerate(view.runs):
        for source in run.score.calibration.sources:
            if source.n:
                found.setdefault(f"{source.source.value}-{source.scale}", []).append((index, source))
    return {key: several for key, several in found.items() if len(several) > 1}


def _source(view: View, index: int, run: RunReport, source: SourceCalibration) -> Html:
    name, colour = f"r{index}-{source.source.value}-{source.scale}", view.colour(index)
    title = tag(
        "h3", f"{_called(source)} {_kind(source)}", tag("small", f" {plural(source.n, 'diagnosis', 'diagnoses')}")
    )
    figures = [_reliability(name, run, source, colour), _risk(name, source, colour)]
    return tag("div", title, tag("div", figures, class_="figures"), calibration_section(source).html())


def _kind(source: SourceCalibration) -> str:
    return "probabilities" if source.scale == "probability" else "scores"


def _called(source: SourceCalibration) -> str:
    return source.source.value.replace("_", " ").capitalize()


def _reliability(name: str, run: RunReport, source: SourceCalibration, colour: str) -> Html | None:
    points = [point for point in run.reliability if point.source == source.source.value]
    if source.bins is None or not points:
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
    for index, run in enumerate(view.runs):
        figures = _entropies(view, index, run)
        if figures:
            drawn.append((index, tag("div", figures, class_="figures")))
    lede = "Encounters that have ended keep their last value. Shaded: 95% intervals."
    overlaid = _turns_overlaid(view)
    return view.section("turns", "Turn by turn", lede, drawn, overlaid, fold=overlaid is not None)


def _turns_overlaid(view: View) -> Html | None:
    """The doubt of several runs in one chart, by source."""
    figures = []
    courses: dict[str, list[charts.Series]] = {}
    for index, run in enumerate(view.runs):
        for name, course in run.score.information.differentials.items():
            points = [(turn, bits) for turn, bits in course.entropy_bits.items() if bits.value is not None]
            if len(points) > 1:
                courses.setdefault(name, []).append(_series(view.letters[index], view.colour(index), points))
    for name, series in courses.items():
        if len(series) > 1:
            chart = charts.lines(f"bits-all-{name}", "Entropy by turn", series, y="bits")
            about = f"{name.replace('_', ' ').capitalize()}: the doubt left in the differential."
            figures.append(figure("Entropy by turn", about, chart))
    return tag("div", figures, class_="figures overlaid") if figures else None


def _entropies(view: View, index: int, run: RunReport) -> list[Html]:
    return [
        _entropy(f"bits-r{index}-{source}", source, course, view.colour(index))
        for source, course in run.score.information.differentials.items()
        if sum(bits.value is not None for bits in course.entropy_bits.values()) > 1
    ]


def _entropy(name: str, source: str, course: DifferentialCourse, colour: str) -> Html:
    points = [(turn, bits) for turn, bits in course.entropy_bits.items() if bits.value is not None]
    chart = charts.lines(name, "Entropy by turn", [_series("entropy", colour, points)], y="bits")
    about = f"{source.replace('_', ' ').capitalize()}: the doubt left in the differential. 1 bit is a coin toss."
    truth = (
        f"The truth was ever listed: {as_percent(course.truth_appeared)}. It was ever first: "
        f"{as_percent(course.truth_led)}. It was dropped after being first: {as_percent(course.truth_dropped)}."
    )
    return figure("Entropy by turn", about, chart, note(truth))


def _series(label: str, colour: str, points: Sequence[tuple[int, Estimate]]) -> charts.Series:
    known = [(float(turn), one.value, one) for turn, one in points if one.value is not None]
    band = [(turn, e.low, e.high) for turn, _, e in known if e.low is not None and e.high is not None]
    return charts.Series(label, colour, [(turn, value) for turn, value, _ in known], band)
