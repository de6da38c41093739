"""Complete a chart: plausible normal results for every examination and test that it does not hold.

A value is drawn from the table of normal results (`agentclinic.vocabulary.normals`) with a seed made of the case and
the test, so it is the same whenever it is asked for. It depends on age and sex, and agrees with the chart where values
are linked (red-cell indices, blood gases, osmolality, ...). What the chart says in other words, or would contradict, is
not completed.
"""

from __future__ import annotations

import math
import random
import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple, TypeVar

from agentclinic import lazy
from agentclinic.cases.denied_signs import Sign, contradict, denied, stated
from agentclinic.cases.linked_values import LINKED_NUMBERS, LINKED_WORDS, RESTATED
from agentclinic.cases.matcher.cues import needed
from agentclinic.cases.matcher.order_examinations import FOUND, Charted, is_of_another, may_be_noticed
from agentclinic.cases.matcher.order_items import items
from agentclinic.cases.matcher.order_kinds import EXAM
from agentclinic.cases.matcher.order_spellings import WITH_SPATULA
from agentclinic.cases.matcher.order_text import one_line
from agentclinic.cases.matcher.order_words import (
    Reading,
    Tokens,
    american,
    joined,
    reading,
    same_site,
    spelled_out,
    vocabulary,
)
from agentclinic.cases.matcher.orders import IMMUNOGLOBULINS, Ordered, asked_of_chart, chart_of, charted_as, names_above
from agentclinic.cases.model import Case, Fact, Facts, Section, age_in_years, sex
from agentclinic.cases.values import analyte_of, measured_in, pressures_in
from agentclinic.cases.versions import original_of
from agentclinic.vocabulary.normals import Normal, Spread, entry_of, is_examination, levels, normal_of, normals
from agentclinic.vocabulary.text import fold, words

ROOT = "Completed"
"""First key of the path of every completed fact."""
_ADULT = 40.0
"""Age that is assumed if the chart does not state one: most patients are adults."""
_FLUIDS = frozenset({"Lumbar Puncture", "Cerebrospinal Fluid", "Joint Fluid Analysis", "Pleural Fluid"})
"""Specimens whose results belong together: cloudy fluid is not under normal pressure."""
_ROOTS = {
    Section.VITALS: "Physical_Examination_Findings",
    Section.EXAMINATION: "Physical_Examination_Findings",
    Section.TESTS: "Test_Results",
}


class Completion:
    """What the table adds to a chart. Whether it adds an entry is decided only when an order reaches the entry."""

    def __init__(self, patient: _Patient, normal: Set[str]) -> None:
        self.patient = patient
        self._normal = normal
        self.not_offered = _not_for(patient.age, patient.sex, patient.pregnant)
        """Ranks of the entries that patients of this age and sex cannot have."""
        self._charted: dict[int, Answer | None] = {}
        self._entries: dict[str, Normal | None] = {}
        self.chart = _Tabled(_completed_rows(), self._adds, patient.facts)
        """Charted and completed facts, in the order of the table. The completed ones have no value yet (`worded`)."""

    @cached_property
    def everything(self) -> Facts:
        """All the facts of the chart."""
        return Facts([fact for fact, _ in self.chart])

    def answer(self, heading: str) -> Answer:
        """What an order for an entry of the table is answered with."""
        entry = entry_of(heading)
        return self._charted_for(entry) or _unworded_answer(self.patient.heading(entry), entry)

    def _charted_for(self, entry: Normal) -> Answer | None:
        """The charted results for an entry, if it is not completed."""
        if entry.rank not in self._charted:
            self._charted[entry.rank] = self._held_or_covered(entry)
        return self._charted[entry.rank]

    def _held_or_covered(self, entry: Normal) -> Answer | None:
        patient = self.patient
        if charted := patient.held.get(entry.heading):
            return Answer(tuple(charted), own=True)
        may_cover = patient.may_cover(entry) and entry.heading not in self._normal
        covered = patient.covering(entry) if may_cover else ()
        return Answer(covered, own=False) if covered else None

    def _adds(self, row: _Row) -> bool:
        """Whether an entry is completed with this fact: the headings of some depend on the case."""
        entry = row.entry
        return (
            entry.rank not in self.not_offered
            and self._charted_for(entry) is None
            and (len(entry.heads) == 1 or levels(self.patient.heading(entry)) == row.fact.heads)
        )

    def _added(self, fact: Fact) -> Normal | None:
        """The entry that is completed with a fact."""
        if fact.path not in self._entries:
            row = _completed_rows().by_path.get(fact.path)
            self._entries[fact.path] = row.entry if row and self._adds(row) else None
        return self._entries[fact.path]

    def is_rare(self, fact: Fact) -> bool:
        """Whether a fact was added that is reported only if ordered by its own name."""
        entry = self._added(fact)
        return entry is not None and entry.rare

    def place(self, fact: Fact) -> tuple[float, float]:
        """What facts are sorted by; those that the chart does not hold come last."""
        entry = self._added(fact)
        return (entry.rank, math.inf) if entry else self.chart.charted.get(fact.path, (math.inf, math.inf))

    def worded(self, fact: Fact) -> Fact:
        """A fact with its result: a charted one has it, and that of a completed one is drawn."""
        entry = self._added(fact)
        return Fact(fact.path, fact.section, fact.heads, self.patient.result(entry)) if entry else fact


class Answer(NamedTuple):
    """The results for one entry of the table: its own, or charted ones that cover it."""

    facts: tuple[Fact, ...]
    own: bool


def completed(case: Case) -> tuple[Fact, ...]:
    """The facts that the table of normal results adds to a case, in the order of the table."""
    return tuple(fact for fact in completed_chart(case) if is_completed(fact.path))


def completed_chart(case: Case) -> tuple[Fact, ...]:
    """Charted and completed facts, in the order of the table."""
    added = completion(case)
    return tuple(map(added.worded, added.everything))


def completion(case: Case) -> Completion:
    return _completion(_patient(case), _normal_here(case))


def _normal_here(case: Case) -> frozenset[str]:
    """Studies that are normal in this case although others show something at the same place, by their headings."""
    given = case.annotations.get("Normal_Studies")
    return frozenset(map(str, given)) if isinstance(given, list) else frozenset()


def in_normal_range(case: Case, fact: Fact) -> bool:
    """Whether a charted result is within the normal range, or worded as a normal one; False if the table lacks it."""
    entry = normal_of(fact.heads)
    return entry is not None and not _patient(case).abnormal(fact, entry)


def _patient(case: Case) -> _Patient:
    return _patient_of(original_of(case).id, _door(case), _sex(case), case.patient_facts, case.exam_facts)


@lru_cache(maxsize=512)
def _patient_of(case_id: str, door: str, sex_: str | None, told: Facts, charted: Facts) -> _Patient:
    return _Patient(case_id, door, sex_, told, charted)


@lru_cache(maxsize=512)
def _completion(patient: _Patient, normal: frozenset[str]) -> Completion:
    return Completion(patient, normal)


def _door(case: Case) -> str:
    door = original_of(case)
    return f"{door.demographics}. {door.objective}"


def _sex(case: Case) -> str | None:
    # The objective can name others: "brought by his daughter".
    door = original_of(case)
    return sex(door.demographics) or sex(door.objective)


