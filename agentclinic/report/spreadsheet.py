"""The encounters as CSV, one line each."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from agentclinic.report.collect import Collected
from agentclinic.report.encounters import Encounter
from agentclinic.report.text import inert

_COLUMNS: dict[str, Callable[[Encounter], object]] = {
    "scenario_id": lambda one: one.scenario_id,
    "repeat": lambda one: one.repeat,
    "case": lambda one: one.case,
    "dataset": lambda one: one.dataset,
    "outcome": lambda one: one.outcome,
    "right": lambda one: None if one.right is None else int(one.right),
    "truth": lambda one: one.truth,
    "diagnosis": lambda one: one.diagnosis,
    "relation": lambda one: one.relation,
    "confidence": lambda one: one.confidence,
    "confidence_source": lambda one: one.confidence_source,
    "turns": lambda one: one.turns,
    "tests_usd": lambda one: one.tests_usd,
    "tests_unpriced": lambda one: one.tests_unpriced,
    "specialty": lambda one: one.specialty,
    "difficulty": lambda one: one.difficulty,
    "harm": lambda one: one.harm,
    "reasons": lambda one: "; ".join(reason.text for reason in one.reasons),
}
HEAD = ",".join(["agentclinic_run", *_COLUMNS])
"""The first line."""
_FORMULA = ("=", "+", "-", "@", "\t", "\n", "|", "%")
"""Spreadsheets take a cell that begins so for a formula or a command."""


def spreadsheet(collected: Collected) -> str:
    """All encounters of all runs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["agentclinic_run", *_COLUMNS])
    for run, listed in zip(collected.report.runs, collected.encounters, strict=True):
        for one in listed:
            writer.writerow([safe(run.name), *(safe(value(one)) for value in _COLUMNS.values())])
    return out.getvalue()


def safe(value: object) -> object:
    """A cell that no spreadsheet takes for a formula: text that looks like one gets an apostrophe in front."""
    if not isinstance(value, str):
        return value
    text = inert(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else text
