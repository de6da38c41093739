"""MedQA questions as cases: only those that ask for a diagnosis, with the marked answer as label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from generate_support import keys, made, question, work, write_questions
from runs_support import clinic, lines

from agentclinic.errors import InputError
from agentclinic.generate.medqa import question_case, select_questions
from agentclinic.generate.source import SourceCase
from agentclinic.privacy import DataClass

VIGNETTE = question()["question"].rpartition(" Which of")[0]


def case(**changes: Any) -> SourceCase:
    found = question_case(question(**changes), "here")
    assert isinstance(found, SourceCase)
    return found


@pytest.mark.parametrize(
    "ask",
    [
        "Which of the following is the most likely diagnosis?",
        "What is the most likely diagnosis?",
        "What is the diagnosis?",
        "Which of the following is the most likely underlying diagnosis?",
        "Which of the following conditions is most likely responsible?",
        "This patient most likely has which of the following?",
    ],
)
def test_a_question_that_asks_for_a_diagnosis_becomes_a_case(ask: str) -> None:
    found = case(question=f"{VIGNETTE} {ask}")
    assert found.truth.title == "Psoriasis"
    assert (found.source, found.data_class, found.history_source) == ("medqa", DataClass.SYNTHETIC, "note")


@pytest.mark.parametrize(
    "ask",
    [
        "Which of the following is the most appropriate next step in management?",
        "Which of the following is the most appropriate next step in diagnosis?",
        "Which of the following would confirm the most likely diagnosis?",
        "Which of the following findings supports the most likely diagnosis?",
        "Which of the following is the most likely mechanism of the underlying diagnosis?",
        "Given the most likely diagnosis, which treatment is indicated?",
        "Which of the following is the most likely causal organism?",
    ],
)
def test_a_question_that_asks_for_something_else_is_left_out(ask: str) -> None:
    found = question_case(question(question=f"{VIGNETTE} {ask}"), "here")
    assert found == "asks for something other than a diagnosis"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"answer": "Scabies"}, "the marked option is not the answer"),
        ({"answer_idx": "Z"}, "the marked option is not the answer"),
        ({"answer_idx": {}}, "the marked option is not the answer"),
        ({"options": [{"key": [], "value": "Scabies"}]}, "the marked option is not the answer"),
        (
            {"question": "A skin lesion is shown in the photograph below. A 40-year-old man. What is the diagnosis?"},
            "needs an image that is not in the file",
        ),
        (
            {"question": "Plaques are silvery. What is the most likely diagnosis?"},
            "describes no patient of a given age",
        ),
    ],
)
def test_what_cannot_be_a_case_is_left_out_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    assert question_case(question(**changes), "here") == reason


@pytest.mark.parametrize("changes", [{"question": None}, {"options": ["A", "B"]}, {"answer": ""}])
def test_a_row_of_another_shape_is_an_error_that_names_file_and_line(changes: dict[str, Any], tmp_path: Path) -> None:
    path = write_questions(tmp_path / "q.jsonl", [question(), question(**changes)])
    with pytest.raises(InputError, match=r"q\.jsonl line 2: "):
        select_questions(path)


def test_every_sentence_of_the_vignette_goes_to_one_place_verbatim() -> None:
    found = case()
    assert found.story == (
        "A 20-year-old woman comes to the physician because of itching of both elbows for 2 weeks.",
        "She works as a gardener.",
    )
    assert found.other_results == (
        ("Vital_Signs", "Her temperature is 36.0°C (97.9°F) and blood pressure is 118/76 mm Hg."),
        ("Physical_Examination", "Physical examination shows silvery plaques over both elbows."),
        ("Laboratory", "Serum uric acid is 4.1 mg/dL."),
    )
    assert (found.age, found.sex) == (20, "Female")


@pytest.mark.parametrize(
    ("person", "age", "sex"),
    [
        ("A 70-year-old man is brought by his daughter", 70, "Male"),
        ("A 6-month-old girl is brought by her father", 0, "Female"),
        ("A newborn is examined", 0, ""),
    ],
)
def test_age_and_sex_are_the_patients_not_a_relatives(person: str, age: int, sex: str) -> None:
    found = case(question=f"{person} because of a rash. What is the most likely diagnosis?")
    assert (found.age, found.sex) == (age, sex)


def test_the_other_options_are_not_in_the_case() -> None:
    found = case()
    assert "Scabies" not in repr(found)
    assert "lichen" not in repr(found).lower()


def test_files_are_read_in_order_and_copies_and_cases_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    write_questions(tmp_path / "b.jsonl", [question(3), question(0)])
    write_questions(tmp_path / "a.jsonl", [question(0), question(1), question(1, question="What is it?")])
    everything = select_questions(tmp_path)
    assert [one.age for one in everything.read(())] == [20, 21, 23]
    assert everything.report["excluded"] == {
        "the same question again": 1,
        "asks for something other than a diagnosis": 1,
    }
    few = select_questions(tmp_path, limit=2)
    assert few.keys == everything.keys[:2]
    assert few.report["excluded"]["beyond the limit"] == 1
    assert [one.key for one in everything.read(few.keys)] == [everything.keys[2]]


@pytest.mark.parametrize("place", [".", "nowhere.jsonl"])
def test_without_questions_the_error_says_what_to_do(place: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a file of questions \(\.jsonl, .* name it with --base-dir"):
        select_questions(tmp_path / place)


@pytest.mark.anyio
async def test_the_label_of_every_case_is_the_answer_of_its_question(tmp_path: Path) -> None:
    answers = ["Psoriasis", "Scabies", "Lichen planus"]
    rows = [
        question(number, answer=answer, answer_idx=letter)
        for number, (letter, answer) in enumerate(zip("BAC", answers, strict=True))
    ]
    selection = select_questions(write_questions(tmp_path / "q.jsonl", rows))
    job = work(tmp_path / "out.jsonl", [], source="medqa", workers=1, selection=vars(selection))
    await made(job)
    assert [row["OSCE_Examination"]["Correct_Diagnosis"] for row in lines(job.output)] == answers
    assert keys(job.output) == list(selection.keys)


@pytest.mark.slow
def test_from_the_command_line_to_a_run(tmp_path: Path) -> None:
    write_questions(tmp_path / "medqa" / "q.jsonl", [question(n) for n in range(4)])
    command = ["generate", "medqa", "--base_dir", "medqa", "--limit", "3", "--workers", "2", "--output", "made.jsonl"]
    result = json.loads(clinic(*command, "--json", "--quiet", cwd=tmp_path).stdout)
    assert result["counts"]["made"] == 3
    assert result["chosen"]["excluded"] == {"beyond the limit": 1}
    checked = json.loads(clinic("data", "check", "made.jsonl", "--json", cwd=tmp_path).stdout)["files"][0]
    assert (checked["rows"], checked["errors"], checked["leaks"]) == (3, [], [])
    played = json.loads(clinic("run", "--dataset", "made.jsonl", "--json", "--quiet", cwd=tmp_path).stdout)
    assert (played["presented"], played["missing"]) == (3, 0)
    shown = clinic("generate", "solvability", "made.jsonl", "--quiet", "--output_dir", "solved", cwd=tmp_path).stdout
    assert "full_information" in shown
    assert "door_only" in shown
    assert len(list((tmp_path / "solved").iterdir())) == 2
