"""Single statements of a chart: each appears once, with a path that leads back to it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from helpers import case_of, needs_public_data, nejm, osce, public_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from agentclinic.cases.facts import exam_facts, patient_facts, prose_facts
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.vocabulary.text import words

DENIAL_WORDS = frozenset({"no", "deny", "history", "of"})


def at(chart: Any, path: str) -> Any:
    """The value at a path; sentence (#1) and item (.2) numbers are dropped unless they are part of a key."""
    if path == "":
        return chart
    if isinstance(chart, dict):
        fitting = [key for key in chart if path == f"/{key}" or re.match(rf"/{re.escape(key)}[/\[#.]", path)]
        for key in sorted(fitting, key=len, reverse=True):
            return at(chart[key], path[len(key) + 1 :])
        raise KeyError(path)
    if isinstance(chart, list):
        place = re.match(r"\[(\d+)\]", path)
        assert place, f"{path} should have a list index"
        return at(chart[int(place[1])], path[place.end() :])
    assert re.fullmatch(r"(?:#\d+)*(?:\.\d+)?", path), f"{path} leads past a value"
    return chart


def chart_of(case: Case) -> dict[str, Any]:
    exam = case.exam if isinstance(case.exam, dict) and "Test_Results" in case.exam else {"physical_exams": case.exam}
    return {"Patient_Actor": case.patient, "patient_info": case.patient, **exam}


def assert_leads_back(fact: Fact, chart: Any) -> None:
    source = " ".join((*fact.heads, str(at(chart, "/" + fact.path))))
    invented = set(words(fact.text)) - set(words(source)) - (DENIAL_WORDS if fact.denied else set())
    assert not invented, f"{fact.path} says {invented}, which the chart does not say there"


@needs_public_data
@pytest.mark.parametrize("name", ["MedQA_Ext", "NEJM_Ext"])
def test_every_public_fact_leads_back_to_the_value_it_came_from(name: str) -> None:
    for case in public_cases(name):
        chart = chart_of(case)
        for fact in case.facts:
            assert_leads_back(fact, chart)


@needs_public_data
@pytest.mark.parametrize("name", ["MedQA_Ext", "NEJM_Ext"])
def test_no_two_public_facts_share_a_path(name: str) -> None:
    for case in public_cases(name):
        paths = [fact.path for fact in case.facts]
        assert len(set(paths)) == len(paths), case.scenario_id


@needs_public_data
def test_no_word_of_a_public_chart_is_lost() -> None:
    for case in public_cases("MedQA_Ext"):
        kept = {word for fact in case.facts for word in words(" ".join((*fact.heads, fact.text)))}
        lost = _all_words(case.patient) | _all_words(case.exam)
        # The opening of a denial is reworded, and "not available" is not a fact.
        assert len(lost - kept) <= 12, (case.scenario_id, lost - kept)


def _all_words(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {word for child in value.values() for word in _all_words(child)}
    if isinstance(value, list):
        return {word for child in value for word in _all_words(child)}
    return set(words(str(value))) if value is not None else set()


PHRASES = st.sampled_from(
    [
        "The patient denies fever, chills or night sweats.",
        "No rash",
        "Denies pain",
        "Has a cough; denies wheeze.",
        "No known allergies, takes aspirin.",
        "Without fever or respiratory, urinary symptoms",
        "Dr. No. 5 came.",
        "7.5",
        "N/A",
        "",
    ]
)
TEXTS = st.one_of(PHRASES, st.text(max_size=40), st.lists(PHRASES, max_size=3).map(" ".join))
KEYS = st.one_of(
    st.sampled_from(["History", "Symptoms", "FEV1/FVC", "a.b", "Vital_Signs"]), st.text("abc _-/.", min_size=1)
)
CHARTS = st.recursive(
    st.one_of(TEXTS, st.none(), st.integers(), st.booleans(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(CHARTS)
@settings(max_examples=150)
def test_the_facts_of_any_chart_say_only_what_is_at_their_path(chart: Any) -> None:
    root = {"Patient_Actor": chart}
    for fact in patient_facts(chart, "Patient_Actor"):
        assert_leads_back(fact, root)
    for fact in exam_facts(chart, "Patient_Actor", Section.TESTS):
        assert_leads_back(fact, root)
        assert not fact.denied


@given(st.text(max_size=200))
@settings(max_examples=60)
def test_the_facts_of_any_prose_say_only_what_it_says(text: str) -> None:
    for fact in prose_facts(text, "patient_info", Section.TESTS):
        assert_leads_back(fact, {"patient_info": text})


def told(text: str) -> list[str]:
    return [fact.text for fact in patient_facts({"Review_of_Systems": text}, "P")]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Denies fever, chills, or sweats.", ["Denies fever", "Denies chills", "Denies sweats"]),
        ("The patient denies any nausea or vomiting.", ["Denies nausea", "Denies vomiting"]),
        ("No surgery, no transfusions.", ["No surgery", "No transfusions"]),
        ("No recent illnesses, denies fever.", ["No recent illnesses", "No fever"]),
        ("No history of seizures, headaches.", ["No history of seizures", "No history of headaches"]),
        ("Negative for rash.", ["Denies rash"]),
        ("Denies fever. Has a cough.", ["Denies fever", "Has a cough."]),
        ("Denies fever; reports a cough", ["Denies fever", "reports a cough"]),
    ],
)
def test_a_list_of_denials_becomes_one_fact_per_item(text: str, facts: list[str]) -> None:
    assert told(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        "No travel, no recreational drugs, drinks alcohol at parties",
        "No drooling, swallows water",
        "Denies fever but has a cough",
        "No illnesses apart from gout",
        "No changes in urinary habits, such as urgency",
        "No known allergies, takes aspirin",
    ],
)
def test_a_denial_does_not_reach_what_the_sentence_then_affirms(text: str) -> None:
    (fact,) = patient_facts({"Social_History": text}, "P")
    assert fact.text == text
    assert not fact.denied


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("No changes in bowel or bladder habits", 1),
        ("No skin or nipple changes", 1),
        ("Denies fever, changes in bowel or bladder habits", 2),
        ("Denies any respiratory, gastrointestinal, or urinary symptoms", 1),
        ("No significant past medical, surgical or psychiatric history", 1),
    ],
)
def test_words_that_belong_together_stay_together(text: str, count: int) -> None:
    facts = patient_facts({"History": text}, "P")
    assert len(facts) == count
    assert all(fact.denied for fact in facts)


