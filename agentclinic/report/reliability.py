"""A reliability study as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentclinic.report.tables import DASH, Section, plural
from agentclinic.scoring.format import as_number, number, percent
from agentclinic.scoring.reliability import CASES, GOAL, MOST_CASES, CaseDiscrimination, Component, ReliabilityReport
from agentclinic.scoring.stats import Estimate

_LISTED = 4
"""Cases named in the table; --json has all."""


def sections(report: ReliabilityReport) -> Iterator[Section]:
    judges = f" × {plural(len(report.judges), 'judge')}" if len(report.judges) > 1 else ""
    size = f"{plural(report.cases, 'case')} × {plural(report.repeats, 'repeat')}{judges}"
    right = ", ".join(f"{name} {percent(share)}" for name, share in report.doctors.items())
    yield _components(f"{len(report.doctors)} doctors × {size}", report.components, f"Right: {right}.")
    rows = [("G, of their differences", as_number(report.g)), ("Φ, of each accuracy", as_number(report.phi))]
    yield Section(f"Reliability with {size} (95% interval)", rows, (), ("", ""))
    cells = [[cases, *(number(plan.phi[cases], 2, DASH) for plan in report.plans)] for cases in CASES]
    needed = [f"for Φ {GOAL}", *(_needed(plan.cases_needed) for plan in report.plans)]
    head = ["cases", *(plural(plan.repeats, "repeat") for plan in report.plans)]
    yield Section("Φ by cases and repeats, and the cases it takes (95% interval)", [*cells, needed], (), head)
    if report.twin_components:
        yield _components(f"{report.twin_pairs} twin pairs: case and pair", report.twin_components)
    if report.discrimination:
        yield _discrimination(report.discrimination)
    yield Section("What to keep in mind", [[note] for note in report.notes], (), [""])


def text(report: ReliabilityReport) -> list[str]:
    """The tables as lines, with an empty line between two."""
    return [line for section in sections(report) for line in ("", *section.text())][1:]


def _components(title: str, components: Sequence[Component], *notes: str) -> Section:
    rows = [
        (one.effect, one.df, as_number(one.variance, 4), percent(one.share, 0, DASH), one.variance.note or "")
        for one in components
    ]
    return Section(title, rows, notes, ("component", "df", "variance (95% interval)", "share", ""))


def _needed(cases: Estimate) -> str:
    if cases.value is None and cases.low is None:
        return f"not below {MOST_CASES:,}"
    value, low, high = (number(one, 0, f"over {MOST_CASES:,}") for one in (cases.value, cases.low, cases.high))
    return f"{value} ({low} to {high})"


def _discrimination(cases: Sequence[CaseDiscrimination]) -> Section:
    better = [case for case in cases if (case.correlation or 0) > 0]
    worse = [case for case in reversed(cases) if (case.correlation or 0) < 0]
    right, wrong = (sum(set(case.right) == {share} for case in cases) for share in (1, 0))
    counts = [
        ("all doctors are right", right, ""),
        ("all doctors are wrong", wrong, ""),
        ("better doctors do better", len(better), _named(better)),
        ("better doctors do worse", len(worse), _named(worse)),
    ]
    other = len(cases) - right - wrong - len(better) - len(worse)
    rows = [*counts, *([("none of these", other, "")] if other else [])]
    head = ("on the case", "cases", "correlation with the other cases, over doctors")
    return Section("Which cases tell the doctors apart", rows, (), head)


def _named(cases: Sequence[CaseDiscrimination]) -> str:
    listed = ", ".join(f"{case.name} {number(case.correlation)}" for case in cases[:_LISTED])
    return f"{listed}, …" if len(cases) > _LISTED else listed
