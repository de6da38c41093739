"""Values that are impossible for the patient, or that other values contradict: gaps, indices, gases, vital signs."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from agentclinic.cases.model import Fact, Section
from agentclinic.cases.values import names_a_unit, table
from agentclinic.lint.chart import Chart, Problem, error, warning
from agentclinic.vocabulary.text import fold


def check_units(chart: Chart) -> Iterator[Problem]:
    """Every known analyte has a unit in which it is measured."""
    for value in chart.measured:
        if value.unit is not None:
            continue
        usual = ", ".join(value.analyte.units)
        if names_a_unit(value.rest):
            message = f"{value.text!r}: {value.analyte.name} is not measured in this unit ({usual})"
            yield error("unit_wrong", value.path, message)
        else:
            yield error("unit_missing", value.path, f"{value.text!r} has no unit; write one of {usual}")


def check_possible(chart: Chart) -> Iterator[Problem]:
    """No value is beyond what a living patient can have."""
    for value in chart.measured:
        limits, number = value.analyte.possible, value.number
        if limits is None and value.unit == "%":
            limits = (0, 100)
        if limits is None or number is None:
            continue
        low, high = limits
        if (number < low and value.limit != "<") or (number > high and value.limit != ">"):
            message = f"{value.analyte.name} is between {low:g} and {high:g} {next(iter(value.analyte.units))}".rstrip()
            yield error("impossible_value", value.path, f"{value.text!r}: {message}")


def check_age_bands(chart: Chart) -> Iterator[Problem]:
    """Children have values of their age, and adults do not have an infant's."""
    if chart.age is None:
        return
    numbers = [(m.analyte.name, m.path, m.value) for m in chart.measured if m.exact and "Standing" not in m.path]
    numbers += [("systolic", p.path, p.systolic) for p in chart.pressures if "Standing" not in p.path]
    bands = table("vitals_by_age")
    band = next((b for b in bands["bands"] if b["from"] <= chart.age < b["to"]), None)
    if band:
        for name, path, number in numbers:
            low, high = band.get(name, (float("-inf"), float("inf")))
            # Kidney disease raises creatinine in a child as well, but then urea nitrogen is raised too.
            ill = name == "creatinine" and (chart.first("urea_nitrogen") or 0) > 20
            if not low <= number <= high and not ill:
                message = f"{name} {number:g} at age {chart.age:.2g}: expected {low:g}-{high:g}"
                yield warning("value_for_another_age", path, message)
    elif chart.adult and chart.case.annotations.get("acuity") != "emergent":
        infant = bands["infant_normal"]
        like = {n for n, _, v in numbers if n in infant and infant[n][0] <= v <= infant[n][1]}
        if like == set(infant):
            path = "Physical_Examination_Findings/Vital_Signs"
            yield warning("value_for_another_age", path, "vital signs of an infant")


_CELSIUS = re.compile(r"((?:-|(?<!\d))\d+(?:\.\d+)?)\s*(?:°|º|degrees? )?\s*C(?:elsius)?\b")
_FAHRENHEIT = re.compile(r"((?:-|(?<!\d))\d+(?:\.\d+)?)\s*(?:°|º|degrees? )?\s*F(?:ahrenheit)?\b")


def check_temperature(chart: Chart) -> Iterator[Problem]:
    """Temperatures have a unit, are possible, and agree if both scales are given."""
    for fact in chart.facts_of(Section.VITALS, Section.EXAMINATION):
        if not fact.heads or "temperature" not in fold(fact.heads[-1]):
            continue
        text = unicodedata.normalize("NFKC", fact.text)  # ℃ is one character
        celsius, fahrenheit = _CELSIUS.search(text), _FAHRENHEIT.search(text)
        if not celsius and not fahrenheit:
            if re.match(r"\s*\d", fact.text):
                yield error("unit_missing", fact.path, f"{fact.text!r}: neither °C nor °F")
            continue
        degrees = float(celsius[1]) if celsius else (float(fahrenheit[1]) - 32) / 1.8 if fahrenheit else 0.0
        if not 20 <= degrees <= 44:
            yield error("impossible_value", fact.path, f"{fact.text!r}: {degrees:.1f} °C is not a body temperature")
        if celsius and fahrenheit:
            expected = degrees * 1.8 + 32
            # Rounding to whole degrees Fahrenheit is off by at most half a degree, tenths of a degree Celsius by 0.09.
            slack = 0.15 if "." in fahrenheit[1] else 0.6
            if abs(expected - float(fahrenheit[1])) > slack:
                yield error("scales_disagree", fact.path, f"{fact.text!r}: {degrees:g} °C is {expected:.1f} °F")


