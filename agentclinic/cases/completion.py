"""Complete a chart: plausible normal results for every examination and test that it does not hold.

A value is drawn from the table of normal results (`agentclinic.vocabulary.normals`) with a seed made of the case and the
test, so it is the same whenever it is asked for. It depends on age and sex, and agrees with the chart where values are
linked (red-cell indices, blood gases, osmolality, ...). What the chart says in other words, or would contradict, is not
completed.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from agentclinic.cases.matcher.orders import charted_as
from agentclinic.cases.model import PATIENT_SECTIONS, Case, Fact, Section, age_in_years, sex
from agentclinic.cases.values import analyte_of, measured_in, pressures_in
from agentclinic.vocabulary.denial import finds_nothing
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
    told = tuple(fact for fact in case.facts if fact.section in PATIENT_SECTIONS)
    return _completion(case.id, f"{case.door.demographics}. {case.door.objective}", told, case.exam_facts)


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
        self._charted = charted
        self.pregnant = self.sex == "female" and bool(
            _PREGNANT.search(door) or any("hcg" in fold(" ".join(f.heads)) and "positive" in f.text for f in charted)
        )
        self._numbers: dict[str, float | None] = {}

    @cached_property
    def groups(self) -> tuple[str, ...]:
        young = ("infant",) if self.age < 1 else ()
        young += ("child",) if self.age < 12 else ()
        return (*(("pregnant",) if self.pregnant else ()), *young, *((self.sex,) if self.sex else ()))

    # --- what the chart holds ----------------------------------------------------------------------------------

    @cached_property
    def _entries(self) -> tuple[tuple[Fact, Normal], ...]:
        """Charted facts with their entry in the table."""
        return tuple((fact, entry) for fact in self._charted if (entry := normal_of(fact.heads)))

    @cached_property
    def _held(self) -> frozenset[str]:
        return frozenset(entry.heading for _, entry in self._entries)

    @cached_property
    def _same(self) -> frozenset[str]:
        return frozenset(entry.same for _, entry in self._entries if entry.same)

    @cached_property
    def _tokens(self) -> _Tokens:
        return frozenset().union(*map(_about, self._charted))

    @cached_property
    def _systems(self) -> frozenset[str]:
        return frozenset(fact.heads[0] for fact in self._charted if fact.heads)

    @cached_property
    def _summarized(self) -> frozenset[str]:
        """Examinations that the chart has as a whole, and specimens in which it has something abnormal."""
        whole = {
            fact.heads[0]
            for fact in self._charted
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
        if entry.general or len(levels(entry.heading)) == 1 and entry.examination:
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
        return fact.text not in entry.forms(self.groups) and not finds_nothing(fact.text)

    # --- what is added -----------------------------------------------------------------------------------------

    def fact(self, entry: Normal) -> Fact:
        # Items of one panel have the same heading: the choice depends on the panel alone.
        heading = _chosen(entry.heads, random.Random(f"{self._id}|{entry.system}"))
        return _as_fact(levels(heading), self._text(entry))

    def _text(self, entry: Normal) -> str:
        linked = _WORDS.get(entry.heading)
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
        systolic, diastolic = self._pressure
        draw = random.Random(f"{self._id}|{name}")
        change = {"standing": (-4, 3), "other_arm": (-4, -2), "repeat": (-2, -1)}.get(name)
        if change:
            systolic, diastolic = (
                round(v + c + draw.gauss(0, 2)) for v, c in zip((systolic, diastolic), change, strict=True)
            )
        return f"{systolic:.0f}/{diastolic:.0f}"

    @property
    def fast(self) -> bool:
        most = 160 if self.age < 1 else 130 if self.age < 6 else 110 if self.age < 12 else 100
        return (self.value("heart_rate") or 0) > most

    @cached_property
    def _pressure(self) -> tuple[float, float]:
        found = pressures_in(fact for fact in self._charted if fact.heads[-1:] == ("Blood Pressure",))
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
            linked = _NUMBERS.get(entry.heading)
            drawn = _drawn(spread, self._random(entry, "number"))
            found = linked(self, drawn) if linked else None
            known = self._numbers[entry.heading] = round(drawn if found is None else found, spread.digits)
        return known

    def _random(self, entry: Normal, what: str) -> random.Random:
        return random.Random(f"{self._id}|{entry.heading}|{what}")

    @cached_property
    def _measured(self) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for value in measured_in(self._charted):
            share = value.analyte.possible is None  # white cell kinds: only percentages can be added up
            if value.number is not None and not (share and value.unit != "%") and "Standing" not in value.path:
                found.setdefault(value.analyte.name, value.number)
        return found

    def charted(self, analyte: str) -> float | None:
        return self._measured.get(analyte)

    def value(self, analyte: str) -> float | None:
        """A charted value, or else the completed one."""
        found = self.charted(analyte)
        if found is None and (entry := _measuring().get(analyte)) and entry.spread(self.groups):
            return self.number(entry)
        return found

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether the patient's own history says so."""
        return any(
            pattern.search(fact.text)
            for fact in self._told
            if not fact.denied and fact.section in (Section.PAST, Section.DRUGS, Section.HISTORY)
        )

    def stated(self, pattern: re.Pattern[str]) -> float | None:
        """A number stated anywhere in the examination."""
        found = next((m for fact in self._charted if (m := pattern.search(fact.text))), None)
        return float(found[1]) if found else None


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
        if analyte and (entry.fields.get("number") or entry.heading in _NUMBERS):
            found.setdefault(analyte.name, entry)
    return found


