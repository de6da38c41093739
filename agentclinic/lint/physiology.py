"""Values that determine one another: gaps, indices, gases, and vital signs that must agree."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator

from agentclinic.cases.model import Section
from agentclinic.lint.chart import Chart
from agentclinic.lint.problem import Problem, error, warning
from agentclinic.vocabulary.text import fold

_CELSIUS = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:°|º|degrees? )?\s*C(?:elsius)?\b")
_FAHRENHEIT = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:°|º|degrees? )?\s*F(?:ahrenheit)?\b")


def check_temperature(chart: Chart) -> Iterator[Problem]:
    """Temperatures have a unit, both scales agree, and the body could have them."""
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
            yield error("impossible_value", fact.path, f"{fact.text!r}: no body has {degrees:.1f} °C")
        if celsius and fahrenheit:
            expected = degrees * 1.8 + 32
            # Whole degrees Fahrenheit are half a degree off at most, tenths of a degree Celsius 0.09.
            slack = 0.15 if "." in fahrenheit[1] else 0.6
            if abs(expected - float(fahrenheit[1])) > slack:
                yield error("scales_disagree", fact.path, f"{fact.text!r}: {degrees:g} °C are {expected:.1f} °F")


def check_blood_pressure(chart: Chart) -> Iterator[Problem]:
    """Systolic above diastolic, both possible."""
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
    """Sodium minus chloride and bicarbonate is 4-20 unless acid is there to explain more."""
    for sodium, chloride, bicarbonate in chart.panels("sodium", "chloride", "bicarbonate"):
        gap = sodium.value - chloride.value - bicarbonate.value
        acids = (
            (chart.first("lactate") or 0) > 4
            or (chart.first("beta_hydroxybutyrate") or 0) > 2
            or (chart.first("urea_nitrogen") or 0) > 60
            or _GAP_ACIDOSIS.search(chart.about)
        )
        # Each g/dL of missing albumin takes 2.5 mmol/L off the gap.
        low = 4 - 2.5 * max(0.0, 4 - (chart.first("albumin") or 4))
        if (gap > 20 and not acids) or gap < low:
            yield warning("anion_gap", sodium.panel, f"anion gap {gap:.0f} mmol/L, and nothing in the case explains it")


def check_red_cells(chart: Chart) -> Iterator[Problem]:
    """Hematocrit, hemoglobin, red cells and their indices fit one another."""
    for hemoglobin, hematocrit in chart.panels("hemoglobin", "hematocrit"):
        ratio = hematocrit.value / hemoglobin.value
        if not 2.6 <= ratio <= 3.4:
            yield error("hematocrit_ratio", hematocrit.path, f"hematocrit is {ratio:.2f} times hemoglobin, not about 3")
    for name, top, factor in (("mcv", "hematocrit", 10), ("mch", "hemoglobin", 10)):
        for index, upper, cells in chart.panels(name, top, "red_cells"):
            expected = factor * upper.value / cells.value
            # 8 %: rounding of three values, and analysers that measure rather than calculate.
            if abs(index.value - expected) > 0.08 * expected:
                yield error("red_cell_index", index.path, f"{name} {index.value:g}, calculated {expected:.0f}")
    for concentration, hemoglobin, hematocrit in chart.panels("mchc", "hemoglobin", "hematocrit"):
        expected = 100 * hemoglobin.value / hematocrit.value
        if abs(concentration.value - expected) > 0.06 * expected:
            yield error(
                "red_cell_index", concentration.path, f"mchc {concentration.value:g}, calculated {expected:.1f}"
            )


def check_white_cells(chart: Chart) -> Iterator[Problem]:
    """The parts of a differential count add up to no more than all."""
    parts: dict[str, float] = {}
    for value in chart.measured:
        kinds = ("neutrophils", "lymphocytes", "monocytes", "eosinophils", "basophils", "bands")
        if value.analyte.name in kinds and value.unit == "%" and value.exact:
            parts[value.panel] = parts.get(value.panel, 0) + value.raw
    for panel, total in parts.items():
        if total > 101:
            yield error("differential_count", panel, f"the white cell kinds add up to {total:g} %")


def check_blood_gas(chart: Chart) -> Iterator[Problem]:
    """PH = 6.1 + log10(HCO3 / (0.0307 · pCO2)); oxygen no more than the air holds; serum bicarbonate alike."""
    for ph, pco2, bicarbonate in chart.panels("ph", "pco2", "bicarbonate"):
        expected = 6.1 + math.log10(bicarbonate.value / (0.0307 * pco2.value))
        # 0.04: bicarbonate and pCO2 rounded to whole numbers move the pH by 0.02-0.03 when they are low.
        slack = 0.04 + 0.217 * (0.5 / bicarbonate.value + 0.5 / pco2.value)
        if abs(expected - ph.value) > slack:
            yield error(
                "blood_gas", ph.path, f"pH {ph.value:g}, but {expected:.2f} by Henderson-Hasselbalch from pCO2 and HCO3"
            )
    gases = [m for m in chart.values("bicarbonate") if _is_gas(m.panel)]
    serum = [m for m in chart.values("bicarbonate") if not _is_gas(m.panel)]
    if gases and serum and abs(gases[0].value - serum[0].value) > 4:
        yield warning(
            "bicarbonate_disagrees", gases[0].path, f"gas {gases[0].value:g}, serum {serum[0].value:g} mmol/L"
        )
    for po2, pco2 in chart.panels("po2", "pco2"):
        on_air = "room air" in _panel_text(chart, po2.panel) or re.search(
            r"fio2 (?:0\.21|21)", _panel_text(chart, po2.panel)
        )
        if on_air and po2.value > 150 - pco2.value / 0.8 + 10:
            yield error("oxygen_impossible", po2.path, f"pO2 {po2.value:g} mmHg is more than room air allows")
        saturation = chart.first("oxygen_saturation")
        arterial = "arter" in fold(po2.panel)
        poisoned = re.search(r"carbon monoxide|methemoglobin|carboxyhemoglobin", chart.about)
        if on_air and arterial and saturation and not poisoned:
            expected = _saturation(po2.value)
            if abs(expected - saturation) > 7:
                yield warning(
                    "oxygen_disagrees",
                    po2.path,
                    f"pO2 {po2.value:g} mmHg goes with {expected:.0f} %, not {saturation:g} %",
                )


def _saturation(po2: float) -> float:
    """Severinghaus' curve."""
    return 100 / (23400 / (po2**3 + 150 * po2) + 1)