def check_blood_pressure(chart: Chart) -> Iterator[Problem]:
    for pressure in chart.pressures:
        if pressure.systolic <= pressure.diastolic:
            yield error("pressure_reversed", pressure.path, f"{pressure.text!r}: systolic is not above diastolic")
        elif pressure.systolic > 310 or pressure.diastolic < 10 or pressure.diastolic > 200:
            yield error("impossible_value", pressure.path, f"{pressure.text!r}: not a blood pressure")


_GAP_ACIDOSIS = re.compile(
    r"acidosis|ketoacidosis|toxic alcohol|methanol|ethylene glycol|salicylate poison|salicylate tox|uremi|uraemi"
    r"|kussmaul"
)


def check_anion_gap(chart: Chart) -> Iterator[Problem]:
    """Sodium minus chloride and bicarbonate is 4 to 20 unless an acid explains more."""
    for sodium, chloride, bicarbonate in chart.panels("sodium", "chloride", "bicarbonate"):
        gap = sodium.value - chloride.value - bicarbonate.value
        acids = (
            (chart.first("lactate") or 0) > 4
            or (chart.first("beta_hydroxybutyrate") or 0) > 2
            or (chart.first("urea_nitrogen") or 0) > 60
            or _GAP_ACIDOSIS.search(chart.about)
        )
        # Each g/dL of missing albumin lowers the gap by 2.5 mmol/L.
        low = 4 - 2.5 * max(0.0, 4 - (chart.first("albumin") or 4))
        if (gap > 20 and not acids) or gap < low:
            yield warning("anion_gap", sodium.panel, f"anion gap {gap:.0f} mmol/L, which nothing in the case explains")


class _Formula(NamedTuple):
    """How other values of a panel determine one."""

    of: str
    code: str
    parts: tuple[str, ...]
    expected: Callable[..., float]
    within: float
    """Accepted deviation: below 1 a share of the expected value, otherwise absolute."""
    report: Callable[[str, str, str], Problem] = error


_FORMULAS = (
    _Formula("hematocrit", "hematocrit_ratio", ("hemoglobin",), lambda hb: 3 * hb, 0.4 / 3),
    # 8%: rounding of three values, and analyzers that measure rather than calculate.
    _Formula("mcv", "red_cell_index", ("hematocrit", "red_cells"), lambda hct, cells: 10 * hct / cells, 0.08),
    _Formula("mch", "red_cell_index", ("hemoglobin", "red_cells"), lambda hb, cells: 10 * hb / cells, 0.08),
    _Formula("mchc", "red_cell_index", ("hemoglobin", "hematocrit"), lambda hb, hct: 100 * hb / hct, 0.06),
    _Formula("transferrin_saturation", "transferrin_saturation", ("iron", "tibc"), lambda iron, of: 100 * iron / of, 2),
    _Formula(
        "ldl",
        "cholesterol",
        ("total_cholesterol", "hdl", "triglycerides"),
        # Friedewald's formula does not hold from 400 mg/dL on.
        lambda total, hdl, fat: total - hdl - fat / 5 if fat < 400 else math.nan,
        15,
        warning,
    ),
)


def check_formulas(chart: Chart) -> Iterator[Problem]:
    """Values that follow from others in their panel are about what the formula gives."""
    for of, code, parts, formula, within, report in _FORMULAS:
        for given, *others in chart.panels(of, *parts):
            expected = formula(*(other.value for other in others))
            if abs(given.value - expected) > (within * expected if within < 1 else within):
                yield report(code, given.path, f"{of} {given.value:g}, but {expected:.3g} from {', '.join(parts)}")


def check_white_cells(chart: Chart) -> Iterator[Problem]:
    """The parts of a differential count add up to no more than 100%."""
    kinds = ("neutrophils", "lymphocytes", "monocytes", "eosinophils", "basophils", "bands")
    totals: dict[str, float] = {}
    for value in chart.measured:
        if value.analyte.name in kinds and value.unit == "%" and value.exact:
            totals[value.panel] = totals.get(value.panel, 0) + value.raw
    for panel, total in totals.items():
        if total > 101:
            yield error("differential_count", panel, f"the white cell kinds add up to {total:g} %")