class _Row(NamedTuple):
    """A fact for an entry of the table, under one of its headings."""

    entry: Normal
    fact: Fact
    read: Reading
    """What the headings name."""


class _Rows:
    """Facts for the entries of the table, in its order."""

    def __init__(self, facts: Iterable[tuple[Normal, Fact]]) -> None:
        self.every = [_Row(entry, fact, charted_as(fact)) for entry, fact in facts]
        self.by_path = {row.fact.path: row for row in self.every}
        self.findings = [row for row in self.every if row.fact.section in FOUND]
        self.below: dict[int, list[_Row]] = {}
        """Those with a heading that names something, by the number that the order matcher gives it."""
        self._naming: dict[tuple[str, str], list[int]] = {}
        for place, row in enumerate(self.every):
            for name in names_above(row.fact.heads):
                self.below.setdefault(name, []).append(row)
            for concept in row.read.concepts:
                self._naming.setdefault(concept, []).append(place)

    def naming(self, concepts: Tokens) -> Iterator[_Row]:
        places = set[int]().union(*(self._naming.get(concept, ()) for concept in concepts))
        return map(self.every.__getitem__, sorted(places))


@lru_cache(maxsize=1)
def _completed_rows() -> _Rows:
    """The facts with which entries are completed."""
    return _Rows((entry, _unworded(heading, entry)) for entry in normals() for heading in entry.heads)


class _Tabled:
    """Charted facts and those that are taken from a table, in the order of the table, for the order matcher."""

    def __init__(self, rows: _Rows, has: Callable[[_Row], bool], charted: Facts) -> None:
        self._rows, self._has, self._chart = rows, has, chart_of(charted)
        self.charted = dict(_placed(charted))
        """The place of each charted fact: the rank of its entry, and its own in the chart."""

    def __iter__(self) -> Iterator[Charted]:
        return iter(self._every)

    @cached_property
    def _every(self) -> Sequence[Charted]:
        return self._in_order(self._chart, self._rows.every)

    @cached_property
    def findings(self) -> Sequence[Charted]:
        return self._in_order(self._chart.findings, self._rows.findings)

    def below(self, name: int) -> Sequence[Charted]:
        return self._in_order(self._chart.below(name), self._rows.below.get(name, ()))

    def naming(self, concepts: Tokens) -> Sequence[Charted]:
        return self._in_order(self._chart.naming(concepts), self._rows.naming(concepts))

    def _in_order(self, charted: Iterable[Charted], rows: Iterable[_Row]) -> Sequence[Charted]:
        found = [(self.charted[pair[0].path][0], pair) for pair in charted]
        found += [(row.entry.rank, (row.fact, row.read)) for row in rows if self._has(row)]
        return [pair for _, pair in sorted(found, key=itemgetter(0))]


def _placed(charted: Facts) -> Iterator[tuple[str, tuple[float, float]]]:
    """The path and place of each charted fact; one that is not in the table stays after the one before it."""
    last = -1
    for number, fact in enumerate(charted):
        entry = normal_of(fact.heads)
        last = entry.rank if entry else last
        yield fact.path, (last, number)


@lru_cache(maxsize=512)  # more than there are ages in years, of either sex
def _not_for(age: float, sex_: str | None, pregnant: bool) -> frozenset[int]:
    """Ranks of the entries that such patients cannot have."""
    return frozenset(entry.rank for entry in _of_some_patients() if not entry.applies(age, sex_, pregnant=pregnant))


@lru_cache(maxsize=1)
def _of_some_patients() -> tuple[Normal, ...]:
    """The entries that not every patient can have."""
    return tuple(entry for entry in normals() if not entry.for_all)


