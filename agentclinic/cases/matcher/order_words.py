"""Read orders and chart headings as what they name: values, panels, images, examinations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from agentclinic import lazy
from agentclinic.vocabulary.normals import is_examination, levels, normals
from agentclinic.vocabulary.tests import KINDS, names_of, split_list, table
from agentclinic.vocabulary.text import fold, words

# Reading drops plurals, but the pulses of a limb are not the pulse rate.
_PULSES = lazy.regex(
    r"(?<!\bpedal )(?<!\bfoot )(?<!\btibial )(?<!\bpedis )(?<!\bfemoral )(?<!\bpopliteal )(?<!\bradial )"
    r"(?<!\bbrachial )(?<!\bulnar )(?<!\bleg )(?<!\barm )(?<!\blimb )\b(?:peripheral )?pulses\b"
)
# British spellings in names of tests.
_BRITISH = (
    ("haem", "hem"), ("aemia", "emia"), ("oedema", "edema"), ("paed", "ped"), ("gynaec", "gynec"), ("oesoph", "esoph"),
    ("coeliac", "celiac"), ("faec", "fec"), ("leuco", "leuko"), ("tumour", "tumor"), ("colour", "color"),
    ("behaviour", "behavior"), ("fibre", "fiber"), ("oestr", "estr"), ("caerulo", "cerulo"), ("foet", "fet"),
    ("manoeuvre", "maneuver"), ("goitre", "goiter"), ("isation", "ization"), ("caec", "cec"), ("anaes", "anes"),
    ("ischaem", "ischem"),
)  # fmt: skip
_SIDES = frozenset({"left", "right"})
_BLOOD_ONLY = frozenset({"crp", "esr", "procalcitonin", "uric acid", "tsh", "troponin", "ferritin", "inr", "pt", "ptt"})
_COUNTED = frozenset(
    {"white cells", "red cells", "neutrophils", "lymphocytes", "eosinophils", "total protein", "albumin"}
)
"""Values of the blood count and liver panel that are also measured in other fluids."""
_Lengths = Mapping[str, tuple[int, ...]]
"""How many words the names that begin with a word have, the most first."""
Tokens = frozenset[tuple[str, str]]
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Panel:
    """Values ordered together."""

    values: frozenset[str]
    """All its values, including those of the panels it contains."""
    headings: frozenset[str]
    """Panels under whose headings its values are charted: itself and those it contains."""
    specimen: str | None
    whole: bool
    """Whether it includes everything measured in the specimen."""
    loose: bool
    """Whether its values vary: an order that lists values wants just those."""


@dataclass(frozen=True)
class Part:
    """A part of an examination: reflexes, a sign, a maneuver."""

    of: frozenset[str]
    """Systems and sites whose examination includes it."""
    main: str
    """The first of them."""
    by: str | None
    """How it is examined, for charts arranged by method."""
    within: frozenset[str]
    """The part itself and other parts it may be charted under."""
    sign: bool
    """Whether it is a single sign or maneuver, with a normal result of its own in the table."""


@dataclass(frozen=True)
class Sets:
    """What the table of tests says about its entries."""

    panels: Mapping[str, Panel]
    of_blood: frozenset[str]
    """Values measured in blood unless the order says otherwise."""
    kinds: Mapping[str, frozenset[str]]
    """For a general kind of test, the tests that charts may list under it."""
    reached: Mapping[str, frozenset[str]]
    """Sites a test can take a specimen from."""
    germs: frozenset[str]
    """Germs that are looked for together, by the same method in the same specimen."""
    collected: frozenset[str]
    """Values that are measured in the same collection of urine, and elsewhere."""


@dataclass(frozen=True)
class Vocabulary(Sets):
    """The same, with all names, indexed for reading orders."""

    named: Mapping[tuple[str, ...], Tokens]
    """What a name stands for."""
    phrases: frozenset[tuple[str, ...]]
    """Everything that is read as one phrase: the names, and the words that say how to do a test."""
    lengths: _Lengths
    """Of all these phrases."""
    spelled: Mapping[tuple[str, ...], tuple[str, ...]]
    spelled_lengths: _Lengths
    manner: frozenset[tuple[str, ...]]
    """Words that say how to do a test, not which test it is."""
    of_fluids: frozenset[str]
    """Values that are also measured in urine and other fluids."""
    wider: Mapping[str, frozenset[str]]
    """For each site, the sites that contain it."""
    examined: Mapping[str, frozenset[str]]
    """For each site, the systems whose examination covers it."""
    covers: Mapping[str, frozenset[str]]
    """For each system, the systems its examination includes."""
    parts: Mapping[str, Part]
    fluids: frozenset[str]
    """Names of specimens that are not tests by themselves."""
    alike: Mapping[str, frozenset[str]]
    """Values and tests that tell nearly the same thing."""
    alone: frozenset[str]
    """Qualifiers of results that are reported only if they are asked for."""
    with_and: re.Pattern[str]
    """Names that contain "and" or "with"."""


@lru_cache(maxsize=1)
def sets() -> Sets:
    """For modules as they are imported: to read all names takes thirty times as long."""
    content = table()
    panels = _panels(content["panels"])
    return Sets(
        panels=panels,
        of_blood=frozenset().union(*(panels[name].values for name in ("cbc", "cmp", "electrolytes")))
        | {"ldh", "ph", "cortisol", "lactate"},
        kinds={kind: frozenset(split_list(names)) for kind, names in content["kinds"].items()},
        reached={test: frozenset(split_list(names)) for test, names in content["reached"].items()},
        germs=frozenset(split_list(content["germs"])),
        collected=frozenset(split_list(content["collected"])),
    )


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    content, known = table(), sets()
    spelled = {words(brief): words(full) for brief, full in content["spelled"].items()}
    short = _lengths(spelled)
    named: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for kind in KINDS:
        for concept in content[kind]:
            for spelling in names_of(kind, concept):
                named.setdefault(words(spelling), set()).add((kind, concept))
    for name in tuple(named):
        named[name].update(("specimens", fluid) for fluid in _fluids(name, named, content))
        if any(kind == "panels" for kind, _ in named[name]):  # an arterial blood gas
            named[name].update(("timings", word) for word in name if word in content["timings"])
        named.setdefault(_spelled_out(name, spelled, short), set()).update(named[name])
    manner = {words(name) for name in split_list(content["manner"])}
    wider = {site: frozenset(_wider(site, content["sites"])) for site in content["sites"]}
    return Vocabulary(
        **vars(known),
        named={name: frozenset(tokens) for name, tokens in named.items()},
        phrases=frozenset(named) | manner,
        lengths=_lengths((*named, *manner)),
        spelled=spelled,
        spelled_lengths=short,
        manner=frozenset(manner),
        of_fluids=frozenset(content["values"])
        - _BLOOD_ONLY.union(*(known.panels[name].values for name in ("cbc", "lft")))
        | _COUNTED,
        wider=wider,
        examined={site: _examined(site, wider[site], content["systems"]) for site in content["sites"]},
        covers={
            name: frozenset({name, *split_list(entry.get("covers", ""))}) for name, entry in content["systems"].items()
        },
        parts={
            name: Part(
                frozenset(split_list(entry["of"])),
                split_list(entry["of"])[0],
                entry.get("by"),
                frozenset({name, *split_list(entry.get("in", ""))}),
                bool(entry.get("sign")),
            )
            for name, entry in content["parts"].items()
        },
        fluids=frozenset(
            " ".join(words(name))
            for fluid in content["specimens"]
            for name in names_of("specimens", fluid)
            if name not in ("urinalysis", "ua", "dipstick")
        ),
        alike={name: frozenset(split_list(names)) for name, names in content["alike"].items()},
        alone=frozenset(name for name, entry in content["qualifiers"].items() if entry.get("alone")),
        with_and=_joining(named, spelled, [name for name in manner if len(name) > 1]),
    )


def _fluids(
    name: tuple[str, ...], named: Mapping[tuple[str, ...], set[tuple[str, str]]], content: Mapping[str, Any]
) -> set[str]:
    """The fluids in the name of a value or panel: a urine pregnancy test is done on urine."""
    fluids = {content["panels"][concept].get("specimen") for kind, concept in named[name] if kind == "panels"}
    if any(kind == "values" for kind, _ in named[name]):
        fluids |= {concept for word in name for kind, concept in named.get((word,), ()) if kind == "specimens"}
    return fluids - {None, "blood"}


def _joining(*tables: Iterable[tuple[str, ...]]) -> re.Pattern[str]:
    names = {" ".join(name) for table in tables for name in table if {"and", "with"} & set(name)}
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})")


def _panels(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Panel]:
    def within(name: str) -> set[str]:
        return {name}.union(*(within(inner) for inner in split_list(entries[name].get("panels", ""))))

    return {
        name: Panel(
            frozenset(value for inner in within(name) for value in split_list(entries[inner].get("values", ""))),
            frozenset(within(name) | set(split_list(entry.get("headings", "")))),
            entry.get("specimen"),
            bool(entry.get("whole")),
            bool(entry.get("loose")),
        )
        for name, entry in entries.items()
    }


def _wider(site: str, entries: Mapping[str, Mapping[str, str]]) -> Iterable[str]:
    for outer in split_list(entries[site].get("of", "")):
        yield outer
        yield from _wider(outer, entries)


def _examined(site: str, wider: frozenset[str], systems: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    own = frozenset(name for name, entry in systems.items() if site in split_list(entry["sites"]))
    return own or frozenset(name for name, entry in systems.items() if wider & set(split_list(entry["sites"])))


@dataclass(frozen=True)
class Reading:
    """What a text names."""

    by_kind: Mapping[str, frozenset[str]]
    phrases: tuple[tuple[str, Tokens], ...] = ()
    """The names in order, each with what it stands for."""
    words: frozenset[str] = frozenset()
    """Words the vocabulary does not know."""
    sides: frozenset[str] = frozenset()

    def of(self, kind: str) -> frozenset[str]:
        return self.by_kind.get(kind, _NOTHING)

    @property
    def named(self) -> bool:
        return bool(self.by_kind or self.words)

    @cached_property
    def concepts(self) -> frozenset[tuple[str, str]]:
        """Everything that it names, as kind and name, and each kind with an empty name."""
        return frozenset((kind, name) for kind, names in self.by_kind.items() for name in ("", *names))


@lru_cache(maxsize=32768)
def reading(text: str) -> Reading:
    """Read a text, longest names first."""
    known = vocabulary()
    phrases: list[tuple[str, Tokens]] = []
    unknown: set[str] = set()
    tokens = spelled_out(words(_PULSES.sub("peripheral pulse", american(fold(text)))))
    for name in _longest_first(tokens, known.lengths, known.phrases):
        if name in known.named:
            phrases.append((" ".join(name), known.named[name]))
        elif name not in known.manner and len(name[0]) > 1 and not name[0].isdigit():
            unknown.add(name[0])
    by_kind: dict[str, set[str]] = {}
    for _, concepts in phrases:
        for kind, concept in concepts:
            by_kind.setdefault(kind, set()).add(concept)
    return Reading(
        {kind: frozenset(concepts) for kind, concepts in by_kind.items()},
        tuple(phrases),
        frozenset(unknown - _SIDES),
        frozenset(unknown & _SIDES),
    )


def _longest_first(
    tokens: tuple[str, ...], lengths: _Lengths, known: Set[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Cut words into known names, the longest first, and single words."""
    index = 0
    while index < len(tokens):
        name = tokens[index : index + 1]
        for length in lengths.get(tokens[index], ()):
            if (longer := tokens[index : index + length]) in known:
                name = longer
                break
        yield name
        index += len(name)


