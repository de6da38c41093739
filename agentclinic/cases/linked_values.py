"""Completed values that follow from others, so that they agree with the chart and with each other."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Protocol

from agentclinic import lazy
from agentclinic.cases.model import Facts, Section


class Patient(Protocol):
    """A chart while it is completed."""

    age: float
    sex: str | None
    facts: Facts
    """Charted examination findings and test results."""

    def charted(self, analyte: str) -> float | None:
        """A charted value."""

    def value(self, analyte: str) -> float | None:
        """A charted value, or else the completed one."""

    def completed(self, heading: str) -> float:
        """The completed value under a heading."""

    def says(self, pattern: re.Pattern[str]) -> bool:
        """Whether the patient's own history says so."""

    def stated(self, pattern: re.Pattern[str]) -> float | None:
        """A number stated anywhere in the examination."""


Link = Callable[[Patient, float], float | None]
"""A completed number from the chart and the one drawn; None leaves it as drawn."""
Words = Callable[[Patient], str | None]
"""A completed result from the chart; None leaves it as the table has it."""


def _hemoglobin(patient: Patient, _: float) -> float | None:
    volume = patient.charted("hematocrit")
    return volume / 2.98 if volume else None


def _hematocrit(patient: Patient, _: float) -> float | None:
    hemoglobin = patient.value("hemoglobin")
    return 2.98 * hemoglobin if hemoglobin else None


def _red_cells(patient: Patient, _: float) -> float | None:
    volume, size = patient.value("hematocrit"), patient.value("mcv")
    return 10 * volume / size if volume and size else None


def _ratio(above: str, below: str, factor: float) -> Link:
    def link(patient: Patient, _: float) -> float | None:
        top, bottom = patient.value(above), patient.value(below)
        return factor * top / bottom if top and bottom else None

    return link


def _width(patient: Patient, drawn: float) -> float | None:
    size = patient.charted("mcv")
    return drawn + 0.25 * max(0, 80 - size) if size and patient.age >= 12 else None


def _neutrophils(patient: Patient, drawn: float) -> float:
    count, lymphocytes = patient.charted("white_cells") or 7, patient.charted("lymphocytes")
    share = drawn + 2.2 * max(0, count - 9.5) - 4 * max(0, 4.5 - count)
    if lymphocytes is not None:
        return max(0, 92 - lymphocytes)
    return min(share, 86)


def _lymphocytes(patient: Patient, _: float) -> float:
    return max(4, 91 - (patient.value("neutrophils") or 60))


def _eosinophils(patient: Patient, drawn: float) -> float:
    return min(drawn, max(0, 97 - (patient.value("neutrophils") or 60) - (patient.value("lymphocytes") or 30)))


def _monocytes(patient: Patient, drawn: float) -> float:
    others = sum(patient.value(kind) or 0 for kind in ("neutrophils", "lymphocytes", "eosinophils"))
    return max(0, min(drawn, 99 - others))


def _filtration(patient: Patient, _: float) -> float | None:
    """CKD-EPI 2021, for children Schwartz with the usual height of the age."""
    creatinine = patient.value("creatinine")
    if not creatinine:
        return None
    if patient.age < 18:
        return min(140, 0.413 * (77 + 6 * patient.age) / creatinine)
    woman = patient.sex == "female"
    usual, power = (0.7, -0.241) if woman else (0.9, -0.302)
    share = creatinine / usual
    found: float = 142 * min(share, 1) ** power * max(share, 1) ** -1.2 * 0.9938**patient.age
    return found * (1.012 if woman else 1)


def _gap(patient: Patient, _: float) -> float | None:
    sodium, chloride, base = (patient.value(name) for name in ("sodium", "chloride", "bicarbonate"))
    return sodium - chloride - base if sodium and chloride and base else None