# --- values that follow from others ------------------------------------------------------------------------------

_Link = Callable[[_Patient, float], float | None]
"""A completed number from the chart and the one drawn; None leaves it as drawn."""


def _hemoglobin(patient: _Patient, drawn: float) -> float | None:
    volume = patient.charted("hematocrit")
    return volume / 2.98 if volume else None


def _hematocrit(patient: _Patient, drawn: float) -> float | None:
    hemoglobin = patient.value("hemoglobin")
    return 2.98 * hemoglobin if hemoglobin else None


def _red_cells(patient: _Patient, drawn: float) -> float | None:
    volume, size = patient.value("hematocrit"), patient.value("mcv")
    return 10 * volume / size if volume and size else None


def _ratio(above: str, below: str, factor: float) -> _Link:
    def link(patient: _Patient, drawn: float) -> float | None:
        top, bottom = patient.value(above), patient.value(below)
        return factor * top / bottom if top and bottom else None

    return link


def _width(patient: _Patient, drawn: float) -> float | None:
    size = patient.charted("mcv")
    return drawn + 0.25 * max(0, 80 - size) if size and patient.age >= 12 else None


def _neutrophils(patient: _Patient, drawn: float) -> float:
    count, lymphocytes = patient.charted("white_cells") or 7, patient.charted("lymphocytes")
    share = drawn + 2.2 * max(0, count - 9.5) - 4 * max(0, 4.5 - count)
    if lymphocytes is not None:
        return max(0, 92 - lymphocytes)
    return min(share, 86)


def _lymphocytes(patient: _Patient, drawn: float) -> float:
    return max(4, 91 - (patient.value("neutrophils") or 60))


def _eosinophils(patient: _Patient, drawn: float) -> float:
    return min(drawn, max(0, 97 - (patient.value("neutrophils") or 60) - (patient.value("lymphocytes") or 30)))


def _monocytes(patient: _Patient, drawn: float) -> float:
    others = sum(patient.value(kind) or 0 for kind in ("neutrophils", "lymphocytes", "eosinophils"))
    return max(0, min(drawn, 99 - others))


def _filtration(patient: _Patient, drawn: float) -> float | None:
    """CKD-EPI 2021, for children Schwartz with the usual height of the age."""
    creatinine = patient.value("creatinine")
    if not creatinine:
        return None
    if patient.age < 18:
        return min(140, 0.413 * (77 + 6 * patient.age) / creatinine)
    woman = patient.sex == "female"
    usual, power = (0.7, -0.241) if woman else (0.9, -0.302)
    share = creatinine / usual
    found = 142 * min(share, 1) ** power * max(share, 1) ** -1.2 * 0.9938**patient.age
    return found * (1.012 if woman else 1)


