"""What a chart must hold itself, because it is completed with normal results and its encounter has an end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentclinic.cases.matcher import Ordered, asked_of_measurement
from agentclinic.cases.model import Fact
from agentclinic.clinic.offered import has, offer_for, parts_of
from agentclinic.clinic.pending import hours_for, late_result
from agentclinic.lint.annotations import listed, ways_of
from agentclinic.lint.chart import Chart, Problem, warning
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.normals import levels, normal_of
from agentclinic.vocabulary.settings import limited_setting

PROBABLE = 0.1
"""A result that the truth makes abnormal more often than this is not left to the table of normal results."""


def check_probable_results(chart: Chart) -> Iterator[Problem]:
    """What the truth probably makes abnormal is in the chart: otherwise it would be reported as normal."""
    known, limited = knowledge(), limited_setting(chart.case.annotations)
    disease = known.disease_named(chart.case.diagnosis)
    for link in disease.links if disease else ():
        finding = known.findings[link.finding]
        test = known.tests[finding.order] if finding.order and link.p > PROBABLE else None
        if test and limited and not parts_of(limited, Ordered(test.name, ()))[0]:
            continue
        if test and not any(item.facts for item in asked_of_measurement(test.name, chart.case.exam_facts)):
            message = f"{finding.name} in {link.p:.0%} of patients, but the chart has no result of {test.name}"
            yield warning("probable_result_missing", "Test_Results", message)


def check_headings(chart: Chart) -> Iterator[Problem]:
    """Every heading is in the table of normal results: one that is not would be in this chart alone."""
    for fact in chart.case.exam_facts:
        if fact.heads and normal_of(fact.heads) is None:
            yield warning("heading_not_in_table", fact.path, f"{' / '.join(fact.heads)} is in no entry of normals.json")
    given = chart.case.annotations.get("Normal_Studies")
    for heading in given if isinstance(given, list) else ():
        if normal_of(levels(str(heading))) is None:
            yield warning("heading_not_in_table", "Normal_Studies", f"{heading} is in no entry of normals.json")


_UNITS = {"hour": 1, "day": 24, "week": 168, "month": 720}
_AFTER = re.compile(r"\b(?:at|after|on day|for|by) (\d+) ?(hour|day|week|month)|\bon (day) (\d+)", re.IGNORECASE)


def check_in_time(chart: Chart) -> Iterator[Problem]:
    """The case can be solved in its setting: nothing that decides it stays pending, or cannot be had there."""
    horizon, limited = hours_for(chart.case), limited_setting(chart.case.annotations)
    if horizon is None:
        return
    facts = {fact.path: fact for fact in chart.case.exam_facts}
    never = f"not to be had in this setting ({limited.name}), or " if limited else ""

    def is_late(fact: Fact) -> bool:
        if limited and not has(limited, fact):
            return True
        offer = offer_for(limited, fact) if limited else None
        return offer.minutes > horizon * 60 if offer else bool(late_result(fact, horizon))

    def waits(path: str) -> bool:
        below = [fact for place, fact in facts.items() if place == path or place.startswith(f"{path}/")]
        return bool(below) and all(map(is_late, below))

    for index, entry in enumerate(listed(chart, "Key_Findings")):
        stated = entry.get("any_of")
        paths = [str(path) for path in stated] if isinstance(stated, list) else []
        if entry.get("role") == "discriminating" and paths and all(map(waits, paths)):
            message = f"{', '.join(paths)}: {never}not back within {horizon:g} hours"
            yield warning("result_too_late", f"Key_Findings[{index}]", message)
    for index, entry in enumerate(listed(chart, "Must_Not_Miss")):
        own = [way for way in ways_of(entry) if way]
        if own and all(any(map(waits, way)) for way in own):
            message = f"{entry.get('name')} is excluded only by what is {never}not back within {horizon:g} hours"
            yield warning("result_too_late", f"Must_Not_Miss[{index}]", message)
    for fact in facts.values():
        said = _AFTER.search(fact.text) if _CULTURE.search(" ".join(fact.heads)) else None
        if said and not is_late(fact):
            hours = float(said[1] or said[4]) * _UNITS[(said[2] or said[3]).lower()]
            if hours > horizon:
                yield warning("result_too_late", fact.path, f"{said[0]!r}, but the case ends after {horizon:g} hours")


_CULTURE = re.compile(r"cultur", re.IGNORECASE)
