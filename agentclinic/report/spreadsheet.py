"""Encounters as CSV, one line each."""

from __future__ import annotations

import csv
import io
from dataclasses import fields

from agentclinic.jsonl import inert
from agentclinic.report.collect import Collected
from agentclinic.report.encounters import Encounter

_COLUMNS = [field.name for field in fields(Encounter) if field.name not in ("block", "position")]
HEAD = "agentclinic_run,"
"""How the file begins."""
_FORMULA = ("=", "+", "-", "@", "\t", "\n", "|", "%")
"""A spreadsheet may run a cell that starts with one of these as a formula or a command."""


def spreadsheet(collected: Collected) -> str:
    """Every encounter of every run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([HEAD.rstrip(","), "label", *_COLUMNS])
    for run, listed in zip(collected.report.runs, collected.encounters, strict=True):
        for one in listed:
            writer.writerow([safe(run.name), safe(run.label), *(safe(_value(one, column)) for column in _COLUMNS)])
    return out.getvalue()


def _value(one: Encounter, column: str) -> object:
    value = getattr(one, column)
    if column == "reasons":
        return "; ".join(reason.text for reason in one.reasons)
    return int(value) if isinstance(value, bool) else value


def safe(value: object) -> object:
    """A cell that no spreadsheet runs: text that looks like a formula gets an apostrophe in front."""
    if not isinstance(value, str):
        return value
    text = inert(value)
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text