def _ionized(patient: Patient, drawn: float) -> float | None:
    calcium = patient.charted("calcium")
    corrected = calcium + 0.8 * (4.2 - (patient.charted("albumin") or 4.2)) if calcium else None
    return drawn + 0.12 * (corrected - 9.4) if corrected else None


def _osmolality(patient: Patient, drawn: float) -> float | None:
    sodium, glucose, nitrogen = (patient.value(name) for name in ("sodium", "glucose", "urea_nitrogen"))
    if not sodium or not glucose or not nitrogen:
        return None
    return 2 * sodium + glucose / 18 + nitrogen / 2.8 + (drawn - 287) / 2


def _gas_base(patient: Patient, drawn: float) -> float | None:
    serum = patient.charted("bicarbonate")
    return serum + (drawn - 24) / 2 if serum else None


def _carbon_dioxide(patient: Patient, drawn: float) -> float:
    """Compensation: Winter's formula below, half a change above."""
    base = patient.completed("Arterial Blood Gas / HCO3")
    return 1.5 * base + 8 if base < 21 else drawn + 0.7 * max(0, base - 27)


def _acidity(gas: str) -> Link:
    def link(patient: Patient, _: float) -> float | None:
        base, carbon = patient.completed(f"{gas} / HCO3"), patient.completed(f"{gas} / pCO2")
        return 6.1 + math.log10(base / (0.0307 * carbon))

    return link


def _venous(patient: Patient, _: float) -> float:
    return (patient.charted("pco2") or patient.completed("Arterial Blood Gas / pCO2")) + 4


_OXYGEN = ((97, 93), (96, 84), (95, 78), (94, 73), (93, 69), (92, 66), (91, 63), (90, 60), (88, 56), (85, 51), (80, 46))
"""Saturation in percent, and the partial pressure in mmHg that goes with it."""


def _oxygen(patient: Patient, drawn: float) -> float | None:
    saturation = patient.charted("oxygen_saturation")
    if saturation is None or saturation >= 97:
        return None
    return next((pressure for least, pressure in _OXYGEN if saturation >= least), 42) + (drawn - 93) / 4


def _oxygen_gradient(patient: Patient, _: float) -> float:
    """From the alveolar gas equation at sea level, with a respiratory quotient of 0.8."""
    gas = {f.heads[-1]: float(n[0]) for f in patient.facts if f.heads[:1] == _ARTERIAL and (n := _NUMBER.match(f.text))}
    oxygen = gas.get("pO2") or patient.completed("Arterial Blood Gas / pO2")
    carbon = gas.get("pCO2") or patient.completed("Arterial Blood Gas / pCO2")
    return max(1.0, gas.get("FiO2", 0.21) * 713 - carbon / 0.8 - oxygen)


_ARTERIAL = ("Arterial Blood Gas",)
_NUMBER = lazy.regex(r"\d+(?:\.\d+)?")


_PLUSES = lazy.regex(r"([1-4])\+")


def _ketone_body(patient: Patient, _: float) -> float | None:
    """Rises with the ketones of the urine."""
    urine = (fact.text for fact in patient.facts if fact.heads[0] == "Urinalysis" and fact.heads[-1] == "Ketones")
    found = _PLUSES.search(next(urine, ""))
    return {"1": 0.7, "2": 1.6}.get(found[1], 3.4) if found else None


def _direct(patient: Patient, _: float) -> float | None:
    total = patient.value("total_bilirubin")
    if not total:
        return None
    return max(0.1, min(0.3, 0.3 * total)) if total <= 1.2 else 0.3 * total


def _indirect(patient: Patient, _: float) -> float | None:
    total, direct = patient.value("total_bilirubin"), patient.value("direct_bilirubin")
    return max(0.1, total - direct) if total and direct else None


_TOTAL_PROTEIN = lazy.regex(r"\btotal protein (\d{1,2}\.\d) g/dL", re.IGNORECASE)