def _lengths(names: Iterable[tuple[str, ...]]) -> _Lengths:
    found: dict[str, set[int]] = {}
    for name in names:
        found.setdefault(name[0], set()).add(len(name))
    return {word: tuple(sorted(several, reverse=True)) for word, several in found.items()}


def american(text: str) -> str:
    for british, here in _BRITISH:
        text = text.replace(british, here)
    return text


def joined(readings: Iterable[Reading]) -> Reading:
    every = tuple(readings)
    if len(every) == 1:
        return every[0]
    by_kind: dict[str, frozenset[str]] = {}
    for read in every:
        for kind, concepts in read.by_kind.items():
            by_kind[kind] = by_kind[kind] | concepts if kind in by_kind else concepts
    return Reading(
        by_kind,
        tuple(phrase for read in every for phrase in read.phrases),
        frozenset().union(*(read.words for read in every)),
        frozenset().union(*(read.sides for read in every)),
    )


def spelled_out(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return _spelled_out(tokens, vocabulary().spelled, vocabulary().spelled_lengths)


def _spelled_out(
    tokens: tuple[str, ...], spelled: Mapping[tuple[str, ...], tuple[str, ...]], lengths: _Lengths
) -> tuple[str, ...]:
    if lengths.keys().isdisjoint(tokens):
        return tokens
    cut = _longest_first(tokens, lengths, spelled.keys())
    return tuple(word for name in cut for word in spelled.get(name, name))


@lru_cache(maxsize=1)
def usually_in_blood() -> frozenset[str]:
    """Values that the table of normal results has without a specimen: those of other fluids are named so."""
    found: set[str] = set()
    for entry in normals():
        heads = levels(entry.heading)
        read = joined(map(reading, heads))
        if not (is_examination(heads[0]) or read.of("specimens") - {"blood"} or read.of("sites")):
            found |= _NOTHING if read.of("tests") & _OF_SPECIMENS else read.of("values")
    return frozenset(found - _IN_ANY_FLUID)


_OF_SPECIMENS = frozenset({"pcr", "swab", "culture", "gram stain", "microscopy", "acid fast", "cytology", "biopsy"})
_IN_ANY_FLUID = frozenset({"hcg", "cryptococcus", "flow cytometry"})


def same_site(asked: str, charted: str) -> bool:
    """Whether two sites are the same or one contains the other."""
    wider = vocabulary().wider
    return asked == charted or charted in wider[asked] or asked in wider[charted]


def other_side(asked: Reading, charted: Reading) -> bool:
    """Whether one is about the left side and the other about the right."""
    return len(asked.sides) == 1 and len(charted.sides) == 1 and asked.sides != charted.sides