@lru_cache(maxsize=4096)
def offered(order: str, without: frozenset[int]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What an order names, each with the headings of the entries that it asks for, whatever the chart holds.

    `without` are the ranks of entries that the patient cannot have.
    """
    asked = said_in(order)
    found = []
    items = asked_of_chart(order, _catalog(without))
    spelled = _spelled().by_path
    for item in items:
        named = [fact for fact in item.facts if not spelled[fact.path].entry.rare or named_in(fact, asked)]
        # What an order does not name is not reported for want of anything else: gait is not gait after a spinal tap.
        likely = named or _of_the_place(item)
        if (not likely and len(items) == 1) or _of_the_mind(item.name):
            likely = [fact for fact in item.facts if not is_sign(fact)]
        headings = dict.fromkeys(spelled[fact.path].entry.heading for fact in likely)
        found.append((item.name, () if item.equivalent else tuple(headings)))
    return tuple(found)


def _of_the_mind(name: str) -> bool:
    """Whether a psychiatric examination is ordered by its name, so that all of it is wanted."""
    return reading(name).by_kind == {"systems": {"psychiatric"}} and bool(EXAM.search(name))


def _of_the_place(item: Ordered) -> list[Fact]:
    """The entries for the place that an item names alone, or else for what it is part of: the feet, of the toes."""
    sites = reading(item.name).of("sites")
    if set(reading(item.name).by_kind) != {"sites"}:
        return []
    wider = frozenset[str]().union(*(vocabulary().wider[site] for site in sites))
    placed = [(fact, reading(fact.heads[-1]).of("sites")) for fact in item.facts if not is_sign(fact)]
    return [fact for fact, own in placed if own & sites] or [fact for fact, own in placed if own & wider]


@lru_cache(maxsize=32)
def _catalog(without: frozenset[int]) -> _Tabled:
    """A fact for every spelling of every entry, for the matcher."""
    return _Tabled(_spelled(), lambda row: row.entry.rank not in without, Facts())


@lru_cache(maxsize=1)
def _spelled() -> _Rows:
    """A fact for every spelling of every entry."""
    return _Rows(
        (entry, _unworded(heading, entry) if entry.region else _headed(heading))
        for entry in normals()
        for heading in entry.headings
        if not _names_more(heading, entry)
    )


def _names_more(heading: str, entry: Normal) -> bool:
    """Whether a heading of charts names other values besides the entry's: "HIV and Syphilis" is no syphilis test."""
    own = reading(entry.heading).of("values")
    heads = levels(heading)
    named = reading(heads[-1] if heads[-1] != "Findings" else heads[0]).of("values")
    return bool(own) and bool(named - own - IMMUNOGLOBULINS)


@dataclass(frozen=True)
class Said:
    """The words of an order, and what it names."""

    words: frozenset[str]
    clauses: tuple[frozenset[str], ...]
    """The same for each of its clauses: arms of which the reflexes are tested are not those of the blood pressure."""


@lru_cache(maxsize=4096)
def said_in(order: str) -> Said:
    clauses = tuple(_words_and_names(clause) for clause in _ENDS.split(order) if clause.strip())
    return Said(_words_and_names(order), clauses)


_ENDS = lazy.regex(r"[;\n]|(?<=[a-z]{2})\.\s")


def _words_and_names(order: str) -> frozenset[str]:
    written = one_line(order)
    read = reading(written)
    posture = "blood pressure standing" if "orthostatic" in read.of("qualifiers") else ""
    said = words(f"{american(fold(WITH_SPATULA.sub('', order)))} {written} {posture}")
    parts = (_named_by(Reading({"parts": item.read.of("parts")})) for item in items(written))
    return frozenset((*said, *spelled_out(said), *_named_by(read))).union(*parts)


def _named_by(read: Reading) -> frozenset[str]:
    return frozenset(f"{kind}: {name}" for kind, names in read.by_kind.items() for name in names)


def named_in(fact: Fact, asked: Said) -> bool:
    """Whether a clause of an order has all the words by which a result is ordered alone, or names the same."""
    all_of, any_of = _names_of(fact.heads, fact.section)
    for said in asked.clauses:
        for names in all_of:
            if names <= said:
                return True
        if not any_of.isdisjoint(said):
            return True
    return False


@lru_cache(maxsize=16384)
def _names_of(heads: tuple[str, ...], section: Section) -> tuple[Sequence[frozenset[str]], frozenset[str]]:
    """What an order has to have to name a result: all of one of these sets, or else any of the last one."""
    fact = Fact("", section, heads, "")
    written, meant = _ordered_by(_label(fact))
    if is_sign(fact):  # "neck, muscle strength" is not the strength of the neck
        return () if meant is None else (meant,), frozenset()
    if meant and _is_organ(reading(_label(fact))):  # "liver and spleen", of which one is ordered
        return (frozenset(written),), meant
    if meant and len(written) == 1:
        return (meant,), frozenset()  # the height of a patient is not that of a womb
    return (frozenset(written), *(() if meant is None else (meant,))), frozenset()


def is_sign(fact: Fact) -> bool:
    """Whether a result is that of a single sign in the table."""
    entry = normal_of(fact.heads)
    return entry is not None and entry.sign


@lru_cache(maxsize=8192)
def _ordered_by(label: str) -> tuple[tuple[str, ...], frozenset[str] | None]:
    """What an order has to have to name a result: all words of its label, or else all that these name."""
    read = reading(label)
    # The site of a sign goes without saying: the trachea, "tracheal position".
    signs = [concepts for _, concepts in read.phrases if any(kind == "parts" for kind, _ in concepts)]
    told = {f"sites: {name}" for concepts in signs for kind, name in concepts if kind == "sites"}
    alone = any(read.of(kind) for kind in _ALONE) or _is_organ(read)
    meant = _named_by(read) - told | read.words if alone else None
    return tuple(word for word in spelled_out(words(label)) if word != "and") or ("",), meant


_ALONE = ("values", "panels", "tests", "vitals", "parts")


def _is_organ(read: Reading) -> bool:
    """Whether a label is one of the organs that are ordered by many names: the ears, "tympanic membranes"."""
    return set(read.by_kind) == {"sites"} and read.of("sites") <= _ORGANS and not read.sides


_ORGANS = frozenset(
    {"ear", "nose", "sinus", "mouth", "throat", "jaw", "nail", "tongue", "liver", "spleen", "joint", "genitals"}
)


def _label(fact: Fact) -> str:
    """The name by which a result is ordered alone; the summary of an examination has none."""
    if fact.heads[-1] != "Findings":
        return fact.heads[-1]
    entry = normal_of(fact.heads)
    if entry and entry.rare and not entry.heading.endswith("Findings"):
        return levels(entry.heading)[-1]  # the flow-volume loop, charted as the findings of a spirometry
    summary = fact.section is Section.EXAMINATION and not (entry and entry.maneuver)
    return "" if summary else fact.heads[0]


def is_completed(path: str) -> bool:
    return path.startswith(_ADDED)


_ADDED = f"{ROOT}/"


def untold(heading: str) -> Fact:
    """A result that is not back yet."""
    entry = normal_of(levels(heading))
    assert entry is not None
    return _template(entry)


@lru_cache(maxsize=1024)
def _template(entry: Normal) -> Fact:
    """A fact with the entry's heading, for the matcher."""
    return _headed(entry.heading)


@lru_cache(maxsize=2048)
def _headed(heading: str) -> Fact:
    heads = levels(heading)
    vital = heads[0] == "Vital Signs"
    section = Section.VITALS if vital else Section.EXAMINATION if is_examination(heads[0]) else Section.TESTS
    path = "/".join((ROOT, _ROOTS[section], *(head.replace(" ", "_").replace("/", "-") for head in heads)))
    return Fact(path, section, heads, "")


@lru_cache(maxsize=2048)
def _unworded(heading: str, entry: Normal) -> Fact:
    """A completed fact for the matcher, with the commonest form of the result and no value: the same in all cases."""
    forms = entry.forms(())
    return replace(_headed(heading), text=max(forms, key=lambda form: forms[form], default=""))


@lru_cache(maxsize=2048)
def _unworded_answer(heading: str, entry: Normal) -> Answer:
    return Answer((_unworded(heading, entry),), own=True)


def _is_another(fact: Fact, entry: Normal) -> bool:
    """Whether a charted result only shares words with an entry that stands apart in the table."""
    own = normal_of(fact.heads)
    return entry.apart and own is not None and own is not entry


def _says_abnormal(fact: Fact, search: Callable[[str], object]) -> bool:
    """Whether a finding speaks of something, with the place that its heading names, and not as normal alone."""
    found = [one for one, headed in _clauses_of(fact.heads, fact.text) if search(headed)]
    if not found and not search(" ".join((*fact.heads[1:], fact.text))):
        return False
    return not found or not all(map(_reads_normal, found))


@lru_cache(maxsize=8192)
def _clauses_of(heads: tuple[str, ...], text: str) -> Sequence[tuple[str, str]]:
    """The clauses of a finding, each alone and after the place that its heading names."""
    return [(clause, " ".join((*heads[1:], clause))) for clause in _CLAUSES.split(text)]


@lru_cache(maxsize=32768)  # charts have the same headings
def _may_tell(heads: tuple[str, ...], part: str) -> bool:
    """Whether a finding is of an examination in which a sign would be noticed: its system, its place, or any."""
    return may_be_noticed(part, joined(map(reading, heads[:1]))) and not is_of_another(heads, part)


_Key = TypeVar("_Key")
_Tokens = frozenset[tuple[str, ...]]
_GAS = frozenset({"blood gas"})
"""A panel that has its own bicarbonate and pH."""


def _about(fact: Fact) -> _Tokens:
    """What a result is about, as the order matcher reads its heading."""
    tested, read = fact.section is Section.TESTS, charted_as(fact)
    by_heads, tokens = _about_heads(fact.heads, tested)
    return tokens if read is by_heads else _tokens(read, tested)


@lru_cache(maxsize=8192)  # charts have the same headings
def _about_heads(heads: tuple[str, ...], tested: bool) -> tuple[Reading, _Tokens]:
    headed = Fact("/".join(heads), Section.TESTS, heads, "")
    read = charted_as(headed)  # the same object for all facts that are read by their headings alone
    return read, _tokens(read, tested)


def _tokens(read: Reading, tested: bool) -> _Tokens:
    where = tuple(sorted(read.of("specimens") - {"blood"} | read.of("panels") & _GAS | read.of("qualifiers")))
    values = read.of("values")
    if values - IMMUNOGLOBULINS:
        values -= IMMUNOGLOBULINS  # the kind of an antibody, not the antibody
    elif values:
        where += tuple(sorted(read.words))
    tokens = {("value", value, *where) for value in values}
    sites = sorted(read.of("sites")) or [""]
    tokens |= {("image", image, site) for image in read.of("modalities") for site in sites}
    if not read.of("values"):
        tokens |= {("test", test, *where, *sorted(read.of("sites"))) for test in read.of("tests")}
    if not tested:
        tokens |= {("part", part) for part in read.of("parts")} | {
            ("vital", name, *where, *sorted(read.words), *sorted(read.of("sites")))
            for name in read.of("vitals") - {"vital signs"}
        }
    if {kind for kind, *_ in tokens} == {"value"} and read.of("timings"):
        return frozenset()  # a value at another time
    return frozenset(tokens)


@lru_cache(maxsize=1024)
def _entry_about(entry: Normal) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted(_about(_template(entry))))  # the order decides which of several charted results comes first