def _protein(patient: Patient, drawn: float) -> float | None:
    if stated := patient.stated(_TOTAL_PROTEIN):  # beside the electrophoresis
        return stated
    albumin = patient.charted("albumin")
    return albumin + 2.9 + (drawn - 7.1) / 2 if albumin else None


def _globulin(patient: Patient, _: float) -> float | None:
    total, albumin = patient.value("total_protein"), patient.value("albumin")
    return total - albumin if total and albumin else None


def _erythropoietin(patient: Patient, drawn: float) -> float | None:
    hemoglobin, creatinine = patient.charted("hemoglobin"), patient.value("creatinine")
    if not hemoglobin or hemoglobin >= 11 or (creatinine and creatinine > 1.5):  # failing kidneys do not answer anemia
        return None
    return float(drawn * 10 ** (0.18 * (13 - hemoglobin)))


def _sedimentation(patient: Patient, _: float) -> float | None:
    protein = patient.charted("crp")
    return 18 + 0.35 * protein if protein and protein > 10 else None


def _reactive(patient: Patient, _: float) -> float | None:
    rate = patient.charted("esr")
    return (rate - 20) / 2 if rate and rate > 30 else None


def _fibrinogen(patient: Patient, drawn: float) -> float | None:
    protein = patient.charted("crp")
    used_up = (patient.charted("platelets") or 250) < 100 or (patient.charted("inr") or 1) > 1.5
    return min(800, drawn + 2 * protein) if protein and protein > 15 and not used_up else None


def _procalcitonin(patient: Patient, drawn: float) -> float | None:
    protein = patient.charted("crp")
    return drawn + 0.002 * (protein - 40) if protein and protein > 40 else None


def _with_inflammation(patient: Patient, drawn: float) -> float | None:
    protein = patient.charted("crp")
    return drawn * (1 + protein / 120) if protein and protein > 20 else None


def _dimer(patient: Patient, _: float) -> float | None:
    protein = patient.charted("crp")
    return 460 + 4 * protein if protein and protein > 40 else None


def _iron_capacity(patient: Patient, _: float) -> float | None:
    iron, share = patient.charted("iron"), patient.charted("transferrin_saturation")
    return 100 * iron / share if iron and share else None


def _iron(patient: Patient, drawn: float) -> float | None:
    share = patient.charted("transferrin_saturation")
    capacity = patient.value("tibc")
    if share and capacity:
        return share * capacity / 100
    return 0.4 * drawn if (patient.charted("crp") or 0) > 40 else None


def _iron_share(patient: Patient, _: float) -> float | None:
    iron, capacity = patient.value("iron"), patient.value("tibc")
    return 100 * iron / capacity if iron and capacity else None


def _transferrin(patient: Patient, _: float) -> float | None:
    capacity = patient.charted("tibc")
    return 0.8 * capacity if capacity else None


def _low_density(patient: Patient, _: float) -> float | None:
    total, high, fat = (patient.value(name) for name in ("total_cholesterol", "hdl", "triglycerides"))
    return max(30, total - high - fat / 5) if total and high and fat else None


def _cholesterol(patient: Patient, _: float) -> float | None:
    low = patient.charted("ldl")
    high, fat = patient.value("hdl"), patient.value("triglycerides")
    return low + high + fat / 5 if low and high and fat else None


def _by_tsh(low: float, high: float) -> Link:
    """Thyroid hormone with the charted TSH: `low` if TSH is high, and the other way round."""

    def link(patient: Patient, _: float) -> float | None:
        found = patient.charted("tsh")
        return None if found is None or 0.1 <= found <= 10 else high if found < 0.1 else low

    return link


def _tsh(patient: Patient, _: float) -> float | None:
    hormone = patient.charted("free_t4")
    return None if hormone is None or 0.8 <= hormone <= 1.8 else 0.0 if hormone > 1.8 else 18.0


def _prothrombin(patient: Patient, _: float) -> float | None:
    ratio = patient.charted("inr")
    return 12.1 * ratio if ratio and ratio > 1.1 else None


