"""What OpenOSCE's authors add to the chart: annotations, paths, complete panels."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from agentclinic.cases.leaks import Leak, leaks
from agentclinic.cases.model import JSON, Fact, Section
from agentclinic.cases.values import analyte_of
from agentclinic.clinic.reply_checks import diseases_beyond
from agentclinic.lint.chart import Chart, Problem, error, warning
from agentclinic.scoring.information import below
from agentclinic.vocabulary.denial import has_denying_word
from agentclinic.vocabulary.numbers import KnownNumbers, numbers
from agentclinic.vocabulary.settings import settings
from agentclinic.vocabulary.text import fold, words

ROLES = ("discriminating", "refuting", "supporting")


def _text(value: JSON) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _matches(pattern: str) -> Callable[[JSON], bool]:
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def _whole(low: int, high: int) -> Callable[[JSON], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _entries(*keys: str) -> Callable[[JSON], bool]:
    """A list of objects with these texts; `check_enough` checks how many there are."""
    return lambda value: (
        isinstance(value, list)
        and all(isinstance(entry, dict) and all(_text(entry.get(key)) for key in keys) for entry in value)
    )


def _dangers(value: JSON) -> bool:
    """A list of objects with a name, what excludes the disease (ways, or words) and perhaps its harm."""
    return _entries("name")(value) and all(
        (_text(entry.get("excluded_by")) or bool(ways_of(entry))) and _whole(0, 4)(entry.get("harm", 0))
        for entry in _objects(value)
    )


def ways_of(entry: dict[str, JSON]) -> list[list[str]]:
    """Each way as its paths; none if a way is not a path or a list of paths."""
    stated = entry.get("excluded_by")
    ways = [way if isinstance(way, list) else [way] for way in stated] if isinstance(stated, list) else []
    return ways if all(way and all(map(_text, way)) for way in ways) else []


def _answer_key(value: JSON) -> bool:
    if not isinstance(value, dict) or not _entries("text", "reason")(value.get("reject")):
        return False
    return all(isinstance(names, list) and all(map(_text, names)) for names in map(value.get, ("accept", "partial")))


def _one_of(*names: str) -> tuple[Callable[[JSON], bool], str]:
    return lambda value: value in names, " | ".join(sorted(names))


SETTINGS = tuple(settings())
PRESENTATIONS = ("typical", "atypical", "early")
FREQUENCIES = ("common", "uncommon", "rare")

_FORMS: tuple[tuple[str, Callable[[JSON], bool], str], ...] = (
    ("case_id", _matches(r"[a-z]+-[a-z]?\d{2,4}"), "letters, a hyphen and a number, such as osce-a01"),
    ("version", _whole(1, 999), "a whole number from 1"),
    ("canary", _matches(r"openosce-canary-[0-9a-f]{8}"), "openosce-canary- and 8 hex digits"),
    ("setting", *_one_of(*SETTINGS)),
    ("acuity", *_one_of("emergent", "urgent", "routine")),
    ("Specialty", _text, "a name"),
    ("Difficulty", *_one_of("easy", "medium", "hard")),
    ("presentation", *_one_of(*PRESENTATIONS)),
    ("frequency", *_one_of(*FREQUENCIES)),
    ("diseases", _whole(0, 9), "a whole number 0-9"),
    ("atypical", lambda v: isinstance(v, bool), "true or false"),
    ("lockbox", lambda v: isinstance(v, bool), "true or false"),
    ("ICD10", _matches(r"[A-TV-Z]\d[0-9A-Z](?:\.[0-9A-Z]{1,4})?"), "an ICD-10-CM code such as K35.80"),
    ("Answer_Key", _answer_key, "accept and partial (lists of names) and reject (list of text and reason)"),
    ("Differential", _entries("name", "why_considered", "refuted_by"), "a list of name, why_considered, refuted_by"),
    ("Key_Findings", lambda v: isinstance(v, list), "a list of any_of, role, weight"),
    ("Must_Not_Miss", _dangers, "a list of name, excluded_by (chart paths, or words) and harm 0-4"),
    ("Harm_If_Missed", _whole(0, 4), "a whole number 0-4"),
    ("twin_of", lambda v: v is None or _text(v), "the twin's case_id or null"),
)


_OPTIONAL = frozenset({"presentation", "frequency", "diseases"})


def check_annotations(chart: Chart) -> Iterator[Problem]:
    given = chart.case.annotations
    for key, is_right, form in _FORMS:
        if key in _OPTIONAL and key not in given:
            continue
        if key not in given:
            yield error("annotation_missing", key, f"missing; give {form}")
        elif not is_right(given[key]):
            yield error("annotation_malformed", key, f"{str(given[key])[:60]!r}: must be {form}")


_AT_LEAST = {"Differential": 3, "Key_Findings": 4, "Must_Not_Miss": 1}


def check_enough(chart: Chart) -> Iterator[Problem]:
    """There are enough alternatives, key findings and near misses for scoring, and the patient denies something."""
    for key, least in _AT_LEAST.items():
        if key in chart.case.annotations and (count := len(listed(chart, key))) < least:
            yield warning("too_few", key, f"{count}; give at least {least}")
    if len(chart.case.answer_key.reject) < 2:
        yield warning("too_few", "Answer_Key/reject", "reject at least 2 near misses")
    if not any(fact.denied for fact in chart.facts_of(Section.SYMPTOMS, Section.HISTORY, Section.REVIEW)):
        yield warning("too_few", "Patient_Actor", "the patient denies nothing, so whatever is mentioned matters")


def check_answer_key(chart: Chart) -> Iterator[Problem]:
    """No name is both accepted and rejected, and no alternative is the diagnosis."""
    key = chart.case.answer_key
    right = {words(name): name for name in (chart.case.diagnosis, *key.accept)}
    for place, names in (("partial", key.partial), ("reject", [text for text, _ in key.reject])):
        for name in names:
            if words(name) in right:
                yield error("answer_key", f"Answer_Key/{place}", f"{name!r} is also the diagnosis or accepted")
    for index, entry in enumerate(listed(chart, "Differential")):
        name = str(entry.get("name", ""))
        if words(name) in right:
            yield error("answer_key", f"Differential[{index}]", f"{name!r} is the diagnosis itself")


def check_key_findings(chart: Chart) -> Iterator[Problem]:
    if "Key_Findings" not in chart.case.annotations:
        return
    entries = listed(chart, "Key_Findings")
    for index, entry in enumerate(entries):
        at = f"Key_Findings[{index}]"
        if entry.get("role") not in ROLES:
            yield error("key_finding", at, f"role {entry.get('role')!r}: must be one of {', '.join(ROLES)}")
        if not _whole(1, 5)(entry.get("weight")):
            yield error("key_finding", at, f"weight {entry.get('weight')!r}: must be a whole number 1-5")
        paths = entry.get("any_of")
        if not isinstance(paths, list) or not paths:
            yield error("key_finding", at, "any_of must list chart paths")
            continue
        for path in paths:
            if not _in_chart(chart, str(path)):
                yield error("path_not_in_chart", at, f"{path!r} is not in the chart")
    if not any(entry.get("role") == "discriminating" for entry in entries):
        yield error("no_discriminating_finding", "Key_Findings", "none has the role discriminating")


def check_must_not_miss(chart: Chart) -> Iterator[Problem]:
    """What excludes a disease is in the chart; in words, it cannot be checked or scored."""
    for index, entry in enumerate(listed(chart, "Must_Not_Miss")):
        for path in dict.fromkeys(path for way in ways_of(entry) for path in way):
            if not _in_chart(chart, path):
                at = f"Must_Not_Miss[{index}]"
                yield error("path_not_in_chart", at, f"{entry.get('name')}: {path!r} is not in the chart")


MANNER = ("manner", "idea", "worry", "hope", "feel", "greet")
"""How a patient comes across, and what they say when asked for their ideas, worries and hopes, or when greeted."""
SWAPPABLE = ("name", "ethnicity", "insurance", "sex", "occupation", "partner")
TIERS = ("core", "hard", "resource-limited")
_OF_THE_PATIENT: tuple[tuple[str, Callable[[JSON], bool], str], ...] = (
    (
        "Manner",
        lambda v: isinstance(v, dict) and set(v) == set(MANNER) and all(map(_text, v.values())),
        f"an object with the texts {', '.join(MANNER)}",
    ),
    ("speaker", _text, "patient, or who speaks for the patient, such as mother"),
    (
        "Swappable",
        lambda v: isinstance(v, list) and set(map(str, v)) <= set(SWAPPABLE),
        f"a list of any of {', '.join(SWAPPABLE)}",
    ),
    ("tier", *_one_of(*TIERS)),
)


def check_patient_words(chart: Chart) -> Iterator[Problem]:
    """Every fact of the patient has its sentence: the same numbers and polarity as the fact, and no disease named."""
    given = chart.case.annotations.get("Patient_Facts")
    if not isinstance(given, dict):
        return
    for key, is_right, form in _OF_THE_PATIENT:
        if key not in chart.case.annotations:
            yield error("annotation_missing", key, f"missing; give {form}")
        elif not is_right(chart.case.annotations[key]):
            yield error("annotation_malformed", key, f"{str(chart.case.annotations[key])[:60]!r}: must be {form}")
    for path in sorted(set(given) - {fact.path for fact in chart.case.patient_facts}):
        yield error("path_not_in_chart", "Patient_Facts", f"{path!r} is not a fact of the patient")
    for fact in chart.case.patient_facts:
        yield from _check_words(chart, fact)
        yield from _check_vague(chart, fact)
    yield from _check_questions(chart)
    if not any(fact.told == "volunteered" for fact in chart.case.patient_facts):
        yield error("nothing_volunteered", "Patient_Facts", "mark what the patient says first: told volunteered")
    manner = chart.case.annotations.get("Manner")
    for key, text in manner.items() if isinstance(manner, dict) else ():
        if named := diseases_beyond(str(text), ()):
            yield error("words_name_disease", f"Manner/{key}", f"names {', '.join(sorted(named))}")


def _check_words(chart: Chart, fact: Fact) -> Iterator[Problem]:
    if fact.says is None:
        yield error("words_missing", fact.path, "give what the patient says (Patient_Facts, says)")
        return
    door = chart.case.door
    known, said = KnownNumbers((fact.text, door.demographics)), KnownNumbers((fact.says,))
    added = [number.text for number in numbers(fact.says) if not known.has(number)]
    lost = [number.text for number in numbers(fact.text) if not said.has(number)]
    if added or (lost and fact.section is not Section.DEMOGRAPHICS):
        yield error("words_numbers", fact.path, f"not the numbers of the fact: {', '.join(added or lost)}")
    if fact.denied and not has_denying_word(fact.says):
        yield error("words_polarity", fact.path, f"the fact denies, the words do not: {fact.says!r}")
    if not fact.denied and has_denying_word(fact.says) and not has_denying_word(fact.text):
        yield error("words_polarity", fact.path, f"the words deny, the fact does not: {fact.says!r}")
    if named := diseases_beyond(fact.says, (fact.text, door.objective)):
        yield error("words_name_disease", fact.path, f"names {', '.join(sorted(named))}")


def _check_vague(chart: Chart, fact: Fact) -> Iterator[Problem]:
    """A vague sentence says less than the exact one: no number, no disease, and no other statement that denies."""
    if fact.vague is None:
        return
    if told := [number.text for number in numbers(fact.vague) if number.text.lower() not in _INEXACT]:
        yield error("vague_exact", fact.path, f"the vague sentence gives {', '.join(told)}; leave it out")
    if fact.says and fold(fact.vague) == fold(fact.says):
        yield error("vague_exact", fact.path, "the vague sentence is the exact one; leave vague out")
    if fact.denied:
        yield error("vague_polarity", fact.path, "the fact denies: there is nothing to be vague about; leave vague out")
    if named := diseases_beyond(fact.vague, (fact.text, fact.says or "", chart.case.door.objective)):
        yield error("vague_names_disease", fact.path, f"names {', '.join(sorted(named))}")


_INEXACT = frozenset({"a", "an", "one", "first", "once", "half"})
"""Numbers that can stand in a sentence without an amount: "one side", "at first"."""
MOST_ASKED_WORDS = 16
"""Words in a question of an author: a longer one asks for more than one thing."""


def _check_questions(chart: Chart) -> Iterator[Problem]:
    """Where the author says which questions facts answer: all of them, and each question once."""
    facts = chart.case.patient_facts
    if not any(fact.asked for fact in facts):
        return
    answered: dict[str, str] = {}
    for fact in facts:
        if not fact.asked:
            yield error("questions_missing", fact.path, "give the questions that it answers (Patient_Facts, asked)")
        for question in fact.asked:
            if not question.endswith("?") or len(words(question)) > MOST_ASKED_WORDS:
                yield error("question_form", fact.path, f"{question[:80]!r}: must be one short question, ending with ?")
            other = answered.setdefault(fold(question), fact.says or "")
            if other != (fact.says or ""):  # one sentence may say several facts
                yield error("question_twice", fact.path, f"{question!r} is also answered by {other!r}")


def _in_chart(chart: Chart, path: str) -> bool:
    return any(below(fact.path, path) for fact in chart.case.facts)


def listed(chart: Chart, key: str) -> list[dict[str, JSON]]:
    return _objects(chart.case.annotations.get(key))


def _objects(value: JSON) -> list[dict[str, JSON]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def check_leaks(chart: Chart) -> Iterator[Problem]:
    """Demographics, objective, patient and results do not name the diagnosis."""
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
"""Included in every adult chart, so that the mere presence of a test reveals nothing."""
CHILDREN = ("Complete Blood Count", "Basic Metabolic Panel", "C Reactive Protein", "Urinalysis")
VITALS = ("Temperature", "Blood Pressure", "Heart Rate", "Respiratory Rate", "Oxygen Saturation")


def check_panels(chart: Chart) -> Iterator[Problem]:
    """Routine panels are complete or will be completed, so that the presence of a test reveals nothing."""
    if chart.age is None or chart.completed:
        return
    charted: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for fact in chart.facts_of(Section.TESTS):
        for panel in map(_name, fact.heads[:1]):
            charted.setdefault(panel, set()).update(map(_name, fact.heads[1:]))
    for name, wanted in ROUTINE.items():
        if not chart.adult and name not in CHILDREN:
            continue
        if _name(name) not in charted:
            yield warning("panel_incomplete", "Test_Results", f"{name} is missing")
        elif missing := [item for item in wanted if _name(item) not in charted[_name(name)]]:
            yield warning("panel_incomplete", f"Test_Results/{name}", f"without {', '.join(missing)}")
    if chart.sex == "female" and 12 <= chart.age <= 52 and not re.search(r"\bhcg\b|pregnancy test", fold(chart.text)):
        yield warning("panel_incomplete", "Test_Results", "Beta_hCG is missing in a woman aged 12-52")
    vitals = {_name(fact.heads[-1]) for fact in chart.facts_of(Section.VITALS)}
    for vital in VITALS:
        if _name(vital) not in vitals:
            path = "Physical_Examination_Findings/Vital_Signs"
            yield warning("panel_incomplete", path, f"{vital.lower()} is missing")


def _name(head: str) -> tuple[str, ...]:
    analyte = analyte_of((head,), Section.TESTS)
    return (analyte.name,) if analyte else tuple(sorted(words(head)))