def _grouped(pairs: Iterable[tuple[_Key, Fact]]) -> dict[_Key, list[Fact]]:
    found: dict[_Key, list[Fact]] = {}
    for key, fact in pairs:
        found.setdefault(key, []).append(fact)
    return found


@lru_cache(maxsize=1024)
def _searched(said: str) -> tuple[re.Pattern[str], frozenset[str]]:
    """How an entry's subject is looked for, and pieces of words of which every text that speaks of it has one."""
    return re.compile(said), _pieces(said) or frozenset({""})


@lru_cache(maxsize=2048)
def _pieces(pattern: str) -> frozenset[str]:
    """Pieces of words of which every text that a pattern matches has one, in lower case; empty if none are known."""
    return needed(_FLAGS.sub("", pattern).replace("(?i:", "(?:").lower())


@lru_cache(maxsize=1)
def _looked_for() -> Mapping[str, Sequence[str]]:
    """The pieces of words by which entries look for what a chart says, by their first two letters.

    Those that are shorter have no letters here: they are taken to be in every text.
    """
    pieces: set[str] = set()
    for entry in normals():
        pieces.update(_searched(entry.fields["said"])[1] if "said" in entry.fields else ())
        pieces.update(piece for pattern, _ in _all_that_follows(entry) for piece in _pieces(pattern))
    found: dict[str, list[str]] = {}
    for piece in pieces:
        found.setdefault(piece[:2] if len(piece) > 1 else "", []).append(piece)
    return found


@lru_cache(maxsize=1)
def _that_follow() -> frozenset[str]:
    """Those of which a text has one if a result follows from it."""
    return frozenset(piece for e in normals() for pattern, _ in _all_that_follows(e) for piece in _pieces(pattern))


def _all_that_follows(entry: Normal) -> Iterator[tuple[str, str | None]]:
    """What a chart may say, for any patient, with the result that goes with it."""
    return (told for name, given in entry.fields.items() if name.startswith("follows") for told in given)


@lru_cache(maxsize=65536)
def _pieces_of(word: str) -> frozenset[str]:
    known = _looked_for()
    starts = ((at, word[at : at + 2]) for at in range(len(word) - 1))
    return frozenset([piece for at, two in starts for piece in known.get(two, ()) if word.startswith(piece, at)])


@lru_cache(maxsize=16384)
def _pieces_in(text: str) -> frozenset[str]:
    """The pieces of words that a text has of those by which entries look for what a chart says."""
    return frozenset(_looked_for().get("", ())).union(*map(_pieces_of, _LETTERS.findall(text.lower())))


@lru_cache(maxsize=8192)  # charts have the same headings
def _pieces_in_heads(heads: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*map(_pieces_in, heads))


_LETTERS = lazy.regex(r"[a-z0-9]+")
_FLAGS = lazy.regex(r"\(\?[a-z]+\)")


@lru_cache(maxsize=2048)
def _is_within_lines(pattern: str) -> bool:
    """Whether whatever a pattern matches is within a line."""
    bare = _NOT_AT_ENDS.sub("", pattern)
    flags = "".join(_FLAGS.findall(pattern))
    return not (_ACROSS_LINES.search(bare) or "s" in flags or ("m" not in flags and _ANCHOR.search(bare)))


_NOT_AT_ENDS = lazy.regex(r"\[\^[^\]]*\\n[^\]]*\]")
_ACROSS_LINES = lazy.regex(r"\\[sSWDnAZ]|\[\^")
_ANCHOR = lazy.regex(r"[\^$]")