def _normalized(patient: Patient, _: float) -> float | None:
    time = patient.charted("prothrombin_time")
    return time / 12.1 if time and time > 13.5 else None


_DIABETES = lazy.regex(r"\bdiabet|\bmetformin\b|\binsulin\b", re.IGNORECASE)


def _glycated(patient: Patient, drawn: float) -> float | None:
    glucose = patient.charted("glucose") or 95
    if patient.says(_DIABETES):
        return min(9.5, max(6.6, 6.4 + (glucose - 100) / 60))
    return drawn + 0.004 * (min(glucose, 150) - 95) if glucose > 100 else None


def _fingerstick(patient: Patient, drawn: float) -> float | None:
    glucose = patient.charted("glucose")
    return glucose + (drawn - 98) / 4 if glucose else None


def _spinal_glucose(patient: Patient, drawn: float) -> float | None:
    glucose = patient.charted("glucose")
    return 0.63 * glucose + (drawn - 62) / 2 if glucose else None


_BMI = lazy.regex(r"body mass index (\d+(?:\.\d+)?)", re.IGNORECASE)
_WEIGHT = lazy.regex(r"(?:weight |cm and )(\d+(?:\.\d+)?) kg(?! (?:above|below|more|less))", re.IGNORECASE)
_HEIGHT = lazy.regex(r"(\d{2,3}) cm and \d", re.IGNORECASE)


def _height(patient: Patient, drawn: float) -> float | None:
    usual = 50 + 25.5 * patient.age**0.66 if patient.age < 2 else 77 + 6 * patient.age
    return patient.stated(_HEIGHT) or (min(drawn, usual) if patient.age < 16 else None)


def _weight(patient: Patient, _: float) -> float | None:
    stated, index = patient.stated(_WEIGHT), patient.stated(_BMI)
    if stated:
        return stated
    if patient.age < 12:
        return 2 * (patient.age + 4) if patient.age >= 1 else 3.5 + 6 * patient.age
    return index * (patient.completed("Vital Signs / Height") / 100) ** 2 if index else None


def _head(patient: Patient, drawn: float) -> float:
    """Centimeters: 35 at birth, 43 at six months, 46 at a year."""
    usual = 35 + 11 * patient.age**0.5 if patient.age < 1 else 46 + 2 * (patient.age - 1)
    return usual + (drawn - 43) / 2


def _body_mass(patient: Patient, _: float) -> float | None:
    stated = patient.stated(_BMI)
    return stated or patient.completed("Vital Signs / Weight") / (patient.completed("Vital Signs / Height") / 100) ** 2


def _vital_capacity(patient: Patient, drawn: float) -> float:
    """Liters: less in women, children and old age."""
    share = 0.78 if patient.sex == "female" else 1.0
    grown = min(1.0, 0.1 + patient.age / 18) * (1 - 0.006 * max(0, patient.age - 25))
    return 1.18 * drawn * share * grown


def _first_second(patient: Patient, drawn: float) -> float:
    return patient.completed("Spirometry / FVC") * (0.82 + (drawn - 3.3) / 20)


def _blown_share(patient: Patient, _: float) -> float:
    return patient.completed("Spirometry / FEV1") / patient.completed("Spirometry / FVC")


_RENIN = 1.4
"""The renin activity that the table has, in ng/mL/h."""


def _aldosterone(patient: Patient, _: float) -> float | None:
    ratio = _NUMBER.match(_charted_as(patient, "Aldosterone Renin Ratio") or "")
    return _RENIN * float(ratio[0]) if ratio else None


def _aldosterone_share(patient: Patient, _: float) -> float:
    aldosterone, renin = (_NUMBER.search(_charted_as(patient, name) or "") for name in ("Aldosterone", "Renin"))
    if aldosterone and renin:
        return float(aldosterone[0]) / float(renin[0])
    return patient.completed("Renin and Aldosterone / Aldosterone") / _RENIN


