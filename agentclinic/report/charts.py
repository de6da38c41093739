"""Charts as plain SVG, each with a title and a description for screen readers.

Colours come from classes in the page's style sheet, so that light, dark and print share one drawing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentclinic.report.collect import ReliabilityPoint
from agentclinic.report.tables import Html, plural, tag

WIDTH, HEIGHT = 440, 320
"""About the size of a chart on a wide page, so that text is not scaled."""


@dataclass(frozen=True)
class Frame:
    """Maps the values of two axes to places on the drawing."""

    x0: float
    x1: float
    y0: float
    y1: float
    width: float = WIDTH
    height: float = HEIGHT
    left: float = 64
    right: float = 16
    top: float = 14
    bottom: float = 46

    def x(self, value: float) -> float:
        """Place of a value on the horizontal axis."""
        inner = self.width - self.left - self.right
        return round(self.left + inner * (value - self.x0) / ((self.x1 - self.x0) or 1), 1)

    def y(self, value: float) -> float:
        """Place of a value on the vertical axis."""
        inner = self.height - self.top - self.bottom
        return round(self.height - self.bottom - inner * (value - self.y0) / ((self.y1 - self.y0) or 1), 1)


def svg(name: str, title: str, description: str, *parts: object, width: float = WIDTH, height: float = HEIGHT) -> Html:
    """A drawing with a description; `name` makes its ids unique on the page."""
    return tag(
        "svg",
        tag("title", title, id=f"{name}-t"),
        tag("desc", description, id=f"{name}-d"),
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
        class_="chart",
    )


def words(x: float, y: float, text: str, anchor: str = "middle", class_: str = "tick") -> Html:
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=class_)


def axes(frame: Frame, xs: Sequence[tuple[float, str]], ys: Sequence[tuple[float, str]], x: str, y: str) -> list[Html]:
    """Grid lines and the names of values and axes."""
    left, right, low, high = frame.x(frame.x0), frame.x(frame.x1), frame.y(frame.y0), frame.y(frame.y1)
    parts = [tag("line", x1=left, x2=right, y1=frame.y(v), y2=frame.y(v), class_="grid") for v, _ in ys]
    parts += [words(left - 8, frame.y(v) + 4, text, "end") for v, text in ys]
    parts += [words(frame.x(v), low + 18, text) for v, text in xs]
    parts += [tag("line", x1=frame.x(v), x2=frame.x(v), y1=low, y2=low + 4, class_="axis") for v, _ in xs]
    parts.append(tag("line", x1=left, x2=right, y1=low, y2=low, class_="axis"))
    parts.append(words((left + right) / 2, frame.height - 6, x, class_="name"))
    middle = (low + high) / 2
    parts.append(
        tag("text", y, x=0, y=0, text_anchor="middle", class_="name", transform=f"translate(12 {middle:g}) rotate(-90)")
    )
    return parts


def percents(top: float = 1.0, steps: int = 4) -> list[tuple[float, str]]:
    return [(top * i / steps, f"{100 * top * i / steps:g}%") for i in range(steps + 1)]


def nice(top: float, steps: int = 4) -> list[float]:
    """Round marks from 0 to at least `top`."""
    if top <= 0:
        return [0.0, 1.0]
    raw = top / steps
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= raw * 0.999)
    return [step * i for i in range(math.ceil(top / step - 1e-9) + 1)]


def path(points: Sequence[tuple[float, float]], class_: str) -> Html:
    return tag("path", d="M" + "L".join(f"{x:g} {y:g}" for x, y in points), class_=class_, fill="none")


def area(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], class_: str) -> Html:
    points = [*upper, *reversed(lower)]
    return tag("polygon", points=" ".join(f"{x:g},{y:g}" for x, y in points), class_=class_)


# --- the charts -----------------------------------------------------------------------------------------------------


def reliability(name: str, points: Sequence[ReliabilityPoint], colour: str) -> Html:
    """Share right against forecast, with the band of chance and the number of forecasts in each bin."""
    frame = Frame(0, 1, 0, 1, height=380, bottom=84)
    parts = axes(frame, percents(), percents(), "confidence", "share right")
    for one in points:
        x, width = frame.x(one.low) + 1, frame.x(one.high) - frame.x(one.low) - 2
        y, height = frame.y(one.band_high), frame.y(one.band_low) - frame.y(one.band_high)
        parts.append(tag("rect", x=x, y=y, width=width, height=max(1.5, height), class_="band-chance"))
    parts.append(path([(frame.x(0), frame.y(0)), (frame.x(1), frame.y(1))], "ideal"))
    most = max((one.right.of for one in points), default=1)
    base = frame.height - 28
    shown = []
    for one in points:
        n, right, low, high = one.right.of, one.right.value or 0.0, one.right.low or 0.0, one.right.high or 0.0
        x, said = frame.x(one.mean_forecast), f"{one.mean_forecast:.0%} sure, {right:.0%} right"
        shown.append(f"{said} ({n})")
        radius = round(3 + 5 * math.sqrt(n / most), 1)
        parts.append(tag("line", x1=x, x2=x, y1=frame.y(low), y2=frame.y(high), class_=f"whisker {colour}"))
        parts.append(
            _point(frame, one.mean_forecast, right, colour, f"{plural(n, 'diagnosis', 'diagnoses')}, {said}", radius)
        )
        tall, middle = max(1.0, round(16 * n / most, 1)), frame.x((one.low + one.high) / 2)
        wide = frame.x(one.high) - frame.x(one.low) - 8
        parts.append(tag("rect", x=middle - wide / 2, y=base - tall, width=wide, height=tall, class_=f"count {colour}"))
        parts.append(words(middle, base - tall - 3, str(n), class_="small"))
    description = f"By tenth of the scale: {'; '.join(shown)}."
    return svg(name, "Reliability diagram", description, *parts, height=frame.height)


def together(
    name: str, title: str, series: Sequence[Series], *, x: str, y: str, ideal: bool = False, chance: float = 0.0
) -> Html:
    """Shares of runs against shares, each run a line with dots; `ideal` adds the diagonal, `chance` a level."""
    top = 1.0 if ideal else min(1.0, nice(max([chance, *(v for one in series for _, v in one.points)]))[-1])
    frame = Frame(0, 1, 0, top or 1.0, right=40)
    parts = axes(frame, percents(), percents(top or 1.0), x, y)
    if ideal:
        parts.append(path([(frame.x(0), frame.y(0)), (frame.x(1), frame.y(1))], "ideal"))
    if chance:
        level = frame.y(chance)
        parts.append(tag("line", x1=frame.x(0), x2=frame.x(1), y1=level, y2=level, class_="ideal"))
        parts.append(words(frame.x(0) + 4, level - 6, "in random order", "start", "small"))
    most = max((n for one in series for n in one.sizes), default=1)
    for one in series:
        style = f"line {'faint ' if one.sizes else ''}{one.colour}"
        parts.append(path([(frame.x(a), frame.y(b)) for a, b in one.points], style))
        for (a, b), n in zip(one.points, one.sizes or [0] * len(one.points), strict=True):
            said, radius = f"{one.label} {x} {a:.0%}, {y} {b:.0%}".lstrip(), round(2.6 + 5 * math.sqrt(n / most), 1)
            parts.append(
                _point(frame, a, b, one.colour, f"{said}, {plural(n, 'diagnosis', 'diagnoses')}" if n else said, radius)
            )
    parts += _ends(frame, series)
    shown = [f"{one.label}: " + ", ".join(f"{a:.0%} {b:.0%}" for a, b in one.points[::2]) for one in series]
    return svg(name, title, f"{x}, then {y}. {'; '.join(shown)}.", *parts)


def _ends(frame: Frame, series: Sequence[Series], right: float = 8) -> list[Html]:
    """The labels of lines, where they end."""
    places = _spread([frame.y(one.points[-1][1]) for one in series])
    below = max(0.0, max(places, default=0.0) - frame.y(frame.y0))
    places = [place - below for place in places]  # all of them, so that they stay in order
    return [
        words(frame.x(one.points[-1][0]) + right, place + 4, one.label, "start", f"label {one.colour}")
        for one, place in zip(series, places, strict=True)
    ]


def _point(frame: Frame, x: float, y: float, colour: str, title: str, radius: float) -> Html:
    return tag("circle", tag("title", title), cx=frame.x(x), cy=frame.y(y), r=radius, class_=f"dot {colour}")


@dataclass(frozen=True)
class Series:
    """A line with its band."""

    label: str
    colour: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()
    """x, low, high"""
    sizes: Sequence[int] = ()
    """How many diagnoses are behind each point, if that differs."""


def lines(name: str, title: str, series: Sequence[Series], *, y: str) -> Html:
    """Values by turn."""
    last = max((x for one in series for x, _ in one.points), default=1)
    highest = max([v for one in series for _, v in one.points] + [h for one in series for *_, h in one.band] + [0.01])
    marks = nice(highest)
    frame = Frame(1, max(2.0, last), 0, marks[-1], right=96)
    ys = [(v, f"{v:g}") for v in marks]
    turns = sorted({x for one in series for x, _ in one.points})
    step = max(1, math.ceil(len(turns) / 8))
    xs = [(x, f"{x:g}") for x in (turns if len(turns) <= 8 else turns[::step])]
    parts = axes(frame, xs, ys, "turn", y)
    for one in series:
        if one.band:
            upper = [(frame.x(x), frame.y(high)) for x, _, high in one.band]
            parts.append(area(upper, [(frame.x(x), frame.y(low)) for x, low, _ in one.band], f"band {one.colour}"))
    for one in series:
        style = f"line {one.colour}"
        parts.append(path([(frame.x(x), frame.y(v)) for x, v in one.points], style))
        if len(one.points) <= 8:
            parts += [_point(frame, x, v, one.colour, f"turn {x:g}: {one.label} {v:.2f}", 3) for x, v in one.points]
    parts += _ends(frame, series)
    shown = [
        f"{one.label}: " + ", ".join(f"turn {x:g} {v:.2f}" for x, v in one.points[:: max(1, len(one.points) // 8)])
        for one in series
    ]
    return svg(name, title, "; ".join(shown) + ".", *parts)


def by_budget(name: str, series: Sequence[Series], marks: Sequence[float]) -> Html:
    """Share right against the budget for tests, on a log axis with these marks: a line with its band for each run."""
    log = math.log10
    frame = Frame(log(marks[0]), log(marks[-1]), 0, 1, right=40)
    xs = [(log(usd), f"${usd:,}") for usd in marks]
    parts = axes(frame, xs, percents(), "budget for tests, per encounter (log scale)", "share right within the budget")
    for one in series:
        upper = [(frame.x(log(usd)), frame.y(high)) for usd, _, high in one.band]
        parts.append(area(upper, [(frame.x(log(usd)), frame.y(low)) for usd, low, _ in one.band], f"band {one.colour}"))
    for one in series:
        parts.append(path([(frame.x(log(usd)), frame.y(right)) for usd, right in one.points], f"line {one.colour}"))
        for (usd, right), (_, low, high) in zip(one.points, one.band, strict=True):
            said = f"{one.label} ${usd:,}: {right:.0%} right ({low:.0%} to {high:.0%})".lstrip()
            parts.append(_point(frame, log(usd), right, one.colour, said, 3))
    named = [one for one in series if one.label]
    parts += _ends(frame, [replace(one, points=[(log(one.points[-1][0]), one.points[-1][1])]) for one in named])
    shown = [
        f"{one.label} ".lstrip() + ", ".join(f"${usd:,} {right:.0%}" for usd, right in one.points) for one in series
    ]
    return svg(name, "Accuracy by budget", f"Budget, then share right. {'; '.join(shown)}.", *parts)


@dataclass(frozen=True)
class DosePanel:
    """One measure against the level of each trait: the change from level 0."""

    title: str
    note: str
    """What the change is from: the value at level 0."""
    show: Callable[[float], str]
    """A change as text."""
    mark: Callable[[float], str]
    """A value on the vertical axis as text."""
    little: float
    """The axis reaches at least this far from 0, so that noise does not look like an effect."""
    series: Sequence[Series]
    """Levels and changes; the bands are their intervals."""

    @property
    def description(self) -> str:
        """The numbers in words."""
        told = []
        for one in self.series:
            limits = {x: f" ({self.show(low)} to {self.show(high)})" for x, low, high in one.band}
            points = ", ".join(f"level {x:g} {self.show(y)}{limits.get(x, '')}" for x, y in one.points if x)
            told.append(f"{one.label}: {points}")
        return f"{self.title}: {self.note}, with 95% intervals. {'; '.join(told)}."

    def drawn(self, levels: Sequence[int]) -> list[Html]:
        """A line with whiskers for each trait, next to each other where they meet."""
        reach = [limit for one in self.series for _, low, high in one.band for limit in (low, high)]
        reach += [y for one in self.series for _, y in one.points]
        low, high = min([-self.little, *reach]), max([self.little, *reach])
        step = nice(high - low)[1]
        marks = [step * i for i in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]
        apart = 0.05 * (levels[-1] - levels[0])
        frame = Frame(levels[0] - apart, levels[-1] + apart, marks[0], marks[-1], 380, 264, right=100, top=48)
        parts = axes(frame, [(x, str(x)) for x in levels], [(y, self.mark(y)) for y in marks], "level", "")
        parts.append(words(frame.left, 16, self.title, "start", "label"))
        parts.append(words(frame.left, 33, self.note, "start", "small"))
        zero = frame.y(0)
        parts.append(tag("line", x1=frame.x(frame.x0), x2=frame.x(frame.x1), y1=zero, y2=zero, class_="ideal"))
        for place, one in enumerate(self.series):
            aside = (place - (len(self.series) - 1) / 2) * apart / 3
            at = {x: frame.x(x + aside if x else x) for x, _ in one.points}
            parts.append(path([(at[x], frame.y(y)) for x, y in one.points], f"line {one.colour}"))
            for x, least, most in one.band:
                ends = {"y1": frame.y(least), "y2": frame.y(most)}
                parts.append(tag("line", x1=at[x], x2=at[x], **ends, class_=f"whisker {one.colour}"))
            parts += [
                tag(
                    "circle",
                    tag("title", f"{one.label}, level {x:g}: {self.show(y)}"),
                    cx=at[x],
                    cy=frame.y(y),
                    r=3.2,
                    class_=f"dot {one.colour}",
                )
                for x, y in one.points
                if x
            ]
        return [*parts, *_ends(frame, self.series, right=14)]


def dose_panel(name: str, panel: DosePanel, levels: Sequence[int]) -> Html:
    """One measure as a drawing of its own."""
    return svg(name, panel.title, panel.description, *panel.drawn(levels), width=380, height=264)


_PLAIN = """
svg { font-family: system-ui, "Segoe UI", Roboto, "DejaVu Sans", Arial, sans-serif; }
text { fill: #545e67; font-size: 12px; } .name { fill: #1b2227; font-size: 12.5px; } .small { font-size: 11px; }
.label { fill: #1b2227; font-size: 12.5px; font-weight: 600; }
.paper { fill: #f8f7f3; } .grid { stroke: #e1ded5; } .axis { stroke: #b9b5aa; }
.ideal { stroke: #545e67; stroke-width: 1.2; stroke-dasharray: 4 4; }
.line { stroke-width: 2.2; stroke-linejoin: round; stroke-linecap: round; }
.whisker { stroke-width: 1.6; opacity: .75; }
"""
_COLOURS = {
    "c0": ("#0f6674", "#6cc1ce"),
    "c1": ("#b0561c", "#eda066"),
    "c2": ("#65489a", "#b6a0e6"),
    "c3": ("#3c7320", "#9bcb7b"),
    "c4": ("#a02f68", "#ea94bf"),
}
"""Those of base.css, on light and on dark paper: a file of its own has no style sheet."""
_DARK = "text { fill: #a9b2b9; } .name, .label { fill: #e7e9e6; } .paper { fill: #13171a; } .grid { stroke: #2f373d; }"


def dose_file(title: str, note: str, panels: Sequence[DosePanel], levels: Sequence[int]) -> str:
    """All measures as one SVG file, three in a row."""
    columns = min(3, len(panels))
    width, height = 380 * columns + 32, 264 * math.ceil(len(panels) / columns) + 62
    light, dark = (
        " ".join(
            f".line.{key}, .whisker.{key} {{ stroke: {hue[place]}; }} "
            f".dot.{key}, .label.{key} {{ fill: {hue[place]}; }}"
            for key, hue in _COLOURS.items()
        )
        for place in (0, 1)
    )
    style = f"{_PLAIN}{light}\n@media (prefers-color-scheme: dark) {{ {_DARK} {dark} }}\n"
    drawn = [
        tag("g", *panel.drawn(levels), transform=f"translate({16 + 380 * (i % columns)} {54 + 264 * (i // columns)})")
        for i, panel in enumerate(panels)
    ]
    made = tag(
        "svg",
        tag("title", title, id="t"),
        tag("desc", " ".join(panel.description for panel in panels), id="d"),
        tag("style", Html(style)),
        tag("rect", width=width, height=height, class_="paper"),
        words(16, 24, title, "start", "label"),
        words(16, 42, note, "start", "small"),
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_labelledby="t d",
        width=width,
        height=height,
    )
    return f"{made}\n"


def bars(name: str, title: str, turns: Mapping[int, Sequence[tuple[str, float, str]]], *, y: str) -> Html:
    """Values by turn, stacked by kind: what each is, how much, and its class."""
    last, totals = max(turns), {turn: math.fsum(value for _, value, _ in parts) for turn, parts in turns.items()}
    marks = nice(max(totals.values()))
    frame = Frame(0.5, last + 0.5, 0, marks[-1])
    xs = [(turn, str(turn)) for turn in range(1, last + 1, math.ceil(last / 10))]
    drawn = axes(frame, xs, [(v, f"{v:g}") for v in marks], "turn", y)
    for turn, parts in turns.items():
        below = 0.0
        for kind, value, colour in parts:
            place = {"x": frame.x(turn - 0.4), "width": round(frame.x(turn + 0.4) - frame.x(turn - 0.4), 1)}
            top, foot = frame.y(below + value), frame.y(below)
            about = tag("title", f"turn {turn}, {kind}: {value:.2f}")
            if value:
                drawn.append(tag("rect", about, **place, y=top, height=round(foot - top, 1), class_=colour))
            below += value
    shown = [
        f"turn {turn} {totals[turn]:.2f}" + "".join(f", {kind} {value:.2f}" for kind, value, _ in parts if value)
        for turn, parts in turns.items()
    ]
    return svg(name, title, "; ".join(shown) + ".", *drawn)


def _spread(places: Sequence[float], least: float = 15) -> list[float]:
    """The places, moved down where labels would overlap."""
    moved = list(places)
    before = -math.inf
    for index in sorted(range(len(places)), key=lambda i: places[i]):
        moved[index] = before = max(places[index], before + least)
    return moved


@dataclass(frozen=True)
class Point:
    """A mean price with an accuracy."""

    label: str
    colour: str
    usd: float
    value: float
    low: float | None
    high: float | None
    about: str


def price_by_run(name: str, points: Sequence[Point]) -> Html:
    """Accuracy against mean price, a dot for each run."""
    marks = nice(max(1.0, *(p.usd for p in points)))
    frame = Frame(0, marks[-1], 0, 1, right=24)
    xs = [(v, f"${v:,.0f}" if marks[-1] >= 8 else f"${v:.2f}") for v in marks]
    parts = axes(frame, xs, percents(), "tests per encounter, mean price", "share right")
    for point in points:
        place = frame.x(point.usd)
        if point.low is not None and point.high is not None:
            ends = {"y1": frame.y(point.low), "y2": frame.y(point.high)}
            parts.append(tag("line", x1=place, x2=place, **ends, class_=f"whisker {point.colour}"))
        title = f"{point.label}: mean ${point.usd:,.2f}, {point.value:.1%} right, {point.about}"
        parts.append(_point(frame, point.usd, point.value, point.colour, title, 5))
        x, anchor = (place - 10, "end") if place > frame.width - 60 else (place + 10, "start")
        parts.append(words(x, frame.y(point.value) - 8, point.label, anchor, f"label {point.colour}"))
    shown = "; ".join(f"{p.label}: ${p.usd:,.2f}, {p.value:.0%} right" for p in points)
    return svg(name, "Price against accuracy, run by run", shown + ".", *parts)


def stacked(parts: Sequence[tuple[float, str, str]], *, width: float = 600, height: float = 26) -> Html:
    """A bar made of shares (share, class, title); it only illustrates the numbers next to it."""
    drawn, x = [], 0.0
    for share, colour, title in parts:
        if share <= 0:
            continue
        wide = max(1.0, width * share - 1.5)
        drawn.append(
            tag("rect", tag("title", title), x=round(x, 1), y=0, width=round(wide, 1), height=height, class_=colour)
        )
        x += width * share
    return tag(
        "svg", *drawn, viewBox=f"0 0 {width:g} {height:g}", preserveAspectRatio="none", class_="bar", aria_hidden="true"
    )


@dataclass(frozen=True)
class Mark:
    """A value with its interval on a line from 0 to 1."""

    value: float
    low: float | None
    high: float | None
    colour: str
    outer: tuple[float, float] | None = None
    """Bounds beyond the interval."""


def strip(marks: Sequence[Mark], *, width: float = 260, row: float = 16) -> Html:
    """Intervals on a line from 0 to 100%, one below the other; they only illustrate the numbers next to them."""
    height = row * max(1, len(marks)) + 2
    pad = 6

    def at(value: float) -> float:
        return round(pad + (width - 2 * pad) * value, 1)

    drawn = [tag("line", x1=at(v), x2=at(v), y1=0, y2=height, class_="grid") for v in (0, 0.25, 0.5, 0.75, 1)]
    for index, mark in enumerate(marks):
        y = row * index + row / 2 + 1
        if mark.outer:
            drawn.append(tag("line", x1=at(mark.outer[0]), x2=at(mark.outer[1]), y1=y, y2=y, class_="dotted"))
            drawn += [tag("line", x1=at(v), x2=at(v), y1=y - 5, y2=y + 5, class_="bound") for v in mark.outer]
        if mark.low is not None and mark.high is not None:
            drawn.append(
                tag("line", x1=at(mark.low), x2=at(mark.high), y1=y, y2=y, class_=f"whisker wide {mark.colour}")
            )
        drawn.append(tag("circle", cx=at(mark.value), cy=y, r=4.5, class_=f"dot {mark.colour}"))
    return tag("svg", *drawn, viewBox=f"0 0 {width:g} {height:g}", class_="strip", aria_hidden="true")