class _Patient:
    """A chart while it is completed."""

    def __init__(self, case_id: str, door: str, sex_: str | None, told: Facts, charted: Facts) -> None:
        self._id = case_id
        age = age_in_years(door)
        self.age = _ADULT if age is None else age
        self.sex = sex_
        self._told = told
        self.facts = charted
        self.pregnant = self.sex == "female" and bool(
            _PREGNANT.search(door) or any("hcg" in fold(" ".join(f.heads)) and "positive" in f.text for f in charted)
        )
        self._numbers: dict[str, float | None] = {}
        self._draws: dict[str, float] = {}

    @cached_property
    def groups(self) -> tuple[str, ...]:
        named = {"pregnant": self.pregnant, "infant": self.age < 1, "child": self.age < 12, self.sex or "": self.sex}
        return tuple(name for name, belongs in named.items() if belongs)

    # --- what the chart holds ----------------------------------------------------------------------------------

    @cached_property
    def entries(self) -> tuple[tuple[Fact, Normal], ...]:
        """Charted facts with their entry in the table."""
        return tuple((fact, entry) for fact in self.facts if (entry := normal_of(fact.heads)))

    @cached_property
    def _findings(self) -> Sequence[Fact]:
        """What was charted of the examination."""
        return [fact for fact in self.facts if fact.section is Section.EXAMINATION]

    @cached_property
    def held(self) -> Mapping[str, list[Fact]]:
        """Charted facts by the heading of their entry."""
        return _grouped((entry.heading, fact) for fact, entry in self.entries)

    @cached_property
    def _same(self) -> Mapping[str, list[Fact]]:
        """What does not agree with an entry (`_agrees`), by the word for all entries that say the same."""
        entries = ((fact, normal_of(fact.heads)) for fact in self._telling)
        return _grouped((entry.same, fact) for fact, entry in entries if entry and entry.same)

    @cached_property
    def _tokens(self) -> Mapping[tuple[str, ...], list[Fact]]:
        """What does not agree with an entry, by what it is about."""
        return _grouped((token, fact) for fact in self._telling for token in _about(fact))

    @cached_property
    def _telling(self) -> Sequence[Fact]:
        """Charted facts, without normal results in words (`_agrees`)."""
        return [fact for fact in self.facts if not self._agrees(fact)]

    @cached_property
    def _systems(self) -> Mapping[str, list[Fact]]:
        return _grouped((fact.heads[0], fact) for fact in self.facts if fact.heads)

    @cached_property
    def _summarized(self) -> Mapping[str, list[Fact]]:
        """Examinations that the chart has as a whole, and specimens in which it has something abnormal."""
        whole = [
            fact
            for fact in self.facts
            if fact.heads
            and (fact.section is Section.EXAMINATION or fact.heads[0] in _FLUIDS)
            and (len(fact.heads) == 1 or _general(fact))
        ]
        ill = [
            fact
            for fact, entry in self.entries
            # A linked value is as unusual as what it is linked to: glucose in the spinal fluid follows the blood.
            if entry.system in _FLUIDS and not entry.apart
            if entry.heading not in LINKED_NUMBERS and self.abnormal(fact, entry)
        ]
        return _grouped((system, f) for f in (*whole, *ill) for system in (_CSF if f.heads[0] in _CSF else f.heads[:1]))

    @cached_property
    def _summarized_ill(self) -> Mapping[str, list[Fact]]:
        """The same without those that are normal."""
        return {system: [f for f in facts if not self._is_normal(f)] for system, facts in self._summarized.items()}

    def _is_normal(self, fact: Fact) -> bool:
        own = normal_of(fact.heads)
        return own is not None and not self.abnormal(fact, own)

    @cached_property
    def _ill_regions(self) -> Mapping[str, list[Fact]]:
        """Charted images that show something, by region."""
        return _grouped((e.region, f) for f, e in self.entries if e.region and self.abnormal(f, e))

    @cached_property
    def _ill_skin(self) -> Mapping[str, list[Fact]]:
        """Abnormal findings of the skin: charts name places in many ways, so that another place may be the same."""
        return _grouped((_SKIN, f) for f in self.facts if f.heads[:1] == (_SKIN,) and not _reads_normal(f.text))

    def may_cover(self, entry: Normal) -> bool:
        """Whether the chart shares something with an entry; if not, it cannot cover it (`covering`)."""
        shared = _shared_by()[entry.rank]
        if shared is None:
            return True
        for index, keys in shared:
            held = getattr(self, index)
            for key in keys:
                if key in held:
                    return True
        return False

    @cached_property
    def _said(self) -> Mapping[str, Sequence[int]]:
        """The places of the findings that have a piece of a word by which an entry's subject is looked for."""
        found: dict[str, list[int]] = {}
        for place, (fact, _) in enumerate(self._spoken):
            for piece in _pieces_in(fact.text) | _pieces_in_heads(fact.heads[1:]):
                found.setdefault(piece, []).append(place)
        return found

    @cached_property
    def _naming(self) -> Mapping[str, Sequence[int]]:
        """The places of the findings that name a part."""
        found: dict[str, list[int]] = {}
        for place, (_, named) in enumerate(self._spoken):
            for part in named:
                found.setdefault(part, []).append(place)
        return found

    def _speaking(self, pieces: Set[str], parts: Set[str] = frozenset()) -> Sequence[int]:
        """The places of the findings that have one of these pieces of words or name one of these parts."""
        said = [places for piece in pieces if (places := self._said.get(piece))]
        said += [places for part in parts if (places := self._naming.get(part))]
        return sorted(set().union(*said)) if len(said) != 1 else said[0]

    def covering(self, entry: Normal) -> tuple[Fact, ...]:
        """Charted facts that say something about an entry which the chart does not hold; it is not completed then."""
        found = list(self._same.get(entry.same, ()) if entry.same else ())
        found += self._saying(entry)
        about = (fact for token in _entry_about(entry) for fact in self._tokens.get(token, ()))
        found += [fact for fact in about if not _is_another(fact, entry)]
        if _is_summary(entry):
            found += self._systems.get(entry.system, ())
        elif not entry.apart:
            # A normal examination says nothing against a normal sign that it does not mention.
            summed_up = self._summarized_ill if entry.rare and entry.examination else self._summarized
            found += [fact for fact in summed_up.get(entry.system, ()) if not _of_other_places(fact, entry)]
        found += self._ill_images(entry)[:1]
        found += self._ill_skin.get(entry.system, ()) if not entry.sign else ()
        if not found and entry.examination and not entry.apart:
            found += [fact for subject in _subjects_of(entry) for fact in self._subjects.get(subject, ())]
            if not found:
                found += self._denying(entry)
        found += self._against(entry)
        return tuple(dict.fromkeys(found)) if found and not self._follows(entry) else ()

    def _ill_images(self, entry: Normal) -> Sequence[Fact]:
        """Charted images that show something abnormal in an entry's region, or in the narrower place it is about."""
        ill = self._ill_regions.get(entry.region or "", ())
        said = entry.fields.get("said")
        return [fact for fact in ill if _says_abnormal(fact, _searched(said)[0].search)] if said else ill

    def _follows(self, entry: Normal) -> bool:
        """Whether the result of an entry follows from what the chart says, so that it is completed in any case."""
        restated = RESTATED.get(entry.heading)
        return bool(restated and restated(self) is not None) or self.followed(entry) is not None

    def _against(self, entry: Normal) -> list[Fact]:
        """Charted results that no form of an entry agrees with."""
        found: list[Fact] = []
        if entry.may_follow:
            against = [pattern for pattern, says in entry.follows(self.groups) if says is None]
            found += [fact for pattern in against for fact in self._likely(pattern) if pattern.search(_line(fact))]
        if entry.examination:
            forms = _denied_in_forms(entry)
            if not forms:
                found += self._findings
            elif not any(self._denied_at.isdisjoint(places) for places in _places_denied(entry)):
                found += [f for f, signs in self._signs if all(contradict(signs, form) for form in forms)]
        elif organs := _organs_shown(entry):
            ill = [fact for organ in sorted(organs) for fact in self._ill_organs.get(organ, ())]
            found += sorted(ill, key=lambda fact: bool(charted_as(fact).of("modalities") & _SEE_VESSELS))[:1]
        return found

    @cached_property
    def _signs(self) -> Sequence[tuple[Fact, frozenset[Sign]]]:
        """The findings that say that signs are there, with these."""
        return [(fact, signs) for fact in self._findings if (signs := stated(fact.heads, fact.text))]

    @cached_property
    def _denied_at(self) -> frozenset[tuple[str, str]]:
        """The signs that the examination found, with the places at which a normal finding would deny them."""
        found = {(sign, at) for _, signs in self._signs for sign, at, _ in signs}
        return frozenset((sign, place) for sign, at in found for place in _around(at))

    @cached_property
    def _ill_organs(self) -> Mapping[str, list[Fact]]:
        """Charted images in which an organ is not normal."""
        return _grouped(
            (organ, f) for f in self.facts if charted_as(f).of("modalities") for organ in _ill_organs(f.text)
        )

    def followed(self, entry: Normal) -> str | None:
        """What the result of an entry is if the chart, or what the patient tells, says certain things."""
        if not entry.may_follow:
            return None
        for pattern, says in entry.follows(self.groups):
            found = self._first(pattern) if says is not None else None
            if found and says is not None:
                return found.expand(says)
        return None

    def _likely(self, pattern: re.Pattern[str]) -> Iterator[Fact]:
        """Charted facts that hold a piece of a word without which a pattern does not match."""
        pieces = _pieces(pattern.pattern)
        if not pieces:
            return iter(self.facts)
        return (self.facts[number] for number in self._numbers_of(pieces) if number < len(self.facts))

    def _numbers_of(self, pieces: Set[str]) -> Sequence[int]:
        """The numbers of the lines that have one of these pieces of words."""
        return sorted({number for piece in pieces & self._lines_with.keys() for number in self._lines_with[piece]})

    @cached_property
    def _lines_with(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the lines that have a piece of a word, by the piece."""
        charted = (_pieces_in(fact.text) | _pieces_in_heads(fact.heads) for fact in self.facts)
        found: dict[str, list[int]] = {}
        for number, pieces in enumerate((*charted, *map(_pieces_in, self._lines[len(self.facts) :]))):
            for piece in pieces & _that_follow():
                found.setdefault(piece, []).append(number)
        return found

    def _first(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first match of a pattern in what is written; most patterns have to read only a few lines for it."""
        pieces = _pieces(pattern.pattern)
        if not pieces or not _is_within_lines(pattern.pattern):
            return pattern.search(self._written) if not pieces or pieces & self._lines_with.keys() else None
        return next((found for at in self._numbers_of(pieces) if (found := pattern.search(self._lines[at]))), None)

    @cached_property
    def _written(self) -> str:
        return "\n".join(self._lines)

    @cached_property
    def _lines(self) -> Sequence[str]:
        """All charted results and, after them, what the patient tells, a line each."""
        told = (_told_line(f) for f in self._told if not f.denied and f.section is not Section.FAMILY)
        return (*map(_line, self.facts), *told)

    def _agrees(self, fact: Fact) -> bool:
        """Whether a result in words is a normal one, so that the chart can have a normal one of the entry, too.

        Otherwise the fact would be reported instead, and which orders get such an answer would give the case away.
        """
        own = normal_of(fact.heads)
        worded = own is not None and not own.spread(self.groups)
        return own is not None and worded and not self.abnormal(fact, own)

    def _saying(self, entry: Normal) -> list[Fact]:
        """Charted findings that say something about the subject of an entry in their own words."""
        said = entry.fields.get("said")
        if entry.sign:
            return self._of_sign(_parts_of(entry), said)
        treated = self._treated.get(entry.heading, []) if entry.system == _JOINTS else []
        if not said or entry.region:
            return treated
        pattern, pieces = _searched(said)
        likely = (self._spoken[place][0] for place in self._speaking(pieces))
        return [*treated, *(fact for fact in likely if pattern.search(fact.text))]

    @cached_property
    def _treated(self) -> Mapping[str, list[Fact]]:
        """The findings that say that a joint was operated on or is dressed, by the entry of the joint."""
        found: dict[str, list[Fact]] = {}
        for fact in self._findings:
            for clause in _CLAUSES.split(fact.text) if _TREATED.search(fact.text) else ():
                if _TREATED.search(clause) and not _WITHOUT.match(clause):
                    for heading in _joints_of(reading(clause).of("sites")):
                        found.setdefault(heading, []).append(fact)
        return found

    def _of_sign(self, parts: Set[str], said: str | None) -> list[Fact]:
        """Charted findings that name a sign, or say in their own words that it is abnormal."""
        pattern, pieces = _searched(said) if said else (None, frozenset[str]())
        found = []
        for fact, named in map(self._spoken.__getitem__, self._speaking(pieces, parts)):
            names = not parts.isdisjoint(named)
            if any(_may_tell(fact.heads, part) for part in parts) and (
                names or (pattern is not None and _says_abnormal(fact, pattern.search))
            ):
                found.append(fact)
        return found

    @cached_property
    def _spoken(self) -> list[tuple[Fact, Set[str]]]:
        """The findings, each with the parts it names."""
        return [(fact, reading(fact.text).of("parts")) for fact in self._findings]

    @cached_property
    def _subjects(self) -> Mapping[str, list[Fact]]:
        """What charted findings say something abnormal about."""
        return _grouped(
            (subject, fact)
            for fact in self._findings
            for clause, _ in _clauses_of(fact.heads, fact.text)
            if not _says_normal(clause)
            for subject in _SUBJECT.findall(fold(clause))
        )

    def _denying(self, entry: Normal) -> list[Fact]:
        """The abnormal findings that every form of an entry would deny."""
        each = [[f for s in subjects for f in self._subjects.get(s, ())] for subjects in _subjects_in_forms(entry)]
        return [fact for found in each for fact in found] if all(each) else []

    @cached_property
    def _cold(self) -> bool:
        """Whether the skin or the limbs were found to be cold."""
        return any(
            _COLD_LIMBS.search(fact.text) or (fact.heads[0] == _SKIN and _COLD.search(fact.text))
            for fact in self._findings
        )

    @cached_property
    def _operated(self) -> bool:
        """Whether the history tells of an operation that leaves a scar on the belly."""
        scar = normal_of(("Abdominal Examination", "Scar"))
        return scar is not None and self.followed(scar) is not None

    def _denied_by(self, entry: Normal, form: str) -> bool:
        """Whether a form of a normal finding denies what was charted."""
        if any(self._subjects.get(subject) for subject in _SUBJECT.findall(fold(form))):
            return True
        if self._operated and "no scar" in form:
            return True
        if self._cold and _WARM.search(form):
            return True
        normal = denied(levels(entry.heading), form)
        return any(contradict(stated(fact.heads, fact.text), normal) for fact in self._findings) if normal else False

    def abnormal(self, fact: Fact, entry: Normal) -> bool:
        """Whether a charted result is outside its normal range, or worded unlike a normal one."""
        spread = entry.spread(self.groups)
        number = _LEADING_NUMBER.match(fact.text) if spread else None
        if spread and number:
            return not spread.low <= float(number[1].replace(",", "")) <= spread.high
        return fact.text not in entry.forms(self.groups) and not _reads_normal(fact.text)

    # --- what is added -----------------------------------------------------------------------------------------

    def heading(self, entry: Normal) -> str:
        """The heading of the fact that completes an entry."""
        # Items of one panel have the same heading: the choice depends on the panel alone.
        several = len(entry.heads) > 1
        return _at(self._draw(entry.system), entry.heads) if several else next(iter(entry.heads))

    def _draw(self, system: str) -> float:
        if system not in self._draws:
            self._draws[system] = random.Random(f"{self._id}|{system}").random()
        return self._draws[system]

    def result(self, entry: Normal) -> str:
        """What is reported for a completed entry."""
        linked = LINKED_WORDS.get(entry.heading)
        said = linked(self) if linked else None
        if said is not None:
            return said
        if (said := self.followed(entry)) is not None:
            return _PLACE.sub(lambda place: self._filled(place[1], None), said)
        forms = entry.forms(self.groups)
        if entry.examination:
            forms = {form: often for form, often in forms.items() if not self._denied_by(entry, form)} or forms
        form = _chosen(forms, f"{self._id}|{entry.heading}|form")
        spread = entry.spread(self.groups)
        number = self.number(entry) if spread else None
        shown = "" if number is None or spread is None else _written(number, spread.digits)
        return _PLACE.sub(lambda place: shown if not place[1] else self._filled(place[1], number), form)

    def _filled(self, name: str, number: float | None) -> str:
        if name == "fahrenheit":
            return f"{(number or 37) * 1.8 + 32:.1f}"
        if name == "fast":
            return "fast " if self.fast else ""
        rate = self.value("heart_rate") or 76
        if name == "rate":
            return f"{rate:.0f}"
        if name == "rhythm":
            slow = "bradycardia" if rate < 50 else "rhythm"
            return f"Sinus {'tachycardia' if self.fast else slow}"
        draw = random.Random(f"{self._id}|{name}")
        if name == "share":
            return f"{draw.gauss(98, 3):.0f}"
        systolic, diastolic = self._pressure
        change = {"standing": (-4, 3), "fall": (-26, -10), "other_arm": (-4, -2), "repeat": (-2, -1)}.get(name)
        if change:
            systolic, diastolic = systolic + change[0] + draw.gauss(0, 2), diastolic + change[1] + draw.gauss(0, 2)
        return f"{systolic:.0f}/{diastolic:.0f}"

    @property
    def fast(self) -> bool:
        most = 160 if self.age < 1 else 130 if self.age < 6 else 110 if self.age < 12 else 100
        return (self.value("heart_rate") or 0) > most

    @cached_property
    def _pressure(self) -> tuple[float, float]:
        found = pressures_in(fact for fact in self.facts if fact.heads[-1:] == ("Blood Pressure",))
        if found:
            return found[0].systolic, found[0].diastolic
        draw = random.Random(f"{self._id}|pressure")
        systolic = (86 if self.age < 1 else 96 + self.age if self.age < 18 else 124) + draw.gauss(0, 5)
        return round(systolic), round(systolic * 0.62)

    def number(self, entry: Normal) -> float:
        """The number of a completed entry: from the chart where values are linked, else drawn."""
        known = self._numbers.get(entry.heading)
        if known is None:
            spread = entry.spread(self.groups)
            assert spread is not None
            linked = LINKED_NUMBERS.get(entry.heading)
            drawn = _drawn(spread, random.Random(f"{self._id}|{entry.heading}|number"))
            found = linked(self, drawn) if linked else None
            known = self._numbers[entry.heading] = round(drawn if found is None else found, spread.digits)
        return known

    @cached_property
    def _headed(self) -> Mapping[str, list[Fact]]:
        """Charted facts by the analyte in their heading; their numbers are read when they are needed."""
        read = ((analyte_of(fact.heads, fact.section), fact) for fact in self.facts)
        return _grouped((analyte.name, fact) for analyte, fact in read if analyte)

    def completed(self, heading: str) -> float:
        entry = normal_of(levels(heading))
        assert entry is not None
        return self.number(entry)

    def charted(self, analyte: str) -> float | None:
        for value in measured_in(self._headed.get(analyte, ())):
            share = value.analyte.possible is None  # white cell kinds: only percentages can be added up
            if value.number is not None and not (share and value.unit != "%") and "Standing" not in value.path:
                return value.number
        return None

    def value(self, analyte: str) -> float | None:
        found = self.charted(analyte)
        if found is None and (entry := _measuring().get(analyte)) and entry.spread(self.groups):
            return self.number(entry)
        return found

    def says(self, pattern: re.Pattern[str]) -> bool:
        return any(
            pattern.search(fact.text)
            for fact in self._told
            if not fact.denied and fact.section in (Section.PAST, Section.DRUGS, Section.HISTORY)
        )

    def stated(self, pattern: re.Pattern[str]) -> float | None:
        found = next((m for fact in self.facts if (m := pattern.search(fact.text))), None)
        return float(found[1]) if found else None


_JOINTS = "Musculoskeletal Examination"
_TREATED = lazy.regex(
    r"\b(?:dressings?|wounds?|scars?|stitches|sutures?|staples|bandaged?|plaster|cast|splint|brace|stump|drain"
    r"|replace(?:d|ment)|implant|prosthe\w+|artificial)\b",
    re.IGNORECASE,
)


def _joints_of(sites: Set[str]) -> list[str]:
    """The entries of the musculoskeletal examination that are of these places."""
    return [heading for heading, of in _of_joints() if sites & of]


@lru_cache(maxsize=1)
def _of_joints() -> tuple[tuple[str, frozenset[str]], ...]:
    entries = (row.entry for row in _spelled().every if row.entry.system == _JOINTS and not row.entry.sign)
    return tuple((entry.heading, reading(levels(entry.heading)[-1]).of("sites")) for entry in entries)


_CLAUSES = lazy.regex(r"[;,.:]\s+|\s+and\s+(?=no\b|not\b|without\b)")
_NORMAL_CLAUSE = lazy.regex(
    r"^(?:no|not|none|normal\w*|clear|without|negative|free|intact|unremarkable|supple|undetectable)\b"
    r"|^soft\b(?! (?:[\w-]+ ){0,3}(?:tissue|noise|murmur|rub|bruit|crackle|wheeze))"
    r"|\b(?<!upper limit of )(?<!lower limit of )normal(?:ly)?\b"
    r"|\bnot (?:detected|dilated|enlarged|raised|tender|widened|seen)\b"
    r"|\bcapillary refill (?:time )?(?:(?:is|of) )?(?:under|below|less than|within|<) ?2\b"
    r"|\bcompressible\b|^ejection fraction [56]\d%|\bregular\b|\b(?:open|patent|smooth)$",
    re.IGNORECASE,
)


_LEADING_NUMBER = lazy.regex(r"\s*[<>]?\s*(\d[\d,]*(?:\.\d+)?)")


@lru_cache(maxsize=8192)  # charts say in the same words that something is normal
def _reads_normal(text: str) -> bool:
    """Whether every clause of a result says that something is normal or absent."""
    clauses = [clause for clause in _CLAUSES.split(_LISTED.sub("", text.strip(" ."))) if clause]
    return all(map(_says_normal, clauses))


@lru_cache(maxsize=16384)  # and in the same clauses
def _says_normal(clause: str) -> bool:
    """Whether a clause says that something is normal or absent."""
    return _NORMAL_CLAUSE.search(clause) is not None


_LISTED = lazy.regex(
    r"\b(?:(?:speech|strength|power|tone|sensation|reflexes|coordination)\b, )+(?=(?:\w+ and )?\w+ normal\b)",
    re.IGNORECASE,
)
"""The beginning of a list of what is normal: "speech, strength and gait normal"."""
_SUBJECT = lazy.regex(
    r"\b(?:(?<!red )(?<!corneal )(?<!cremasteric )reflex|plantar|gait|thyroid|goiter|spleen|liver|node|edema|effusion"
    r"|murmur|rub|bruit|nystagmus|tremor|rash|jaundice|crackle|wheeze|tonsil|drum|hernia|sensation|pupil|bruise"
    r"|petechia|ulcer|clubb|calf|calves|capillary refill|bowel sounds|neck vein|pulse|flank|noise)"
)
"""What an examination is about, whichever part of it says so."""


def _line(fact: Fact) -> str:
    return f"{' / '.join(fact.heads)}: {fact.text}"


def _told_line(fact: Fact) -> str:
    # Charts list allergies as "Cats: sneezing".
    return f"Told: {'Allergy to ' if fact.section is Section.ALLERGIES else ''}{fact.text}"


@lru_cache(maxsize=2048)
def _denied_in_forms(entry: Normal) -> tuple[frozenset[Sign], ...]:
    """The signs that each form of an entry denies."""
    return tuple(denied(levels(entry.heading), form) for form in entry.forms(()))


@lru_cache(maxsize=1024)
def _parts_of(entry: Normal) -> frozenset[str]:
    """The parts of an examination that an entry names."""
    return charted_as(_template(entry)).of("parts")


@lru_cache(maxsize=1024)
def _places_denied(entry: Normal) -> tuple[frozenset[tuple[str, str]], ...]:
    """The same with their places, whatever the side."""
    return tuple(frozenset((sign, place) for sign, place, _ in form) for form in _denied_in_forms(entry))


def _around(place: str) -> frozenset[str]:
    return vocabulary().wider.get(place, frozenset()) | {place}


@lru_cache(maxsize=8192)
def _ill_organs(text: str) -> frozenset[str]:
    """The organs that an image shows not to be normal."""
    if not any(map(text.lower().__contains__, _pieces(_ILL.pattern))):
        return frozenset()
    likely = (clause for clause in _CLAUSES.split(text) if _ILL.search(clause) and not _says_normal(clause))
    ill = (clause for each in likely if _ILL.search(clause := _WITHOUT.sub("", each)))
    return frozenset().union(*(reading(clause).of("sites") & _SHOWN_ALIKE for clause in ill))


@lru_cache(maxsize=1024)
def _organs_shown(entry: Normal) -> frozenset[str]:
    """The organs of which every form of an image says something normal."""
    heading = charted_as(_template(entry))
    if not heading.of("modalities") & _SEE_ORGANS or heading.of("modalities") & _SEE_VESSELS:
        return frozenset()
    forms = [reading(form).of("sites") | heading.of("sites") for form in entry.forms(())]
    return _SHOWN_ALIKE.intersection(*forms) if forms else frozenset()


_WITHOUT = lazy.regex(r"\b(?:no|not|without|below|near|beside)\b.*|\w+[ -]like\b")
"""What is not there, or is only near an organ."""
_SHOWN_ALIKE = frozenset(
    ("kidney", "liver", "spleen", "pancreas", "gallbladder", "bile duct", "ovary", "uterus", "adrenal", "thyroid",
     "prostate", "lumbar spine", "thoracic spine", "cervical spine", "vertebra")
)  # fmt: skip
"""Organs of which one image shows about what another does."""
_SEE_ORGANS = frozenset({"ct", "mri", "ultrasound"})
_SEE_VESSELS = frozenset({"angiography", "venography"})
_ILL = lazy.regex(
    r"\b(?:mass|lesions?|nodul\w+|cysts?|stones?|thick\w*|enlarged|dilat\w+|widen\w*|bright|dark|dense|swelling|swollen"
    r"|edema|collapse\w*|fracture\w*|narrow\w*|bulg\w*|prolapse\w*|infiltrat\w+|stranding|scar\w*|shrunken|atroph\w+"
    r"|coarse|irregular|deposits?|tumou?r|foci|focus|wear|lowered|lucent|wedge\w*)\b",
    re.IGNORECASE,
)
_PREGNANT = lazy.regex(r"\b(?<!not )pregnant\b|\bweeks? (?:of )?(?:pregnan|gestation)", re.IGNORECASE)
_PLACE = lazy.regex(r"\{(\w*)\}")
_COLD = lazy.regex(r"(?<!not )\b(?:cool|cold|clammy|mottled)\b", re.IGNORECASE)
_COLD_LIMBS = lazy.regex(
    r"\b(?:cool|cold) (?:hands|feet|extremities|limbs|skin)\b|\b(?:clammy|mottled)\b", re.IGNORECASE
)
_WARM = lazy.regex(r"\bwarm\b|\bcapillary refill\b", re.IGNORECASE)
_SKIN = "Skin Examination"
_CSF = frozenset({"Lumbar Puncture", "Cerebrospinal Fluid"})
_SUMMARIES = frozenset({"findings", "general"})


def _general(fact: Fact) -> bool:
    return fact.heads[-1].lower() in _SUMMARIES


@lru_cache(maxsize=8192)
def _of_other_places(fact: Fact, entry: Normal) -> bool:
    """Whether a summary says nothing of the place of an entry: "thyroid normal, no lump in the neck", of the ears."""
    if entry.system not in _OF_PLACES:
        return False
    sites, said = charted_as(_template(entry)).of("sites") - _WHOLE, reading(fact.text).of("sites")
    said = said.union(*(vocabulary().parts[part].of for part in reading(fact.text).of("parts"))) - _WHOLE
    return bool(sites and said) and not any(same_site(a, b) for a in sites for b in said & vocabulary().wider.keys())


_OF_PLACES = frozenset({"ENT Examination", "Musculoskeletal Examination"})
"""Examinations of places that have little to do with each other."""
_WHOLE = frozenset({"joint", "muscle", "bone", "limb"})


def _is_summary(entry: Normal) -> bool:
    """Whether an entry is about a whole examination: everything charted of it says something about the entry."""
    return entry.general or (entry.examination and entry.heading == entry.system)


@lru_cache(maxsize=1024)
def _subjects_of(entry: Normal) -> tuple[str, ...]:
    return tuple(_SUBJECT.findall(fold(levels(entry.heading)[-1])))


@lru_cache(maxsize=1024)
def _subjects_in_forms(entry: Normal) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(_SUBJECT.findall(fold(form))) for form in entry.forms(()))