def _gap(patient: _Patient, drawn: float) -> float | None:
    sodium, chloride, base = (patient.value(name) for name in ("sodium", "chloride", "bicarbonate"))
    return sodium - chloride - base if sodium and chloride and base else None


def _ionized(patient: _Patient, drawn: float) -> float | None:
    calcium = patient.charted("calcium")
    corrected = calcium + 0.8 * (4.2 - (patient.charted("albumin") or 4.2)) if calcium else None
    return drawn + 0.12 * (corrected - 9.4) if corrected else None


def _osmolality(patient: _Patient, drawn: float) -> float | None:
    sodium, glucose, nitrogen = (patient.value(name) for name in ("sodium", "glucose", "urea_nitrogen"))
    if not sodium or not glucose or not nitrogen:
        return None
    return 2 * sodium + glucose / 18 + nitrogen / 2.8 + (drawn - 287) / 2


def _gas_base(patient: _Patient, drawn: float) -> float | None:
    serum = patient.charted("bicarbonate")
    return serum + (drawn - 24) / 2 if serum else None


def _base_of(patient: _Patient) -> float:
    entry = normal_of(("Arterial Blood Gas", "HCO3"))
    assert entry is not None
    return patient.number(entry)


def _carbon_dioxide(patient: _Patient, drawn: float) -> float:
    """Compensation: Winter's formula below, half a change above."""
    base = _base_of(patient)
    return 1.5 * base + 8 if base < 21 else drawn + 0.7 * max(0, base - 27)


def _acidity(gas: str) -> _Link:
    def link(patient: _Patient, drawn: float) -> float | None:
        base, carbon = normal_of((gas, "HCO3")), normal_of((gas, "pCO2"))
        if not base or not carbon:
            return None
        return 6.1 + math.log10(patient.number(base) / (0.0307 * patient.number(carbon)))

    return link


def _venous(patient: _Patient, drawn: float) -> float:
    entry = normal_of(("Arterial Blood Gas", "pCO2"))
    assert entry is not None
    return (patient.charted("pco2") or patient.number(entry)) + 4


_OXYGEN = ((97, 93), (96, 84), (95, 78), (94, 73), (93, 69), (92, 66), (91, 63), (90, 60), (88, 56), (85, 51), (80, 46))
"""Saturation in percent, and the partial pressure in mmHg that goes with it."""


def _oxygen(patient: _Patient, drawn: float) -> float | None:
    saturation = patient.charted("oxygen_saturation")
    if saturation is None or saturation >= 97:
        return None
    return next((pressure for least, pressure in _OXYGEN if saturation >= least), 42) + (drawn - 93) / 4


def _direct(patient: _Patient, drawn: float) -> float | None:
    total = patient.value("total_bilirubin")
    if not total:
        return None
    return max(0.1, min(0.3, 0.3 * total)) if total <= 1.2 else 0.3 * total


def _indirect(patient: _Patient, drawn: float) -> float | None:
    total, direct = patient.value("total_bilirubin"), patient.value("direct_bilirubin")
    return max(0.1, total - direct) if total and direct else None


def _protein(patient: _Patient, drawn: float) -> float | None:
    albumin = patient.charted("albumin")
    return albumin + 2.9 + (drawn - 7.1) / 2 if albumin else None


def _sedimentation(patient: _Patient, drawn: float) -> float | None:
    protein = patient.charted("crp")
    return 18 + 0.35 * protein if protein and protein > 10 else None


def _reactive(patient: _Patient, drawn: float) -> float | None:
    rate = patient.charted("esr")
    return (rate - 20) / 2 if rate and rate > 30 else None


def _procalcitonin(patient: _Patient, drawn: float) -> float | None:
    protein = patient.charted("crp")
    return drawn + 0.002 * (protein - 40) if protein and protein > 40 else None


