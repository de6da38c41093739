"""Laboratory, microbiology and vital-sign rows as results: every value is as in the row, or left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from agentclinic.generate.source import Culture, Measured

REMOVED = "___"
"""What MIMIC puts in place of removed text."""
VITAL_SIGNS = "Vital_Signs"
BODY = "Body_Measurements"


class LabRow(NamedTuple):
    row: int
    label: str | None
    fluid: str | None
    category: str | None
    hours: float
    value: str | None
    number: str | None
    unit: str | None
    low: str | None
    high: str | None
    flag: str | None
    comments: str | None


class CultureRow(NamedTuple):
    """A row of microbiologyevents: one antibiotic tested on one organism, or a test that found none."""

    row: int
    specimen_id: int | None
    hours: float | None
    specimen: str | None
    test: str | None
    organism: str | None
    isolate: str | None
    drug: str | None
    verdict: str | None
    comments: str | None


class VitalRow(NamedTuple):
    table: str
    hours: float | None
    temperature: str | None
    heartrate: str | None
    resprate: str | None
    o2sat: str | None
    sbp: str | None
    dbp: str | None
    pain: str | None


class BodyRow(NamedTuple):
    name: str
    value: str
    days: int
    sequence: str | None


# Items about what happened to a tube, not what was found in it; one-letter labels are indices of the specimen.
_NO_RESULT = re.compile(r"\b(hold|held|problem specimen|voided specimen|length of urine collection)\b|uhold|^.$", re.I)
_NO_VALUE = re.compile(
    r"^\W*(hold|done|sent|unable|error|cancel|not (done|performed|reported|available)|test not|pending|discard|random|"
    r"see |notified|disregard|quantity not|specimen |unsatisfactory|clotted|hemolyzed)",
    re.IGNORECASE,
)
# If a row has no value, its comment may begin with it: "NEG.", "<0.01.  CTROPNT > 0.10 …", ">182*.", "1+*.". Only
# what is certainly a result is used; the star repeats the flag.
_IN_COMMENT = re.compile(
    r"^\s*((?:[<>]=?\s?)?\d+(?:\.\d+)?(?:\s?-\s?\d+(?:\.\d+)?)?\+?|(?:very )?(?:low|high)|neg(?:ative)?|pos(?:itive)?|"
    r"tr(?:ace)?|sm(?:all)?|mod(?:erate)?|lg|large|none|normal|rare|few|occasional|occ|many|clear|hazy|cloudy|slcloudy|"
    r"slhazy|yellow|straw|amber|ltamb|dkamb|red|pink|brown|orange|colorless|non-?reactive|reactive)\s*\*?\s*(?:\.|$)",
    re.IGNORECASE,
)


def labs(rows: Iterable[LabRow]) -> tuple[Measured, ...]:
    """The first usable result of each test, with the number of later ones; rows must be in order of time."""
    first: dict[tuple[str, str], Measured] = {}
    count: Counter[tuple[str, str]] = Counter()
    for row in rows:
        label = (row.label or "").strip()
        value = _lab_value(row)
        if not label or not value or _NO_RESULT.search(label):
            continue
        group = _group(row.fluid or "", row.category or "")
        count[group, label] += 1
        unit, low, high, flag = map(_clean, (row.unit, row.low, row.high, row.flag))
        result = Measured(label, value, unit, low, high, flag, group, row.hours, (f"labevents:{row.row}",))
        first.setdefault((group, label), result)
    return tuple(replace(one, repeats=count[place] - 1) for place, one in first.items())


def _lab_value(row: LabRow) -> str:
    """The result as written: the value, the number if the value was removed, or the beginning of the comment."""
    value = (row.value or "").strip()
    if value and REMOVED not in value:
        return "" if _NO_VALUE.match(value) else value
    number = (row.number or "").strip()
    if number:
        return number
    said = _IN_COMMENT.match(row.comments or "") if not value else None
    return said[1] if said else ""


def _clean(text: str | None) -> str:
    """A text without surrounding blanks; empty if something was removed from it."""
    plain = (text or "").strip()
    return "" if REMOVED in plain else plain


def _group(fluid: str, category: str) -> str:
    """The heading a test is filed under: Blood Chemistry, Urine Hematology, Blood Gas."""
    fluid, category = fluid.strip(), category.strip()
    if len(fluid) < 3:  # a few items have a stray letter instead of a fluid
        fluid = "Other"
    return category if category.startswith(fluid) else f"{fluid} {category}".strip()


_CANCELLED = re.compile(r"\bcancel+ed\b|\bpatient credited\b|\btest not performed\b", re.IGNORECASE)
_PHONED = re.compile(r"\b(reported (to|by)|called to|phoned|notified|read back|paged|telephone)\b", re.IGNORECASE)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}/\d{1,2}(/\d{2,4})?\b|\b\d{1,2}:\d\d\b")


class _Isolate(NamedTuple):
    """What the rows about one organism in one specimen have in common."""

    specimen_id: float | None
    specimen: str
    test: str
    organism: str
    number: str


def cultures(rows: Iterable[CultureRow]) -> tuple[Culture, ...]:
    """One result for each organism found, or for each test that found none; unreadable results are left out.

    A test whose whole comment was removed has no known result: an empty line would say that nothing grew.
    """
    grouped: dict[_Isolate, list[CultureRow]] = {}
    for row in rows:
        organism = _clean(row.organism)
        if _CANCELLED.search(organism) or (not organism and _CANCELLED.search(row.comments or "")):
            continue
        isolate = _Isolate(
            row.specimen_id or row.hours, _clean(row.specimen), _clean(row.test), organism, _clean(row.isolate)
        )
        grouped.setdefault(isolate, []).append(row)
    found: dict[tuple[object, ...], Culture] = {}
    for isolate, own in grouped.items():
        comment = " ".join(dict.fromkeys(said for row in own for said in _readable(row.comments or "")))
        if not (isolate.organism or comment) or not isolate.test:
            continue
        tried = {_clean(row.drug): _clean(row.verdict) for row in own if _clean(row.drug) and _clean(row.verdict)}
        # A second bottle with the same result adds no line, but its rows stay traceable.
        same = (isolate.specimen, isolate.test, isolate.organism, tuple(sorted(tried.items())), comment)
        earlier = found.get(same) or Culture(*same, own[0].hours)
        rows_ = (*earlier.rows, *(f"microbiologyevents:{row.row}" for row in own))
        found[same] = replace(earlier, rows=rows_)
    return tuple(found.values())


def _readable(comment: str) -> list[str]:
    """The sentences from which nothing was removed and that mention no time and no telephone call."""
    parts = [" ".join(part.split()) for part in re.split(r"(?<=[.;])\s+", comment.strip())]
    told = [part for part in parts if re.search(r"\w", part) and not _PHONED.search(part)]
    # The result comes first. If something was removed from it, what follows ("Performed by …") is not a result.
    if told and REMOVED in told[0]:
        return []
    return [part for part in told if REMOVED not in part and not _DATE.search(part)]


class _Sign(NamedTuple):
    name: str
    unit: str
    least: float
    most: float
    """No living adult has a value outside least and most: such an entry is a typing error and is left out."""


_SIGNS = {
    "heartrate": _Sign("Heart Rate", "bpm", 10, 300),
    "resprate": _Sign("Respiratory Rate", "breaths/min", 2, 80),
    "o2sat": _Sign("Oxygen Saturation", "%", 30, 100),
    "pain": _Sign("Pain (0-10)", "", 0, 10),
}
# The tables say Fahrenheit, but some entries are Celsius. No body temperature is in both ranges.
_TEMPERATURES = {"°F": (75.0, 113.0), "°C": (24.0, 45.0)}


def vitals(rows: Iterable[VitalRow]) -> tuple[Measured, ...]:
    """Each vital sign as first recorded: at triage, otherwise at the first round after it."""
    found: dict[str, Measured] = {}
    for row in rows:
        for one in _signs(row):
            found.setdefault(one.name, one)
    return tuple(found.values())


def _signs(row: VitalRow) -> Iterable[Measured]:
    def sign(name: str, value: str, unit: str) -> Measured:
        return Measured(name, value, unit, group=VITAL_SIGNS, hours=row.hours, rows=(f"{row.table}:{row.hours}",))

    heat = _number(row.temperature)
    for unit, (least, most) in _TEMPERATURES.items():
        if heat is not None and least <= heat <= most:
            yield sign("Temperature", _clean(row.temperature), unit)
    for column, (name, unit, least, most) in _SIGNS.items():
        text = getattr(row, column)
        value = _number(text)
        if value is not None and least <= value <= most:
            yield sign(name, _clean(text), unit)
    upper, lower = _number(row.sbp), _number(row.dbp)
    if upper is not None and lower is not None and 20 <= lower < upper <= 300:
        yield sign("Blood Pressure", f"{_clean(row.sbp)}/{_clean(row.dbp)}", "mmHg")


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


_BODY = {"Height (Inches)": ("Height", "in"), "Weight (Lbs)": ("Weight", "lb"), "BMI (kg/m2)": ("BMI", "kg/m2")}


def body(rows: Iterable[BodyRow]) -> tuple[Measured, ...]:
    """Height, weight, BMI and outpatient blood pressure, each nearest to admission; rows must be in that order."""
    found: dict[str, Measured] = {}
    for row in rows:
        value = row.value.strip()
        if REMOVED in value or not re.search(r"\d", value):
            continue
        name, unit = _BODY.get(row.name, (f"{row.name} (earlier, outpatient)", "mmHg"))
        group = BODY if row.name in _BODY else VITAL_SIGNS
        source = (f"omr:{row.name}:{row.days} days before:{row.sequence or 1}",)
        found.setdefault(name, Measured(name, value, unit, group=group, hours=-24.0 * row.days, rows=source))
    return tuple(found.values())