def _light_chains(patient: Patient, _: float) -> float:
    return patient.completed("Serum Free Light Chains / Kappa") / patient.completed("Serum Free Light Chains / Lambda")


LINKED_NUMBERS: Mapping[str, Link] = {
    "Serum Free Light Chains / Ratio": _light_chains,
    "Renin and Aldosterone / Aldosterone": _aldosterone,
    "Aldosterone Renin Ratio": _aldosterone_share,
    "Arterial Blood Gas / A-a Gradient": _oxygen_gradient,
    "Spirometry / FVC": _vital_capacity,
    "Spirometry / FEV1": _first_second,
    "Spirometry / FEV1 FVC": _blown_share,
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
    "Beta-Hydroxybutyrate": _ketone_body,
    "Direct Bilirubin": _direct,
    "Indirect Bilirubin": _indirect,
    "Liver Function Tests / Total Protein": _protein,
    "Globulin": _globulin,
    "Erythropoietin": _erythropoietin,
    "ESR": _sedimentation,
    "C Reactive Protein": _reactive,
    "Procalcitonin": _procalcitonin,
    "Coagulation / Fibrinogen": _fibrinogen,
    "Ferritin": _with_inflammation,
    "D-dimer": _dimer,
    "Iron Studies / Serum Iron": _iron,
    "Iron Studies / TIBC": _iron_capacity,
    "Iron Studies / Transferrin Saturation": _iron_share,
    "Transferrin": _transferrin,
    "Lipid Panel / LDL": _low_density,
    "Lipid Panel / Total Cholesterol": _cholesterol,
    "Free T4": _by_tsh(0.6, 2.6),
    "Free T3": _by_tsh(1.8, 8.4),
    "Thyroid Function Tests / Total T3": _by_tsh(72, 250),
    "TSH": _tsh,
    "Coagulation / Prothrombin Time": _prothrombin,
    "Coagulation / INR": _normalized,
    "HbA1c": _glycated,
    "Vital Signs / Blood Glucose Fingerstick": _fingerstick,
    "Lumbar Puncture / Glucose": _spinal_glucose,
    "Vital Signs / Head Circumference": _head,
    "Vital Signs / Height": _height,
    "Vital Signs / Weight": _weight,
    "Vital Signs / Body Mass Index": _body_mass,
}

_IRREGULAR = lazy.regex(r"\birregular", re.IGNORECASE)


def _rhythm(patient: Patient) -> str | None:
    heard = (f for f in patient.facts if f.section is Section.EXAMINATION and f.heads[:1] == _HEART)
    if not any(_IRREGULAR.search(fact.text) for fact in heard):
        return None
    rate = patient.value("heart_rate") or 88
    return f"Atrial fibrillation with a ventricular rate of {rate:.0f} per minute, no ST change"


_HEART = ("Cardiovascular Examination",)


def _sugar(patient: Patient) -> str | None:
    glucose = patient.charted("glucose") or 0
    return "3+" if glucose > 300 else "1+" if glucose > 200 else None


def _ketones(patient: Patient) -> str | None:
    return "3+" if (patient.charted("beta_hydroxybutyrate") or 0) > 2 else None


def _charted_as(patient: Patient, *names: str) -> str | None:
    """The result that a chart has under one of these names."""
    return next((fact.text.strip(" .") for fact in patient.facts if fact.heads and fact.heads[-1] in names), None)


_SHARE = lazy.regex(r"(\d+)% (?:of )?predicted")


def _share_of(form: str, *names: str) -> Words:
    def link(patient: Patient) -> str | None:
        found = _SHARE.search(_charted_as(patient, *names) or "")
        return form.format(found[1]) if found else None

    return link


_WHOLE_NUMBER = lazy.regex(r"\d+")
_PEPTIDES = 6
"""NT-proBNP in pg/mL for one of BNP, about, in adults with healthy kidneys."""