@pytest.mark.parametrize("text", ["", " ", "N/A", "Not available.", "Unknown", "not provided", None, {}, []])
def test_not_available_is_not_a_fact(text: Any) -> None:
    assert patient_facts({"Family_History": text}, "P") == ()


@pytest.mark.parametrize(
    ("key", "section"),
    [
        ("Demographics", Section.DEMOGRAPHICS),
        ("Past_Medical_History", Section.PAST),
        ("Family_History", Section.FAMILY),
        ("Social_History", Section.SOCIAL),
        ("Medications", Section.DRUGS),
        ("Current_Drugs", Section.DRUGS),
        ("Allergies", Section.ALLERGIES),
        ("Review_of_Systems", Section.REVIEW),
        ("Symptoms", Section.SYMPTOMS),
        ("History", Section.HISTORY),
        ("Anything_Else", Section.HISTORY),
    ],
)
def test_a_fact_knows_its_section(key: str, section: Section) -> None:
    (fact,) = patient_facts({key: "A statement"}, "P")
    assert fact.section is section
    assert fact.path == f"P/{key}"


def test_vital_signs_examination_and_tests_are_separate_sections() -> None:
    case = case_of(osce(exam={"Vital_Signs": {"Pulse": "80/min"}, "Heart": "Murmur"}, tests={"WBC": "7"}))
    assert [fact.section for fact in case.exam_facts] == [Section.VITALS, Section.EXAMINATION, Section.TESTS]
    assert [fact.heads for fact in case.exam_facts] == [("Vital Signs", "Pulse"), ("Heart",), ("WBC",)]


def test_patient_and_laboratory_share_no_fact() -> None:
    case = case_of(osce(tests={"WBC": "7"}))
    assert set(case.patient_facts) | set(case.exam_facts) == set(case.facts)
    assert not set(case.patient_facts) & set(case.exam_facts)


def test_stage_directions_are_not_facts() -> None:
    case = case_of(
        nejm(patient_info="For the patient actor: You have a cough. You are not aware of the biopsy findings.")
    )
    assert [fact.text for fact in case.patient_facts] == ["You have a cough."]


def test_results_in_prose_keep_their_names_as_headings() -> None:
    case = case_of(nejm(physical_exams="Temperature: 38.5 C. The toe is red."))
    assert [(fact.heads, fact.text) for fact in case.exam_facts] == [
        (("Temperature",), "38.5 C."),
        ((), "The toe is red."),
    ]
