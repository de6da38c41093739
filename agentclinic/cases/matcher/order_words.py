"""The words of orders and of charts' headings, read as what they name: values, panels, images, examinations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agentclinic.vocabulary.tests import KINDS, listed, names_of, table
from agentclinic.vocabulary.text import fold, words

# Words lose their plural when read, but the pulses of a limb are not the pulse that is counted.
_PULSES = re.compile(r"\b(?:peripheral )?pulses\b")
# British spelling, as far as names of tests have it.
_BRITISH = (
    ("haem", "hem"), ("aemia", "emia"), ("oedema", "edema"), ("paed", "ped"), ("gynaec", "gynec"), ("oesoph", "esoph"),
    ("coeliac", "celiac"), ("faec", "fec"), ("leuco", "leuko"), ("tumour", "tumor"), ("colour", "color"),
    ("behaviour", "behavior"), ("fibre", "fiber"), ("oestr", "estr"), ("caerulo", "cerulo"), ("foet", "fet"),
    ("manoeuvre", "maneuver"), ("caec", "cec"), ("anaes", "anes"), ("ischaem", "ischem"),
)  # fmt: skip
_SIDES = frozenset({"left", "right"})
Tokens = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Panel:
    """Values that are ordered together."""

    values: frozenset[str]
    """All of them, those of the panels within included."""
    headings: frozenset[str]
    """Panels under whose heading its values stand: itself and those within."""
    specimen: str | None
    whole: bool
    """Whether everything measured in the specimen belongs to it."""
    loose: bool
    """Whether it is no fixed panel: what an order lists for it is what is wanted."""


@dataclass(frozen=True)
class Part:
    """A part of an examination: reflexes, a sign, a manoeuvre."""

    of: frozenset[str]
    """Systems and sites whose examination it belongs to."""
    main: str
    """The first of them."""
    by: str | None
    """How it is found out, where a chart is ordered by that."""
    within: frozenset[str]
    """Parts it is charted under as well."""


@dataclass(frozen=True)
class Vocabulary:
    """What can be ordered (`cases/data/orders.json`)."""

    named: Mapping[tuple[str, ...], Tokens]
    """What a name stands for."""
    longest: int
    spelled: Mapping[tuple[str, ...], tuple[str, ...]]
    manner: frozenset[tuple[str, ...]]
    """Words that say how a test is to be done rather than which test it is."""
    panels: Mapping[str, Panel]
    of_blood: frozenset[str]
    """Values that every laboratory means as the blood's unless told otherwise."""
    wider: Mapping[str, frozenset[str]]
    """Sites that contain a site."""
    examined: Mapping[str, frozenset[str]]
    """Systems whose examination covers a site."""
    covers: Mapping[str, frozenset[str]]
    """Systems whose examination is part of a system's."""
    parts: Mapping[str, Part]
    kinds: Mapping[str, frozenset[str]]
    """Tests that are of a more general kind, under whose name alone charts put them."""
    reached: Mapping[str, frozenset[str]]
    """Sites from which a test can take a piece."""
    fluids: frozenset[str]
    """Names of specimens that are no test by themselves."""
    alike: Mapping[str, frozenset[str]]
    """Values and tests that tell nearly the same as another."""
    with_and: re.Pattern[str]
    """Names that hold an "and" or a "with" of their own."""


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The shipped vocabulary, read once."""
    content = table()
    spelled = {words(short): words(full) for short, full in content["spelled"].items()}
    named: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for kind in KINDS:
        for concept in content[kind]:
            for name in names_of(kind, concept):
                named.setdefault(words(name), set()).add((kind, concept))
    for name in tuple(named):
        named[name].update(("specimens", fluid) for fluid in _fluids(name, named, content))
        named.setdefault(_spelled_out(name, spelled), set()).update(named[name])
    manner = {words(name) for name in listed(content["manner"])}
    panels = _panels(content["panels"])
    wider = {site: frozenset(_wider(site, content["sites"])) for site in content["sites"]}
    return Vocabulary(
        named={name: frozenset(tokens) for name, tokens in named.items()},
        longest=max(map(len, (*named, *spelled, *manner))),
        spelled=spelled,
        manner=frozenset(manner),
        panels=panels,
        of_blood=frozenset().union(*(panels[name].values for name in ("cbc", "cmp", "electrolytes"))) | {"ldh", "ph"},
        wider=wider,
        examined={site: _examined(site, wider[site], content["systems"]) for site in content["sites"]},
        covers={
            name: frozenset({name, *listed(entry.get("covers", ""))}) for name, entry in content["systems"].items()
        },
        parts={
            name: Part(
                frozenset(listed(entry["of"])),
                listed(entry["of"])[0],
                entry.get("by"),
                frozenset({name, *listed(entry.get("in", ""))}),
            )
            for name, entry in content["parts"].items()
        },
        kinds={kind: frozenset(listed(names)) for kind, names in content["kinds"].items()},
        reached={test: frozenset(listed(names)) for test, names in content["reached"].items()},
        fluids=frozenset(
            " ".join(words(name))
            for fluid in content["specimens"]
            for name in names_of("specimens", fluid)
            if name not in ("urinalysis", "ua", "dipstick")
        ),
        alike={name: frozenset(listed(names)) for name, names in content["alike"].items()},
        with_and=_joining(named, spelled),
    )


def _fluids(
    name: tuple[str, ...], named: Mapping[tuple[str, ...], set[tuple[str, str]]], content: Mapping[str, Any]
) -> set[str]:
    """The fluids a name of a value or of a fluid's analysis holds: a urine pregnancy test is the urine's."""
    fluids = {content["panels"][concept].get("specimen") for kind, concept in named[name] if kind == "panels"}
    if any(kind == "values" for kind, _ in named[name]):
        fluids |= {concept for word in name for kind, concept in named.get((word,), ()) if kind == "specimens"}
    return fluids - {None, "blood"}


def _joining(*tables: Iterable[tuple[str, ...]]) -> re.Pattern[str]:
    names = {" ".join(name) for table in tables for name in table if {"and", "with"} & set(name)}
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})")


def _panels(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Panel]:
    def within(name: str) -> set[str]:
        return {name}.union(*(within(inner) for inner in listed(entries[name].get("panels", ""))))

    return {
        name: Panel(
            frozenset(value for inner in within(name) for value in listed(entries[inner].get("values", ""))),
            frozenset(within(name) | set(listed(entry.get("headings", "")))),
            entry.get("specimen"),
            bool(entry.get("whole")),
            bool(entry.get("loose")),
        )
        for name, entry in entries.items()
    }


def _wider(site: str, entries: Mapping[str, Mapping[str, str]]) -> Iterable[str]:
    for outer in listed(entries[site].get("of", "")):
        yield outer
        yield from _wider(outer, entries)


def _examined(site: str, wider: frozenset[str], systems: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    own = frozenset(name for name, entry in systems.items() if site in listed(entry["sites"]))
    return own or frozenset(name for name, entry in systems.items() if wider & set(listed(entry["sites"])))


@dataclass(frozen=True)
class Reading:
    """A text as what it names."""

    by_kind: Mapping[str, frozenset[str]]
    phrases: tuple[tuple[str, Tokens], ...]
    """The names in their order, each with what it stands for."""
    words: frozenset[str]
    """What the vocabulary does not know."""
    sides: frozenset[str]

    def of(self, kind: str) -> frozenset[str]:
        """What it names of one kind."""
        return self.by_kind.get(kind, frozenset())

    @property
    def named(self) -> bool:
        """Whether it names anything at all."""
        return bool(self.by_kind or self.words)


@lru_cache(maxsize=32768)
def reading(text: str) -> Reading:
    """A text read by the vocabulary, the longest names first."""
    known = vocabulary()
    phrases: list[tuple[str, Tokens]] = []
    unknown: set[str] = set()
    sides: set[str] = set()
    tokens = spelled_out(words(_PULSES.sub("peripheral pulse", american(fold(text)))))
    index = 0
    while index < len(tokens):
        for end in range(min(len(tokens), index + known.longest), index, -1):
            name = tokens[index:end]
            if name in known.named:
                phrases.append((" ".join(name), known.named[name]))
                break
            if name in known.manner:
                break
        else:
            end = index + 1
            if tokens[index] in _SIDES:
                sides.add(tokens[index])
            elif len(tokens[index]) > 1 and not tokens[index].isdigit():
                unknown.add(tokens[index])
        index = end
    by_kind: dict[str, set[str]] = {}
    for _, concepts in phrases:
        for kind, concept in concepts:
            by_kind.setdefault(kind, set()).add(concept)
    return Reading(
        {kind: frozenset(concepts) for kind, concepts in by_kind.items()},
        tuple(phrases),
        frozenset(unknown),
        frozenset(sides),
    )


def american(text: str) -> str:
    """A folded text in the spelling of the vocabulary."""
    for british, here in _BRITISH:
        text = text.replace(british, here)
    return text


def joined(readings: Iterable[Reading]) -> Reading:
    """Several readings as one."""
    by_kind: dict[str, frozenset[str]] = {}
    phrases: list[tuple[str, Tokens]] = []
    unknown: frozenset[str] = frozenset()
    sides: frozenset[str] = frozenset()
    for read in readings:
        for kind, concepts in read.by_kind.items():
            by_kind[kind] = by_kind.get(kind, frozenset()) | concepts
        phrases.extend(read.phrases)
        unknown |= read.words
        sides |= read.sides
    return Reading(by_kind, tuple(phrases), unknown, sides)


def spelled_out(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Words with abbreviations written out."""
    return _spelled_out(tokens, vocabulary().spelled)


def _spelled_out(tokens: tuple[str, ...], spelled: Mapping[tuple[str, ...], tuple[str, ...]]) -> tuple[str, ...]:
    full: list[str] = []
    index = 0
    while index < len(tokens):
        for end in range(min(len(tokens), index + 4), index, -1):
            if tokens[index:end] in spelled:
                full.extend(spelled[tokens[index:end]])
                break
        else:
            end = index + 1
            full.append(tokens[index])
        index = end
    return tuple(full)


def same_site(asked: str, charted: str) -> bool:
    """Whether a site is another, or a part of it, or contains it."""
    wider = vocabulary().wider
    return asked == charted or charted in wider[asked] or asked in wider[charted]
