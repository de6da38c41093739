"""Read numbers with units in a chart."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentclinic import lazy
from agentclinic.cases.model import Fact, Section
from agentclinic.vocabulary import tests
from agentclinic.vocabulary.text import fold, words

DATA = Path(__file__).parent / "data"


@lru_cache(maxsize=8)
def table(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Analyte:
    """Something a laboratory or a nurse measures."""

    name: str
    fluid: str
    units: Mapping[str, float]
    """Each unit with its factor to the first one; "" if the number needs no unit."""
    possible: tuple[float, float] | None
    """Limits in the first unit; None if the units are not comparable (% and cells)."""

    def unit_at(self, rest: str) -> str | None:
        """The unit at the beginning of the text after a number."""
        plain = _plain(rest)
        found = [unit for unit in self.units if unit and _unit_pattern(unit).match(plain)]
        return max(found, key=len) if found else "" if "" in self.units else None


@dataclass(frozen=True)
class Measured:
    """A number in the chart for a known analyte."""

    analyte: Analyte
    path: str
    text: str
    raw: float
    unit: str | None
    """None if missing or not a unit of this analyte."""
    limit: str
    """`<` or `>` if only a limit is given."""
    rest: str

    @property
    def panel(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def number(self) -> float | None:
        """The value in the analyte's first unit."""
        return None if self.unit is None else self.raw * self.analyte.units[self.unit]

    @property
    def exact(self) -> bool:
        """Whether it can be used in calculations."""
        return self.unit is not None and not self.limit

    @property
    def value(self) -> float:
        """The number, if `exact`."""
        assert self.number is not None
        return self.number


_NUMBER = lazy.regex(
    r"^\s*(?:(?P<limit>[<>≤≥]|less than|below|more than|above|over)\s*|(?:about|approximately|~)\s*)?"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?P<rest>.*)$",
    re.DOTALL | re.IGNORECASE,
)
_FLUIDS = (
    ("csf", lazy.regex(r"\b(?:csf|cerebrospinal|spinal fluid|lumbar puncture)\b")),
    ("joint", lazy.regex(r"\b(?:joint|synovial|arthrocentesis)\b")),
    ("urine", lazy.regex(r"\b(?:urine|urinary|urinalysis)\b")),
    (
        "other",
        lazy.regex(
            r"\b(?:pleural|ascit\w+|peritoneal|paracentesis|stool|fecal|faecal|sputum|semen|sweat|saliva|salivary|gastric"
            r"|esophageal|vaginal|wet mount|vitreous|fluid|drain|discharge|aspirate|marrow|electrophoresis)\b"
        ),
    ),
)
# Words that name the specimen or the method, not the analyte.
_DECORATION = frozenset({"serum", "plasma", "level", "count", "result", "value", "finding", "measured"})
_EMPTY_HEADS = frozenset({("serum",), ("plasma",), ("finding",), ("result",), ("value",), ("level",), ("measurement",)})


def measured_in(facts: Iterable[Fact]) -> tuple[Measured, ...]:
    return tuple(value for fact in facts if (value := _measured(fact)))


@lru_cache(maxsize=8192)
def analyte_of(heads: tuple[str, ...], section: Section) -> Analyte | None:
    names = [head for head in heads if words(head) not in _EMPTY_HEADS]
    if not names:
        return None
    key = _key(names[-1])
    if key not in _keys():
        return None  # most headings: reading the fluid takes longer
    where = fold(" ".join(heads))
    fluid = next((name for name, pattern in _FLUIDS if pattern.search(where)), "blood")
    found = _analytes().get((fluid, key))
    if found is None and section is not Section.TESTS:
        found = _analytes().get(("vital", key))
    return found


def _measured(fact: Fact) -> Measured | None:
    if fact.section not in (Section.VITALS, Section.EXAMINATION, Section.TESTS) or not fact.heads:
        return None
    analyte = analyte_of(fact.heads, fact.section)
    found = _NUMBER.match(fact.text) if analyte else None
    if not analyte or not found:
        return None
    rest = found["rest"]
    if re.match(r"\s*(?:\+|:\d)", rest):  # "2+" and "1:80" are grades and titers
        return None
    rest = re.sub(r"^\s*(?:-|–|to)\s*\d[\d,.]*", "", rest)  # "12-16/hpf": the first number represents the range
    sign = {"less than": "<", "below": "<", "≤": "<", "more than": ">", "above": ">", "over": ">", "≥": ">"}
    limit = (found["limit"] or "").lower()
    number = float(found["number"].replace(",", ""))
    return Measured(analyte, fact.path, fact.text, number, analyte.unit_at(rest), sign.get(limit, limit), rest)


def _key(name: str) -> tuple[str, ...]:
    found = tuple(sorted(word for word in words(name.replace("+", "")) if word not in _DECORATION))
    return found or words(name)


@lru_cache(maxsize=1)
def _analytes() -> Mapping[tuple[str, tuple[str, ...]], Analyte]:
    found = {}
    for kind, where in (("values", "blood"), ("vitals", "vital")):
        for value, entry in tests.table()[kind].items():
            for name, read in entry.get("measured", {}).items():
                limits = read["possible"]
                possible = (limits[0], limits[1]) if limits else None
                analyte = Analyte(name, read.get("fluid", where), read["units"], possible)
                for heading in _headings(kind, value, read):
                    found[analyte.fluid, _key(heading)] = analyte
    return found


@lru_cache(maxsize=1)
def _keys() -> frozenset[tuple[str, ...]]:
    return frozenset(key for _, key in _analytes())


def _headings(kind: str, value: str, read: Mapping[str, Any]) -> list[str]:
    names = tests.split_list(read["only"]) if "only" in read else tests.names_of(kind, value)
    other = tests.split_list(read.get("except", ""))
    return [name for name in names if name not in other] + tests.split_list(read.get("headings", ""))


def names_a_unit(rest: str) -> bool:
    """Whether the text after a number begins with a unit or something that looks like one."""
    if re.match(r"\s*[^\s(,;]*[/%]", rest):
        return True
    every, plain = {unit for analyte in _analytes().values() for unit in analyte.units if unit}, _plain(rest)
    return any(_unit_pattern(unit).match(plain) for unit in every)


def _plain(text: str) -> str:
    """Normalize the spelling of units: µ and μ, ³ and 3, × and x, with and without ^."""
    plain = unicodedata.normalize("NFKC", text).replace("μ", "u").replace("×", "x").replace("mcg", "ug")
    return plain.replace("^", "").replace("*", "x").replace("-", " ").lower()


@lru_cache(maxsize=512)
def _unit_pattern(unit: str) -> re.Pattern[str]:
    letters = [re.escape(letter) for letter in _plain(unit) if letter != " "]
    return re.compile(r"\s*" + r"\s*".join(letters) + r"(?![a-z/0-9])")


@dataclass(frozen=True)
class Pressure:
    """A blood pressure as charted."""

    path: str
    text: str
    systolic: float
    diastolic: float


_PRESSURE = lazy.regex(r"\b(\d{2,3})\s*/\s*(\d{2,3})\b(?!\s*(?:years|days))")


def pressures_in(facts: Iterable[Fact]) -> tuple[Pressure, ...]:
    return tuple(
        Pressure(fact.path, fact.text, float(match[1]), float(match[2]))
        for fact in facts
        if fact.section in (Section.VITALS, Section.EXAMINATION)
        and re.search(r"\b(?:pressure|bp)\b", fold(" ".join(fact.heads)))
        for match in _PRESSURE.finditer(fact.text)
    )
