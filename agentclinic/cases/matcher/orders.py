"""Find the charted results an order asks for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise

from agentclinic.cases.matcher.order_examinations import (
    FOUND,
    Chart,
    Charted,
    Indexed,
    examination,
    mentioned,
    of_aim,
    said_in,
    spoken_of,
    whole_examination,
)
from agentclinic.cases.matcher.order_items import OF_BIOPSY, Item, items
from agentclinic.cases.matcher.order_kinds import EXAM, LABORATORY, MEASURED, TAKEN
from agentclinic.cases.matcher.order_text import one_line
from agentclinic.cases.matcher.order_words import (
    Panel,
    Reading,
    Tokens,
    joined,
    other_side,
    reading,
    same_site,
    sets,
    spelled_out,
    usually_in_blood,
    vocabulary,
)
from agentclinic.cases.model import Fact, Facts, Section
from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.tests import Test, table
from agentclinic.vocabulary.text import LONGEST_NAME, fold, tidy, words

PHYSICAL_EXAMINATION = "Physical examination"
"""What an order for the whole examination is called."""


@dataclass(frozen=True)
class Ordered:
    """One thing an order names, with the chart's answer."""

    name: str
    facts: tuple[Fact, ...]
    equivalent: str | None = None
    """The test reported in place of the one ordered."""

    def with_facts(self, facts: tuple[Fact, ...]) -> Ordered:
        """The same item with these facts; itself if they are its own."""
        return self if facts == self.facts else Ordered(self.name, facts, self.equivalent)


def asked_of_measurement(order: str, facts: Sequence[Fact]) -> list[Ordered]:
    """The things an order names, each with the facts that answer it."""
    return asked_of_chart(order, chart_of(Facts.of(facts)))


def asked_of_chart(order: str, chart: Indexed) -> list[Ordered]:
    """The things an order names, each with the facts of a chart that answer it."""
    return list(_asked_of_chart(one_line(tidy(order)[:LONGEST_NAME]), chart))


@lru_cache(maxsize=4096)  # the laboratory, and scoring after it
def _asked_of_chart(order: str, chart: Indexed) -> list[Ordered]:
    examined = whole_examination(order, chart)
    if examined is not None:
        tests = [answer for item in items(order) if item.measured for answer in _answers(item, chart)]
        return _once([Ordered(PHYSICAL_EXAMINATION, examined), *tests])
    if headed := _headed(order, reading(order), chart):
        return [Ordered(_name(fold(order).strip(" .:,"), reading(order)), headed)]
    ordered = items(order)
    answered = [(item, list(_answers(item, chart))) for item in ordered]
    answered = _one_of_either(order, _one_image_of_both(order, answered))
    missing = [item for item, answers in answered if not any(answer.facts for answer in answers)]
    told = [fact for _, found in answered for answer in found for fact in answer.facts]
    beside_findings = any(fact.section is not Section.TESTS for fact in told)
    undivided = _NOTHING.union(
        *(
            item.read.of("specimens")
            for item, found in answered
            if sum(len(a.facts) for a in found) == 1 and _whole(item)
        )
    )
    answers = [
        answer
        for place, (item, found) in enumerate(answered)
        for answer in found
        if answer.facts
        or not (
            item.detail
            or (beside_findings and _is_unknown_sign(item))
            or _redundant(item, ordered[:place], [other for other in missing if other is not item])
            or _only_in(told, item.read)
            or (item.read.of("specimens") and _says_method(told, item.read))
            or (not item.measured and not item.given and any(set(words(item.text)) <= said_in(fact) for fact in told))
            or (item.read.of("specimens") & undivided and (not _apart(item.read) or _nothing_obtained(told, item.read)))
        )
    ]
    return _once(answers) or [Ordered(fold(order).strip(" .:,"), ())]


def _one_of_either(order: str, answered: list[tuple[Item, list[Ordered]]]) -> list[tuple[Item, list[Ordered]]]:
    """Items without the image that an order names as a choice, "CT or MR venography", if there is one of the other."""
    if not _EITHER.search(order):
        return answered
    kept = list(answered)
    for one, other in pairwise(answered):
        kinds = [item.read.of("modalities") for item, _ in (one, other)]
        if not all(kinds) or kinds[0] == kinds[1] or one[0].read.of("sites") != other[0].read.of("sites"):
            continue
        done = [any(answer.facts and not answer.equivalent for answer in found) for _, found in (one, other)]
        needless = one if not done[0] else other
        if needless in kept and len(kept) > 1:
            kept.remove(needless)
    return kept


_EITHER = re.compile(r"\b(?:CT|MRI?)(?: \w+)? or (?:CT|MRI?)\b", re.IGNORECASE)


def _one_image_of_both(order: str, answered: list[tuple[Item, list[Ordered]]]) -> list[tuple[Item, list[Ordered]]]:
    """Items without the first half of one image, "CT venogram of abdomen and pelvis", that its other half has shown."""

    def shown_by_the_next(place: int) -> bool:
        (item, found), (after, shown) = answered[place : place + 2]
        both = after.text not in fold(order) and item.read.of("modalities") == after.read.of("modalities")
        stand_in = (
            both and item.read.of("modalities") and all(answer.equivalent or not answer.facts for answer in found)
        )
        return bool(stand_in) and any(answer.facts and not answer.equivalent for answer in shown)

    def shown_before(place: int) -> bool:
        """Whether it is the lower half of an image of the abdomen: "CT angiography of the abdomen and pelvis"."""
        item, found = answered[place]
        lower = item.read.of("sites") == {"pelvis"} and not any(answer.facts for answer in found)
        return lower and any(
            "abdomen" in before.read.of("sites") and before.read.of("modalities") == item.read.of("modalities")
            for before, _ in answered[:place]
        )

    last = len(answered) - 1
    kept = [place for place in range(len(answered)) if place == last or not shown_by_the_next(place)]
    return [answered[place] for place in kept if not (answered[place][0].read.of("modalities") and shown_before(place))]


def sent_out(order: str) -> Mapping[str, str]:
    """The tests that an order names, known or not, with what is said of those that no one here has a result of.

    A name that we do not know is a test if it sounds like one, or if everything else in the order is one.
    """
    listed = items(one_line(tidy(order)[:LONGEST_NAME]))
    tested = [item for item in listed if item.measured or item.sounds_measured]
    only_tests = bool(tested) and not any(item.read.by_kind and not item.measured for item in listed)
    found: dict[str, str] = {}
    for item in listed:
        if item.others or _SAMPLED.search(item.text):
            found[item.text] = "arranged"
        if item.sounds_measured and set(item.read.by_kind) == {"sites"} and _OF_LABORATORY.search(item.text):
            found[item.text] = "taken"
        if item.read.words and set(item.read.by_kind) == {"specimens"}:
            found[item.text] = "taken"  # "urinary methylhistamine"
        unknown = not item.read.by_kind and item.read.words and not item.given
        named = item.sounds_measured and (only_tests or _OF_LABORATORY.search(item.text))
        if item.measured or (unknown and (named or (only_tests and _is_short(item.text)))):
            found[_name(item.text, item.read)] = found[item.text] = _until(item)
            found.update((phrase, _until(item)) for phrase, _ in _targets(item))
    return found


_OF_LABORATORY = re.compile(
    r"\b(?:abs|antibod\w+|anti \w+|serolog\w+|antigens?|pcr|ig[agme]|genes?|genotypes?|mutations?|cultures?"
    r"|assays?|tit(?:er|re)s?|diary|diaries|\w{4,}(?:graphy|metry|scopy|gram))\b"
)


def _is_short(text: str) -> bool:
    """Whether a text can be the name of a test, not a remark."""
    return len(words(text)) <= _LONGEST_UNKNOWN


_LONGEST_UNKNOWN = 3


def _until(item: Item) -> str:
    """What is said of a test without a result: a specimen is taken, an image or a procedure is arranged."""
    read = item.read
    done = read.of("tests") - _OF_SPECIMENS
    elsewhere = read.of("modalities") or (done and not (read.of("values") or read.of("panels") or read.of("specimens")))
    drawn = read.of("specimens") and not read.of("modalities")  # "CSF IgG index"
    return "arranged" if elsewhere or (_ARRANGED.search(item.text) and not drawn) else "taken"