def check_blood_gas(chart: Chart) -> Iterator[Problem]:
    """The pH follows from pCO2 and bicarbonate, gas and serum bicarbonate agree, and oxygen is possible on room air."""
    for ph, pco2, bicarbonate in chart.panels("ph", "pco2", "bicarbonate"):
        expected = 6.1 + math.log10(bicarbonate.value / (0.0307 * pco2.value))
        # Henderson-Hasselbalch. Rounding bicarbonate and pCO2 to whole numbers moves a low pH by 0.02 to 0.03.
        slack = 0.04 + 0.217 * (0.5 / bicarbonate.value + 0.5 / pco2.value)
        if abs(expected - ph.value) > slack:
            yield error("blood_gas", ph.path, f"pH {ph.value:g}, but pCO2 and HCO3 give {expected:.2f}")
    found = chart.values("bicarbonate")
    gases = [value for value in found if re.search(r"gas|abg|vbg", fold(value.panel))]
    serum = [value for value in found if value not in gases]
    if gases and serum and abs(gases[0].value - serum[0].value) > 4:
        message = f"gas {gases[0].value:g}, serum {serum[0].value:g} mmol/L"
        yield warning("bicarbonate_disagrees", gases[0].path, message)
    for po2, pco2 in chart.panels("po2", "pco2"):
        if not re.search(r"room air|fio2 (?:0\.21|21)", _panel_text(chart, po2.panel)):
            continue
        if po2.value > 150 - pco2.value / 0.8 + 10:
            yield error("oxygen_impossible", po2.path, f"pO2 {po2.value:g} mmHg is more than room air allows")
        saturation = chart.first("oxygen_saturation")
        poisoned = re.search(r"carbon monoxide|methemoglobin|carboxyhemoglobin", chart.about)
        curve = po2.value**3 + 150 * po2.value
        expected = 100 * curve / (curve + 23400)  # Severinghaus
        if "arter" in fold(po2.panel) and saturation and not poisoned and abs(expected - saturation) > 7:
            message = f"pO2 {po2.value:g} mmHg goes with {expected:.0f} %, not {saturation:g} %"
            yield warning("oxygen_disagrees", po2.path, message)


def _panel_text(chart: Chart, panel: str) -> str:
    facts = (fact for fact in chart.case.facts if fact.path.startswith(panel))
    return " ".join(fold(" ".join((*fact.heads[-1:], fact.text))) for fact in facts).replace(": ", " ")


_ECG = re.compile(r"\b(?:ecg|ekg|electrocardiogram|electrocardiography|twelve lead|12 lead)\b")
_RATE = re.compile(
    r"(?:\b(?:at|rate(?: of)?|about|around)\s+)(?:about |around )?(\d{2,3})\b(?!\s*(?:ms|mm|%|years|hours|days))"
    r"|\b(\d{2,3})\s*(?:bpm|beats|/\s*min|per minute)",
    re.IGNORECASE,
)


def _electrocardiograms(chart: Chart) -> list[Fact]:
    return [fact for fact in chart.facts_of(Section.TESTS) if fact.heads and _ECG.search(fold(fact.heads[0]))]


def check_heart_rates(chart: Chart) -> Iterator[Problem]:
    """The electrocardiogram has the heart rate of the vital signs."""
    counted = [m.value for m in chart.values("heart_rate") if m.exact]
    for fact in _electrocardiograms(chart) if counted else ():
        rates = [float(a or b) for a, b in _RATE.findall(fact.text)]
        if rates and not any(abs(rate - pulse) <= 5 for rate in rates for pulse in counted):
            yield warning("heart_rates_disagree", fact.path, f"{fact.text[:60]!r}, but heart rate {counted[0]:g}")


_SINUS = re.compile(r"\bsinus (rhythm|tachycardia|bradycardia)\b[^.;,]{0,200}?\b(\d{2,3})\b", re.IGNORECASE)


def check_rhythm_name(chart: Chart) -> Iterator[Problem]:
    """In adults sinus rhythm is 50 to 100 beats a minute, tachycardia is faster, and bradycardia is below 60."""
    limits = {"rhythm": (50, 100), "tachycardia": (100, 250), "bradycardia": (15, 60)}
    for fact in _electrocardiograms(chart) if chart.adult else ():
        if found := _SINUS.search(fact.text):
            least, most = limits[found[1].lower()]
            if not least <= float(found[2]) <= most:
                yield warning("rhythm_name", fact.path, f"{found[0]!r}: the name does not fit the rate")


def check_sums(chart: Chart) -> Iterator[Problem]:
    """Parts are not more than the whole."""
    total, direct, indirect = (chart.first(f"{n}_bilirubin") for n in ("total", "direct", "indirect"))
    if total is not None and direct is not None:
        path = chart.values("total_bilirubin")[0].path
        if direct > total:
            yield error("bilirubin", path, f"direct bilirubin {direct:g} is more than the total {total:g}")
        elif indirect is not None and abs(direct + indirect - total) > 0.2 + 0.03 * total:
            yield error("bilirubin", path, f"direct {direct:g} and indirect {indirect:g} are not {total:g}")
    albumin, protein = chart.first("albumin"), chart.first("total_protein")
    if albumin is not None and protein is not None and albumin > protein:
        path = chart.values("albumin")[0].path
        yield error("albumin", path, f"albumin {albumin:g} is more than total protein {protein:g}")