def _is_gas(panel: str) -> bool:
    return bool(re.search(r"gas|abg|vbg", fold(panel)))


def _panel_text(chart: Chart, panel: str) -> str:
    return " ".join(
        fold(" ".join((*f.heads[-1:], f.text))) for f in chart.case.facts if f.path.startswith(panel)
    ).replace(": ", " ")


_ECG = re.compile(r"\b(?:ecg|ekg|electrocardiogram|electrocardiography|twelve lead|12 lead)\b")
_RATE = re.compile(
    r"(?:\b(?:at|rate(?: of)?|about|around)\s+)(?:about |around )?(\d{2,3})\b(?!\s*(?:ms|mm|%|years|hours|days))"
    r"|\b(\d{2,3})\s*(?:bpm|beats|/\s*min|per minute)",
    re.IGNORECASE,
)


def check_heart_rates(chart: Chart) -> Iterator[Problem]:
    """The electrocardiogram shows the heart rate that was counted."""
    counted = [m.value for m in chart.values("heart_rate") if m.exact]
    for fact in chart.facts_of(Section.TESTS):
        if not fact.heads or not _ECG.search(fold(fact.heads[0])) or not counted:
            continue
        rates = [float(a or b) for a, b in _RATE.findall(fact.text)]
        if rates and not any(abs(rate - pulse) <= 5 for rate in rates for pulse in counted):
            yield warning("heart_rates_disagree", fact.path, f"{fact.text[:60]!r} with a heart rate of {counted[0]:g}")


_SINUS = re.compile(r"\bsinus (rhythm|tachycardia|bradycardia)\b[^.;,]*?\b(\d{2,3})\b", re.IGNORECASE)


def check_rhythm_name(chart: Chart) -> Iterator[Problem]:
    """In adults a sinus rhythm beats 50-100 times a minute, a tachycardia more and a bradycardia less than 60."""
    if chart.age is None or chart.age < 18:
        return
    limits = {"rhythm": (50, 100), "tachycardia": (100, 250), "bradycardia": (15, 60)}
    for fact in chart.facts_of(Section.TESTS):
        found = _SINUS.search(fact.text) if fact.heads and _ECG.search(fold(fact.heads[0])) else None
        if found and not limits[found[1].lower()][0] <= float(found[2]) <= limits[found[1].lower()][1]:
            yield warning("rhythm_name", fact.path, f"{found[0]!r} is not called so")


