"""Experiences: what makes two the same, which step they name, and which cases they may not be shown on."""

from __future__ import annotations

import copy
import json

import pytest
from helpers import case_of, osce
from memory_support import COUNT, experience, story, story_rows
from pydantic import ValidationError
from runs_support import ROOT

from agentclinic.cases.registry import load_cases
from agentclinic.memory.experience import (
    MOST,
    Lesson,
    WrittenExperience,
    dumped,
    is_followed,
    same_patient,
    source_of,
    step_of,
)


def test_the_same_words_are_the_same_experience_whatever_their_case_and_punctuation() -> None:
    assert experience("Sore, swollen toe.", "Ask about beer!").id == experience("sore swollen TOE", "Ask about beer").id
    assert experience("Sore toe", "Ask about beer").id != experience("Sore toe", "Ask about wine").id
    assert experience("Sore toe ask", "about beer").id != experience("Sore toe", "ask about beer").id


def test_a_step_gets_the_id_of_what_the_knowledge_base_knows_by_that_name() -> None:
    named = [
        step_of(kind, what)
        for kind, what in [
            ("test", "D-dimer"),
            ("question", "Do you have a fever?"),
            ("test", "Frobisher scan"),
            ("question", "Do you have a fever or a cough?"),
            ("test", " "),
        ]
    ]
    assert [step and step.id for step in named] == ["test:d_dimer", "finding:fever_reported", None, None, None]
    assert named[-1] is None


def test_an_utterance_follows_a_step_by_its_id_or_by_most_of_its_words() -> None:
    dimer = step_of("test", "D-dimer")
    beer = step_of("question", "How much beer do you drink with dinner?")
    assert dimer
    assert beer
    assert is_followed(dimer, "test", "Please order D-dimer and an ECG")
    assert not is_followed(dimer, "question", "Did you have a D-dimer?")
    assert not is_followed(dimer, "test", "Chest X-ray")
    assert is_followed(beer, "question", "When you drink beer, how much is it, and is it with dinner?")
    assert not is_followed(beer, "question", "What did you have for dinner?")


def test_a_lesson_comes_back_from_its_line_and_has_five_experiences_at_most() -> None:
    given = {"source": source_of(story("Gout"), "run", "0:x:0"), "model": "m", "prompt": "p"}
    one = Lesson(**given, experiences=(COUNT,))
    assert Lesson.model_validate(json.loads(json.dumps(dumped(one)))) == one
    with pytest.raises(ValidationError, match="at most 5"):
        Lesson(**given, experiences=(COUNT,) * (MOST + 1))


def test_what_a_model_writes_is_kept_on_one_line() -> None:
    written = WrittenExperience(observation="Sore\n toe ", suggestion=" Ask  on ", kind="question", what="  ")
    assert written.kept() == experience("Sore toe", "Ask on")


def test_the_same_case_in_another_data_set_is_the_same_patient() -> None:
    row = story_rows()[0]
    here, there = source_of(case_of(row, "Here", 0)), source_of(case_of(row, "There", 7))
    assert here.case == there.case
    assert same_patient(here, there)


def test_twins_are_the_same_patient_however_their_charts_differ() -> None:
    bundled = load_cases("OpenOSCE", {"OpenOSCE": str(ROOT / "agentclinic" / "cases" / "bundled" / "openosce.jsonl")})
    named = {str(case.annotations["case_id"]): case for case in bundled}
    twin, other, stranger = (source_of(named[name]) for name in ("osce-a01", "osce-a02", "osce-b01"))
    assert twin.diagnosis != other.diagnosis
    assert same_patient(twin, other)
    assert not same_patient(twin, stranger)
    one, changed = osce(case_id="one"), osce(patient={"History": "Another story."}, case_id="two", twin_of="one")
    assert same_patient(source_of(case_of(one)), source_of(case_of(changed)))


def test_a_chart_with_a_few_other_words_is_a_near_copy_and_another_story_is_not() -> None:
    row = story_rows()[1]
    near = copy.deepcopy(row)
    actor = near["OSCE_Examination"]["Patient_Actor"]
    actor["History"] = actor["History"].replace("twelve", "ten").replace("vomited twice", "vomited")
    near["OSCE_Examination"]["Correct_Diagnosis"] = "Ovarian torsion"
    original, copied = source_of(case_of(row)), source_of(case_of(near))
    assert original.case != copied.case
    assert original.diagnosis != copied.diagnosis
    assert same_patient(original, copied)
    others = [source_of(case_of(other)) for other in story_rows() if other != row]
    assert not any(same_patient(original, other) for other in others)


def test_a_diagnosis_and_its_synonym_leave_the_same_mark_and_no_name() -> None:
    marks = [
        source_of(case_of(osce(truth=truth))).diagnosis
        for truth in ("Myocardial infarction", "Heart attack", "Gout", "Frobisher fever", "frobisher Fever")
    ]
    assert marks[0] == marks[1]
    assert marks[3] == marks[4]
    assert len(set(marks)) == 3
    assert "gout" not in source_of(story("Gout")).model_dump_json().lower()
