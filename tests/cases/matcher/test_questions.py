"""What a question asks for: complaints and their kinds, conditions, places, subjects, relatives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import ask, case_of, osce
from numpy.typing import NDArray

from agentclinic.cases.matcher import asked_of_patient, cues, questions, relevance
from agentclinic.cases.matcher.asking import clause_texts, clauses

CASE = case_of(
    osce(
        patient={
            "Demographics": "44-year-old woman, 12 weeks pregnant",
            "History": "The patient has had a throbbing headache for 2 weeks. It is worse when she bends over. "
            "She has had a red, scaly patch on the left elbow since May. Her sister has migraines.",
            "Symptoms": {
                "Primary_Symptom": "Throbbing headache",
                "Secondary_Symptoms": ["Nosebleeds twice a week", "Relief with ibuprofen", "Swollen left ankle"],
            },
            "Past_Medical_History": "No significant past medical history.",
            "Social_History": "Works as a baker.",
            "Review_of_Systems": "Denies vision changes. Denies chest pain. No rash elsewhere.",
        }
    )
)
A = "Patient_Actor/"


def told(question: str) -> set[str]:
    return {path.removeprefix(A) for d in ask(CASE, question).disclosures for path in d.paths}


def test_a_child_answers_its_parent_but_only_a_denied_parent_answers_its_child() -> None:
    assert told("Any bleeding?") == {"Symptoms/Secondary_Symptoms[0]"}
    assert told("Any rectal bleeding?") == set()
    assert told("Do you see double?") == {"Review_of_Systems#0"}
    assert told("Any double vision?") == {"Review_of_Systems#0"}


@pytest.mark.parametrize("question", ["Is the headache worse when you bend over?", "Does bending make it worse?"])
def test_a_condition_is_answered_by_the_statement_that_mentions_it(question: str) -> None:
    assert told(question) == {"History#1"}


@pytest.mark.parametrize(
    "question", ["Does coughing make the headache worse?", "Is the headache worse in the morning?"]
)
def test_an_uncharted_condition_is_not_answered_with_the_complaint(question: str) -> None:
    assert not told(question) & {"History#0", "Symptoms/Primary_Symptom"}


def test_an_answer_is_about_the_place_asked_for() -> None:
    assert told("Any swelling of your ankles?") == {"Symptoms/Secondary_Symptoms[2]"}
    assert told("Any swelling of your hands?") == set()
    assert told("Any rash elsewhere?") == {"Review_of_Systems#2"}


def test_a_known_symptom_is_not_what_is_asked_for() -> None:
    assert told("Is the patch scaly?") == {"History#2"}
    assert told("Any numbness over the patch?") == set()


def test_relatives_are_told_of_only_when_asked_about() -> None:
    assert "History#3" not in told("Do you have migraines?")
    assert told("Does anyone in your family have migraines?") == {"History#3"}


def test_a_pronoun_refers_to_what_was_named_before() -> None:
    assert told("When did the headaches start, and how long do they last?") == {"History#0"}


def test_demographics_answer_a_question_about_a_pregnancy() -> None:
    assert told("How far along are you?") == {"Demographics"}


def test_what_follows_a_condition_belongs_to_it() -> None:
    (clause,) = clauses("Any nausea, vomiting, or headache after meals or drinks")
    assert [part.conditional for part in clause.parts if not part.whole] == [False, False, True, True]


def test_a_list_after_a_dash_belongs_to_what_comes_before_it() -> None:
    assert clause_texts("Any stomach symptoms—diarrhea, constipation—and do you have fever?") == (
        "Any stomach symptoms: diarrhea, constipation",
        "do you have fever",
    )


def test_the_trees_match_the_current_features() -> None:
    parts = clauses("When did the headache start, and any fever or chills?")
    table = relevance.features(parts, CASE.patient_facts)
    assert table.shape == (len(CASE.patient_facts), len(relevance.parts_of(parts)), len(relevance.FEATURES))
    assert np.isfinite(table).all()
    found = relevance.answer_probabilities(parts, CASE.patient_facts)
    assert ((found >= 0) & (found < 1)).all()
    assert found.max() >= relevance.threshold()


def test_trees_fitted_to_different_features_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "answers.json"
    other.write_text('{"features": ["exact"]}', encoding="utf-8")
    monkeypatch.setattr(relevance, "_TREES", other)
    relevance._trees.cache_clear()
    try:
        with pytest.raises(ValueError, match="fit_patient"):
            relevance.threshold()
    finally:
        relevance._trees.cache_clear()


def test_a_question_for_a_whole_section_is_answered_by_that_section_only() -> None:
    case = case_of(osce(patient={"Medications": ["Apixaban 5 mg"], "Allergies": "Latex.", "Family_History": "Gout."}))

    def paths(question: str) -> set[str]:
        return {path.removeprefix(A) for d in ask(case, question).disclosures for path in d.paths}

    assert paths("What medications are you on?") == {"Medications[0]"}
    assert paths("Do you have any allergies?") == {"Allergies"}
    assert paths("What runs in your family?") == {"Family_History"}


def test_an_endlessly_repetitive_question_is_answered() -> None:
    assert told("Do you have " + "fever or headache, " * 300 + "?") >= {"Symptoms/Primary_Symptom"}


def test_of_a_question_that_never_ends_the_beginning_and_the_end_are_read() -> None:
    for filler in ("x/", "x, ", "Is it x? ", "x ", "Any fever, chills, cough, nausea, itch or rash? "):
        read = clauses(f"Any nosebleeds? {filler * 10_000}? Do you see double?")
        assert (read[0].text, read[-1].text) == ("Any nosebleeds", "Do you see double")
        assert sum(len(clause.parts) for clause in read) < 300


def test_all_trees_at_once_say_what_each_tree_says() -> None:
    parts = clauses("When did the headache start, and any fever, chills or migraines in the family?")
    table = relevance.features(parts, CASE.patient_facts).reshape(-1, len(relevance.FEATURES))
    data = json.loads(relevance._TREES.read_text(encoding="utf-8"))

    def walked(row: NDArray[np.float64], tree: int) -> float:
        node = 0
        feature, bound, left, right, value = (data[key][tree] for key in ("feature", "bound", "left", "right", "value"))
        while left[node] != node:
            node = left[node] if row[feature[node]] <= bound[node] else right[node]
        return float(value[node])

    sums = [sum(walked(row, tree) for tree in range(len(data["feature"]))) for row in table]
    found = relevance._trees().probabilities(table.T)
    assert np.allclose(found, 1 / (1 + np.exp(-np.array(sums))), rtol=0, atol=1e-12)


def test_a_question_for_another_chart_is_answered_from_that_chart() -> None:
    other = case_of(osce(patient={"History": "Headaches since Monday."}))
    question = "When did the headaches start?"
    first, second = (asked_of_patient(question, case.patient_facts) for case in (CASE, other))
    assert {fact.text for topic in first for fact in topic.facts} != {f.text for topic in second for f in topic.facts}
    assert asked_of_patient(question, CASE.patient_facts) == first


def test_a_cue_is_found_in_any_case_and_at_the_place_its_pattern_says() -> None:
    cue = cues._any(r"\bab(?:c|d)|[|x]y", r"\bef\b")
    assert cue.pattern.pattern == r"\b(?:ab(?:c|d)|ef\b)|[|x]y"
    found = [bool(cue.search(text)) for text in ("An ABD.", "xabd", "of EF", "efg", "a|Y", "y")]
    assert found == [True, False, True, False, True, False]


def test_nothing_is_denied_while_an_untold_statement_is_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    question = "Do you have chest pain, hair loss or hiccups?"
    assert ask(CASE, question).text.endswith("Otherwise, nothing like that.")
    monkeypatch.setattr(questions, "LEFT_BESIDE", 0.0)
    questions._asked_of_patient.cache_clear()
    reply = ask(CASE, question)
    questions._asked_of_patient.cache_clear()
    assert reply.text.endswith("About the rest I couldn't say.")
    assert all(one.provenance.value != "default_negative" for one in reply.disclosures)