def _peptide(others: tuple[str, ...], factor: float, form: str) -> Words:
    def link(patient: Patient) -> str | None:
        found = _WHOLE_NUMBER.search(_charted_as(patient, *others) or "")
        return form.format(round(factor * int(found[0]))) if found else None

    return link


def _alcohol_and_drugs(patient: Patient) -> str | None:
    drugs = next((f.text.strip(" .") for f in patient.facts if f.heads[:1] in _DRUG_SCREENS), None)
    alcohol = _charted_as(patient, "Ethanol")
    if drugs is None and alcohol is None:
        return None
    drugs = drugs or "Negative"
    return f"Alcohol: {alcohol or 'Undetectable'}; drug screen: {drugs[:1].lower()}{drugs[1:]}"


_DRUG_SCREENS = (("Urine Drug Screen",), ("Urine Toxicology",))


def _tolerance(patient: Patient) -> str | None:
    """Glucose before and after sugar, of a patient whose glucose is high."""
    glucose, share = patient.charted("glucose"), patient.charted("hba1c")
    if max(glucose or 0, _DIABETIC if (share or 0) >= _DIABETIC_SHARE else 0) < _DIABETIC:
        return None
    fasting = max(glucose or 0, _DIABETIC)
    return f"Fasting {fasting:.0f} mg/dL, {1.7 * fasting:.0f} mg/dL two hours after 75 g of glucose (ref <140)"


_DIABETIC = 126
_DIABETIC_SHARE = 6.5
"""The limits of fasting glucose, in mg/dL, and of HbA1c, in percent, from which diabetes is diagnosed."""


def _level(drug: str, taken: str) -> Words:
    """The level of a drug: in the usual range if the patient takes it."""
    name = re.compile(rf"\b{drug}", re.IGNORECASE)
    return lambda patient: taken if patient.says(name) else None


RESTATED: Mapping[str, Words] = {
    "Forced Vital Capacity": _share_of("{}% of predicted", "FVC", "FVC before"),
    "Pulmonary Function Tests / FVC": _share_of("{}% predicted", "FVC", "FVC before"),
    "Pulmonary Function Tests / FEV1": _share_of("{}% predicted", "FEV1", "FEV1 before"),
    "BNP": _peptide(("NT-proBNP", "NT proBNP"), 1 / _PEPTIDES, "{} pg/mL (ref <100)"),
    "NT-proBNP": _peptide(("BNP",), _PEPTIDES, "{} pg/mL (ref <125)"),
    "Blood Alcohol and Urine Drug Screen": _alcohol_and_drugs,
}
"""Results that say what the chart says under another name. They are reported, not said to be not done: which orders
a chart answers under another name would give the case away."""

LINKED_WORDS: Mapping[str, Words] = {
    **RESTATED,
    "Electrocardiogram / Findings": _rhythm,
    "Oral Glucose Tolerance Test": _tolerance,
    "Urinalysis / Glucose": _sugar,
    "Urinalysis / Ketones": _ketones,
    "Valproate Level": _level("valpro", "72 mg/L (ref 50-100)"),
    "Lithium Level": _level("lithium", "0.8 mmol/L (ref 0.6-1.0)"),
    "Digoxin Level": _level("digoxin", "0.8 ng/mL (ref 0.5-0.9)"),
    "Phenytoin Level": _level("phenytoin", "14 mg/L (ref 10-20)"),
    "Carbamazepine Level": _level("carbamazepine", "7.8 mg/L (ref 4-12)"),
    "Theophylline Level": _level("theophylline", "12 mg/L (ref 10-20)"),
    "Tacrolimus Level": _level("tacrolimus", "7.2 ng/mL (ref 5-10)"),
    "Cyclosporine Level": _level("c[iy]closporine?", "160 ng/mL (ref 100-200)"),
}
