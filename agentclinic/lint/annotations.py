"""What OpenOSCE's authors promise beside the chart: annotations, paths, refutations, complete panels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from agentclinic.cases.leaks import Leak, leaks
from agentclinic.cases.model import JSON, Section
from agentclinic.cases.values import analyte_of
from agentclinic.lint.chart import Chart
from agentclinic.lint.physiology import beyond_own_range
from agentclinic.lint.problem import Problem, error, warning
from agentclinic.lint.timeline import NUMBER_WORDS
from agentclinic.vocabulary.denial import opens_absent
from agentclinic.vocabulary.text import content_words, fold, words

SETTINGS = frozenset({"emergency department", "primary care", "outpatient clinic", "hospital ward"})
ACUITIES = frozenset({"emergent", "urgent", "routine"})
DIFFICULTIES = frozenset({"easy", "medium", "hard"})
ROLES = frozenset({"supporting", "discriminating", "refuting"})


def _text(value: JSON) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _matches(pattern: str) -> Callable[[JSON], bool]:
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _whole(low: int, high: int) -> Callable[[JSON], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _entries(*keys: str) -> Callable[[JSON], bool]:
    """A list of objects with these texts; which list must not be empty is asked elsewhere."""
    return lambda value: (
        isinstance(value, list)
        and all(isinstance(entry, dict) and all(_text(entry.get(key)) for key in keys) for entry in value)
    )


def _answer_key(value: JSON) -> bool:
    if not isinstance(value, dict):
        return False
    names = all(
        isinstance(value.get(key), list) and all(_text(name) for name in value[key]) for key in ("accept", "partial")
    )
    return names and _entries("text", "reason")(value.get("reject"))


_FORMS: tuple[tuple[str, Callable[[JSON], bool], str], ...] = (
    ("case_id", _matches(r"[a-z]+-[a-z]?\d{2,4}"), "letters, a hyphen and a number, such as osce-a01"),
    ("version", _whole(1, 999), "a whole number from 1"),
    ("canary", _matches(r"openosce-canary-[0-9a-f]{8}"), "openosce-canary- and 8 hex digits"),
    ("setting", lambda v: v in SETTINGS, " | ".join(sorted(SETTINGS))),
    ("acuity", lambda v: v in ACUITIES, " | ".join(sorted(ACUITIES))),
    ("Specialty", _text, "a name"),
    ("Difficulty", lambda v: v in DIFFICULTIES, " | ".join(sorted(DIFFICULTIES))),
    ("atypical", lambda v: isinstance(v, bool), "true or false"),
    ("lockbox", lambda v: isinstance(v, bool), "true or false"),
    ("ICD10", _matches(r"[A-TV-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?"), "an ICD-10-CM code such as K35.80"),
    ("Answer_Key", _answer_key, "accept and partial (lists of names) and reject (list of text and reason)"),
    ("Differential", _entries("name", "why_considered", "refuted_by"), "a list of name, why_considered, refuted_by"),
    ("Key_Findings", lambda v: isinstance(v, list), "a list of any_of, role, weight"),
    ("Must_Not_Miss", _entries("name", "excluded_by"), "a list of name, excluded_by"),
    ("Harm_If_Missed", _whole(0, 4), "a whole number 0-4"),
)


def check_annotations(chart: Chart) -> Iterator[Problem]:
    """Every annotation is there and has its form."""
    if not chart.annotated:
        return
    given = chart.case.annotations
    for key, is_right, form in _FORMS:
        if key not in given:
            yield error("annotation_missing", key, f"missing; give {form}")
        elif not is_right(given[key]):
            yield error("annotation_malformed", key, f"{str(given[key])[:60]!r}: must be {form}")
    if "twin_of" not in given:
        yield error("annotation_missing", "twin_of", "missing; give the twin's case_id or null")
    elif given["twin_of"] is not None and not _text(given["twin_of"]):
        yield error("annotation_malformed", "twin_of", "must be the twin's case_id or null")


_AT_LEAST = {"Differential": 3, "Key_Findings": 4, "Must_Not_Miss": 1}


def check_enough(chart: Chart) -> Iterator[Problem]:
    """There are enough alternatives, key findings and near misses to score with, and something is denied."""
    if not chart.annotated:
        return
    counts = {key: len(_list(chart, key)) for key in _AT_LEAST if key in chart.case.annotations}
    for key, count in counts.items():
        if count < _AT_LEAST[key]:
            yield warning("too_few", key, f"{count}; give at least {_AT_LEAST[key]}")
    if len(chart.case.answer_key.reject) < 2:
        yield warning("too_few", "Answer_Key/reject", "reject at least 2 near misses")
    if not any(fact.denied for fact in chart.facts_of(Section.SYMPTOMS, Section.HISTORY, Section.REVIEW)):
        yield warning("too_few", "Patient_Actor", "the patient denies nothing; silence would tell what matters")


def check_answer_key(chart: Chart) -> Iterator[Problem]:
    """No name is accepted and rejected alike, and no alternative is the diagnosis."""
    if not chart.annotated:
        return
    key = chart.case.answer_key
    right = {words(name): name for name in (chart.case.diagnosis, *key.accept)}
    for place, names in (("partial", key.partial), ("reject", [text for text, _ in key.reject])):
        for name in names:
            if words(name) in right:
                yield error("answer_key", f"Answer_Key/{place}", f"{name!r} is also the diagnosis or accepted")
    for index, entry in enumerate(_list(chart, "Differential")):
        if words(str(entry.get("name", ""))) in right:
            yield error("answer_key", f"Differential[{index}]", f"{entry['name']!r} is the diagnosis itself")


def check_key_findings(chart: Chart) -> Iterator[Problem]:
    """Key findings stand in the chart, and one of them discriminates."""
    if "Key_Findings" not in chart.case.annotations:
        return
    entries = _list(chart, "Key_Findings")
    for index, entry in enumerate(entries):
        at = f"Key_Findings[{index}]"
        if entry.get("role") not in ROLES:
            yield error("key_finding", at, f"role {entry.get('role')!r}: must be one of {', '.join(sorted(ROLES))}")
        if not _whole(1, 5)(entry.get("weight")):
            yield error("key_finding", at, f"weight {entry.get('weight')!r}: must be a whole number 1-5")
        paths = entry.get("any_of")
        if not isinstance(paths, list) or not paths:
            yield error("key_finding", at, "any_of must list chart paths")
            continue
        for path in paths:
            if not any(_below(fact.path, str(path)) for fact in chart.case.facts):
                yield error("path_not_in_chart", at, f"{path!r} is not in the chart")
    if not any(entry.get("role") == "discriminating" for entry in entries):
        yield error("no_discriminating_finding", "Key_Findings", "none has the role discriminating")


def _below(path: str, place: str) -> bool:
    return path.startswith(place) and (len(path) == len(place) or path[len(place)] in "/#[.")


def _list(chart: Chart, key: str) -> list[dict[str, JSON]]:
    value = chart.case.annotations.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


# Words of the argument, not of the chart.
_ARGUMENT = frozenset(
    "normal negative positive absent present absence presence finding sign evidence instead rather than explain rule "
    "ruled against unlikely without within despite although too only never nor neither either same all both none "
    "whole entire fit fits would expected expect show shows showed shown seen low high raised elevated reduced lack "
    "lacks lacking typical result test study examination exam imaging film scan level value ratio below above "
    "under over after before during between while since but because range limit clear entirely remain unremarkable "
    "alone other course one two change no not intact unchanged lasting beyond true feature another reference history "
    "nothing ever still keep kept many several least even though first second never usual such set sets "
    "cell line pattern normally isolated sudden immediate immediately criterion criteria "
    "symptom explained account accounts".split()
)
# How authors call what the chart calls otherwise.
_ALSO = {
    "ecg": "electrocardiogram", "ekg": "electrocardiogram", "echo": "echocardiogram", "cxr": "chest", "crp": "reactive",
    "ct": "ct", "hct": "hematocrit", "hb": "hemoglobin", "csf": "cerebrospinal", "hcg": "hcg", "ck": "creatine",
    "abg": "arterial", "urine": "urinalysis", "hematuria": "blood", "febrile": "temperature", "afebrile": "temperature",
    "fever": "temperature", "dyspnea": "breath", "hypoxia": "saturation", "hypoxemia": "saturation", "rhythm": "sinus",
    "hypotension": "pressure", "hypertension": "pressure", "tachycardia": "heart", "anemia": "hemoglobin",
    "leukocytosis": "wbc", "liver": "ast", "thyroid": "tsh", "kidney": "creatinine", "renal": "creatinine",
    "pregnancy": "hcg", "pregnant": "hcg", "bilirubin": "bilirubin", "inflammatory": "reactive", "marker": "reactive",
    "electrolyte": "sodium", "jaundice": "bilirubin", "acidosis": "bicarbonate", "focal": "neurological",
    "hypoglycemia": "glucose", "hyperglycemia": "glucose", "ketosis": "ketone", "eosinophilia": "eosinophil",
    "thrombocytopenia": "platelet", "neutropenia": "neutrophil", "proteinuria": "protein", "weight": "weight",
    "hba1c": "a1c", "areflexia": "reflexes", "power": "motor", "strength": "motor", "bowel": "stool",
    "eeg": "electroencephalogram", "facial": "face", "lesion": "rash",
    "oxygen": "saturation", "radiograph": "ray", "film": "ray", "x": "ray",
}  # fmt: skip


def _stems(text: str) -> frozenset[str]:
    """The first five letters of each word of meaning: dilated and dilatation meet."""
    return frozenset(word[:5] for word in content_words(text) if not word[0].isdigit())


_FIGURE = re.compile(r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w]*\d)")
# Limits and things worked out are the argument's, not the chart's: "over 60", "rather than eight weeks", "ratio 0.19".
_OWN_FIGURE = re.compile(
    r"\b(?:after|over|above|below|under|near|nearly|about|around|than|least|most|of|to|within|ratio|gap|score|gradient"
    r"|limit|beyond|past|before|older|younger|ratio of)\s+(?:the |a |age )?[\d,.]+(?:\s*(?:-|to|or)\s*[\d,.]+)?"
)


def _as_figures(text: str) -> str:
    """A text in lower case with number words as figures."""
    parts = re.split(r"([a-z]+)", text.lower())
    # "One" is more often a pronoun or an article than a number.
    return "".join(str(NUMBER_WORDS[p]) if NUMBER_WORDS.get(p, 1) > 1 else p for p in parts)


def _figures(text: str) -> frozenset[float]:
    return frozenset(float(number.replace(",", "")) for number in _FIGURE.findall(_as_figures(text)))


def _quoted(claim: str) -> frozenset[float]:
    """The numbers a claim quotes from the chart."""
    return _figures(_OWN_FIGURE.sub(" ", _as_figures(claim)))


def _claims(chart: Chart) -> Iterator[tuple[str, str, str]]:
    """What the annotations say the chart shows: (place, name, words)."""
    for key, field in (("Differential", "refuted_by"), ("Must_Not_Miss", "excluded_by")):
        for index, entry in enumerate(_list(chart, key)):
            yield f"{key}[{index}]/{field}", str(entry.get("name", "")), str(entry.get(field, ""))


def _reasons(chart: Chart) -> Iterator[tuple[str, str, str]]:
    """What else the annotations say of the chart."""
    for index, (name, reason) in enumerate(chart.case.answer_key.reject):
        yield f"Answer_Key/reject[{index}]", name, reason
    for index, entry in enumerate(_list(chart, "Differential")):
        yield f"Differential[{index}]/why_considered", str(entry.get("name", "")), str(entry.get("why_considered", ""))


_PART = re.compile(r"[,;]\s+|\s+and\s+")


def check_refutations(chart: Chart) -> Iterator[Problem]:
    """What refutes an alternative is in the chart: half of its words, and something of each part."""
    if not chart.annotated:
        return
    known = _stems(chart.text)

    def unknown(claim: str) -> tuple[set[str], set[str]]:
        asked = {w for w in content_words(claim) if w not in _ARGUMENT and not w[0].isdigit()}
        return asked, {w for w in asked if w[:5] not in known and _ALSO.get(w, w)[:5] not in known}

    for path, name, claim in _claims(chart):
        asked, missing = unknown(claim)
        # Half: what remains is the wording of the argument; below it, hits were findings nobody had charted.
        if not asked or len(missing) > 0.5 * len(asked):
            told = ", ".join(sorted(missing)) or "any finding"
            yield warning("refutation_not_in_chart", path, f"{name}: not in the chart: {told}")
            continue
        # Only what is called absent or normal: that no chart says it differently is likelier than with signs.
        for part in filter(opens_absent, _PART.split(claim)):
            asked, missing = unknown(part)
            if asked and asked == missing:
                yield warning("refuting_part_not_in_chart", path, f"{name}: nothing charted on {part.strip()!r}")


def check_quoted_numbers(chart: Chart) -> Iterator[Problem]:
    """Numbers that the annotations quote are the chart's, and the same test's."""
    if not chart.annotated:
        return
    figures = _figures(chart.text)
    tests = _by_name(chart)
    for path, name, claim in (*_claims(chart), *_reasons(chart)):
        for figure in sorted(_quoted(claim) - figures):
            yield warning("number_not_in_chart", path, f"{name}: {figure:g} stands nowhere in the chart")
        for test, texts in tests.items():
            quoted = re.search(rf"\b{re.escape(test)} (?:is |was |of )?(\d[\d,.]*\d|\d)(?![\d+:/])", fold(claim))
            number = float(quoted[1].replace(",", "")) if quoted else None
            # Other places may hold the same test: "92% neutrophils" of the spinal fluid, glucose at the bedside.
            places = (f.text for f in chart.case.facts if test in fold(" ".join((*f.heads, f.text))))
            if number is not None and not any(number in _figures(text) for text in (*texts, *places)):
                yield warning("number_not_in_chart", path, f"{name}: {test} {number:g}, but charted {texts[0]!r}")


_GROUPS = (
    (re.compile(r"normal (?:full )?blood counts?\b|blood count normal"), ("white_cells", "hemoglobin", "platelets")),
    (
        re.compile(r"normal liver (?:enzyme|test|function|panel|value)|liver (?:enzymes|tests|function|values) normal"),
        ("ast", "alt", "alkaline_phosphatase", "total_bilirubin"),
    ),
    (re.compile(r"normal (?:kidney|renal) function|(?:kidney|renal) function normal"), ("creatinine",)),
    (re.compile(r"normal electrolytes|electrolytes normal"), ("sodium", "potassium", "bicarbonate")),
    (re.compile(r"normal (?:white cells?|white cell count|leukocytes?|wbc)\b|white cells? normal"), ("white_cells",)),
    (re.compile(r"normal inflammat\w+ markers|inflammat\w+ markers normal"), ("crp",)),
)
"""What is called normal in one word, and what then must be."""
_NO_FEVER = re.compile(r"(?:^|[,;] )(?:no fever|afebrile)")


def check_called_normal(chart: Chart) -> Iterator[Problem]:
    """What the annotations call normal is so, by the range charted with it or the usual one of adults."""
    if not chart.annotated:
        return
    tests = _by_name(chart)
    hot = [t for t in re.findall(r"(\d\d\.\d) ?°C", " ".join(_vital(chart, "temperature"))) if float(t) >= 38]
    for path, name, claim in (*_claims(chart), *_reasons(chart)):
        said = fold(claim)
        for test, texts in tests.items():
            called = re.search(rf"\bnormal {re.escape(test)}\b|\b{re.escape(test)} (?:is |was )?normal\b", said)
            if called and all(beyond_own_range(text) for text in texts):
                yield warning("called_normal", path, f"{name}: {test} is called normal, charted {texts[0]!r}")
        for phrase, analytes in _GROUPS:
            for analyte in analytes if phrase.search(said) else ():
                yield from _unusual(chart, analyte, path, name)
        for value in chart.measured:
            spoken = value.analyte.name.replace("_", " ")
            called = re.search(
                rf"\bnormal {spoken}\b|(?<!fluid )(?<!csf )(?<!urine )\b{spoken} (?:is |was )?normal\b", said
            )
            if value.analyte.usual and value.analyte.fluid == "blood" and called:
                yield from _unusual(chart, value.analyte.name, path, name)
        if hot and _NO_FEVER.search(said):
            yield warning("called_normal", path, f"{name}: no fever, but {hot[0]} °C")


def _unusual(chart: Chart, analyte: str, path: str, name: str) -> Iterator[Problem]:
    if chart.sex is None or chart.age is None or chart.age < 18:
        return
    for value in chart.values(analyte)[:1]:
        low, high = value.analyte.usual.get(chart.sex, (float("-inf"), float("inf")))
        if value.exact and not low <= value.value <= high and "ref" not in value.text:
            yield warning("called_normal", path, f"{name}: {analyte} is called normal, charted {value.text!r}")


def _vital(chart: Chart, name: str) -> list[str]:
    return [f.text for f in chart.facts_of(Section.VITALS) if name in fold(f.heads[-1])]


def _by_name(chart: Chart) -> dict[str, list[str]]:
    """Numeric results by the name their chart gives them."""
    found: dict[str, list[str]] = {}
    for fact in chart.facts_of(Section.TESTS):
        heads = [head for head in fact.heads if fold(head) not in ("findings", "result")]
        if heads and re.match(r"\s*[<>]?\s*\d", fact.text) and "urin" not in fold(fact.heads[0]):
            for name in {fold(heads[-1]), *_SHORT.get(fold(heads[-1]), ())}:
                found.setdefault(name, []).append(fact.text)
    return found


_SHORT = {
    "c reactive protein": ("crp",),
    "creatine kinase": ("ck",),
    "total bilirubin": ("bilirubin",),
    "wbc": ("wbc",),
}


def check_leaks(chart: Chart) -> Iterator[Problem]:
    """Neither door, patient nor results name the diagnosis."""
    for leak in leaks(chart.case):
        if leak.kind is not Leak.HISTORY:
            yield error(str(leak.kind), leak.path, f"names {leak.phrase!r}")


ROUTINE = {
    "Complete Blood Count": ("WBC", "Hemoglobin", "Hematocrit", "MCV", "Platelets"),
    "Basic Metabolic Panel": (
        "Sodium", "Potassium", "Chloride", "Bicarbonate", "BUN", "Creatinine", "Glucose", "Calcium",
    ),
    "Liver Function Tests": ("AST", "ALT", "Alkaline Phosphatase", "Total Bilirubin", "Albumin"),
    "Urinalysis": ("Leukocyte Esterase", "Nitrite", "Blood", "Protein", "Glucose", "Ketones"),
    "Coagulation": ("INR", "aPTT"),
    "C Reactive Protein": (), "ESR": (), "Troponin": (), "D dimer": (), "TSH": (), "Lactate": (),
    "Electrocardiogram": (), "Chest X ray": (),
}  # fmt: skip
"""What every adult case charts, so that the mere availability of a test tells nothing."""
CHILDREN = ("Complete Blood Count", "Basic Metabolic Panel", "C Reactive Protein", "Urinalysis")
VITALS = ("Temperature", "Blood Pressure", "Heart Rate", "Respiratory Rate", "Oxygen Saturation")


def check_panels(chart: Chart) -> Iterator[Problem]:
    """Routine panels are complete, so that what is available tells nothing."""
    if not chart.annotated or chart.age is None:
        return
    places = {_place(fact.heads, fact.section) for fact in chart.facts_of(Section.TESTS)}
    tops = {heads[0] for heads in places if heads}
    adult = chart.age >= 18
    for panel, items in ROUTINE.items():
        if not adult and panel not in CHILDREN:
            continue
        name = _name(panel)
        if name not in tops:
            yield warning("panel_incomplete", "Test_Results", f"{panel} is missing")
            continue
        missing = [item for item in items if not any(p[0] == name and _name(item) in p[1:] for p in places)]
        if missing:
            yield warning("panel_incomplete", f"Test_Results/{panel}", f"without {', '.join(missing)}")
    if chart.sex == "female" and 12 <= chart.age <= 52 and not re.search(r"\bhcg\b|pregnancy test", fold(chart.text)):
        yield warning("panel_incomplete", "Test_Results", "Beta_hCG is missing in a woman of 12-52")
    vitals = {_name(fact.heads[-1]) for fact in chart.facts_of(Section.VITALS)}
    for vital in VITALS:
        if _name(vital) not in vitals:
            yield warning(
                "panel_incomplete", "Physical_Examination_Findings/Vital_Signs", f"{vital.lower()} is missing"
            )


def _name(head: str) -> tuple[str, ...]:
    analyte = analyte_of((head,), Section.TESTS)
    return (analyte.name,) if analyte else tuple(sorted(words(head)))


def _place(heads: tuple[str, ...], section: Section) -> tuple[tuple[str, ...], ...]:
    return tuple(_name(head) for head in heads) if section is Section.TESTS else ()
