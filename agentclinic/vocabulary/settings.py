"""Where patients are seen: how long results may take there, and what can be ordered (`data/settings.json`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agentclinic.vocabulary.name_table import read_table
from agentclinic.vocabulary.tests import split_list


@dataclass(frozen=True, eq=False)
class Pattern:
    """What an offer is, by the concepts of the table of tests."""

    of: Mapping[str, frozenset[str]]
    """By kind: values, panels, tests, modalities, specimens and sites."""
    said: re.Pattern[str] | None = None
    """What an order must contain."""
    unless: re.Pattern[str] | None = None
    """What neither the name in an order nor the heading of a result may contain."""


@dataclass(frozen=True, eq=False)
class Offer:
    """A test that can be ordered in a limited setting."""

    name: str
    shown: str
    """The name as doctors are told it, with what it includes."""
    usd: float
    minutes: float
    """Until the result is back there."""
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, eq=False)
class Setting:
    """A place where patients are seen."""

    name: str
    hours: float
    """Within which a result must be back to be reported."""
    offers: tuple[Offer, ...] | None = None
    """What can be ordered there; None: everything."""
    nothing: str = ""
    """Said of every order, where nothing can be examined or tested."""

    @property
    def limited(self) -> bool:
        return self.offers is not None or bool(self.nothing)


@lru_cache(maxsize=1)
def settings() -> Mapping[str, Setting]:
    """Every setting, by its name."""
    entries = _table()["settings"]
    return {name: _setting(name, entry, entries) for name, entry in entries.items()}


@lru_cache(maxsize=1)
def bedside() -> frozenset[str]:
    """Tests, by their names in the table of tests, that count as examination: they need no laboratory and no device."""
    return frozenset(split_list(_table()["bedside"]))


def setting_of(annotations: Mapping[str, Any]) -> Setting | None:
    """The setting that a case names; None if it names none, or one that we do not know."""
    return settings().get(str(annotations.get("setting") or "").lower())


def limited_setting(annotations: Mapping[str, Any]) -> Setting | None:
    """The setting that a case names, if it does not offer everything."""
    setting = setting_of(annotations)
    return setting if setting and setting.limited else None


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    return read_table("settings")


def _setting(name: str, entry: Mapping[str, Any], entries: Mapping[str, Any]) -> Setting:
    offered = {**entries[entry["as"]]["offers"], **entry["offers"]} if "as" in entry else entry.get("offers")
    offers = None if offered is None else tuple(_offer(test, given) for test, given in offered.items())
    return Setting(name, entry["hours"], offers, entry.get("nothing", ""))


def _offer(name: str, given: Mapping[str, Any]) -> Offer:
    patterns = tuple(
        Pattern(
            {kind: frozenset(split_list(names)) for kind, names in one.items() if kind not in ("said", "unless")},
            *(re.compile(one[key], re.IGNORECASE) if key in one else None for key in ("said", "unless")),
        )
        for one in given["of"]
    )
    return Offer(name, given.get("shown", name), given["usd"], given["minutes"], patterns)
