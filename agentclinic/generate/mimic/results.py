"""Rows of laboratory, microbiology and vital signs as results: every value as the row has it, or left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from agentclinic.generate.source import Culture, Measured

REMOVED = "___"
"""What MIMIC puts in place of a text it removed."""
VITAL_SIGNS = "Vital_Signs"
BODY = "Body_Measurements"


class LabRow(NamedTuple):
    """A row of labevents with its item's names."""

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
    """A row of microbiologyevents: one antibiotic tried on one organism, or a test without any."""

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
    """A row of triage or vitalsign."""

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
    """A row of omr."""

    name: str
    value: str
    days: int
    sequence: str | None


# Items that say what became of a tube, not what was found in it; one-letter labels are indices of the specimen.
_NO_RESULT = re.compile(r"\b(hold|held|problem specimen|voided specimen|length of urine collection)\b|uhold|^.$", re.I)
_NO_VALUE = re.compile(
    r"^\W*(hold|done|sent|unable|error|cancel|not (done|performed|reported|available)|test not|pending|discard|random|"
    r"see |notified|disregard|quantity not|specimen |unsatisfactory|clotted|hemolyzed)",
    re.IGNORECASE,
)
# Where a row has no value, its comment begins with it: "NEG.", "<0.01.  CTROPNT > 0.10 …", ">182*.", "1+*.". Only
# what certainly is a result is taken; the star repeats the flag.
_IN_COMMENT = re.compile(
    r"^\s*((?:[<>]=?\s?)?\d+(?:\.\d+)?(?:\s?-\s?\d+(?:\.\d+)?)?\+?|(?:very )?(?:low|high)|neg(?:ative)?|pos(?:itive)?|"
    r"tr(?:ace)?|sm(?:all)?|mod(?:erate)?|lg|large|none|normal|rare|few|occasional|occ|many|clear|hazy|cloudy|slcloudy|"
    r"slhazy|yellow|straw|amber|ltamb|dkamb|red|pink|brown|orange|colorless|non-?reactive|reactive)\s*\*?\s*(?:\.|$)",
    re.IGNORECASE,
)


def labs(rows: Iterable[LabRow]) -> tuple[Measured, ...]:
    """The first usable result of each test, rows being in order of time; how many followed is said with it."""
    first: dict[tuple[str, str], Measured] = {}
    repeats: dict[tuple[str, str], int] = {}
    for row in rows:
        label = (row.label or "").strip()
        value = _lab_value(row)
        if not label or not value or _NO_RESULT.search(label):
            continue
        group = _group(row.fluid or "", row.category or "")
        place = (group, label)
        if place in first:
            repeats[place] = repeats.get(place, 0) + 1
            continue
        first[place] = Measured(
            name=label,
            value=value,
            unit=_clean(row.unit),
            low=_clean(row.low),
            high=_clean(row.high),
            flag=_clean(row.flag),
            group=group,
            hours=row.hours,
            rows=(f"labevents:{row.row}",),
        )
    return tuple(replace(one, repeats=repeats.get(place, 0)) for place, one in first.items())


def _lab_value(row: LabRow) -> str:
    """The result as written: the value, the number where the value was removed, or what the comment begins with."""
    value = (row.value or "").strip()
    if value and REMOVED not in value:
        return "" if _NO_VALUE.match(value) else value
    number = (row.number or "").strip()
    if number:
        return number
    said = _IN_COMMENT.match(row.comments or "") if not value else None
    return said[1] if said else ""


def _clean(text: str | None) -> str:
    """A text without the blanks around it; nothing where something was removed from it."""
    plain = (text or "").strip()
    return "" if REMOVED in plain else plain


def _group(fluid: str, category: str) -> str:
    """What a test is filed under: Blood Chemistry, Urine Hematology, Blood Gas."""
    fluid, category = fluid.strip(), category.strip()
    if len(fluid) < 3:  # a few items carry a stray letter in place of a fluid
        fluid = "Other"
    return category if category.startswith(fluid) else f"{fluid} {category}".strip()


_CANCELLED = re.compile(r"\bcancel+ed\b|\bpatient credited\b|\btest not performed\b", re.IGNORECASE)
_PHONED = re.compile(r"\b(reported (to|by)|called to|phoned|notified|read back|paged|telephone)\b", re.IGNORECASE)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2}/\d{1,2}(/\d{2,4})?\b|\b\d{1,2}:\d\d\b")


class _Isolate(NamedTuple):
    """What rows have in common that tell of one organism in one specimen."""

    specimen_id: float | None
    specimen: str
    test: str
    organism: str
    number: str


