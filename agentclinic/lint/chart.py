"""A case as the checks see it, and the problems they report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from agentclinic.cases.model import Case, Fact, Section, age_in_years, sex
from agentclinic.cases.registry import DATASETS
from agentclinic.cases.values import Measured, Pressure, measured_in, pressures_in


class Severity(StrEnum):
    """How sure a check is that something must be fixed."""

    ERROR = "error"
    """Wrong, whatever the author meant."""
    WARNING = "warning"
    """Unusual: a person should look at it and may keep it."""


@dataclass(frozen=True)
class Problem:
    """One defect of a case."""

    code: str
    severity: Severity
    path: str
    """Path in the chart, or key of the annotation."""
    message: str


def error(code: str, path: str, message: str) -> Problem:
    return Problem(code, Severity.ERROR, path, message)


def warning(code: str, path: str, message: str) -> Problem:
    return Problem(code, Severity.WARNING, path, message)


# "The mother is pregnant" says nothing about her son.
_ABOUT_OTHERS = re.compile(
    r"\b(?:wife|husband|partner|girlfriend|boyfriend|mother|father|parents?|sister|brother|daughter|son|aunt|uncle"
    r"|grandmother|grandfather|cousin|colleagues?|friends?|neighbou?rs?|household|roommates?|flatmates?|family)\b",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"\([^()]*\)")


class Chart:
    """A case with what several checks need, computed once."""

    def __init__(self, case: Case) -> None:
        self.case = case

    @cached_property
    def age(self) -> float | None:
        age = age_in_years(self.case.door.demographics)
        return age if age is not None else age_in_years(self.case.door.objective)

    @cached_property
    def sex(self) -> str | None:
        stated = _IN_BRACKETS.sub("", self.case.door.demographics)  # "6-year-old boy (his mother gives the history)"
        return sex(stated) or sex(_IN_BRACKETS.sub("", self.case.door.objective))

    @property
    def adult(self) -> bool:
        return self.age is not None and self.age >= 18

    @cached_property
    def annotated(self) -> bool:
        """Whether the case has OpenOSCE's annotations; the demonstration and public data sets do not."""
        return bool({"canary", "acuity"} & set(self.case.annotations))

    @property
    def completed(self) -> bool:
        """Whether the chart is written to be completed with normal results, as in OpenOSCE from version 2 on."""
        known = DATASETS.get(self.case.dataset)
        return "Patient_Facts" in self.case.annotations or (known is not None and known.completed)

    @cached_property
    def measured(self) -> tuple[Measured, ...]:
        return measured_in(self.case.facts)

    @cached_property
    def pressures(self) -> tuple[Pressure, ...]:
        return pressures_in(self.case.facts)

    def values(self, analyte: str) -> tuple[Measured, ...]:
        """The readable values of an analyte, in its first unit."""
        return tuple(m for m in self.measured if m.analyte.name == analyte and m.number is not None)

    def panels(self, *analytes: str) -> Iterator[tuple[Measured, ...]]:
        """Exact values of the same panel, in the order asked for."""
        by_panel: dict[str, dict[str, Measured]] = {}
        for value in self.measured:
            if value.exact:
                by_panel.setdefault(value.panel, {}).setdefault(value.analyte.name, value)
        for panel in by_panel.values():
            if all(name in panel for name in analytes):
                yield tuple(panel[name] for name in analytes)

    def first(self, analyte: str) -> float | None:
        """The first value of an analyte anywhere in the chart."""
        found = self.values(analyte)
        return found[0].number if found else None

    @cached_property
    def own_facts(self) -> tuple[Fact, ...]:
        """Facts about the patient rather than about relatives and others."""
        facts = (fact for fact in self.case.facts if fact.section is not Section.FAMILY)
        return tuple(fact for fact in facts if not _ABOUT_OTHERS.search(fact.text))

    @cached_property
    def text(self) -> str:
        door = self.case.door
        parts = [door.objective, door.demographics]
        parts += [" ".join((*fact.heads, fact.text)) for fact in self.case.facts]
        return "\n".join(parts).lower()

    @cached_property
    def about(self) -> str:
        """Demographics, objective, chart and true diagnosis as one lower-case text."""
        return f"{self.text}\n{self.case.diagnosis.lower()}"

    def facts_of(self, *sections: Section) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.case.facts if fact.section in sections)
