"""Find the charted findings that answer an ordered examination."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from agentclinic import lazy
from agentclinic.cases.matcher.order_items import Item, items
from agentclinic.cases.matcher.order_kinds import ALL_OF_IT, MEASURED, TAKEN
from agentclinic.cases.matcher.order_words import Reading, Tokens, joined, other_side, reading, same_site, vocabulary
from agentclinic.cases.model import Fact, Section
from agentclinic.vocabulary.normals import normal_of
from agentclinic.vocabulary.tests import split_list, table
from agentclinic.vocabulary.text import fold, words

Charted = tuple[Fact, Reading]
"""A fact of a chart, with what its headings name."""
Chart = Iterable[Charted]
"""The facts of a chart; they can be read again and again."""
FOUND = frozenset({Section.EXAMINATION, Section.VITALS})
"""The sections of what is found at the bedside."""


class Indexed(Hashable, Protocol):
    """A chart in which facts are found by what their headings name, in the order of the chart."""

    def __iter__(self) -> Iterator[Charted]:
        """All its facts."""

    @property
    def findings(self) -> Sequence[Charted]:
        """Those of the examination, and the vital signs."""

    def below(self, name: int) -> Sequence[Charted]:
        """The facts with a heading that, with those above it, names this (`orders.names_above`)."""

    def naming(self, concepts: Tokens) -> Sequence[Charted]:
        """The facts whose headings name one of these."""


_WHOLE = lazy.regex(
    r"^(?:(?:vital signs?|vitals?)\s*(?:,|and|with|\+|&)?\s*)?"
    r"(?:a |full |complete |comprehensive |thorough |general |focused |detailed |repeat |targeted |newborn |infant "
    r"|pediatric |neonatal |calm |gentle |careful |brief |quick |initial )*"
    r"(?:physical exam(?:ination)?\b(?! (?:of|for|on) )|physical$|head to toe exam|examination$|exam$"
    r"|newborn exam(?:ination)?\b|(?<=general )exam(?:ination)? (?:including|with)\b)|^full exam",
)
_AT_THE_END = lazy.regex(
    r"^(.+?)(?:\s*[,;+&]|\s+and\b|\s+plus\b)+\s*((?:a |full |complete |thorough |general )*physical exam(?:ination)?)$"
)
"""Tests and then the physical examination: the examination is read first."""
# "Physical examination" alone does not include vital signs.
_WITH_VITALS = lazy.regex(r"\b(?:full|complete|comprehensive|thorough|head to toe|vitals?)\b")
_OF_SOMETHING = lazy.regex(r"\bexam(?:ination)? (?!with\b|including\b|and\b)\w")
_SUMMED_UP = lazy.regex(
    r"\b(?:normal|intact|unremarkable|within normal limits|(?:no|without) (?:focal|deficits?|abnormal\w*|signs of)"
    r"|non-?focal|grossly)\b",
    re.IGNORECASE,
)
"""A finding that sums up an examination also answers for its parts."""
_SITE_EXAM = lazy.regex(r"\b(\w+) exam")
_LISTED = lazy.regex(r"^[^,]*\bexam(?:ination)?\s*(?:,|(?:including|with|focus(?:ed|ing|sing)? on)\b)")
"""A physical examination followed by what to examine; brackets and colons have become commas."""
_GENERAL_LISTED = lazy.regex(
    r"^(?:vital signs?|vitals?)\s*(?:,|and|with|\+|&)*\s*(?=(?:a )?general exam(?:ination)? (?:including|with)\b)"
)
"""Vital signs before a general examination with a list: they are no part of the list."""
_PRIVATE = frozenset({"pelvic", "breast", "genital", "rectal"})
"""Examinations that are done only if they are named."""
_NOTHING: frozenset[str] = frozenset()


def whole_examination(order: str, chart: Indexed) -> tuple[Fact, ...] | None:
    """All examination findings, with the vital signs asked for; None if the order is not for a physical examination.

    "Physical exam abdomen" and a focused examination include only what they name.
    """
    order = re.sub(r"[()\[\]:]", ",", fold(order).replace("head to toe", "complete")).strip(" .:,")
    order = _AT_THE_END.sub(r"\2, \1", order)
    if not _WHOLE.search(order):
        return None
    # An order with a list includes vital signs only if it names them.
    everything = bool(_WITH_VITALS.search(order)) and ("," not in order or "vital" in order)
    asked = items(order)
    named_systems = _NOTHING.union(*(_systems(item.read) for item in asked))
    listed = _LISTED.search(_GENERAL_LISTED.sub("", order))
    if not ALL_OF_IT.search(order) and listed and sum(_examines(item) for item in asked) > 1:
        return None  # the list is what is wanted
    vitals = {v for item in asked for v in item.read.of("vitals") if v != "temperature" or not item.read.of("sites")}
    if "pulse" in words(order):
        vitals.add("heart rate")
    found = {
        fact.path
        for fact, _ in chart.findings
        if fact.section is Section.EXAMINATION
        and not (fact.heads and (own := _own_systems(reading(fact.heads[0]))) and own <= _PRIVATE - named_systems)
    }
    if not everything and (order.startswith(("focused", "targeted")) or _OF_SOMETHING.search(order)):
        named = {f.path for item in asked if not item.measured for f in examination(item, chart)}
        found = found & named or found
    return tuple(
        fact
        for fact, charted in chart.findings
        if fact.path in found
        or (fact.section is Section.VITALS and (everything or vitals & charted.of("vitals") or "vital signs" in vitals))
    )


def _examines(item: Item) -> bool:
    return not item.measured and bool(_systems(item.read) or item.read.of("parts"))


def examination(item: Item, chart: Chart) -> tuple[Fact, ...]:
    """The findings of one system, region, part or maneuver."""
    asked = item.read
    parts, systems = asked.of("parts"), _systems(asked)
    chart = tuple((fact, charted) for fact, charted in chart if _at_this_time(asked, fact, charted))
    found = _parts(parts, asked, chart)
    chart = _examined(chart)
    maneuvers = all(vocabulary().parts[part].by == "special tests" or part == "range of motion" for part in parts)
    if not systems or found or not (asked.of("systems") or maneuvers or names_examination(item.text)):
        return tuple(found)
    found = [fact for fact, charted in chart if _of_system(systems, asked, fact, charted)]
    charted_as = dict(chart)
    if asked.of("systems") == {"neurological"} and _of_limbs(asked):
        found = [fact for fact in found if _neurological_below_the_head(fact)] or found
    found = _nearest(asked, found, charted_as)
    if set(asked.by_kind) == {"sites"} and _of_limbs(asked):
        # "Legs: no edema" says nothing of the feet.
        found = [fact for fact in found if not _of_the_limb(asked, fact, charted_as[fact])] or found
    if "lymph node" in asked.of("sites"):
        # "Neck nodes" are not the arteries of the neck.
        found = [fact for fact in found if _of_nodes(fact)] or found
    if asked.of("sites"):
        # The pressure in the arms is not part of an examination of the arms, but the standing one is of the heart's.
        found = [f for f in found if not charted_as[f].of("vitals") - {"temperature"} or _of_organ(asked, systems, f)]
    if set(asked.by_kind) == {"sites"}:
        # What the skin shows at this place: "backs of the hands swollen".
        skin = [fact for fact, _ in chart if fact.heads and _own_systems(reading(fact.heads[0])) == {"skin"}]
        seen = {fact for fact in skin if asked.of("sites") & reading(fact.text).of("sites")}
        found = [fact for fact, _ in chart if fact in seen or fact in found]
    if not found and asked.of("methods") == {"palpation"}:
        # Palpation findings are often charted with what was seen.
        asked = replace(asked, by_kind={kind: named for kind, named in asked.by_kind.items() if kind != "methods"})
        found = [fact for fact, charted in chart if _of_system(systems, asked, fact, charted)]
    if not found and asked.of("methods") == {"auscultation"}:
        # Auscultation of the chest covers heart and lungs; the finding says which.
        found = [f for f, c in chart if "auscultation" in c.of("methods") and systems & _of_parts(reading(f.text))]
    if "auscultation" in asked.of("methods"):
        # "Auscultation of the heart", where the chart has it apart, is not the neck veins.
        found = [fact for fact in found if asked.of("methods") & _methods(reading(fact.heads[-1]))] or found
    found = list(of_aim(item, found))
    if item.listed:
        narrow = set(_parts(item.listed, asked, chart))
        there = asked.of("sites")
        found = [f for f in found if f in narrow or there & reading(f.heads[-1]).of("sites")] if narrow else found
    if (
        item.detail
        and set(asked.by_kind) == {"sites"}
        and all("joint" in vocabulary().wider[s] for s in asked.of("sites"))
    ):
        # A joint that is listed may be charted by itself; a summary may be about other joints.
        found = [f for f in found if asked.of("sites") & charted_as[f].of("sites") | asked.of("sites") & _seen(f)]
    if asked.by_kind == {"sites": {"joint"}}:
        at_ends = [f for f, charted in chart if charted.of("sites") & _ENDS]
        ends = {f for f in at_ends if _own_systems(reading(f.heads[0])) == {"musculoskeletal"}}
        found = [f for f, _ in chart if f in ends or f in found]
    if systems == {"psychiatric"} and not any("psychiatric" in charted.of("systems") for _, charted in chart):
        return _mental_status(found, chart)
    return tuple(found)


_ENDS = frozenset({"hand", "finger", "foot", "toe"})
"""Places where most joints are: charts have "Hands", not "Finger joints"."""


def _seen(fact: Fact) -> frozenset[str]:
    return reading(fact.text).of("sites")


def of_aim(item: Item, found: Sequence[Fact]) -> tuple[Fact, ...]:
    """An abdomen that is felt for the spleen, or for what is listed, is not a rectal examination."""
    methods, systems = item.read.of("methods"), _systems(item.read)
    kept = tuple(fact for fact in found if not _is_private(fact, systems))
    return kept if methods or (item.aimed and kept) else tuple(found)


def _is_private(fact: Fact, systems: frozenset[str]) -> bool:
    """Whether a finding is of an examination that is done only if it is named, within another one."""
    own = _own_systems(reading(fact.heads[-1])) if fact.heads else _NOTHING
    return bool(own) and own <= _PRIVATE - systems


def covering(asked: Reading, chart: Chart) -> tuple[Fact, ...]:
    """The findings of the examination that a sign belongs to, where nothing is charted of the sign itself."""
    known = vocabulary()
    signs = [known.parts[part] for part in sorted(asked.of("parts"))]
    there = _systems(asked) - {"vascular"}
    by = frozenset(sign.by for sign in signs if sign.by) | asked.of("methods")
    for systems in ({sign.main for sign in signs}, {of for sign in signs for of in sign.of}, there):
        found = [
            (fact, charted)
            for fact, charted in chart
            if fact.section is Section.EXAMINATION
            and any(systems & _own_systems(reading(head)) for head in fact.heads)
            and not charted.of("vitals")  # the blood pressure of four limbs is no examination of the limbs
        ]
        near = [(fact, charted) for fact, charted in found if _same_place(asked, _of_path(fact.heads[1:]))]
        if found := near or found:
            return tuple(fact for fact, charted in found if by & _methods(charted)) or tuple(f for f, _ in found)
    return ()


@lru_cache(maxsize=4096)
def _of_path(heads: tuple[str, ...]) -> Reading:
    return joined(map(reading, heads))


def mentioned(item: Item, chart: Chart) -> tuple[Fact, ...]:
    """The findings that speak of a sign we do not know, in an examination of its place: "cardiac rhythm"."""
    systems, wanted = _systems(item.read), item.read.words
    if wanted <= _SAID_OF_ANYTHING or (item.detail and not item.read.by_kind):
        return ()  # "murmur with radiation" is no other finding that has this word
    return tuple(
        fact
        for fact, charted in chart
        if fact.section is Section.EXAMINATION
        and (systems & _own_systems(charted) or not item.read.by_kind)
        and _same_place(item.read, charted)
        and wanted <= said_in(fact)
        # That a normal finding has an unknown word by chance says nothing: "sharp disc margins", of redness.
        and (item.read.by_kind or not fact.path.startswith(_COMPLETED))
        # The word may be part of the name of a test of another place: the circumference of the neck.
        and not any(wanted & set(words(head)) and reading(head).of("tests") for head in fact.heads)
    )


def spoken_of(item: Item, chart: Chart) -> tuple[Fact, ...]:
    """The findings that have all the words of a sign: "nasal flaring", seen with the breathing."""
    wanted = frozenset(words(item.text))
    if len(wanted) < _SEVERAL:
        return ()
    return tuple(fact for fact, _ in chart if fact.section is Section.EXAMINATION and wanted <= said_in(fact))


_COMPLETED = "Completed/"
"""How the paths of completed facts begin."""
_SEVERAL = 2
_SAID_OF_ANYTHING = frozenset(
    "after at before during from until under while again later through into within over".split()
)
"""Words that say nothing of what was found."""


@lru_cache(maxsize=32768)
def said_in(fact: Fact) -> frozenset[str]:
    """The words of a finding."""
    return frozenset(words(" ".join((*fact.heads, fact.text))))


def _at_this_time(asked: Reading, fact: Fact, charted: Reading) -> bool:
    """Whether a finding is not one of those that are given only if they are asked for: again later, in dim light."""
    qualifiers = charted.of("qualifiers")
    if qualifiers and qualifiers & vocabulary().alone - asked.of("qualifiers"):
        return False
    later = _later(fact.heads[0]) if fact.heads else _NOTHING
    return not later or later <= asked.of("timings")


@lru_cache(maxsize=4096)
def _later(heading: str) -> frozenset[str]:
    return reading(heading).of("timings") & _LATER


_LATER = frozenset({"repeat"})
_OF_THE_HEAD = frozenset({"cranial nerves", "eye movements", "pupils", "visual fields", "orientation", "speech"})


def _of_limbs(asked: Reading) -> bool:
    wider = vocabulary().wider
    return bool(asked.of("sites")) and all("limb" in wider[site] for site in asked.of("sites"))


def _of_the_limb(asked: Reading, fact: Fact, charted: Reading) -> bool:
    """Whether a finding is of a whole limb, and does not speak of the part of it that is ordered."""
    wider = _NOTHING.union(*(vocabulary().wider[site] for site in asked.of("sites"))) - asked.of("sites")
    return bool(charted.of("sites")) and charted.of("sites") <= wider and not asked.of("sites") & _seen(fact)


def _neurological_below_the_head(fact: Fact) -> bool:
    own = reading(fact.heads[-1])
    of_the_head = own.of("systems") == {"psychiatric"} or (own.of("parts") and own.of("parts") <= _OF_THE_HEAD)
    return "neurological" in reading(fact.heads[0]).of("systems") and not of_the_head


def _of_nodes(fact: Fact) -> bool:
    return any("lymph node" in reading(text).of("sites") for text in (*fact.heads, fact.text))


def names_examination(text: str) -> bool:
    """Whether a text orders the examination of a site by name: "abdominal exam"."""
    named = _SITE_EXAM.search(fold(text))
    return named is not None and bool(reading(named[1]).of("sites")) and not reading(named[1]).of("parts")


def _nearest(asked: Reading, found: list[Fact], chart: Mapping[Fact, Reading]) -> list[Fact]:
    """Prefer findings at the exact site to those of the region around it."""
    sites, wider = asked.of("sites"), vocabulary().wider
    if not any(sites & chart[fact].of("sites") for fact in found):
        if asked.of("systems") or sites & _NOTHING.union(*_ORGANS.values()):
            return found
        return [fact for fact in found if not (own := chart[fact].of("sites")) or _any_same(sites, own)]
    exact = {fact.heads[0] for fact in found if sites & chart[fact].of("sites") and fact.heads}
    if not sites & _EXAMINED and not asked.of("systems"):
        # The wall of the chest, where it is charted apart, is not the whole chest.
        found = [fact for fact in found if sites & _about(fact, chart[fact]) or fact.heads[0] not in exact]
    around = _NOTHING.union(*(wider[site] for site in sites)) - sites

    def apart(fact: Fact) -> bool:
        """Whether it sums up an examination and is about other places: throat and ears, not the temples."""
        about = reading(fact.text).of("sites")
        return (
            fact.heads[-1:] == ("Findings",) and bool(about) and not any(same_site(a, b) for a in sites for b in about)
        )

    return [
        fact
        for fact in found
        if (not (own := chart[fact].of("sites")) and (not fact.heads or fact.heads[0] in exact) and not apart(fact))
        or (own - around and (own & sites or fact.heads[0] in exact))
    ]


_EXAMINED = frozenset(site for entry in table()["systems"].values() for site in split_list(entry["sites"]))
"""Sites that have an examination of their own."""


def _about(fact: Fact, charted: Reading) -> frozenset[str]:
    signs = (vocabulary().parts[part].of for part in charted.of("parts"))
    return charted.of("sites").union(reading(fact.text).of("sites"), *signs)


def _any_same(asked: frozenset[str], charted: frozenset[str]) -> bool:
    return any(same_site(a, b) for a in asked for b in charted)


def _mental_status(found: Iterable[Fact], chart: Chart) -> tuple[Fact, ...]:
    """The mental status if the chart has no such heading: what other examinations noticed."""
    paths = {fact.path for fact in found}
    paths |= {f.path for f, c in chart if _undivided(f) and "neurological" in _own_systems(c) and _of_mind(f.text)}
    if not any("orientation" in charted.of("parts") for _, charted in chart):
        paths |= {fact.path for fact, charted in chart if "appearance" in charted.of("parts") and _of_mind(fact.text)}
    return tuple(fact for fact, _ in chart if fact.path in paths)


def _of_mind(text: str) -> bool:
    return any("psychiatric" in vocabulary().parts[part].of for part in reading(text).of("parts"))


def _examined(chart: Chart) -> Chart:
    """The examination findings; if the chart does not separate them, the facts that are not tests."""
    examined = tuple((fact, charted) for fact, charted in chart if fact.section is Section.EXAMINATION)
    return examined or tuple(
        (fact, charted)
        for fact, charted in chart
        if fact.section is Section.TESTS and not any(charted.of(kind) for kind in MEASURED)
    )


def _systems(asked: Reading) -> frozenset[str]:
    known = vocabulary()
    sites = asked.of("sites") & {"skin"} or asked.of("sites")  # the skin of the back is not the spine
    named = asked.of("systems") or _NOTHING.union(*(known.examined[site] for site in sites))
    return _NOTHING.union(*(known.covers[system] for system in named))


def _own_systems(charted: Reading) -> frozenset[str]:
    if not (sites := charted.of("sites")):
        return charted.of("systems")
    examined = vocabulary().examined
    return charted.of("systems").union(*[examined[site] for site in sites])


def _of_parts(charted: Reading) -> frozenset[str]:
    return _NOTHING.union(*(vocabulary().parts[part].of for part in charted.of("parts")))


# An order that names the organ means the system: a "heart exam" includes the neck veins.
_ORGANS = {"cardiovascular": {"heart"}, "respiratory": {"lung", "chest"}, "abdominal": {"abdomen"}}
_ABOUT_LIMBS = frozenset({"general", "cardiovascular", "vascular"})
"""Examinations whose findings at a limb belong to the limb: edema, pulses."""


def _of_system(systems: frozenset[str], asked: Reading, fact: Fact, charted: Reading) -> bool:
    heads = [own for head in fact.heads if (own := _own_systems(reading(head)))] or [_own_systems(charted)]
    first, last = heads[0], heads[-1]
    if not _by_method(asked, charted):
        return False
    if _of_organ(asked, systems, fact):
        return True
    if not _same_place(asked, charted) or _elsewhere(asked, systems, fact) or _sign_elsewhere(asked, charted):
        return False
    if first & systems:
        return bool(asked.of("systems") or last & systems or asked.of("sites") & reading(fact.heads[0]).of("sites"))
    if any(reading(head).of("systems") & systems for head in fact.heads) or (asked.of("systems") and last == systems):
        return True
    if systems & {"psychiatric", "eye"} & _of_parts(charted) and "ent" not in systems:
        return bool(charted.of("parts") - {"appearance"})
    if fact.heads[1:] and asked.of("sites") & reading(fact.heads[-1]).of("sites"):
        if "skin" in asked.of("sites") and not reading(fact.text).of("sites") & _ON_SKIN:
            return False  # tophi on the ears are not the eardrums
        return not first & {"neurological", "skin"}
    if first <= _ABOUT_LIMBS and asked.of("sites") and last & systems:
        return True
    wider = _NOTHING.union(*(vocabulary().covers[system] for system in first)) - first
    if first <= {"general"} or wider & systems:
        return bool(_own_systems(charted) & systems or _of_parts(charted) & systems - {"psychiatric"})
    return False


_ON_SKIN = frozenset({"skin", "wound", "lesion", "vesicle", "soft tissue"})


def _of_organ(asked: Reading, systems: frozenset[str], fact: Fact) -> bool:
    """Whether a finding is below the heading of the system that an order names by its organ."""
    first = next((own for head in fact.heads if (own := _own_systems(reading(head)))), _NOTHING)
    return any(first == {system} and asked.of("sites") <= _ORGANS.get(system, _NOTHING) for system in systems)


def _same_place(asked: Reading, charted: Reading) -> bool:
    wanted, done = asked.of("sites"), charted.of("sites")
    if other_side(asked, charted):
        return False
    wanted = wanted - {"joint"} or wanted
    return not wanted or not done or any(same_site(a, b) for a in wanted for b in done)


def _elsewhere(asked: Reading, systems: frozenset[str], fact: Fact) -> bool:
    """Whether a finding under a heading for several regions is about a different one."""
    heads = [read for head in fact.heads if (read := reading(head)).of("sites")]
    if not asked.of("sites") or len(heads) < 2 or len(heads[0].of("sites")) < 2:
        return False
    return not _same_place(asked, heads[-1]) and not _of_parts(heads[-1]) & systems


def _sign_elsewhere(asked: Reading, charted: Reading) -> bool:
    """Whether a finding is of signs of other places alone: the inner cheeks are not the ears."""
    known = vocabulary()
    parts, sites = charted.of("parts"), asked.of("sites")
    if not sites or not parts or asked.of("systems") or charted.of("sites"):
        return False
    there = [known.parts[part].of - set(known.covers) for part in parts]
    return all(there) and not any(same_site(a, b) for a in sites for of in there for b in of)


def _by_method(asked: Reading, charted: Reading) -> bool:
    """Whether a finding was made by the method asked for, or names no method."""
    wanted = asked.of("methods")
    done = _methods(charted)
    other = done or charted.words or charted.of("parts") - {"appearance"}  # a cough is not percussed
    return not wanted or bool(wanted & done) or not other


def _methods(charted: Reading) -> frozenset[str]:
    """How something was examined, by its headings."""
    return charted.of("methods") | {by for part in charted.of("parts") if (by := vocabulary().parts[part].by)}


def _parts(parts: frozenset[str], asked: Reading, chart: Chart) -> list[Fact]:
    """The findings for parts of an examination (strength, gait), whichever examination they are charted under."""
    examined = _examined(chart)
    paths = {fact.path for part in parts for fact in _part(part, asked, chart, examined)}
    known = vocabulary().parts
    if paths:  # with the signs that belong to a part, where a chart has them under a heading that the table lacks
        signs = frozenset(name for name, sign in known.items() if sign.sign and sign.within & parts)
        paths |= {
            fact.path
            for fact, _ in examined
            if signs & reading(fact.heads[-1]).of("parts") and not normal_of(fact.heads)
        }
    return [fact for fact, _ in chart if fact.path in paths]


def _part(part: str, asked: Reading, chart: Chart, examined: Chart, *, alone: bool = False) -> list[Fact]:
    """What a chart says of a part of an examination, or, unless `alone`, of one that it is within."""
    known = vocabulary().parts[part]
    systems = asked.of("systems")
    if known.sign and (told := _of_sign(part, asked, chart, examined)):
        return told
    # What is found of one sign is not that of another: "no murmur", of where it radiates.
    examined = tuple((fact, charted) for fact, charted in examined if not _names_sign(fact))
    own = [
        fact
        for fact, charted in chart
        if known.within & charted.of("parts")
        and not charted.of("tests") & TAKEN
        and not (fact.section is Section.TESTS and charted.of("specimens"))
        and _same_place(asked, charted)
        and (not systems or not charted.of("systems") or systems & charted.of("systems"))
    ]
    if known.by or not own or "psychiatric" in known.of:
        own += [f for f, c in examined if f not in own and part in _parts_told(f.text) and _near(part, f, c)]
    felt = {"palpation"} if "abdominal" in known.of and known.by != "auscultation" else set()
    for method in (known.by, *felt) if not own and known.by else ():
        own = own or [f for f, c in examined if method in c.of("methods") and _near(part, f, c)]
    # "Flank: tender on tapping" is the tenderness of the costovertebral angle.
    sites = known.of - set(vocabulary().covers)
    sites = sites & {known.main} or sites
    own = own or [
        f
        for f, _ in examined
        if f.heads[1:]
        and sites & (there := reading(f.heads[-1])).of("sites")
        and _same_place(asked, there)
        and not reading(f.heads[0]).of("vitals")
    ]
    if not own and known.main == "psychiatric":
        own = [f for f, _ in examined if f.heads[1:] and known.main in reading(f.heads[-1]).of("systems")]
    for other in sorted(known.within - {part}) if not own and not alone else ():
        own = own or _part(other, asked, chart, examined, alone=True)
    return own or [
        f
        for f, c in examined
        if _undivided(f) and known.main in _own_systems(c) | c.of("sites") and _SUMMED_UP.search(f.text)
    ]


@lru_cache(maxsize=4096)
def _parts_told(text: str) -> frozenset[str]:
    """What a finding speaks of, not what only moved while it was seen: "undulating with eye movement"."""
    return reading(_MOVING.sub("", text)).of("parts")


_MOVING = lazy.regex(r"\bwith (?:eye|neck|jaw) movements?\b", re.IGNORECASE)


def _of_sign(part: str, asked: Reading, chart: Chart, examined: Chart) -> list[Fact]:
    """What a chart says of a single sign: under a heading of its own, or else in the words of a finding."""
    there = bool(asked.of("sites") & vocabulary().parts[part].of)  # "hands for clubbing", charted with the skin
    own = [
        f
        for f, c in chart
        if part in c.of("parts") and f.section is Section.EXAMINATION and (there or _same_place(asked, c))
    ]
    return own or [
        fact
        for fact, _ in examined
        if part in reading(fact.text).of("parts")
        and may_be_noticed(part, _of_path(fact.heads[:1]))
        and not is_of_another(fact.heads, part)
    ]


def _names_sign(fact: Fact) -> bool:
    return any(vocabulary().parts[part].sign for part in reading(fact.heads[-1]).of("parts")) if fact.heads else False


def is_of_another(heads: tuple[str, ...], part: str) -> bool:
    """Whether a finding is that of another sign that stands apart, by its headings: nystagmus on Dix-Hallpike test."""
    entry, named = normal_of(heads), _of_path(heads).of("parts")
    return bool(named) and not vocabulary().parts[part].within & named and entry is not None and entry.apart


def may_be_noticed(part: str, heading: Reading) -> bool:
    """Whether a sign is noticed in an examination: a general one, or that of its system or place."""
    known, here = vocabulary(), _own_systems(heading)
    of = known.parts[part].of
    there = of.union(*(known.examined.get(site, _NOTHING) for site in of))
    return "general" in here or bool(there & here)


def _near(part: str, fact: Fact, charted: Reading) -> bool:
    """Whether a finding is charted under an examination that includes a part, or under a general one."""
    of = vocabulary().parts[part].of
    if vocabulary().parts[part].by and not _undivided(fact) and "general" in charted.of("systems"):
        return True
    return bool(of & (_own_systems(charted) | charted.of("sites")))


def _undivided(fact: Fact) -> bool:
    """Whether an examination was charted as a whole, not by its parts."""
    named = [read for head in fact.heads if (read := reading(head)).named and read.of("systems") != {"general"}]
    return len(named) == 1 and not (named[0].of("parts") or named[0].of("methods"))