@lru_cache(maxsize=1)
def _shared_by() -> Sequence[Sequence[tuple[str, Set[object]]] | None]:
    """What a chart shares with each entry that it covers, by rank (`_shared`)."""
    return list(map(_shared, normals()))


def _shared(entry: Normal) -> Sequence[tuple[str, Set[object]]] | None:
    """What a chart shares with an entry that it covers, by the index that has it; None if it may be anything."""
    keys: dict[str, Set[object]] = {
        "_same": {entry.same} - {None},
        "_tokens": set(_entry_about(entry)),
        "_ill_regions": {entry.region} - {None},
        "_ill_skin": {entry.system} & {_SKIN},
        "_ill_organs": _organs_shown(entry),
    }
    if _is_summary(entry):
        keys["_systems"] = {entry.system}
    elif not entry.apart:
        keys["_summarized"] = {entry.system}
    if entry.examination:
        keys["_denied_at"] = frozenset[object]().union(*_places_denied(entry))
        if not entry.apart:
            keys["_subjects"] = {name for names in (_subjects_of(entry), *_subjects_in_forms(entry)) for name in names}
        if not _denied_in_forms(entry):
            return None
    against = {_pieces(pattern) for pattern, says in _all_that_follows(entry) if says is None}
    if frozenset() in against:
        return None
    keys["_lines_with"] = frozenset[object]().union(*against)
    if "said" in entry.fields:
        keys["_said"] = _searched(entry.fields["said"])[1]
    if entry.sign:
        keys["_naming"] = _parts_of(entry)
    elif entry.system == _JOINTS:
        keys["_treated"] = {entry.heading}
    return [(index, held) for index, held in keys.items() if held]


def _chosen(weights: Mapping[str, int], seed: str) -> str:
    return next(iter(weights)) if len(weights) == 1 else _at(random.Random(seed).random(), weights)


def _at(draw: float, weights: Mapping[str, int]) -> str:
    """The choice for a random number from 0 to 1."""
    reached = list(accumulate(weights.values()))
    return list(weights)[bisect(reached, draw * reached[-1], 0, len(reached) - 1)]


def _drawn(spread: Spread, draw: random.Random) -> float:
    for _ in range(20):
        number = draw.gauss(spread.mean, spread.deviation)
        if spread.low <= number <= spread.high:
            return number
    return spread.mean


def _written(number: float, digits: int) -> str:
    return f"{number:.{max(0, digits)}f}"


@lru_cache(maxsize=1)
def _measuring() -> Mapping[str, Normal]:
    """The entry that completes an analyte."""
    found: dict[str, Normal] = {}
    for entry in normals():
        template = _template(entry)
        analyte = analyte_of(template.heads, template.section)
        if analyte and (entry.fields.get("number") or entry.heading in LINKED_NUMBERS):
            found.setdefault(analyte.name, entry)
    return found
