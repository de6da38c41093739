"""Complete a chart: plausible normal results for every examination and test that it does not hold.

A value is drawn from the table of normal results (`agentclinic.vocabulary.normals`) with a seed made of the case and
the test, so it is the same whenever it is asked for. It depends on age and sex, and agrees with the chart where values
are linked (red-cell indices, blood gases, osmolality, ...). What the chart says in other words, or would contradict, is
not completed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from agentclinic.cases.linked_values import LINKED_NUMBERS, LINKED_WORDS
from agentclinic.cases.matcher.orders import charted_as
from agentclinic.cases.model import Case, Fact, Section, age_in_years, sex
from agentclinic.cases.values import analyte_of, measured_in, pressures_in
from agentclinic.vocabulary.normals import Normal, Spread, levels, normal_of, normals
from agentclinic.vocabulary.text import fold

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


@dataclass(frozen=True)
class Completion:
    """What the table adds to a chart."""

    facts: tuple[Fact, ...]
    rare: frozenset[str]
    """Paths of facts that are reported only if ordered by their own name."""
    instead: tuple[tuple[Fact, tuple[Fact, ...]], ...]
    """Results that would contradict the chart, each with the charted ones that are reported in their place."""
    everything: tuple[Fact, ...]
    """Charted and completed facts, in the order of the table."""


def completed(case: Case) -> tuple[Fact, ...]:
    """The facts that the table of normal results adds to a case, in the order of the table."""
    return completion(case).facts


def completion(case: Case) -> Completion:
    return _completion(case.id, _door(case), case.patient_facts, case.exam_facts)


def in_normal_range(case: Case, fact: Fact) -> bool:
    """Whether a charted result is within the normal range, or worded as a normal one; False if the table lacks it."""
    entry = normal_of(fact.heads)
    return entry is not None and not _patient(case).abnormal(fact, entry)


def _patient(case: Case) -> _Patient:
    return _Patient(case.id, _door(case), case.patient_facts, case.exam_facts)


def _door(case: Case) -> str:
    return f"{case.door.demographics}. {case.door.objective}"


@lru_cache(maxsize=512)
def _completion(case_id: str, door: str, told: tuple[Fact, ...], charted: tuple[Fact, ...]) -> Completion:
    patient = _Patient(case_id, door, told, charted)
    added = [entry for entry in normals() if patient.lacks(entry)]
    blocked = {entry.heading: found for entry in added if (found := patient.abnormal_in_region(entry))}
    facts = {entry.heading: patient.fact(entry) for entry in added if entry.heading not in blocked}
    added_facts = tuple(facts.values())
    return Completion(
        added_facts,
        frozenset(facts[entry.heading].path for entry in added if entry.rare and entry.heading in facts),
        tuple((_template(entry), blocked[entry.heading]) for entry in added if entry.heading in blocked),
        _in_order((*charted, *added_facts)),
    )


def _in_order(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Charted and completed facts in the order of the table; others keep their place after the one before them."""
    placed, last = [], -1
    for fact in facts:
        entry = normal_of(fact.heads)
        last = entry.rank if entry else last
        placed.append((last, fact))
    return tuple(fact for _, fact in sorted(placed, key=lambda pair: pair[0]))


def is_completed(path: str) -> bool:
    return path.startswith(f"{ROOT}/")


@lru_cache(maxsize=1024)
def _template(entry: Normal) -> Fact:
    """A fact with the entry's heading, for the matcher."""
    return _as_fact(levels(entry.heading), "")


def _as_fact(heads: tuple[str, ...], text: str) -> Fact:
    vital = heads[0] == "Vital Signs"
    examined = vital or heads[0].endswith("Examination") or heads[0] in ("General Appearance", "Swallowing Assessment")
    section = Section.VITALS if vital else Section.EXAMINATION if examined else Section.TESTS
    path = "/".join((ROOT, _ROOTS[section], *(head.replace(" ", "_").replace("/", "-") for head in heads)))
    return Fact(path, section, heads, text)