def cultures(rows: Iterable[CultureRow]) -> tuple[Culture, ...]:
    """One result for each organism found, or for each test that found none; what nobody can read is left out.

    A test whose comment was removed whole has no result we know: to show it empty would say that nothing grew.
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
        comment = readable(own)
        if not (isolate.organism or comment) or not isolate.test:
            continue
        tried = {_clean(row.drug): _clean(row.verdict) for row in own if _clean(row.drug) and _clean(row.verdict)}
        culture = Culture(
            specimen=isolate.specimen,
            test=isolate.test,
            organism=isolate.organism,
            sensitivities=tuple(sorted(tried.items())),
            comment=comment,
            hours=own[0].hours,
            rows=tuple(f"microbiologyevents:{row.row}" for row in own),
        )
        # A second bottle with the same result adds no line, but its rows stay traceable.
        same = (culture.specimen, culture.test, culture.organism, culture.sensitivities, culture.comment)
        earlier = found.get(same)
        found[same] = culture if earlier is None else replace(earlier, rows=(*earlier.rows, *culture.rows))
    return tuple(found.values())


def readable(rows: Iterable[CultureRow]) -> str:
    """The sentences of the comments from which nothing was removed and that name no time and no telephone call.

    The result comes first. Where something was removed from it, what follows ("Performed by …") is none.
    """
    sentences = [sentence for row in rows for sentence in _readable(row.comments or "")]
    return " ".join(dict.fromkeys(sentences))


def _readable(comment: str) -> list[str]:
    parts = [" ".join(part.split()) for part in re.split(r"(?<=[.;])\s+", comment.strip())]
    told = [part for part in parts if re.search(r"\w", part) and not _PHONED.search(part)]
    if told and REMOVED in told[0]:
        return []
    return [part for part in told if REMOVED not in part and not _DATE.search(part)]


class _Sign(NamedTuple):
    name: str
    unit: str
    least: float
    most: float
    """Outside least and most no living adult's value lies: such an entry is a slip and is left out."""


_SIGNS = {
    "heartrate": _Sign("Heart Rate", "bpm", 10, 300),
    "resprate": _Sign("Respiratory Rate", "breaths/min", 2, 80),
    "o2sat": _Sign("Oxygen Saturation", "%", 30, 100),
    "pain": _Sign("Pain (0-10)", "", 0, 10),
}
_PRESSURE = _Sign("Blood Pressure", "mmHg", 20, 300)
# The tables say Fahrenheit; some entries are Celsius. No temperature of a patient lies in both ranges.
_FAHRENHEIT = (75.0, 113.0)
_CELSIUS = (24.0, 45.0)


def vitals(rows: Iterable[VitalRow]) -> tuple[Measured, ...]:
    """Each vital sign as first written down: at triage, or else at the first round after it."""
    found: dict[str, Measured] = {}
    for row in rows:
        for one in _signs(row):
            found.setdefault(one.name, one)
    return tuple(found.values())


def _signs(row: VitalRow) -> Iterable[Measured]:
    def sign(name: str, value: str, unit: str) -> Measured:
        return Measured(name, value, unit, group=VITAL_SIGNS, hours=row.hours, rows=(f"{row.table}:{row.hours}",))

    heat = _number(row.temperature)
    if heat is not None:
        unit = "°F" if _FAHRENHEIT[0] <= heat <= _FAHRENHEIT[1] else "°C" if _CELSIUS[0] <= heat <= _CELSIUS[1] else ""
        if unit:
            yield sign("Temperature", _clean(row.temperature), unit)
    for column, (name, unit, least, most) in _SIGNS.items():
        text = getattr(row, column)
        value = _number(text)
        if value is not None and least <= value <= most:
            yield sign(name, _clean(text), unit)
    upper, lower = _number(row.sbp), _number(row.dbp)
    if upper is not None and lower is not None and _PRESSURE.least <= lower < upper <= _PRESSURE.most:
        yield sign(_PRESSURE.name, f"{_clean(row.sbp)}/{_clean(row.dbp)}", _PRESSURE.unit)


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


_BODY = {"Height (Inches)": ("Height", "in"), "Weight (Lbs)": ("Weight", "lb"), "BMI (kg/m2)": ("BMI", "kg/m2")}


def body(rows: Iterable[BodyRow]) -> tuple[Measured, ...]:
    """Height, weight, BMI and outpatient blood pressure: of each the nearest before admission, which comes first."""
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
