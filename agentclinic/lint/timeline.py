"""Whether objective, complaint and history agree on durations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentclinic.cases.model import Section
from agentclinic.lint.chart import Chart, Problem, warning
from agentclinic.vocabulary.numbers import DAYS, NUMBER_WORDS

SPOKEN = {word: int(number) for word, number in NUMBER_WORDS.items() if number <= 40} | {
    "a": 1, "an": 1, "one": 1, "couple of": 2,
}  # fmt: skip
"""Numbers as charts write them."""
_SPAN = re.compile(
    rf"\b(?P<number>\d+(?:\.\d+)?|{'|'.join(sorted(SPOKEN, key=len, reverse=True))})(?: more)?(?: and a half)?"
    r"[- ](?P<unit>minute|hour|day|night|week|month|year)s?\b(?P<after>[- ]?old| of age| a week| times)?",
    re.IGNORECASE,
)
_SINCE = {
    "the day before yesterday": 2.0, "yesterday": 1.0, "last night": 0.6, "this morning": 0.3, "last week": 7.0,
    "this afternoon": 0.2, "this evening": 0.1, "last month": 30.0, "today": 0.3, "overnight": 0.6,
}  # fmt: skip
# Durations within this factor count as the same: "two days" and 36 hours, "a week" and ten days.
_SAME = 1.8
# A duration that is not how long ago something began: "an hour after supper", "34 weeks pregnant", "within a minute".
_NOT_AGO = re.compile(
    r"\s*(?:after|before|later|earlier|apart|at a time|pregnant|into|of pregnancy|of gestation|early)\b"
)
_FREQUENCY = re.compile(r"\b(?:per|times|every|once|twice|each|than|within|lasting|lasts?|after|between)$")
_NEAR = 40
"""Characters before a duration that are read: the words looked for there have at most seven."""
_BEGAN = re.compile(r"\b(?:for|over|since|past|last|about|of|within|nearly|almost|some|that)$")


def spans(text: str) -> list[float]:
    """How long ago things began, in days, if the text says so in plain words."""
    text = text.lower()
    found = []
    for match in _SPAN.finditer(text):
        before, end = text[max(0, match.start() - _NEAR) : match.start()].rstrip(), match.end()
        if match["after"] or _NOT_AGO.match(text, end) or _FREQUENCY.search(before):
            continue
        word = match["number"]
        if word in ("a", "an") and not _BEGAN.search(before) and not text.startswith((" ago", " now"), end):
            continue  # "twice a day", "a night shift"
        found.append(float(SPOKEN.get(word) or word) * DAYS[match["unit"]])
    for phrase, days in _SINCE.items():
        if phrase in text:
            found.append(days)
            text = text.replace(phrase, "")
    return found


def check_timeline(chart: Chart) -> Iterator[Problem]:
    """The durations in the objective and the main symptom are also in the history."""
    history = [days for fact in chart.facts_of(Section.HISTORY) for days in spans(fact.text)]
    primary = [fact for fact in chart.facts_of(Section.SYMPTOMS) if "primary" in fact.path.lower()]
    main = [days for fact in primary for days in spans(fact.text)]
    pairs = [("Objective_for_Doctor", spans(chart.case.door.objective), main or history)]
    pairs += [(primary[0].path, main, history)] if primary else []
    for path, told, other in pairs:
        if told and other and not any(max(a, b) <= _SAME * min(a, b) for a in told for b in other):
            where = "the main symptom" if other is main else "the history"
            yield warning("durations_differ", path, f"{_days(told)} here, {_days(other)} in {where}")


def _days(spans: list[float]) -> str:
    return " / ".join(f"{days:.2g} d" for days in sorted(spans))
