"""Whether the doctor excluded the diseases that must not be missed before committing, and how long that took."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from agentclinic.results.record import PriceTable, Record
from agentclinic.scoring.information import AT_THE_DOOR, Request, below, discloses, requests, shown_chart
from agentclinic.scoring.orders import NOT_DONE, PENDING, Item, items, price_of, waiting_of
from agentclinic.scoring.verdicts import level

PROSE = "what excludes them is given in words only"
NOT_DISCLOSED = "the records do not show what was disclosed"
SHOWN = "the doctor was shown the chart"
HARM = 3.0
"""Of a disease that has no harm of its own: serious, the level of most that case authors list."""
_MINUTES = 5.0
"""For a question, or an examination that is not in the table of tests: an assumption."""
_WAIT = 85.0
"""Added for a test that is not in the table, which then takes 90 minutes: the median of those that are in it."""


class Danger(NamedTuple):
    """A disease that must not be missed, and whether the doctor excluded it."""

    name: str
    harm: float
    minutes: float | None
    """Simulated time until it was excluded; None if it was not."""
    unknown: str | None
    """Why that cannot be assessed; None if it can."""


def dangers(record: Record, asked: Sequence[Request] | None = None) -> tuple[Danger, ...]:
    """The diseases under the case's `Must_Not_Miss`.

    A disease is excluded if, for one of the ways in `excluded_by`, every path was disclosed before the diagnosis.
    Naming it does not exclude it. It is assessed only if every role that its ways need says what it discloses.
    `asked` saves reading the transcript again.
    """
    entries = (record.annotations or {}).get("Must_Not_Miss")
    listed = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    named = [entry for entry in listed if isinstance(entry.get("name"), str) and entry["name"].strip()]
    if not named:
        return ()
    asked = requests(record) if asked is None else asked
    log = tuple(_log(asked or (), waiting_of(record), record.price_table))
    return tuple(_danger(entry, record, asked, log) for entry in named)


def _danger(
    entry: dict[str, Any], record: Record, asked: Sequence[Request] | None, log: Sequence[tuple[float, set[str]]]
) -> Danger:
    stated = level(entry.get("harm"))
    name, harm = entry["name"], HARM if stated is None else stated
    ways = _ways(entry.get("excluded_by"))
    if not ways:
        return _kept(name, harm, None, PROSE)
    if shown_chart(record):
        return _kept(name, harm, None, SHOWN)
    roles = {_told_by(path) for way in ways for path in way}
    if asked is None or not all(discloses(record, role, asked) for role in roles):
        return _kept(name, harm, None, NOT_DISCLOSED)
    minutes = min(max(_first(path, log) for path in way) for way in ways)
    return _kept(name, harm, minutes if minutes < math.inf else None, None)


_kept = lru_cache(maxsize=4096)(Danger)  # equal ones are kept once: a run may have 100,000 records


def _ways(stated: object) -> list[list[str]]:
    """The ways that need more than what every doctor is told at the door; none if they are given in words."""
    listed = [[way] if isinstance(way, str) else way for way in stated] if isinstance(stated, list) else []
    read = [way for way in listed if isinstance(way, list) and all(isinstance(path, str) for path in way)]
    return [paths for way in read if (paths := [path for path in way if not below(path, AT_THE_DOOR)])]


def _told_by(path: str) -> str:
    return "patient" if path.startswith(("Patient_Actor", "patient_info")) else "measurement"


def _first(path: str, log: Sequence[tuple[float, set[str]]]) -> float:
    """When something at or below a path was first disclosed; infinite if never."""
    return next((time for time, told in log if any(below(one, path) for one in told)), math.inf)


# --- the simulated clock --------------------------------------------------------------------------------------------


def _log(asked: Sequence[Request], waiting: float, own: PriceTable | None) -> Iterator[tuple[float, set[str]]]:
    """After each reply: the minutes since the start, and the chart paths that it disclosed."""
    clock = 0.0
    for request in asked:
        told = request.reply.disclosures if request.reply else ()
        if request.kind == "test":
            results = {part.topic for part in told if any("Test_Results" in path for path in part.paths)}
            clock += max((_minutes(item, waiting, own, results) for item in items(request)), default=0.0)
        else:
            clock += _MINUTES
        yield clock, {path for part in told for path in part.paths}


def _minutes(item: Item, waiting: float, own: PriceTable | None, results: set[str]) -> float:
    """The wait and the duration of what was ordered, 0 if it was not done; the items of an order run in parallel."""
    if item.provenance in NOT_DONE:
        return 0.0
    if test := price_of(item.name, own):
        waiting = 0.0 if item.provenance == PENDING else waiting
        return waiting * test.wait_minutes + test.duration_minutes
    return _MINUTES + (waiting * _WAIT if item.name in results else 0.0)
