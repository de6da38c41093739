"""Units, and values that no patient, or no patient of this age, has."""

from __future__ import annotations

from collections.abc import Iterator

from agentclinic.cases.values import names_a_unit, table
from agentclinic.lint.chart import Chart
from agentclinic.lint.problem import Problem, error, warning


def check_units(chart: Chart) -> Iterator[Problem]:
    """Every known analyte carries a unit, and one in which it is measured."""
    for value in chart.measured:
        if value.unit is not None:
            continue
        usual = ", ".join(value.analyte.units)
        if names_a_unit(value.rest):
            yield error(
                "unit_wrong", value.path, f"{value.text!r}: {value.analyte.name} is not measured in this unit ({usual})"
            )
        else:
            yield error("unit_missing", value.path, f"{value.text!r} has no unit; write one of {usual}")


def check_possible(chart: Chart) -> Iterator[Problem]:
    """No value lies beyond what a living patient can have."""
    for value in chart.measured:
        limits, number = value.analyte.possible, value.number
        if limits is None and value.unit == "%":
            limits = (0, 100)
        if limits is None or number is None:
            continue
        low, high = limits
        if (number < low and value.limit != "<") or (number > high and value.limit != ">"):
            unit = next(iter(value.analyte.units))
            yield error(
                "impossible_value",
                value.path,
                f"{value.text!r}: {value.analyte.name} lies between {low:g} and {high:g} {unit}".rstrip(),
            )


def check_age_bands(chart: Chart) -> Iterator[Problem]:
    """Children have children's values, adults not an infant's."""
    if chart.age is None:
        return
    numbers = [(m.analyte.name, m.path, m.value) for m in chart.measured if m.exact and "Standing" not in m.path]
    numbers += [("systolic", p.path, p.systolic) for p in chart.pressures]
    bands = table("vitals_by_age")
    band = next((b for b in bands["bands"] if b["from"] <= chart.age < b["to"]), None)
    if band:
        for name, path, number in numbers:
            low, high = band.get(name, (float("-inf"), float("inf")))
            # Ill kidneys raise the creatinine of a child as well; then urea nitrogen is raised with it.
            ill = name == "creatinine" and (chart.first("urea_nitrogen") or 0) > 20
            if not low <= number <= high and not ill:
                yield warning(
                    "value_for_another_age",
                    path,
                    f"{name} {number:g} at age {chart.age:.2g}: expected {low:g}-{high:g}",
                )
    elif chart.age >= 18 and chart.case.annotations.get("acuity") != "emergent":
        infant = bands["infant_normal"]
        like = {n for n, _, v in numbers if n in infant and infant[n][0] <= v <= infant[n][1]}
        if like == set(infant):
            yield warning(
                "value_for_another_age", "Physical_Examination_Findings/Vital_Signs", "vital signs of an infant"
            )