def check_clotting(chart: Chart) -> Iterator[Problem]:
    """INR and prothrombin time are prolonged together."""
    for inr, time in chart.panels("inr", "prothrombin_time"):
        if (inr.value >= 1.4 and time.value < 13.5) or (inr.value <= 1.1 and time.value > 15.5):
            yield error("clotting", inr.path, f"INR {inr.value:g} with a prothrombin time of {time.value:g} s")


def check_osmolality(chart: Chart) -> Iterator[Problem]:
    """Measured osmolality is 2 Na + glucose / 18 + BUN / 2.8, and more only with a poison."""
    parts = [chart.first(name) for name in ("osmolality", "sodium", "glucose", "urea_nitrogen")]
    if None in parts:
        return
    measured, sodium, glucose, nitrogen = (part or 0.0 for part in parts)
    expected = 2 * sodium + glucose / 18 + nitrogen / 2.8
    poison = re.search(r"alcohol|ethanol|methanol|glycol|mannitol", chart.about)
    if measured < expected - 10 or (measured > expected + 15 and not poison):
        path = chart.values("osmolality")[0].path
        yield warning("osmolality", path, f"measured {measured:g}, calculated {expected:.0f} mOsm/kg")


_FLOW = re.compile(r"(fev1 fvc ratio|fev1 fvc|ratio|fev1|fvc)\b ?(\w*)")


def check_spirometry(chart: Chart) -> Iterator[Problem]:
    """FEV1 divided by FVC is the stated ratio."""
    blows: dict[tuple[str, str], dict[str, tuple[float, str]]] = {}
    for fact in chart.facts_of(Section.TESTS):
        name = _FLOW.fullmatch(" ".join(fold(fact.heads[-1]).split()[:4])) if fact.heads else None
        number = re.match(r"\s*(\d+(?:\.\d+)?)\s*(L\b|%)?", fact.text)
        if not name or not number:
            continue
        kind = name[1] if name[1] in ("fev1", "fvc") else "ratio"
        value = float(number[1])
        if kind == "ratio":
            value = value / 100 if number[2] == "%" else value
        elif number[2] != "L":
            continue  # percent of predicted
        # "before" and "after" a bronchodilator are two blows in one panel.
        blows.setdefault((fact.path.rpartition("/")[0], name[2]), {})[kind] = (value, fact.path)
    for blow in (blow for blow in blows.values() if len(blow) == 3):
        expected, (ratio, path) = blow["fev1"][0] / blow["fvc"][0], blow["ratio"]
        if abs(expected - ratio) > 0.02:
            yield error("spirometry", path, f"ratio {ratio:.2f}, FEV1 / FVC is {expected:.2f}")


_STATED = re.compile(
    r"\(\s*(?:ref(?:erence)?(?: range)?|normal(?: range)?)[: ]*"
    r"(?:(?P<low>\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(?P<high>\d+(?:\.\d+)?)|[<≤]\s*(?P<below>\d+(?:\.\d+)?))"
)
_FLAG = re.compile(r"\b(normal|high|elevated|raised|low|reduced|decreased)\b", re.IGNORECASE)


def beyond_own_range(text: str) -> str:
    """`high` or `low` by the range stated with a result; empty within the range or without one."""
    number = re.match(r"\s*(\d+(?:,\d{3})*(?:\.\d+)?)\b", text)
    stated = _STATED.search(text)
    if not number or not stated:
        return ""
    value = float(number[1].replace(",", ""))
    low, high = float(stated["low"] or 0), float(stated["high"] or stated["below"])
    return "low" if value < low else "high" if value > high else ""


def check_flags(chart: Chart) -> Iterator[Problem]:
    """A value called high, low or normal is just that by its own reference range."""
    for fact in chart.facts_of(Section.TESTS):
        if not _STATED.search(fact.text) or not re.match(r"\s*\d", fact.text):
            continue
        # Only the words next to the value: "3 U/mL (ref <10), total IgA normal" is about something else.
        nearby = re.split(r"[,;]\s", _STATED.sub("(", fact.text), maxsplit=1)[0]
        flag = _FLAG.search(nearby)
        real = beyond_own_range(fact.text) or "normal"
        if flag and _MEANS.get(flag[1].lower(), flag[1].lower()) != real:
            yield error("flag_contradicts_range", fact.path, f"{fact.text!r} is {real} by its own range")


_MEANS = {"elevated": "high", "raised": "high", "reduced": "low", "decreased": "low"}