_ARRANGED = re.compile(
    r"\b(?:\w{4,}(?:graphy|metry|scopy|gram)|diary|questionnaires?|scales?|scores?|index|scans?|stud(?:y|ies)|prick|patch|challenge)\b"
)
_OF_SPECIMENS = (
    TAKEN
    | {"swab", "genetic", "tumor genotype", "fish", "karyotype", "microarray", "bone marrow"}
    | sets().kinds["tumor genotype"]
)


def parts_of_others(order: str) -> frozenset[str]:
    """The names of items that are listed after the test they are part of: they count as one item with it."""
    within = [item for item in items(one_line(tidy(order)[:LONGEST_NAME])) if item.within]
    return frozenset(name for item in within for name in (item.text, _name(item.text, item.read)))


@lru_cache(maxsize=4096)  # each call makes a pattern
def as_written(name: str, request: str) -> str:
    """A name as the order has it, with its capitals and hyphens; or else each of its words."""
    written = re.search(
        r"\b" + r"[\W_]{1,3}".join(map(re.escape, name.split())) + r"(?:e?s)?\b", request, re.IGNORECASE
    )
    if written:
        return written[0].replace("_", " ") + ")" * (written[0].count("(") - written[0].count(")"))
    if not written and name.startswith("spinal fluid ") and as_written(rest := name[13:], request) in request:
        return f"{'CSF' if 'CSF' in request else 'spinal fluid'} {as_written(rest, request)}"
    if name.endswith(OF_BIOPSY) and OF_BIOPSY not in request:
        return f"{as_written(name.removesuffix(OF_BIOPSY), request)}{OF_BIOPSY}"
    capitals = {"csf": "CSF"} | {
        word.lower(): word for word in re.findall(r"\b(?:[A-Z][A-Z0-9]+|\w*[A-Z]\w*[A-Z]\w*)\b", request)
    }
    return " ".join(capitals.get(word, word) for word in name.split())


Found = list[tuple[Fact, Reading]]


def _is_unknown_sign(item: Item) -> bool:
    """Whether an item is a word that we do not know, next to examinations: most likely one more sign to look for."""
    return not item.read.by_kind and not item.given and not item.sounds_measured


def _redundant(item: Item, before: Sequence[Item], missing: Sequence[Item]) -> bool:
    """Whether an item that was not found adds nothing: a repeat, or a value of a panel that was not found either."""
    if not item.given and any(_signature(item.read) == _signature(other.read) for other in before):
        return True
    values = item.read.of("values")
    if _is_blot(item.read) and any("serology" in other.read.of("tests") for other in before):
        return True  # "Lyme serology with IgM and IgG immunoblot"
    panels = (vocabulary().panels[panel] for other in missing for panel in other.read.of("panels"))
    return bool(values) and any(values <= panel.values for panel in panels)


def _is_blot(asked: Reading) -> bool:
    """Whether classes of antibodies against something are asked for, not the amount of each immunoglobulin."""
    values = asked.of("values")
    return bool(values) and values <= IMMUNOGLOBULINS and "serology" in asked.of("tests")


def _whole(item: Item) -> bool:
    """Whether an item is everything about a fluid."""
    panels = vocabulary().panels
    return set(item.read.by_kind) == {"panels", "specimens"} and all(panels[p].whole for p in item.read.of("panels"))


def _apart(asked: Reading) -> bool:
    """Whether a test of a fluid is not part of its usual report: a biopsy, a search for one germ."""
    return "biopsy" in asked.of("tests") or bool(asked.of("tests") & {"pcr", "serology"} and asked.of("values"))


def _nothing_obtained(told: Sequence[Fact], asked: Reading) -> bool:
    """Whether the chart says that there was no fluid to send."""
    fluid = asked.of("specimens")
    return any(_NOT_OBTAINED.search(fact.text) and fluid & charted_as(fact).of("specimens") for fact in told)


_NOT_OBTAINED = re.compile(r"\bno fluid (?:was |could be )?(?:obtained|aspirated|drawn)\b", re.IGNORECASE)


def _only_in(told: Sequence[Fact], asked: Reading) -> bool:
    """Whether what was reported says in its text what an item asks for: "Legionella antigen negative".

    The prostate may be in what a finger felt, not in what an image shows.
    """
    kinds = set(asked.by_kind) - ({"specimens", "panels", "tests"} if asked.of("values") else set())
    kind = next(iter(kinds), "")
    if not asked.by_kind:  # a sign that we do not know: "squatting"
        return bool(asked.words) and any(asked.words <= said_in(fact) for fact in told)
    if len(kinds) != 1 or asked.words or kind not in ("values", "sites", "parts"):
        return False
    if taken := asked.of("specimens") - {"blood"}:
        told = [fact for fact in told if taken & charted_as(fact).of("specimens")]
    elif asked.of("specimens"):
        told = [fact for fact in told if not charted_as(fact).of("specimens") - {"blood"}]
    if wanted := asked.of("tests") - {"swab"}:
        told = [fact for fact in told if wanted & charted_as(fact).of("tests")]
    told = [fact for fact in told if kind == "values" or fact.section is not Section.TESTS]
    return asked.of(kind) <= joined(reading(fact.text) for fact in told).of(kind)


def _says_method(told: Sequence[Fact], asked: Reading) -> bool:
    """Whether what was reported of a fluid says how a germ was looked for: "no organisms; Kingella PCR negative"."""
    return bool(asked.words and asked.of("tests")) and any(
        asked.words <= said_in(fact)
        and asked.of("tests") <= reading(fact.text).of("tests")
        and asked.of("specimens") & charted_as(fact).of("specimens")
        for fact in told
    )


class _Index:
    """The facts of a chart, by what their headings name."""

    def __init__(self, facts: Facts) -> None:
        self._facts = [(fact, charted_as(fact)) for fact in facts]

    def __iter__(self) -> Iterator[Charted]:
        return iter(self._facts)

    @cached_property
    def findings(self) -> Sequence[Charted]:
        return [pair for pair in self._facts if pair[0].section in FOUND]

    @cached_property
    def _below(self) -> Mapping[int, Sequence[Charted]]:
        found: dict[int, list[Charted]] = {}
        for pair in self._facts:
            for name in names_above(pair[0].heads):
                found.setdefault(name, []).append(pair)
        return found

    def below(self, name: int) -> Sequence[Charted]:
        return self._below.get(name, ())

    def naming(self, concepts: Tokens) -> Sequence[Charted]:
        return [pair for pair in self._facts if not concepts.isdisjoint(pair[1].concepts)]


@lru_cache(maxsize=4096)
def chart_of(facts: Facts) -> Indexed:
    return _Index(facts)


def _likely(matches: partial[bool], chart: Indexed) -> Sequence[Charted]:
    """The facts that can be results of a measurement: their headings name one of the things that its results do."""
    return chart.naming(_WANTED[matches.func](*matches.args[:-1]))


def _headed(order: str, asked: Reading, chart: Indexed) -> tuple[Fact, ...]:
    """Everything below the heading that an order names, if it names one exactly."""
    nodes = _below(_number(asked), chart) if asked.named else {}
    # "Blood pressure and vital signs" are two things, not the blood pressure among the vital signs.
    paths = [path for path in nodes if _joints(" ".join(path)) == _joints(order)]
    whole = [p for p in paths if _signature(asked) in (_signature(_of_path(p)), _signature(reading(" ".join(p))))]
    # Of headings that mean the same, the one that is written as the order is.
    literal = {path: likeness for path in whole if (likeness := _literal(path, order))}
    if whole and _PUNCTURE.search(order) and set(asked.by_kind) == {"panels", "specimens"}:
        paths = whole  # all about the fluid, under either name: "Lumbar Puncture", "Cerebrospinal Fluid"
    elif literal:
        paths = [path for path in paths if path not in whole or literal.get(path) == max(literal.values())]
    elif asked.of("panels"):
        return ()  # a panel by another of its names has all of its values, wherever they are charted
    found = list({fact.path: fact for path in paths for fact in nodes[path]}.values())
    if _DRAWN.search(order):
        found = [fact for fact in found if fact.section is not Section.VITALS]
    if not _tested(asked):
        found = [fact for fact in found if fact.section is not Section.TESTS] or found
    return tuple(found)


