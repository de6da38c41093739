"""The table of normal results, and how long results take (`data/normals.json`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from agentclinic.vocabulary.name_table import read_table
from agentclinic.vocabulary.text import fold

_BETWEEN = " / "
_GENERAL = frozenset({"findings", "general", "other"})


class Spread(NamedTuple):
    """How a number is distributed among the healthy: normal, within limits."""

    mean: float
    deviation: float
    low: float
    high: float
    digits: int
    """Digits after the point; -1 rounds to tens."""


@dataclass(frozen=True, eq=False)
class Normal:
    """The normal result of one examination or test; there is one object for each entry."""

    heading: str
    """Levels separated by ` / `, as charts usually have it."""
    rank: int
    """Place in the table: the order in which results are reported."""
    heads: Mapping[str, int]
    """Headings that charts use for it, with how often they do."""
    also: tuple[str, ...]
    """Headings of charts that it covers and that are not used for completed results."""
    rare: bool
    """Reported only if ordered by its own name, not as part of a panel or an examination."""
    apart: bool
    """Says nothing about what else was found in its system or specimen or under a similar name, nor they about it."""
    sign: bool
    """A single sign or maneuver: rare and apart, and covered by charted findings that speak of it in their text."""
    same: str | None
    """Entries with the same word here say the same thing."""
    region: str | None
    """Part of the body that it images."""
    fields: Mapping[str, Any] = field(repr=False)

    @cached_property
    def headings(self) -> tuple[str, ...]:
        """Every heading that it covers."""
        return tuple(dict.fromkeys((self.heading, *self.heads, *self.also)))

    @cached_property
    def system(self) -> str:
        """The outermost heading: an examination, a panel, a specimen, or the test itself."""
        return self.heading.partition(_BETWEEN)[0]

    @cached_property
    def examination(self) -> bool:
        return is_examination(self.system)

    @cached_property
    def general(self) -> bool:
        """Whether it is the summary of an examination."""
        return self.examination and self.heading.split(_BETWEEN)[-1].lower() in _GENERAL

    @cached_property
    def maneuver(self) -> bool:
        """Whether it is a single observation at the bedside, charted by itself and done only if ordered."""
        return self.rare and self.apart and self.general

    def spread(self, groups: Iterable[str]) -> Spread | None:
        given = self._given("number", groups)
        return Spread(*given) if given else None

    def forms(self, groups: Iterable[str]) -> Mapping[str, int]:
        """The ways to write it, with frequencies; `{}` is the number."""
        return self._given("as", groups) or self._given("says", groups) or {}

    def follows(self, groups: Iterable[str]) -> tuple[tuple[re.Pattern[str], str | None], ...]:
        """What a chart may say, with the result that goes with it; None: no normal result does."""
        given: Sequence[tuple[str, str | None]] = self._given("follows", groups) or ()
        return tuple([(_compiled(pattern), says) for pattern, says in given])

    @cached_property
    def may_follow(self) -> bool:
        """Whether what a chart says decides on its result (`follows`), for some patients at least."""
        return any(name.startswith("follows") for name in self.fields)

    @cached_property
    def for_all(self) -> bool:
        """Whether patients of every age and either sex can have it (`applies`)."""
        return self.fields.keys().isdisjoint(("of", "only", "from", "to"))

    def applies(self, age: float, sex: str | None, *, pregnant: bool) -> bool:
        """Whether patients of this age and sex can have it at all."""
        of, only = self.fields.get("of"), self.fields.get("only")
        return (
            (of is None or of == sex)
            and (only is None or pregnant)
            and self.fields.get("from", 0) <= age < self.fields.get("to", 200)
        )

    @cached_property
    def _same_for_all(self) -> bool:
        """Whether the entry has nothing of its own for a group of patients."""
        return not any(name.startswith(("number_", "as_", "says_", "follows_")) for name in self.fields)

    def _given(self, name: str, groups: Iterable[str]) -> Any:
        if self._same_for_all:
            return self.fields.get(name)
        own = (self.fields[f"{name}_{group}"] for group in groups if f"{name}_{group}" in self.fields)
        return next(own, self.fields.get(name))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def is_examination(system: str) -> bool:
    """Whether what is below an outermost heading is examined, not tested."""
    return system.endswith("Examination") or system in _table()["examinations"]


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    return read_table("normals")


@lru_cache(maxsize=1)
def normals() -> tuple[Normal, ...]:
    """Every entry, in the order in which results are reported."""
    own = ("heads", "also", "rare", "apart", "sign", "same", "region")
    return tuple(
        Normal(
            heading=heading,
            rank=rank,
            heads=entry.get("heads", {heading: 1}),
            also=tuple(entry.get("also", ())),
            rare=bool(entry.get("rare") or entry.get("sign")),
            apart=bool(entry.get("apart") or entry.get("sign")),
            sign=bool(entry.get("sign")),
            same=entry.get("same"),
            region=entry.get("region"),
            fields={name: value for name, value in entry.items() if name not in own},
        )
        for rank, (heading, entry) in enumerate(_table()["results"].items())
    )


def entry_of(heading: str) -> Normal:
    """The entry of the table with this heading."""
    return _entries()[heading]


@lru_cache(maxsize=1)
def _entries() -> Mapping[str, Normal]:
    return {entry.heading: entry for entry in normals()}


@lru_cache(maxsize=1)
def _by_heading() -> Mapping[str, Normal]:
    return {fold(heading): entry for entry in reversed(normals()) for heading in entry.headings}


def levels(heading: str) -> tuple[str, ...]:
    return tuple(heading.split(_BETWEEN))


@lru_cache(maxsize=8192)
def normal_of(heads: tuple[str, ...]) -> Normal | None:
    """The entry for a chart's heading."""
    return _by_heading().get(fold(_BETWEEN.join(heads)))


class Turnaround(NamedTuple):
    """How long a result takes."""

    hours: float
    until: str
    """What is said of the test until the result is back: taken, arranged."""


@lru_cache(maxsize=8192)
def turnaround(name: str) -> Turnaround:
    """How long the result of a test takes, from its name or heading alone."""
    plain = fold(name)
    for pattern, hours, until in _turnarounds():
        if pattern.search(plain):
            return Turnaround(hours, until)
    return Turnaround(1, "")


@lru_cache(maxsize=1)
def _turnarounds() -> tuple[tuple[re.Pattern[str], float, str], ...]:
    return tuple((re.compile(text), hours, until) for text, hours, until in _table()["turnaround"])