def _with_inflammation(patient: _Patient, drawn: float) -> float | None:
    protein = patient.charted("crp")
    return drawn * (1 + protein / 120) if protein and protein > 20 else None


def _dimer(patient: _Patient, drawn: float) -> float | None:
    protein = patient.charted("crp")
    return 460 + 4 * protein if protein and protein > 40 else None


def _iron_share(patient: _Patient, drawn: float) -> float | None:
    iron, capacity = patient.value("iron"), patient.value("tibc")
    return 100 * iron / capacity if iron and capacity else None


def _low_density(patient: _Patient, drawn: float) -> float | None:
    total, high, fat = (patient.value(name) for name in ("total_cholesterol", "hdl", "triglycerides"))
    return max(30, total - high - fat / 5) if total and high and fat else None


def _cholesterol(patient: _Patient, drawn: float) -> float | None:
    low = patient.charted("ldl")
    high, fat = patient.value("hdl"), patient.value("triglycerides")
    return low + high + fat / 5 if low and high and fat else None


def _by_tsh(low: float, high: float) -> _Link:
    """Thyroid hormone with the charted TSH: `low` if TSH is high, and the other way round."""

    def link(patient: _Patient, drawn: float) -> float | None:
        found = patient.charted("tsh")
        return None if found is None or 0.1 <= found <= 10 else high if found < 0.1 else low

    return link


def _tsh(patient: _Patient, drawn: float) -> float | None:
    hormone = patient.charted("free_t4")
    return None if hormone is None or 0.8 <= hormone <= 1.8 else 0.0 if hormone > 1.8 else 18.0


def _prothrombin(patient: _Patient, drawn: float) -> float | None:
    ratio = patient.charted("inr")
    return 12.1 * ratio if ratio and ratio > 1.1 else None


def _normalized(patient: _Patient, drawn: float) -> float | None:
    time = patient.charted("prothrombin_time")
    return time / 12.1 if time and time > 13.5 else None


_DIABETES = re.compile(r"\bdiabet|\bmetformin\b|\binsulin\b", re.IGNORECASE)


def _glycated(patient: _Patient, drawn: float) -> float | None:
    glucose = patient.charted("glucose") or 95
    if patient.says(_DIABETES):
        return min(9.5, max(6.6, 6.4 + (glucose - 100) / 60))
    return drawn + 0.004 * (min(glucose, 150) - 95) if glucose > 100 else None


def _fingerstick(patient: _Patient, drawn: float) -> float | None:
    glucose = patient.charted("glucose")
    return glucose + (drawn - 98) / 4 if glucose else None


def _spinal_glucose(patient: _Patient, drawn: float) -> float | None:
    glucose = patient.charted("glucose")
    return 0.63 * glucose + (drawn - 62) / 2 if glucose else None


_BMI = re.compile(r"body mass index (\d+(?:\.\d+)?)", re.IGNORECASE)
_WEIGHT = re.compile(r"(?:weight |cm and )(\d+(?:\.\d+)?) kg", re.IGNORECASE)
_HEIGHT = re.compile(r"(\d{2,3}) cm and \d", re.IGNORECASE)


def _height(patient: _Patient, drawn: float) -> float | None:
    return patient.stated(_HEIGHT) or (min(drawn, 77 + 6 * patient.age) if patient.age < 16 else None)


def _weight(patient: _Patient, drawn: float) -> float | None:
    stated, index = patient.stated(_WEIGHT), patient.stated(_BMI)
    if stated:
        return stated
    if patient.age < 12:
        return 2 * (patient.age + 4) if patient.age >= 1 else 3.5 + 6 * patient.age
    height = normal_of(("Vital Signs", "Height"))
    assert height is not None
    return index * (patient.number(height) / 100) ** 2 if index else None


def _body_mass(patient: _Patient, drawn: float) -> float | None:
    index, height, weight = (
        patient.stated(_BMI),
        *map(normal_of, (("Vital Signs", "Height"), ("Vital Signs", "Weight"))),
    )
    if index or not height or not weight:
        return index
    return patient.number(weight) / (patient.number(height) / 100) ** 2