_DRAWN = re.compile(r"\b(?:serum|plasma)\b", re.IGNORECASE)
"""Blood that is drawn, not what a finger prick gives."""
_PUNCTURE = re.compile(r"puncture|centesis|\b(?:tap|aspirat\w+)\b", re.IGNORECASE)
_JOINT = re.compile(r"[,;&+]|\b(?:and|with|plus|including)\b")


@lru_cache(maxsize=32768)
def _joints(text: str) -> int:
    """How many times a text joins two things; "and" in the name of a test does not count."""
    return len(_JOINT.findall(vocabulary().with_and.sub("", fold(text))))


def _below(name: int, chart: Indexed) -> Mapping[tuple[str, ...], Sequence[Fact]]:
    """The headings that, with those above them, name this, and the facts below each."""
    found: dict[tuple[str, ...], list[Fact]] = {}
    for fact, _ in chart.below(name):
        for path, names in _levels(fact.heads):
            if name in names:
                found.setdefault(path, []).append(fact)
    return found


@lru_cache(maxsize=32768)
def names_above(heads: tuple[str, ...]) -> frozenset[int]:
    """What each of a fact's headings, with those above it, names."""
    return frozenset(name for _, names in _levels(heads) for name in names)


@lru_cache(maxsize=32768)
def _levels(heads: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]:
    """Each of a fact's headings, after those above it, with what they name."""
    paths = [heads[:depth] for depth in range(1, len(heads) + 1)]
    return tuple([(path, _signatures(path)) for path in paths])


@lru_cache(maxsize=32768)
def _signatures(path: tuple[str, ...]) -> tuple[int, ...]:
    """What a heading, with those above it, names."""
    found = [_number(_of_path(path)), _number(reading(" ".join(path)))]
    if len(path) > 1 and _tested(reading(path[-1])) and not _tested(_of_path(path[:-1])):
        # A test charted with an examination, "Eye Examination / Slit Lamp", is ordered by its own name.
        found.append(_number(reading(path[-1])))
    return tuple(dict.fromkeys(found))


_NUMBERS: dict[Hashable, int] = {}
"""Readings that name the same, numbered as they are met: a number is compared faster than what it stands for."""


def _number(read: Reading) -> int:
    return _NUMBERS.setdefault(_signature(read), len(_NUMBERS))


def _tested(read: Reading) -> bool:
    return any(read.of(kind) for kind in MEASURED)


@lru_cache(maxsize=32768)
def _of_path(path: tuple[str, ...]) -> Reading:
    return joined(map(reading, path))


def _literal(path: tuple[str, ...], order: str) -> tuple[int, int, int] | None:
    """How closely an order is written as a heading: words in one run, words at all; None if it lacks one of them."""
    named, said = words(" ".join(path)), words(order)
    if not set(named) <= set(said):
        return None
    run = f" {' '.join(named)} " in f" {' '.join(said)} "
    return (len(named), 0, 0) if run else (0, len(set(named)), -len(path))


def _signature(read: Reading) -> Hashable:
    return frozenset(read.by_kind.items()), read.words, read.sides


@lru_cache(maxsize=32768)
def charted_as(fact: Fact) -> Reading:
    """What a result is about, from its headings, or from its text if they are too general."""
    heads = _of_path(fact.heads)
    if _general(heads):
        return joined((heads, reading(fact.text)))
    if heads.of("sites") or not (heads.of("modalities") or heads.of("tests") & _OF_A_SITE):
        return heads
    # An image or biopsy whose heading names no site is of those that its text is about: "Bedside Ultrasound".
    reached = _NOTHING.union(*(vocabulary().reached.get(test, _NOTHING) for test in heads.of("tests")))
    return joined((heads, Reading({"sites": reached or reading(fact.text).of("sites")})))


def _general(heads: Reading) -> bool:
    """Whether headings name no particular test: "Laboratory studies", "Imaging", "Serology"."""
    return not heads.words and all(
        concepts <= _TOO_GENERAL.get(kind, _NOTHING) for kind, concepts in heads.by_kind.items()
    )


_NOTHING: frozenset[str] = frozenset()
_ANY_METHOD = frozenset({"serology", "pcr", "microscopy"})
_TOO_GENERAL = {
    "timings": frozenset({"initial", "repeat"}),
    "specimens": frozenset({"blood"}),
    "modalities": frozenset({"imaging"}),
    "tests": _ANY_METHOD,
}
_OF_A_SITE = TAKEN | {"endoscopy"} | frozenset(sets().reached)
IMMUNOGLOBULINS = frozenset({"igg", "iga", "igm", "ige", "immunoglobulins"})
_CLASSES = frozenset({"igg", "iga", "igm"})
_PROVOKED = frozenset({"acth stimulation", "dexamethasone suppression", "glucose tolerance"})
"""Tests that measure a value after something was given: not the plain value."""
_AGAINST = frozenset("antibody autoantibody receptor channel anti".split())


def _answers(item: Item, chart: Indexed) -> Iterator[Ordered]:
    if item.given or item.others:
        yield Ordered(item.text, ())
        return
    headed = () if item.listed else _headed(item.text, item.read, chart)
    if headed:
        yield Ordered(_name(item.text, item.read), of_aim(item, headed))
    elif item.measured:
        yield from _measurements(item, chart)
    elif LABORATORY.search(item.text) and not item.read.words and set(item.read.by_kind) <= {"specimens"}:
        yield Ordered(item.text, tuple(fact for fact, charted in chart if _of_blood(fact, charted)))
    elif _SAMPLED.search(item.text) and set(item.read.by_kind) == {"sites"}:
        yield Ordered(item.text, mentioned(item, chart))
    elif item.sounds_measured and set(item.read.by_kind) <= {"sites"} and _OF_LABORATORY.search(item.text):
        yield Ordered(item.text, _by_words(item, chart))  # antibodies against an organ are no examination of it
    else:
        yield from _examinations(item, chart)


_SAMPLED = re.compile(r"\b(?:sampling|scintigraphy|manometry|plethysmography|catheteri[sz]ation)$")
"""Procedures by names that otherwise only say where they are done."""


def _measurements(item: Item, chart: Indexed) -> Iterator[Ordered]:
    targets = list(_targets(item))
    if not targets:
        yield _named(item, item.text, (), chart)
    for phrase, matches in targets:
        likely = _likely(matches, chart)
        found = _nearest(item.read, _placed(item.read, [pair for pair in likely if matches(*pair)], chart))
        if item.read.of("modalities"):
            if not item.read.of("sites"):  # "Bedside ultrasound" is that of no part in particular
                found = tuple(fact for fact in found if _literal(fact.heads[:1], item.text)) or found
            found = _one_study(item, found)
            if item.read.of("modalities") == {"pet"} and not item.read.of("sites"):
                # Of the whole body, unless the order says otherwise.
                found = tuple(fact for fact in found if not charted_as(fact).of("sites")) or found
        elif item.read.of("values") and not item.read.of("panels"):
            # A value by its own name rather than a panel that may have it.
            found = tuple(fact for fact in found if item.read.of("values") & charted_as(fact).of("values")) or found
        yield _named(item, phrase if len(targets) > 1 else item.text, found, chart)


def _examinations(item: Item, chart: Indexed) -> Iterator[Ordered]:
    vitals = item.read.of("vitals")
    if vitals:
        found = _vitals(item, chart)
        if not found and not reading(item.text).of("qualifiers"):  # the posture was that of another sign
            found = _vitals(replace(item, read=_unqualified(item.read)), chart)
        yield _named(item, item.text, found, chart)
    examined = any(item.read.of(kind) for kind in ("systems", "parts", "methods")) or EXAM.search(item.text)
    if not examined and item.read.words and not vitals:
        # An unknown test whose name contains a site: "pulmonary capillary wedge pressure", or a sign.
        yield _named(item, item.text, mentioned(item, chart) or spoken_of(item, chart), chart)
    elif not vitals or examined:
        found = examination(item, chart) or (() if vitals or item.detail else spoken_of(item, chart))
        yield _named(item, item.text, found, chart)


