"""The table of disease names (`data/names.json`), and which name is a kind, a sign or a sibling of which."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Entry:
    """A disease, or something else that disease names mention, with all its names."""

    names: tuple[str, ...]
    """The usual name first."""
    id: str | None = None
    """Set for the diseases of the knowledge base."""
    short: tuple[str, ...] = ()
    """Abbreviations, matched in this spelling only: ALL is a leukemia, "all" is not."""
    leaks: tuple[str, ...] = ()
    """Further names for the leak checker only."""
    leaks_with: tuple[str, ...] = ()
    """Other entries, by their usual name, whose names also give this one away."""


@dataclass(frozen=True)
class NameTable:
    """Everything we know about names."""

    diseases: tuple[Entry, ...]
    organisms: tuple[tuple[str, ...], ...]
    """Names of one organism, the usual one first."""
    caused_by: Mapping[str, str]
    """The organism behind a disease that has only one cause."""
    words: Mapping[str, str]
    """Another form of a word: renal to kidney."""
    kinds: Mapping[str, tuple[str, ...]]
    """A word and the narrower words for kinds of it: drug to antibiotic."""

    @cached_property
    def by_id(self) -> Mapping[str, Entry]:
        return {entry.id: entry for entry in self.diseases if entry.id}

    @cached_property
    def abbreviations(self) -> Mapping[str, str]:
        """Every abbreviation with the usual name it stands for."""
        return {short: entry.names[0] for entry in self.diseases for short in entry.short}

    @cached_property
    def synonyms(self) -> tuple[tuple[str, ...], ...]:
        return tuple(entry.names for entry in self.diseases if len(entry.names) > 1)


class Related(NamedTuple):
    """A name and the names it is related to."""

    name: str
    of: tuple[str, ...]


@lru_cache(maxsize=1)
def name_table() -> NameTable:
    content = read_table("names")
    return NameTable(
        tuple(map(_entry, content["diseases"])),
        tuple(map(tuple, content["organisms"])),
        content["caused_by"],
        {form: word for word, forms in content["words"].items() for form in forms},
        {word: tuple(narrower) for word, narrower in content["kinds"].items()},
    )


def _entry(content: dict[str, Any]) -> Entry:
    fields: dict[str, Any] = {key: value if key == "id" else tuple(value) for key, value in content.items()}
    return Entry(**fields)


def relations(table: Literal["broader", "narrower", "manifestations"]) -> list[Related]:
    """A table that relates names; a disease given by its id is replaced by its usual name."""
    ours = name_table().by_id
    return [
        Related(entry["name"], tuple(ours[of].names[0] if of in ours else of for of in entry["of"]))
        for entry in read_table(table)[table]
    ]


def siblings() -> list[tuple[str, ...]]:
    return [tuple(names) for names in read_table("siblings")["siblings"]]


def read_table(name: str) -> dict[str, Any]:
    """A table of `vocabulary/data`."""
    content: dict[str, Any] = json.loads((_DATA / f"{name}.json").read_text(encoding="utf-8"))
    return content


@lru_cache(maxsize=1)
def word_lists() -> dict[str, list[frozenset[str]]]:
    """The lists of `reading.json`, line by line; the file says what each is for."""
    return {key: [frozenset(line.split()) for line in entry["words"]] for key, entry in read_table("reading").items()}


def word_list(key: str) -> frozenset[str]:
    """One of these lists."""
    return frozenset().union(*word_lists()[key])