_NUMBERS: Mapping[str, _Link] = {
    "Complete Blood Count / Hemoglobin": _hemoglobin,
    "Complete Blood Count / Hematocrit": _hematocrit,
    "Complete Blood Count / RBC": _red_cells,
    "Complete Blood Count / MCH": _ratio("hemoglobin", "red_cells", 10),
    "Complete Blood Count / MCHC": _ratio("hemoglobin", "hematocrit", 100),
    "Complete Blood Count / RDW": _width,
    "Complete Blood Count / Neutrophils": _neutrophils,
    "Complete Blood Count / Lymphocytes": _lymphocytes,
    "Complete Blood Count / Eosinophils": _eosinophils,
    "Complete Blood Count / Monocytes": _monocytes,
    "Basic Metabolic Panel / eGFR": _filtration,
    "Basic Metabolic Panel / Anion Gap": _gap,
    "Basic Metabolic Panel / Ionized Calcium": _ionized,
    "Serum Osmolality": _osmolality,
    "Arterial Blood Gas / HCO3": _gas_base,
    "Arterial Blood Gas / pCO2": _carbon_dioxide,
    "Arterial Blood Gas / pH": _acidity("Arterial Blood Gas"),
    "Arterial Blood Gas / pO2": _oxygen,
    "Venous Blood Gas / HCO3": _gas_base,
    "Venous Blood Gas / pCO2": _venous,
    "Venous Blood Gas / pH": _acidity("Venous Blood Gas"),
    "Capillary Blood Gas / HCO3": _gas_base,
    "Capillary Blood Gas / pCO2": _venous,
    "Capillary Blood Gas / pH": _acidity("Capillary Blood Gas"),
    "Direct Bilirubin": _direct,
    "Indirect Bilirubin": _indirect,
    "Liver Function Tests / Total Protein": _protein,
    "ESR": _sedimentation,
    "C Reactive Protein": _reactive,
    "Procalcitonin": _procalcitonin,
    "Ferritin": _with_inflammation,
    "D-dimer": _dimer,
    "Iron Studies / Transferrin Saturation": _iron_share,
    "Lipid Panel / LDL": _low_density,
    "Lipid Panel / Total Cholesterol": _cholesterol,
    "Free T4": _by_tsh(0.6, 2.6),
    "Thyroid Function Tests / Total T3": _by_tsh(72, 250),
    "TSH": _tsh,
    "Coagulation / Prothrombin Time": _prothrombin,
    "Coagulation / INR": _normalized,
    "HbA1c": _glycated,
    "Vital Signs / Blood Glucose Fingerstick": _fingerstick,
    "Lumbar Puncture / Glucose": _spinal_glucose,
    "Vital Signs / Height": _height,
    "Vital Signs / Weight": _weight,
    "Vital Signs / Body Mass Index": _body_mass,
}

_IRREGULAR = re.compile(r"\birregular", re.IGNORECASE)


def _rhythm(patient: _Patient) -> str | None:
    heard = (f for f in patient._charted if f.section is Section.EXAMINATION and f.heads[:1] == _HEART)
    if not any(_IRREGULAR.search(fact.text) for fact in heard):
        return None
    return f"Atrial fibrillation with a ventricular rate of {patient.value('heart_rate') or 88:.0f} per minute, no ST change"


_HEART = ("Cardiovascular Examination",)


def _sugar(patient: _Patient) -> str | None:
    glucose = patient.charted("glucose") or 0
    return "3+" if glucose > 300 else "1+" if glucose > 200 else None


def _ketones(patient: _Patient) -> str | None:
    return "3+" if (patient.charted("beta_hydroxybutyrate") or 0) > 2 else None


_WORDS: Mapping[str, Callable[[_Patient], str | None]] = {
    "Electrocardiogram / Findings": _rhythm,
    "Urinalysis / Glucose": _sugar,
    "Urinalysis / Ketones": _ketones,
}