def _placed(asked: Reading, found: Found, chart: Indexed) -> Found:
    """Without the images and specimens that say nowhere what they are of, if the chart has others that do."""
    how = asked.of("modalities") | asked.of("tests") & _OF_A_SITE
    if not asked.of("sites") or not how:
        return found
    placed = [(fact, charted) for fact, charted in found if charted.of("sites")]
    done = frozenset((kind, name) for kind in ("modalities", "tests") for name in how)
    others = any(charted.of("sites") for _, charted in chart.naming(done))
    # A germ that is looked for by its own name: "measles PCR of a throat swab".
    own = [(fact, charted) for fact, charted in found if asked.of("values") & charted.of("values")]
    return placed or (own if others else found)


def _nearest(asked: Reading, found: Found) -> tuple[Fact, ...]:
    """Prefer results of the exact site and time ordered.

    A value from a blood gas is used only if it was not measured in any other way.
    """
    found = [(fact, charted) for fact, charted in found if "blood gas" not in charted.of("panels")] or found
    wanted = asked.of("timings") | ({"second"} if "repeat" in asked.of("timings") else _NOTHING)
    asked = replace(asked, by_kind={**asked.by_kind, "timings": wanted})
    special = (_AT_ANOTHER_TIME | ({"fasting"} if asked.of("modalities") else _NOTHING)) - wanted
    found = [(fact, charted) for fact, charted in found if not charted.of("timings") & special] or found
    taken = asked.of("specimens") - {"blood"}
    asked = replace(asked, by_kind={**asked.by_kind, "specimens": taken})
    both = asked.of("sites") & _OF_BOTH_ARTERIES and "temporal and axillary arteries"
    for kind in ("timings", "sites", "specimens"):
        wanted = asked.of(kind) | ({both} if both and kind == "sites" else _NOTHING)
        found = [(fact, charted) for fact, charted in found if wanted & charted.of(kind)] or found
    return tuple(fact for fact, _ in found)


_OF_BOTH_ARTERIES = frozenset({"temporal artery", "axillary artery"})
"""Arteries that are looked at together."""
_AT_ANOTHER_TIME = frozenset({"previous", "second"})
"""Results that are reported only if they are asked for: those on record, and of another sample."""