_Tokens = frozenset[tuple[str, ...]]
_GAS = frozenset({"blood gas"})
"""A panel that has its own bicarbonate and pH."""


@lru_cache(maxsize=16384)
def _about(fact: Fact) -> _Tokens:
    """What a result is about, as the order matcher reads its heading."""
    read = charted_as(fact)
    where = tuple(sorted(read.of("specimens") - {"blood"} | read.of("panels") & _GAS | read.of("qualifiers")))
    tokens = {("value", value, *where) for value in read.of("values")}
    sites = sorted(read.of("sites")) or [""]
    tokens |= {("image", image, site) for image in read.of("modalities") for site in sites}
    if not read.of("values"):
        tokens |= {("test", test, *where, *sorted(read.of("sites"))) for test in read.of("tests")}
    if fact.section is not Section.TESTS:
        tokens |= {("part", part) for part in read.of("parts")} | {
            ("vital", name, *where, *sorted(read.words)) for name in read.of("vitals") - {"vital signs"}
        }
    if {kind for kind, *_ in tokens} == {"value"} and read.of("timings"):
        return frozenset()  # a value at another time
    return frozenset(tokens)


class _Patient:
    """A chart while it is completed."""

    def __init__(self, case_id: str, door: str, told: tuple[Fact, ...], charted: tuple[Fact, ...]) -> None:
        self._id = case_id
        age = age_in_years(door)
        self.age = _ADULT if age is None else age
        self.sex = sex(door)
        self._told = told
        self.facts = charted
        self.pregnant = self.sex == "female" and bool(
            _PREGNANT.search(door) or any("hcg" in fold(" ".join(f.heads)) and "positive" in f.text for f in charted)
        )
        self._numbers: dict[str, float | None] = {}

    @cached_property
    def groups(self) -> tuple[str, ...]:
        named = {"pregnant": self.pregnant, "infant": self.age < 1, "child": self.age < 12, self.sex or "": self.sex}
        return tuple(name for name, belongs in named.items() if belongs)

    # --- what the chart holds ----------------------------------------------------------------------------------

    @cached_property
    def _entries(self) -> tuple[tuple[Fact, Normal], ...]:
        """Charted facts with their entry in the table."""
        return tuple((fact, entry) for fact in self.facts if (entry := normal_of(fact.heads)))

    @cached_property
    def _held(self) -> frozenset[str]:
        return frozenset(entry.heading for _, entry in self._entries)

    @cached_property
    def _same(self) -> frozenset[str]:
        return frozenset(entry.same for _, entry in self._entries if entry.same)

    @cached_property
    def _tokens(self) -> _Tokens:
        return frozenset().union(*map(_about, self.facts))

    @cached_property
    def _systems(self) -> frozenset[str]:
        return frozenset(fact.heads[0] for fact in self.facts if fact.heads)

    @cached_property
    def _summarized(self) -> frozenset[str]:
        """Examinations that the chart has as a whole, and specimens in which it has something abnormal."""
        whole = {
            fact.heads[0]
            for fact in self.facts
            if fact.heads
            and (fact.section is Section.EXAMINATION or fact.heads[0] in _FLUIDS)
            and (len(fact.heads) == 1 or _general(fact))
        }
        ill = {fact.heads[0] for fact, entry in self._entries if entry.system in _FLUIDS and self.abnormal(fact, entry)}
        found = whole | ill
        return frozenset(found | (_CSF if found & _CSF else frozenset()))

    def lacks(self, entry: Normal) -> bool:
        """Whether the chart says nothing about an entry, so that it can be completed."""
        if not entry.applies(self.age, self.sex, pregnant=self.pregnant) or entry.heading in self._held:
            return False
        if entry.same in self._same or _about(_template(entry)) & self._tokens:
            return False
        if entry.general or (len(levels(entry.heading)) == 1 and entry.examination):
            return entry.system not in self._systems
        return entry.apart or entry.system not in self._summarized

    def abnormal_in_region(self, entry: Normal) -> tuple[Fact, ...]:
        """Charted images of the entry's region that show something."""
        if not entry.region:
            return ()
        return tuple(f for f, other in self._entries if other.region == entry.region and self.abnormal(f, other))

    def abnormal(self, fact: Fact, entry: Normal) -> bool:
        """Whether a charted result is outside its normal range, or worded unlike a normal one."""
        spread = entry.spread(self.groups)
        number = re.match(r"\s*[<>]?\s*(\d[\d,]*(?:\.\d+)?)", fact.text)
        if spread and number:
            return not spread.low <= float(number[1].replace(",", "")) <= spread.high
        return fact.text not in entry.forms(self.groups) and not _reads_normal(fact.text)

    # --- what is added -----------------------------------------------------------------------------------------

    def fact(self, entry: Normal) -> Fact:
        # Items of one panel have the same heading: the choice depends on the panel alone.
        heading = _chosen(entry.heads, random.Random(f"{self._id}|{entry.system}"))
        return _as_fact(levels(heading), self._text(entry))

    def _text(self, entry: Normal) -> str:
        linked = LINKED_WORDS.get(entry.heading)
        said = linked(self) if linked else None
        if said is not None:
            return said
        form = _chosen(entry.forms(self.groups), self._random(entry, "form"))
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
        change = {"standing": (-4, 3), "other_arm": (-4, -2), "repeat": (-2, -1)}.get(name)
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
            drawn = _drawn(spread, self._random(entry, "number"))
            found = linked(self, drawn) if linked else None
            known = self._numbers[entry.heading] = round(drawn if found is None else found, spread.digits)
        return known

    def _random(self, entry: Normal, what: str) -> random.Random:
        return random.Random(f"{self._id}|{entry.heading}|{what}")

    @cached_property
    def _measured(self) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for value in measured_in(self.facts):
            share = value.analyte.possible is None  # white cell kinds: only percentages can be added up
            if value.number is not None and not (share and value.unit != "%") and "Standing" not in value.path:
                found.setdefault(value.analyte.name, value.number)
        return found

    def completed(self, heading: str) -> float:
        entry = normal_of(levels(heading))
        assert entry is not None
        return self.number(entry)

    def charted(self, analyte: str) -> float | None:
        return self._measured.get(analyte)

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