def check_sums(chart: Chart) -> Iterator[Problem]:
    """Parts are not more than the whole, and calculated values are what their formula gives."""
    total, direct, indirect = (chart.first(f"{n}_bilirubin") for n in ("total", "direct", "indirect"))
    where = next(iter(chart.values("total_bilirubin") or chart.values("direct_bilirubin")), None)
    if where and total is not None and direct is not None:
        if direct > total:
            yield error("bilirubin", where.path, f"direct bilirubin {direct:g} is more than the total {total:g}")
        elif indirect is not None and abs(direct + indirect - total) > 0.2 + 0.03 * total:
            yield error("bilirubin", where.path, f"direct {direct:g} and indirect {indirect:g} are not {total:g}")
    albumin, protein = chart.first("albumin"), chart.first("total_protein")
    if albumin is not None and protein is not None and albumin > protein:
        path = chart.values("albumin")[0].path
        yield error("albumin", path, f"albumin {albumin:g} is more than total protein {protein:g}")
    for saturation, iron, capacity in chart.panels("transferrin_saturation", "iron", "tibc"):
        expected = 100 * iron.value / capacity.value
        if abs(saturation.value - expected) > 2:
            yield error("transferrin_saturation", saturation.path, f"iron / TIBC is {expected:.0f} %")
    for whole, ldl, hdl, fat in chart.panels("total_cholesterol", "ldl", "hdl", "triglycerides"):
        expected = whole.value - hdl.value - fat.value / 5
        # Friedewald's formula does not hold above 400 mg/dL.
        if fat.value < 400 and abs(ldl.value - expected) > 15:
            yield warning("cholesterol", ldl.path, f"LDL {ldl.value:g}, calculated {expected:.0f} mg/dL")


def check_clotting(chart: Chart) -> Iterator[Problem]:
    """INR and prothrombin time are long together."""
    for inr, time in chart.panels("inr", "prothrombin_time"):
        if (inr.value >= 1.4 and time.value < 13.5) or (inr.value <= 1.1 and time.value > 15.5):
            yield error("clotting", inr.path, f"INR {inr.value:g} with a prothrombin time of {time.value:g} s")


def check_osmolality(chart: Chart) -> Iterator[Problem]:
    """Measured osmolality is 2 Na + glucose / 18 + BUN / 2.8, more only with a poison."""
    parts = [chart.first(name) for name in ("osmolality", "sodium", "glucose", "urea_nitrogen")]
    measured, sodium, glucose, nitrogen = parts
    if measured is None or sodium is None or glucose is None or nitrogen is None:
        return
    expected = 2 * sodium + glucose / 18 + nitrogen / 2.8
    poison = re.search(r"alcohol|ethanol|methanol|glycol|mannitol", chart.about)
    if measured < expected - 10 or (measured > expected + 15 and not poison):
        path = chart.values("osmolality")[0].path
        yield warning("osmolality", path, f"measured {measured:g}, calculated {expected:.0f} mOsm/kg")


_FLOW = re.compile(r"(fev1 fvc ratio|fev1 fvc|ratio|fev1|fvc)\b ?(\w*)")


def check_spirometry(chart: Chart) -> Iterator[Problem]:
    """FEV1 divided by FVC is the ratio given with them."""
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
        # "before" and "after" a bronchodilator are two blows of one panel.
        blows.setdefault((fact.path.rpartition("/")[0], name[2]), {})[kind] = (value, fact.path)
    for blow in blows.values():
        if {"fev1", "fvc", "ratio"} <= blow.keys():
            expected, (ratio, path) = blow["fev1"][0] / blow["fvc"][0], blow["ratio"]
            if abs(expected - ratio) > 0.02:
                yield error("spirometry", path, f"ratio {ratio:.2f}, FEV1 / FVC is {expected:.2f}")


_STATED = re.compile(
    r"\(\s*(?:ref(?:erence)?(?: range)?|normal(?: range)?)[: ]*"
    r"(?:(?P<low>\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(?P<high>\d+(?:\.\d+)?)|[<≤]\s*(?P<below>\d+(?:\.\d+)?))"
)
_FLAG = re.compile(r"\b(normal|high|elevated|raised|low|reduced|decreased)\b", re.IGNORECASE)


def beyond_own_range(text: str) -> str:
    """`high` or `low` by the range that a result states beside itself; empty within it or without one."""
    number = re.match(r"\s*(\d+(?:,\d{3})*(?:\.\d+)?)\b", text)
    stated = _STATED.search(text)
    if not number or not stated:
        return ""
    value = float(number[1].replace(",", ""))
    low, high = float(stated["low"] or 0), float(stated["high"] or stated["below"])
    return "low" if value < low else "high" if value > high else ""


def check_flags(chart: Chart) -> Iterator[Problem]:
    """A value called high, low or normal is so by the reference range beside it."""
    for fact in chart.facts_of(Section.TESTS):
        if not _STATED.search(fact.text) or not re.match(r"\s*\d", fact.text):
            continue
        # Only what stands beside the value: "3 U/mL (ref <10), total IgA normal" is about something else.
        beside = re.split(r"[,;]\s", _STATED.sub("(", fact.text), maxsplit=1)[0]
        flag = _FLAG.search(beside)
        real = beyond_own_range(fact.text) or "normal"
        if flag and _MEANS.get(flag[1].lower(), flag[1].lower()) != real:
            yield error("flag_contradicts_range", fact.path, f"{fact.text!r} is {real} by its own range")


_MEANS = {"elevated": "high", "raised": "high", "reduced": "low", "decreased": "low"}