def _one_study(item: Item, found: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Of images of the same kind that show the same part of the body, the one that fits the order best."""
    kept: dict[str, Reading] = {}
    for head in sorted(dict.fromkeys(fact.heads[0] for fact in found if fact.heads), key=partial(_unlike, item)):
        read = charted_as(next(fact for fact in found if fact.heads[:1] == (head,)))
        if not any(same_study(read, other) for other in kept.values()):
            kept[head] = read
    return tuple(fact for fact in found if not fact.heads or fact.heads[0] in kept)


def _unlike(item: Item, head: str) -> tuple[int, int]:
    sites, own = item.read.of("sites"), reading(head).of("sites")
    return len(sites ^ own) if own else len(sites), len(_content(head) ^ _content(item.text))


def same_study(one: Reading, other: Reading) -> bool:
    """Whether two images are of the same kind and show a part of the body in common."""
    return (
        one.of("modalities") == other.of("modalities")
        and one.of("qualifiers") == other.of("qualifiers")
        and not other_side(one, other)
        and any(a == b for a in one.of("sites") for b in other.of("sites"))
    )


def _of_blood(fact: Fact, charted: Reading) -> bool:
    return (
        fact.section is Section.TESTS
        and bool(charted.of("values") or charted.of("panels") or "blood" in charted.of("specimens"))
        and not (charted.of("specimens") - {"blood"} or charted.of("modalities") or charted.of("sites"))
    )


_KINDS_OF_CELLS = frozenset({"neutrophils", "lymphocytes", "monocytes", "eosinophils", "basophils", "bands"})
_BESIDE_PROTEIN = frozenset({"paired", "free", "fluid", "same", "raised", "ratio"})


def _targets(item: Item) -> Iterator[tuple[str, partial[bool]]]:
    read = item.read
    values, tests = read.of("values"), read.of("tests")
    if _AGAINST & read.words:
        values -= vocabulary().of_blood
    if values - IMMUNOGLOBULINS or read.of("panels"):
        values -= IMMUNOGLOBULINS
    if "differential" in values and not read.of("panels"):
        values = values - {"differential"} | _KINDS_OF_CELLS
    if "total protein" in values and read.words - _BESIDE_PROTEIN and "protein" in (name for name, _ in read.phrases):
        values -= {"total protein"}  # of another protein: "eosinophil cationic protein"
    if values:
        tests -= _ANY_METHOD | {"swab"}
        if not (read.of("sites") or read.of("specimens")):
            tests -= {"culture"}  # of this germ, not every culture
        if read.of("tests") & {"immunohistochemistry", "pcr"} and values <= vocabulary().germs:
            # "CMV immunohistochemistry on the biopsy", "TB PCR of the biopsy"
            tests -= {"immunohistochemistry", "biopsy", "histopathology"}
    if len(tests) > 1:
        tests -= {"swab"}
    kinds = vocabulary().kinds
    if tests & (kinds["smear"] | kinds["microscopy"]) - {"smear", "microscopy"}:
        tests -= {"smear", "microscopy"}
    if "biopsy" in tests and read.of("sites"):
        tests -= {"culture"}  # of what is taken
    if "biopsy" in tests:
        tests -= {"histopathology"}
    if tests & kinds["questionnaire"]:
        tests -= {"questionnaire"}
    if "koh" in tests:
        tests -= {"mineral oil"}  # of one scraping
    if "bone marrow" in tests:
        tests -= {"biopsy", "fine needle aspiration"}
    phrases = {concept: phrase for phrase, concepts in read.phrases for concept in concepts}
    panels = read.of("panels")
    # "Stool culture" wants the culture, not everything about the stool.
    narrow = frozenset(panel for panel in panels if phrases.get(("panels", panel)) not in vocabulary().fluids)
    if values:  # "pertussis PCR of a nasopharyngeal swab" is not every germ looked for there
        narrow = frozenset(panel for panel in narrow if "swab" not in words(phrases[("panels", panel)]))
    if values or tests or narrow or (read.words and _OF_ONE_THING.search(item.text)):
        panels = narrow  # not everything about the stool for "stool botulinum toxin"
    if panels & _GERMS:
        tests -= {"pcr", "swab"}  # of these germs
    if "pcr" in tests and read.of("sites"):
        panels -= {"sti screen"}  # a swab of one place
    elif "sti screen" in panels and values | tests <= _ANY_METHOD | {"swab"}:
        tests -= {"pcr", "swab"}  # of these germs
    for kind, concepts, answers in (
        ("values", values, _is_value),
        ("panels", panels, _of_panel),
        ("tests", tests, _is_test),
    ):
        for concept in sorted(concepts):
            said = phrases.get((kind, concept), item.text)
            yield said if said in item.text else concept, partial(answers, concept, read)
    if read.of("modalities"):
        yield item.text, partial(_is_image, read)


_OF_ONE_THING = re.compile(r"\b(?:toxins?|antigens?|antibod\w+|assay|enzymes?)\b")


def _named(item: Item, phrase: str, found: tuple[Fact, ...], chart: Indexed) -> Ordered:
    """An answer under the test's usual name; if nothing was found, try matching words, then equivalent tests."""
    test = _known(phrase)
    name = _name(phrase, item.read)
    found = found or _by_words(item, chart)
    if found:
        return Ordered(name, found)
    # A value in a wider panel was already found with the value.
    measured = item.read.of("values") or item.read.of("panels")
    for other in test.equivalents if test and not measured else ():
        stand_in = _standing_in(knowledge().tests[other], item.read, chart)
        if stand_in:
            return Ordered(name, stand_in, knowledge().tests[other].name)
    one_allergen = "allergen testing" in item.read.of("values") and item.read.words - _ALLERGEN
    named = (
        frozenset() if item.read.of("qualifiers") or one_allergen else item.read.of("values") | item.read.of("tests")
    )
    spoken = tuple(
        fact
        for fact, _ in chart
        if fact.section is Section.EXAMINATION and item.read.of("tests") & reading(fact.text).of("tests") - TAKEN
    )
    if spoken:  # "Montreal Cognitive Assessment 26/30", with the mental status
        return Ordered(name, spoken)
    of_the_germ = item.read.of("values") and item.read.of("tests") & _OF_THE_GERM  # no antibody will do
    for concept in sorted(named if not of_the_germ else ()):
        for alike in sorted(vocabulary().alike.get(concept, _NOTHING)):
            near = [
                (fact, charted)
                for fact, charted in chart
                if not _of_other_method(item.read, charted)
                and _of_same_fluid(item.read, fact, charted)
                and alike in (charted.of("values") | charted.of("tests") | charted.of("parts"))
                and _same_sites(item.read, charted)
                and (not item.read.of("sites") or _taken_from_same(item.read, charted))
            ]
            if near := _placed(item.read, near, chart):
                return Ordered(name, tuple(fact for fact, _ in near), _heading(near[0][0]))
    images = tuple(fact for fact, charted in chart if _is_like_image(item.read, charted))
    if images:
        return Ordered(name, images, _heading(images[0]))
    fluid = item.read.of("specimens") - {"blood"}
    return Ordered(name, tuple(f for f, c in chart if fluid & c.of("specimens") and _NOT_OBTAINED.search(f.text)))


def _heading(fact: Fact) -> str:
    named = (head for head in fact.heads if (read := reading(head)).named and not _general(read))
    return next(named, fact.heads[0] if fact.heads else fact.text)


def _name(phrase: str, asked: Reading) -> str:
    """The usual name of a test, or the words of the order if they say less or more than it."""
    test = _known(phrase)
    if test is None or "previous" in asked.of("timings"):
        return phrase
    usual = reading(test.name)
    if asked.of("modalities") and usual.of("tests") - asked.of("tests"):
        return phrase  # the table has an image and a biopsy as one test
    if asked.of("modalities") and "transesophageal" in asked.of("qualifiers"):
        return phrase  # and both ways to an image of the heart
    if not asked.of("sites") <= usual.of("sites") or not asked.of("specimens") - {"blood"} <= usual.of("specimens"):
        return phrase
    named = [
        table()[kind][concept] for _, found in reading(phrase).phrases for kind, concept in found if kind in _BY_NAME
    ]
    same = len(named) == 1 and named[0].get("is") == test.id
    own = reading(phrase)
    less = set(words(phrase)) <= set(words(test.name)) and all(own.of(kind) == usual.of(kind) for kind in MEASURED)
    alike = not named or same or less
    return test.name if alike else phrase


def _of_same_fluid(asked: Reading, fact: Fact, charted: Reading) -> bool:
    """Whether a result that would do is of the fluid ordered, by its heading or its text."""
    wanted = asked.of("specimens") - {"blood"}
    return not wanted or bool(wanted & (charted.of("specimens") | reading(fact.text).of("specimens")))


_BY_NAME = ("values", "panels", "tests")


def _known(phrase: str) -> Test | None:
    mention = next(iter(knowledge().test_names.find(phrase)), None)
    return knowledge().tests[mention.key] if mention else None


def _standing_in(other: Test, asked: Reading, chart: Chart) -> tuple[Fact, ...]:
    found: dict[str, Fact] = {}
    chart = tuple((fact, charted) for fact, charted in chart if _same_sites(asked, charted))
    for item in items(other.name):
        if item.measured:
            for _, matches in _targets(item):
                found.update({fact.path: fact for fact, charted in chart if matches(fact, charted)})
        else:
            found.update({fact.path: fact for fact in examination(item, chart)})
    return tuple(fact for fact, _ in chart if fact.path in found)


def _is_value(value: str, asked: Reading, fact: Fact, charted: Reading) -> bool:
    """Whether a result is of this value, or of a whole panel with it that was charted as one text."""
    if not (value in charted.of("values") or charted.of("panels") or "pcr" in charted.of("tests")):
        return False  # most results, as soon as possible
    if fact.section is Section.VITALS or not _of_specimen(value, asked, charted):
        return False
    if _of_other_method(asked, charted):
        return False
    if value in IMMUNOGLOBULINS and (_is_class(fact, charted) or (_is_blot(asked) and not _is_blot(charted))):
        return False
    classes = [read.of("values") & _CLASSES for read in (asked, charted)]
    if value not in IMMUNOGLOBULINS and all(classes) and not classes[0] & classes[1]:
        return False  # "rubella IgM" is not the IgG
    if value == "ige" and asked.words - _ALLERGEN and not asked.words & charted.words:
        return False  # against one allergen is neither the total nor another one
    if value == "allergen testing" and _is_other_allergen(asked, charted):
        return False
    against = charted.words & _AGAINST or "serology" in charted.of("tests")
    if asked.of("values") & IMMUNOGLOBULINS and charted.of("tests") & _OF_THE_GERM:
        return False  # "VZV IgG" is not looked for in a vesicle
    if (
        value in _VIRUSES | {"chlamydia"}
        and against
        and not (asked.words & _AGAINST or "serology" in asked.of("tests"))
    ):
        return False
    if asked.of("tests") & _SWABBED and not _taken_from_same(asked, charted):
        return False
    if "swab" in asked.of("tests") and charted.of("specimens") & _NOT_SWABBED:
        return False
    if value in _OF_GENITALS and asked.of("sites") and not (charted.of("sites") or asked.of("sites") & _GENITAL):
        return False  # of a node or the throat, not of the urine
    if charted.of("tests") - {"swab"} == {"pcr"} == asked.of("tests") - {"swab"} and not (
        charted.of("values") | charted.words
    ):
        if value not in (written := reading(fact.text).of("values")) and written:
            return False
        if (named := _in_panels(charted)) and value not in named:
            return False  # measles is not looked for with chlamydia and gonorrhea
        if named and value in _OF_GENITALS and not (asked.of("sites") or asked.of("specimens")):
            return True
        usual = _NOTHING if asked.of("sites") else _USUAL.get(value, _NOTHING)
        return bool(
            (asked.of("specimens") or usual) & charted.of("specimens") or asked.of("sites") & charted.of("sites")
        )
    if value in charted.of("values"):
        if len(fact.heads) > 1 and value not in _own_values(fact.heads):
            return False
        if charted.of("values") & _PROVOKED and value not in _PROVOKED:
            return False
        return not (_AGAINST & charted.words and value in vocabulary().of_blood) and _qualified(asked, fact, charted)
    panels = vocabulary().panels
    if charted.of("values") or not any(value in panels[panel].values for panel in charted.of("panels")):
        return False
    return sum((read := reading(head)).named and not _general(read) for head in fact.heads) == 1


def _is_other_allergen(asked: Reading, charted: Reading) -> bool:
    """Whether an order names one allergen, and a result is of another one: wheat flour, not rye flour."""
    one = asked.words.union(asked.of("values")) - _ALLERGEN
    other = charted.words.union(charted.of("values")) - _ALLERGEN - IMMUNOGLOBULINS
    return bool(one and other) and not (one <= other or other <= one)


def _in_panels(charted: Reading) -> frozenset[str]:
    """The values of the panels that a heading names."""
    return _NOTHING.union(*(vocabulary().panels[panel].values for panel in charted.of("panels")))


def _is_class(fact: Fact, charted: Reading) -> bool:
    """Whether an immunoglobulin only says of which class an antibody is: IgG in "EBV Serology / IgG"."""
    others = charted.of("values") - IMMUNOGLOBULINS - {"protein electrophoresis"}
    return bool(others) and "total" not in words(fact.heads[-1])


@lru_cache(maxsize=32768)
def _own_values(heads: tuple[str, ...]) -> frozenset[str]:
    """The values that a result is of: below a heading for several, "Antibodies and Gastrin", those of its own line."""
    above = _of_path(heads[:-1]).of("values")
    own = reading(heads[-1]).of("values") - IMMUNOGLOBULINS
    if own and own == reading(" ".join(heads)).of("values"):
        return own  # "Vitamin D / 1,25-Dihydroxy"
    several = len(above) > 1 or (above and _joints(" ".join(heads[:-1])))
    return own if own and several else above | reading(heads[-1]).of("values")


_ALLERGEN = frozenset(
    ("specific", "allergen", "allergen testing", "allergy", "rast", "panel", "common", "inhalant", "aeroallergen",
     "environmental", "food")
)  # fmt: skip
_VIRUSES = sets().panels["respiratory viral panel"].values
_SWABBED = frozenset({"swab", "pcr", "culture"})
_NOT_SWABBED = frozenset({"csf", "blood", "urine", "stool"})
_OF_GENITALS = frozenset({"chlamydia", "gonorrhea"})
_GENITAL = frozenset({"vagina", "cervix", "uterus", "vulva", "genitals", "penis", "pelvis"})
_USUAL = {"tuberculosis": frozenset({"sputum"})}
"""Where a germ is looked for if the order does not say."""
_OF_THE_GERM = frozenset({"pcr", "culture", "microscopy", "immunohistochemistry", "histopathology", "biopsy"})
_IMMUNE = IMMUNOGLOBULINS | {"interferon gamma release"}


def _of_other_method(asked: Reading, charted: Reading) -> bool:
    """Whether one looks for a germ, or its genes, and the other for the response to it, or its antigen."""

    def against(read: Reading) -> bool:
        return "serology" in read.of("tests") or bool(read.words & _AGAINST or read.of("values") & _IMMUNE)

    wanted, done = asked.of("tests") & _OF_THE_GERM, charted.of("tests") & _OF_THE_GERM
    if wanted | done == {"pcr", "culture"} and not wanted & done:
        return True
    antigen = "antigen" in charted.words or any("antigen" in name.split() for name, _ in charted.phrases)
    if "serology" in asked.of("tests") and not against(charted) and (antigen or charted.of("tests") - done - {"swab"}):
        return True
    if "pcr" in wanted and antigen and not done:
        return True
    return bool((wanted and against(charted) and not done) or (done and against(asked) and not wanted))


def _of_specimen(value: str, asked: Reading, charted: Reading) -> bool:
    """Whether a value is from the specimen ordered: CSF glucose is not blood glucose."""
    wanted, taken = asked.of("specimens") - {"blood"}, charted.of("specimens") - {"blood"}
    if wanted:
        if "blood" in charted.of("specimens"):
            return bool(wanted & taken)
        elsewhere = taken or charted.of("sites") or value in vocabulary().of_blood or "serology" in charted.of("tests")
        return bool(wanted & taken) or not (elsewhere or value in usually_in_blood())
    return not taken or (value not in vocabulary().of_blood and "blood" not in asked.of("specimens"))


_GERMS = frozenset({"respiratory viral panel"})
"""Panels that look for a germ itself, not for antibodies to it."""
# Values that other panels have too: alone they do not say which panel was drawn.
_SHARED = {"blood gas": frozenset({"bicarbonate", "lactate"})}


def _of_panel(name: str, asked: Reading, fact: Fact, charted: Reading) -> bool:
    """Whether a result is under a panel's heading or is one of its values."""
    known = vocabulary().panels
    panel, under = known[name], charted.of("panels")
    if fact.section is Section.VITALS or not _qualified(asked, fact, charted):
        return False
    if asked.of("tests") & _SWABBED and not _taken_from_same(asked, charted):
        return False
    if panel.whole:
        return panel.specimen in charted.of("specimens")
    if name == "sti screen" and "pcr" in asked.of("tests") - charted.of("tests"):
        return False
    if name in _GERMS and (charted.words & _AGAINST or "serology" in charted.of("tests")):
        return False
    taken = charted.of("specimens") - {"blood"}
    wanted = (asked.of("specimens") | ({panel.specimen} if panel.specimen else set())) - {"blood"}
    if bool(wanted) != bool(taken) or not wanted <= taken:
        return False
    if panel.headings & under:
        return not _beside(panel, fact.heads)
    own = reading(fact.heads[-1]).of("values") if len(fact.heads) > 1 else _NOTHING
    if own and panel.values and not own & panel.values:
        return False  # vitamin B12 in "Iron and Vitamin Studies"
    values = charted.of("values") & panel.values - _SHARED.get(name, _NOTHING)
    if not values:
        summed_up = set(charted.by_kind) == {"panels", "specimens"} and not charted.words
        wider = (panel.values <= known[other].values or (known[other].whole and summed_up) for other in under)
        return bool(panel.values) and not charted.of("values") and any(wider)
    above = joined(reading(head) for head in fact.heads[:-1])
    if above.of("values") - panel.values or above.of("tests"):
        return False
    # A value under the heading of an unrelated panel that also has it belongs to that panel.
    return not any(
        values & known[other].values and not (known[other].headings | _containing(other)) & {name} for other in under
    )


@lru_cache(maxsize=32768)
def _beside(panel: Panel, heads: tuple[str, ...]) -> bool:
    """Whether a value only shares a heading with a panel: vitamin B12 in "Iron and Vitamin Studies"."""
    above, own = _of_path(heads[:-1]), reading(heads[-1]).of("values")
    wider = above.words or above.of("panels") - panel.headings or above.of("values") - panel.values
    return bool(wider and own and panel.values) and not own & panel.values


@lru_cache(maxsize=256)
def _containing(panel: str) -> frozenset[str]:
    known = vocabulary().panels
    return frozenset(name for name, other in known.items() if panel in other.headings) | frozenset(
        name for name, other in known.items() if other.values and other.values <= known[panel].values
    )


_BY_NAME_ONLY = frozenset({"genetic", "serology", "pcr"})
"""Tests that can detect many things; only the words next to them say which."""
_LOOKED_AT = frozenset({"microscopy", "smear", "swab"})
"""Tests that are also part of a panel: the microscopy of a urinalysis is not that of the skin."""
_OF_OTHER_TISSUE = frozenset({"biopsy", "histopathology"})
"""Tests that are of the marrow only if it is named."""
_OF_TISSUE = frozenset({"biopsy", "histopathology", "fine needle aspiration"})
_OF_SKIN = frozenset({"koh", "mineral oil", "tzanck"})
_EACH_ITS_OWN = frozenset(
    ("questionnaire", "mmse", "mood disorder questionnaire", "depression questionnaire", "anxiety questionnaire",
     "adhd questionnaire", "alcohol questionnaire", "sleepiness questionnaire", "trauma questionnaire",
     "eating questionnaire", "autism questionnaire", "obsession questionnaire", "drug questionnaire",
     "prostate questionnaire")
)  # fmt: skip
"""Tests that cannot replace each other."""


_ANY_SCALE = frozenset("questionnaire rating scale checklist inventory tool standardized".split())


def _is_test(test: str, asked: Reading, fact: Fact, charted: Reading) -> bool:
    kinds = vocabulary().kinds
    done = charted.of("tests")
    same = test in done or bool(kinds.get(test, _NOTHING) & (done | charted.of("parts")))
    general = (
        len(done) == 1
        and not charted.of("values")
        and not charted.words
        and not charted.of("panels")
        and any(test in kinds.get(kind, _NOTHING) for kind in done)
    )
    if test in _LOOKED_AT and charted.of("panels") and not asked.of("specimens"):
        return False
    if test == "swab" and not (asked.words or any(asked.of(kind) for kind in ("values", "sites", "specimens"))):
        return False  # of some place
    if test == "swab" and not asked.of("values") and test not in done and _of_a_germ_or_elsewhere(asked, charted):
        return False
    if fact.section is Section.VITALS or not (same or general) or not _qualified(asked, fact, charted):
        return False
    if general and not same and test in _EACH_ITS_OWN:
        return bool(
            _content(" ".join((*(p for p, c in asked.phrases if ("tests", test) in c), *asked.words)))
            & _content(fact.text)
        )
    if test in _LOOKED_AT and done & _OF_SKIN and asked.of("specimens"):
        return False
    if test == "genetic" and "swab" in done:
        return False  # the DNA of a germ
    if test in _OF_OTHER_TISSUE and "bone marrow" in done - asked.of("tests"):
        return False
    unplaced = not (asked.of("specimens") or asked.of("sites"))
    if test in _OF_TISSUE and unplaced and asked.words and not asked.words & _all_words((*fact.heads, fact.text)):
        return False  # of a place that we do not know
    if "bone marrow" in asked.of("tests") - done and (charted.of("sites") or charted.of("specimens")):
        return False  # taken elsewhere
    if test == "pcr" and asked.words and unplaced and not asked.words & _all_words((*fact.heads, fact.text)):
        return False  # of a germ that we do not know
    if test == "culture" and charted.of("values") - asked.of("values"):
        return False  # of one germ alone
    if test == "culture" and asked.words and unplaced and not asked.words & _all_words((*fact.heads, fact.text)):
        return False  # of a germ that we do not know
    if test == "questionnaire":
        named = " ".join(phrase for phrase, concepts in asked.phrases if ("tests", test) in concepts)
        own = (_content(named) | asked.words) - _ANY_SCALE
        return not own or bool(own & _all_words((*fact.heads, fact.text)))
    if test in _BY_NAME_ONLY and charted.words | charted.of("values") | _germs_in_panels(charted):
        wanted = asked.words | asked.of("values") | (asked.of("panels") and _in_panels(asked))
        elsewhere = bool(asked.of("sites") or asked.of("specimens")) and not (
            charted.of("sites") or charted.of("specimens")
        )
        if not wanted & (charted.words | charted.of("values") | _germs_in_panels(charted)) and (wanted or elsewhere):
            return False
    elif test == "pcr" and asked.words | asked.of("values") and reading(fact.text).of("values") - asked.of("values"):
        return False
    if test not in done and asked.of("specimens") - {"blood"} and not charted.of("specimens"):
        return general and not charted.of("sites")
    return _taken_from_same(asked, charted)


def _germs_in_panels(charted: Reading) -> frozenset[str]:
    """The germs that a test of several looks for: chlamydia and gonorrhea."""
    return _in_panels(charted) if charted.of("panels") == {"sti screen"} else _NOTHING


def _of_a_germ_or_elsewhere(asked: Reading, charted: Reading) -> bool:
    """Whether a test looks for one germ in particular, or is not from the place that was swabbed."""
    germ = charted.of("values") or "pcr" in charted.of("tests")
    return bool(germ or (asked.of("sites") and not charted.of("sites")))


def _taken_from_same(asked: Reading, charted: Reading) -> bool:
    wanted, taken = asked.of("specimens"), charted.of("specimens")
    if not (wanted or asked.of("sites")) or not (taken or charted.of("sites")):
        return True
    if wanted & taken:
        return True
    # A specimen of a wider region is not from the organ.
    sites, done = asked.of("sites"), charted.of("sites")
    if not sites or not done or not _same_sites(asked, charted):
        return False
    within = vocabulary().wider
    return bool((sites | done) & _ANYWHERE) or any(a == b or a in within[b] for a in sites for b in done)


def _qualified(asked: Reading, fact: Fact, charted: Reading) -> bool:
    """Whether a result was obtained under the conditions ordered: standing, under stress."""
    wanted, done = asked.of("qualifiers"), charted.of("qualifiers")
    if done & vocabulary().alone - wanted:
        return False
    # What is done only if it is asked for has a heading of its own.
    return wanted <= done or (not wanted & vocabulary().alone and wanted <= reading(fact.text).of("qualifiers"))


_VESSELS = frozenset({"angiography", "venography"})
_MASSES = frozenset({"soft tissue", "lesion"})
_TRUNK = frozenset({"chest", "abdomen", "pelvis"})
"""Holds organs, which are not of the skin."""
_ANYWHERE = _MASSES | frozenset({"wound", "vein", "artery", "joint", "bone", "muscle", "nerve"})
"""Tissues that do not say where in the body."""


def _is_image(asked: Reading, fact: Fact, charted: Reading) -> bool:
    wanted, done = asked.of("modalities"), charted.of("modalities")
    if not done or not _same_sites(asked, _shown(fact)) or not _qualified(asked, fact, charted):
        return False
    if _is_of_veins_alone(asked, charted) or _is_of_heart_alone(asked, charted):
        return False
    if wanted == {"imaging"}:
        return True
    own = wanted - _VESSELS - {"imaging"}
    return bool(own & done or (not own and not done - _VESSELS)) and wanted & _VESSELS == done & _VESSELS


def _is_like_image(asked: Reading, charted: Reading) -> bool:
    """Whether an image can replace another: a CT angiogram for a CT, "head imaging" for an MRI."""
    wanted, done = asked.of("modalities") - _VESSELS - {"imaging"}, charted.of("modalities")
    if asked.of("modalities") & _VESSELS and not asked.of("modalities") & done & _VESSELS:
        return False  # other vessels, or an organ for its vessels
    if _is_of_veins_alone(asked, charted) or _is_of_heart_alone(asked, charted):
        return False
    same = wanted if wanted and done == {"imaging"} else wanted & done
    sited = bool(asked.of("sites") and charted.of("sites")) or "echocardiogram" in same
    return bool(same) and sited and _same_sites(asked, charted)


def _is_of_veins_alone(asked: Reading, charted: Reading) -> bool:
    """Whether a result is of the veins of a limb, and an order of its joints: an ultrasound of the hands."""
    jointed = any(site in _ENDS_OF_LIMBS or "joint" in vocabulary().wider[site] for site in asked.of("sites"))
    return jointed and "vein" in charted.of("sites") - asked.of("sites")


def _is_of_heart_alone(asked: Reading, charted: Reading) -> bool:
    """Whether a result is of the heart, and an order of the chest around it."""
    heart = {"heart", "coronary"}
    return (
        bool(asked.of("sites"))
        and charted.of("sites") <= heart
        and bool(charted.of("sites"))
        and not (asked.of("sites") & heart)
    )


_ENDS_OF_LIMBS = frozenset({"hand", "finger", "foot", "toe"})


def _same_sites(asked: Reading, charted: Reading) -> bool:
    if other_side(asked, charted):
        return False
    wanted, done = asked.of("sites"), charted.of("sites")
    if not wanted or not done:
        return True
    if "lesion" in wanted and "skin" in done:
        return not any(vocabulary().wider[site] & _TRUNK for site in wanted)  # a lesion of the lung
    if wanted - _ANYWHERE and done - _ANYWHERE:
        wanted, done = wanted - _ANYWHERE, done - _ANYWHERE
    elif (wanted | done) & _MASSES:
        return True
    return any(same_site(a, b) for a in wanted for b in done)


@lru_cache(maxsize=2048)
def _value_in(value: str) -> frozenset[tuple[str, str]]:
    """The concepts of which a result of a value names one, as kind and name; here and below, "" is any of a kind."""
    panels = (name for name, panel in vocabulary().panels.items() if value in panel.values)
    return frozenset({("values", value), ("tests", "pcr"), *(("panels", name) for name in panels)})


@lru_cache(maxsize=512)
def _panel_in(name: str) -> frozenset[tuple[str, str]]:
    panel = vocabulary().panels[name]
    if panel.whole:
        return frozenset({("specimens", panel.specimen or "")})
    return frozenset({("panels", ""), *(("values", value) for value in panel.values)})


@lru_cache(maxsize=1024)
def _test_in(test: str) -> frozenset[tuple[str, str]]:
    kinds = vocabulary().kinds
    general = {kind for kind, named in kinds.items() if test in named}
    special = kinds.get(test, _NOTHING)
    return frozenset({("parts", part) for part in special} | {("tests", t) for t in {test, *general, *special}})


def _image_in() -> frozenset[tuple[str, str]]:
    return frozenset({("modalities", "")})


_WANTED: Mapping[Callable[..., bool], Callable[..., frozenset[tuple[str, str]]]] = {
    _is_value: _value_in,
    _of_panel: _panel_in,
    _is_test: _test_in,
    _is_image: _image_in,
}


def _vitals(item: Item, chart: Chart) -> tuple[Fact, ...]:
    wanted = item.read.of("vitals")
    if "vital signs" in wanted and item.read.of("qualifiers"):
        posture = tuple(f for f, c in chart if c.of("vitals") and _qualified(item.read, f, c))
        if not posture or not _wants_lying(item) or any(_LYING.search(f.text) for f in posture):
            return posture
        return tuple(
            f for f, c in chart if f in posture or (f.section is Section.VITALS and c.of("vitals") & _LYING_TOO)
        )
    if "vital signs" in wanted:
        return tuple(fact for fact, _ in chart if fact.section is Section.VITALS)
    found = tuple(
        fact
        for fact, charted in chart
        if wanted & charted.of("vitals")
        and not any(charted.of(kind) for kind in (*MEASURED, "parts"))
        and (fact.section is not Section.TESTS or not charted.of("specimens"))
        and _qualified(item.read, fact, charted)
    )
    if not item.read.of("qualifiers"):
        return _of_vital_signs(item.read, found)
    # The pulse on standing is often charted with the blood pressure.
    found = found or tuple(
        f
        for f, c in chart
        if f.section is not Section.TESTS and wanted & reading(f.text).of("vitals") and _qualified(item.read, f, c)
    )
    if not found or not _wants_lying(item):
        return found
    lying = _vitals(replace(item, read=_unqualified(item.read)), chart)
    found += () if any(_LYING.search(fact.text) for fact in found) else lying
    return tuple(fact for fact, _ in chart if fact in found)


_LYING_TOO = frozenset({"blood pressure", "heart rate"})
_LYING = re.compile(r"\b(?:lying|supine|sitting)\b", re.IGNORECASE)


def _wants_lying(item: Item) -> bool:
    """Whether an order, or what comes before an item in it, asks for both postures: "lying and standing"."""
    return any(_LYING.search(phrase) for phrase in (item.text, *(name for name, _ in item.read.phrases)))


def _unqualified(read: Reading) -> Reading:
    return replace(read, by_kind={kind: named for kind, named in read.by_kind.items() if kind != "qualifiers"})


def _of_vital_signs(asked: Reading, found: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Without what examinations say of a vital sign, if it is among the vital signs: the pulse, not the pulses."""
    if not any(fact.section is Section.VITALS for fact in found):
        return found
    return tuple(
        fact
        for fact in found
        if fact.section is Section.VITALS or (asked.of("sites") and charted_as(fact).words <= asked.words)
    )


def _by_words(item: Item, chart: Chart) -> tuple[Fact, ...]:
    if not item.read.words:
        return ()
    wanted = _content(item.text)
    return tuple(
        fact
        for fact, charted in chart
        if fact.section is Section.TESTS or not item.measured
        # A word that we do not know is none of those that we know: "release" is not that of interferon.
        if charted.words & item.read.words
        and _same_sites(item.read, charted)
        and not _of_another_fluid(item.read, charted)
        and not ("skin prick test" in item.read.of("values") and "allergen testing" in charted.of("values"))
        and (
            wanted <= _all_words(fact.heads or (fact.text,))
            or (bool(fact.heads) and _ASPIRATE != _title(fact.heads) <= wanted)
        )
    )


_ASPIRATE = frozenset({"aspirate"})
"""A heading below one that says of what."""


def _of_another_fluid(asked: Reading, charted: Reading) -> bool:
    """Whether an order names a fluid, and a result is of another one: the urine, not the spinal fluid."""
    wanted, taken = asked.of("specimens") - {"blood"}, charted.of("specimens") - {"blood"}
    return bool(wanted and taken) and not wanted & taken


@lru_cache(maxsize=32768)
def _content(text: str) -> frozenset[str]:
    return frozenset(word for word in spelled_out(words(text)) if (word,) not in vocabulary().manner)


@lru_cache(maxsize=32768)
def _all_words(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*map(_content, texts))


@lru_cache(maxsize=32768)
def _title(heads: tuple[str, ...]) -> frozenset[str]:
    """The last heading that names something: in "Radiography of spine / Findings", the first."""
    return next((named for head in reversed(heads) if (named := _content(head))), frozenset())


def _once(answers: list[Ordered]) -> list[Ordered]:
    """Each fact once: in the first answer that asked for it itself, or else as an equivalent.

    An answer left without facts is dropped, because they were reported; an equivalent left without is unavailable.
    """
    answers = _signs_by_name(_once_each(answers))
    direct = {fact.path for answer in answers if not answer.equivalent for fact in answer.facts}
    told: set[str] = set()
    kept: list[Ordered] = []
    for answer in answers:
        fresh = tuple(f for f in answer.facts if f.path not in told and not (answer.equivalent and f.path in direct))
        told.update(f.path for f in fresh)
        missing = not answer.facts or (answer.equivalent and not fresh)
        if fresh or (missing and answer.name not in {other.name for other in kept}):
            kept.append(Ordered(answer.name, fresh, answer.equivalent if fresh else None))
    return kept


def _signs_by_name(answers: list[Ordered]) -> list[Ordered]:
    """Answers for the joints without what is all that another one, named after a sign, has: where tendons insert."""
    alone = {a.facts[0].path: a.name for a in answers if len(a.facts) == 1 and _is_sign_of(a.facts[0], a.name)}
    if not alone:
        return answers
    kept = []
    for answer in answers:
        joints = reading(answer.name).by_kind == {"sites": {"joint"}}
        facts = tuple(f for f in answer.facts if not joints or alone.get(f.path, answer.name) == answer.name)
        kept.append(answer.with_facts(facts or answer.facts))
    return kept


def _is_sign_of(fact: Fact, name: str) -> bool:
    """Whether a name is that of a single sign, and a result has it in its last heading or its text."""
    named = reading(name).of("parts")
    told = reading(" ".join((*fact.heads[-1:], fact.text))).of("parts")
    return any(vocabulary().parts[part].sign for part in named & told)


def _shown(fact: Fact) -> Reading:
    """What an image shows: in "Hand and Foot X-ray / Hands", the hands."""
    read = charted_as(fact)
    sites = next((own for head in reversed(fact.heads) if (own := reading(head).of("sites"))), read.of("sites"))
    return replace(read, by_kind={**read.by_kind, "sites": sites})


def _once_each(answers: list[Ordered]) -> list[Ordered]:
    """Each measurement and each image once, where a chart has it under several headings.

    A measurement stays under the heading that has the most of what was ordered, an image in the study of most regions.
    """
    facts = list(dict.fromkeys(fact for answer in answers for fact in answer.facts if fact.heads))
    size = Counter(fact.heads[0] for fact in facts)
    again: set[str] = set()
    measured: dict[Hashable, Fact] = {}
    for fact in sorted(facts, key=lambda fact: -size[fact.heads[0]]):
        number = re.search(r"\d", fact.text)
        named = frozenset(words(fact.heads[-1])), fact.text, charted_as(fact).of("specimens")
        if number and measured.setdefault(named, fact).heads[0] != fact.heads[0]:
            again.add(fact.path)
    studies = [(fact, _shown(fact)) for fact in facts if charted_as(fact).of("modalities")]
    for place, (fact, read) in enumerate(studies):
        for at, (other, larger) in enumerate(studies):
            alike = fact.heads[0] != other.heads[0] and same_study(read, larger)
            wider = read.of("sites") < larger.of("sites") or (at < place and read.of("sites") == larger.of("sites"))
            if alike and wider and other.path not in again:
                again.add(fact.path)
    return [
        Ordered(answer.name, tuple(f for f in answer.facts if f.path not in again), answer.equivalent)
        for answer in answers
        if not answer.facts or any(f.path not in again for f in answer.facts)
    ]
