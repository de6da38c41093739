"""Units, and values that are impossible for any patient or for this age."""

from __future__ import annotations

from collections.abc import Iterator

from agentclinic.cases.values import names_a_unit, table
from agentclinic.lint.chart import Chart
from agentclinic.lint.problem import Problem, error, warning


def check_units(chart: Chart) -> Iterator[Problem]:
    """Every known analyte has a unit in which it is measured."""
    for value in chart.measured:
        if value.unit is not None:
            continue
        usual = ", ".join(value.analyte.units)
        if names_a_unit(value.rest):
            message = f"{value.text!r}: {value.analyte.name} is not measured in this unit ({usual})"
            yield error("unit_wrong", value.path, message)
        else:
            yield error("unit_missing", value.path, f"{value.text!r} has no unit; write one of {usual}")


def check_possible(chart: Chart) -> Iterator[Problem]:
    """No value is beyond what a living patient can have."""
    for value in chart.measured:
        limits, number = value.analyte.possible, value.number
        if limits is None and value.unit == "%":
            limits = (0, 100)
        if limits is None or number is None:
            continue
        low, high = limits
        if (number < low and value.limit != "<") or (number > high and value.limit != ">"):
            message = f"{value.analyte.name} is between {low:g} and {high:g} {next(iter(value.analyte.units))}".rstrip()
            yield error("impossible_value", value.path, f"{value.text!r}: {message}")


def check_age_bands(chart: Chart) -> Iterator[Problem]:
    """Children have values of their age, and adults do not have an infant's."""
    if chart.age is None:
        return
    numbers = [(m.analyte.name, m.path, m.value) for m in chart.measured if m.exact and "Standing" not in m.path]
    numbers += [("systolic", p.path, p.systolic) for p in chart.pressures]
    bands = table("vitals_by_age")
    band = next((b for b in bands["bands"] if b["from"] <= chart.age < b["to"]), None)
    if band:
        for name, path, number in numbers:
            low, high = band.get(name, (float("-inf"), float("inf")))
            # Kidney disease raises creatinine in a child as well, but then urea nitrogen is raised too.
            ill = name == "creatinine" and (chart.first("urea_nitrogen") or 0) > 20
            if not low <= number <= high and not ill:
                message = f"{name} {number:g} at age {chart.age:.2g}: expected {low:g}-{high:g}"
                yield warning("value_for_another_age", path, message)
    elif chart.adult and chart.case.annotations.get("acuity") != "emergent":
        infant = bands["infant_normal"]
        like = {n for n, _, v in numbers if n in infant and infant[n][0] <= v <= infant[n][1]}
        if like == set(infant):
            path = "Physical_Examination_Findings/Vital_Signs"
            yield warning("value_for_another_age", path, "vital signs of an infant")