_CLAUSES = re.compile(r"[;,.:]\s+|\s+and\s+(?=no\b|not\b|without\b)")
_NORMAL_CLAUSE = re.compile(
    r"^(?:no|not|none|normal\w*|clear|without|negative|soft(?! tissue)|free|intact|unremarkable|supple|undetectable)\b"
    r"|\b(?<!upper limit of )(?<!lower limit of )normal(?:ly)?\b"
    r"|\bnot (?:detected|dilated|enlarged|raised|tender|widened|seen)\b"
    r"|\bcompressible\b|^ejection fraction [56]\d%|\bregular\b|\b(?:open|patent|smooth)$",
    re.IGNORECASE,
)


def _reads_normal(text: str) -> bool:
    """Whether every clause of a result says that something is normal or absent."""
    clauses = [clause for clause in _CLAUSES.split(text.strip(" .")) if clause]
    return all(_NORMAL_CLAUSE.search(clause) for clause in clauses)


_PREGNANT = re.compile(r"\b(?<!not )pregnant\b|\bweeks? (?:of )?(?:pregnan|gestation)", re.IGNORECASE)
_PLACE = re.compile(r"\{(\w*)\}")
_CSF = frozenset({"Lumbar Puncture", "Cerebrospinal Fluid"})
_SUMMARIES = frozenset({"findings", "general"})


def _general(fact: Fact) -> bool:
    return fact.heads[-1].lower() in _SUMMARIES


def _chosen(weights: Mapping[str, int], draw: random.Random) -> str:
    return draw.choices(tuple(weights), tuple(weights.values()))[0]


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
