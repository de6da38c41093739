"""Reading case files: the public ones with their irregularities, and errors that name the line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import PUBLIC_FILES, case_of, needs_public_data, nejm, osce, public_cases, public_path, write_rows

from agentclinic.cases.formats import OSCE, Row, read_case, read_rows
from agentclinic.cases.model import Case
from agentclinic.cases.registry import DATASETS, load_cases
from agentclinic.compat.scenarios import ScenarioLoader, ScenarioLoaderMedQA, ScenarioLoaderNEJM, ScenarioMedQA
from agentclinic.errors import CaseError
from agentclinic.lint.check import check_file, overlaps

GOOD = json.dumps(osce()).encode()


@needs_public_data
@pytest.mark.parametrize("name", PUBLIC_FILES)
def test_every_public_row_loads(name: str) -> None:
    cases = public_cases(name)
    assert len(cases) == PUBLIC_FILES[name][1]
    assert [case.scenario_id for case in cases] == list(range(len(cases)))
    assert all(case.diagnosis and case.door.objective and case.patient_facts for case in cases)


@needs_public_data
@pytest.mark.parametrize(("name", "missing"), [("MedQA_Ext", 0), ("NEJM_Ext", 5)])
def test_nearly_every_public_patient_is_introduced_by_age_or_sex(name: str, missing: int) -> None:
    assert sum(not case.door.demographics for case in public_cases(name)) <= missing


@needs_public_data
@pytest.mark.parametrize(("small", "large"), [("MedQA", "MedQA_Ext"), ("NEJM", "NEJM_Ext")])
def test_the_small_public_sets_are_inside_the_large_ones(small: str, large: str) -> None:
    reports = [check_file(public_path(name), name) for name in (small, large)]
    (overlap,) = overlaps(reports)
    assert len(overlap.pairs) == PUBLIC_FILES[small][1]
    assert not any(report.duplicates or report.errors for report in reports)


@needs_public_data
def test_different_public_sets_share_nothing() -> None:
    assert not list(overlaps([check_file(public_path(name), name) for name in ("MedQA_Ext", "NEJM_Ext")]))


@needs_public_data
def test_the_printed_question_reaches_neither_door_nor_facts_nor_chart() -> None:
    for case in public_cases("NEJM_Ext"):
        question = case.annotations["question"]
        seen = [case.door.objective, case.door.demographics, json.dumps([case.patient, case.exam])]
        assert all(question not in text for text in [*seen, *(fact.text for fact in case.facts)]), case.scenario_id


def without(row: dict[str, Any], key: str) -> dict[str, Any]:
    chart = {k: v for k, v in row["OSCE_Examination"].items() if k != key}
    return {"OSCE_Examination": chart}


def misspelled(row: dict[str, Any]) -> dict[str, Any]:
    return {"OSCE_Examination": {**without(row, "Correct_Diagnosis")["OSCE_Examination"], "Corect_Diagnosis": "Gout"}}


BAD_LINES: list[tuple[str, Any, str]] = [
    ("not JSON", b'{"OSCE_Examination": ', r"line 2: not valid JSON .* column \d+"),
    ("not an object", [1, 2], r"line 2: expected a JSON object, found a list"),
    ("a number", 7, r"line 2: expected a JSON object, found a number"),
    ("not UTF-8", b'{"OSCE_Examination": "\xff\xfe"}', r"line 2: not UTF-8"),
    ("another format", {"prompt": "?"}, r"line 2: not a case in the format OSCE .* or NEJM"),
    ("no chart", {"OSCE_Examination": "text"}, r"line 2: OSCE_Examination must be an object"),
    ("no truth", without(osce(), "Correct_Diagnosis"), r"line 2: Correct_Diagnosis is missing"),
    ("misspelled", misspelled(osce()), r"line 2: Correct_Diagnosis is missing; is it 'Corect_Diagnosis'\?"),
    ("null truth", osce(truth=None), r"line 2: Correct_Diagnosis is missing"),  # type: ignore[arg-type]
    ("blank truth", osce(truth="  "), r"line 2: Correct_Diagnosis is blank"),
    ("truth as a list", osce(truth=["A"]), r"line 2: Correct_Diagnosis must be text, found a list"),  # type: ignore[arg-type]
    ("truth as a number", osce(truth=0), r"line 2: Correct_Diagnosis must be text, found a number"),  # type: ignore[arg-type]
    ("truth as false", osce(truth=False), r"line 2: Correct_Diagnosis must be text, found true or false"),  # type: ignore[arg-type]
    ("no patient", without(osce(), "Patient_Actor"), r"line 2: Patient_Actor is missing"),
    ("patient as a number", osce(patient=3), r"line 2: Patient_Actor must be an object or text, found a number"),
    ("no objective", without(osce(), "Objective_for_Doctor"), r"line 2: Objective_for_Doctor is missing"),
    ("nested too deeply", b'{"a": ' + b"[" * 100_000, r"line 2: not valid JSON .nested too deeply"),
    ("nothing charted", osce(patient={"History": ""}, exam={}), r"line 2: the chart has no facts"),
    ("bad answer key", osce(Answer_Key={"reject": ["A"]}), r"line 2: Answer_Key must be an object"),
    ("names as one text", osce(Answer_Key={"accept": "Gout"}), r"line 2: Answer_Key must be an object"),
    ("no right answer", nejm(answers=[{"text": "A", "correct": False}]), r"line 2: answers must mark .* found 0"),
    ("two right", nejm(answers=[{"text": t, "correct": True} for t in "AB"]), r"line 2: answers must mark .* found 2"),
    ("blank right answer", nejm(answers=[{"text": " ", "correct": True}]), r"line 2: answers must mark .* found 0"),
    ("a number right", nejm(answers=[{"text": 5, "correct": True}]), r"line 2: answers must mark .* found 0"),
    ("no answers", nejm(answers=None), r"line 2: answers is missing"),
    ("answers as text", nejm(answers="A"), r"line 2: answers must be a list, found text"),
    ("no patient info", nejm(patient_info=""), r"line 2: patient_info is missing"),
    ("image as a list", nejm(image_url=["x"]), r"line 2: image_url must be text"),
]


@pytest.mark.parametrize(("row", "message"), [bad[1:] for bad in BAD_LINES], ids=[bad[0] for bad in BAD_LINES])
def test_an_error_names_file_line_and_key(tmp_path: Path, row: Any, message: str) -> None:
    path = tmp_path / "cases.jsonl"
    line = row if isinstance(row, bytes) else json.dumps(row).encode()
    path.write_bytes(GOOD + b"\n" + line + b"\n" + GOOD + b"\n")
    with pytest.raises(CaseError, match=re.escape(str(path)) + " " + message):
        load_cases(str(path))
    report = check_file(path, "cases")
    assert len(report.errors) == 1, "checking continues after a bad line and reports it once"
    assert [case.scenario_id for case in report.cases] == [0, 2], "rows keep their numbers"
    assert report.rows == 3


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (GOOD, 1),
        (GOOD + b"\n", 1),
        (b"\xef\xbb\xbf" + GOOD + b"\n" + GOOD, 2),
        (GOOD + b"\r\n" + GOOD + b"\r\n", 2),
        (b"\n\n" + GOOD + b"\n  \n\n" + GOOD + b"\n\n", 2),
        (b"\xef\xbb\xbf\n" + GOOD, 1),
    ],
    ids=["no final newline", "final newline", "BOM", "CRLF", "blank lines", "BOM on a blank line"],
)
def test_line_endings_and_a_bom_do_not_matter(tmp_path: Path, content: bytes, count: int) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(content)
    cases = load_cases(str(path))
    assert [case.scenario_id for case in cases] == list(range(count))


def test_a_json_array_is_read_as_its_objects_each_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    good = json.dumps(json.loads(GOOD), indent=1)
    path.write_text(f"\ufeff\n[{good},\n  {good}\n,\n\n3 ]\n", encoding="utf-8")
    errors: list[CaseError] = []

    found = list(read_rows(path, on_error=errors.append))

    lines = good.count("\n")
    assert [(row.line, row.number, row.data) for row in found] == [
        (2, 0, json.loads(GOOD)),
        (3 + lines, 1, json.loads(GOOD)),
    ]
    (error,) = errors
    assert f"cases.json line {6 + 2 * lines}: expected a JSON object, found a number" in str(error)
    path.write_text(f"[{good}]")
    assert [case.scenario_id for case in load_cases(str(path))] == [0]
    path.write_text(f"[{good}\n{good}]")
    with pytest.raises(CaseError, match=rf"cases.json line {2 + lines}: not valid JSON .* must be one list of objects"):
        load_cases(str(path))


def test_blank_lines_count_as_lines_but_not_as_rows(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(GOOD + b"\n\n" + GOOD)
    assert [(row.line, row.number) for row in read_rows(path)] == [(1, 0), (3, 1)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "absent.jsonl", "no such file; put the data set there"),
        (lambda folder: folder, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, make: Callable[[Path], Path], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        list(read_rows(make(tmp_path)))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n\n")
    with pytest.raises(CaseError, match="has no cases"):
        load_cases(str(path))


def test_a_row_in_the_wrong_format_is_refused() -> None:
    with pytest.raises(CaseError, match="line 1: not a case in the format OSCE"):
        read_case(Row(Path("x.jsonl"), 1, 0, nejm()), "MedQA", OSCE)


def same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return case_of(left).id == case_of(right).id


CHART = {"Demographics": "40-year-old woman", "History": "She is “well”, mostly."}


@pytest.mark.parametrize(
    "copy",
    [
        osce(patient={"History": "She is “well”, mostly.", "Demographics": "40-year-old woman"}),
        osce(patient={"Demographics": "40-YEAR-OLD WOMAN", "History": "she is “WELL”, mostly."}),
        osce(patient={"Demographics": "40 year old  woman", "History": "She is\n“well”, mostly"}),
        osce(patient={"Demographics": "40-year-old woman", "History": 'She is "well", mostly.'}),
        osce(patient=CHART, objective="Something else."),
        osce(patient=CHART, truth="frobisher  FEVER"),
        osce(patient=CHART, Answer_Key={"accept": ["Marsh fever"]}, Differential=["x"], twin_of=3),
    ],
    ids=["key order", "case", "blanks", "quotes", "objective", "truth's case", "annotations"],
)
def test_a_copy_in_other_formatting_is_the_same_case(copy: dict[str, Any]) -> None:
    assert same(osce(patient=CHART), copy)


@pytest.mark.parametrize(
    "other",
    [
        osce(patient=CHART, truth="Marsh fever"),
        osce(patient={**CHART, "History": "She is unwell, mostly."}),
        osce(patient=CHART, exam={"General": "Drowsy."}),
        osce(patient=CHART, tests={"WBC": 7}),
        osce(patient=CHART, tests={"WBC": 7.5}),
    ],
)
def test_another_chart_or_truth_is_another_case(other: dict[str, Any]) -> None:
    assert not same(osce(patient=CHART), other)


def test_the_size_in_an_image_url_does_not_matter() -> None:
    assert same(nejm(), nejm(type="Image", image_url="http://EXAMPLE.org/view?width=900&id=7"))
    assert same(nejm(), nejm(question="Another wording?"))
    assert not same(nejm(), nejm(image_url="https://example.org/view?id=8&width=300"))


def test_only_the_judge_sees_the_nejm_question_and_answers() -> None:
    case = case_of(nejm())
    shown = json.dumps([case.patient, case.exam, case.door.objective, case.door.demographics])
    assert "zyxwort" not in shown + " ".join(fact.text for fact in case.facts)
    assert "Marsh" not in shown
    assert case.diagnosis == "Frobisher fever"
    assert case.door.demographics == "40-year-old man"


def test_irregular_sections_are_read() -> None:
    case = case_of(
        osce(
            patient={
                "Demographics": {"Age": 40, "Sex": "female"},
                "History": ["One.", {"Two": "Three."}],
                "Extra": None,
            },
            exam=["Alert.", "Pale."],
            tests="WBC 7",
            Extra_Key=1,
        )
    )
    assert case.door.demographics == "40, female"
    assert [fact.text for fact in case.exam_facts] == ["Alert.", "Pale.", "WBC 7"]
    assert case.annotations == {"Extra_Key": 1}


def test_examination_and_tests_are_optional() -> None:
    row = osce()
    del row["OSCE_Examination"]["Physical_Examination_Findings"], row["OSCE_Examination"]["Test_Results"]
    assert case_of(row).exam_facts == ()


def test_a_patient_script_may_be_prose() -> None:
    case = case_of(osce(patient="A 40-year-old woman has a sore toe. She denies fever."))
    assert case.door.demographics == "40-year-old woman"
    assert len(case.patient_facts) == 2


def test_an_answer_key_is_read() -> None:
    key = {"accept": ["A"], "partial": ["B"], "reject": [{"text": "C", "reason": "old"}]}
    case = case_of(osce(Answer_Key=key))
    assert case.answer_key.accept == ("A",)
    assert case.answer_key.partial == ("B",)
    assert case.answer_key.reject == (("C", "old"),)


def test_the_bundled_cases_have_no_errors_duplicates_or_leaks() -> None:
    bundled = DATASETS["OpenOSCE_Demo"]
    report = check_file(bundled.path, bundled.name, bundled.format)
    assert report.rows >= 12
    assert (report.errors, report.duplicates, report.leaks) == ([], [], [])
    assert all(case.answer_key.accept for case in report.cases)


def test_the_original_scenario_classes_give_access_to_a_case(tmp_path: Path) -> None:
    scenario = ScenarioMedQA(osce(truth="Gout"))
    assert scenario.diagnosis_information() == "Gout"
    assert scenario.examiner_information() == "Find out what is wrong."
    assert scenario.patient_information()["Demographics"] == "40-year-old woman"
    assert scenario.exam_information() == {"General": "Alert.", "tests": {}}
    loader = ScenarioLoaderMedQA(write_rows(tmp_path / "m.jsonl", osce(), osce(truth="Gout")))
    assert loader.num_scenarios == 2
    assert loader.get_scenario(1).diagnosis_information() == "Gout"
    assert loader.get_scenario() in loader.scenarios
    with pytest.raises(CaseError, match="scenario 2 does not exist; MedQA has rows 0-1"):
        loader.get_scenario(2)


def test_a_loader_of_the_original_leaves_the_lockbox_out_and_keeps_the_numbers_of_rows(tmp_path: Path) -> None:
    rows = (osce(truth="Gout"), osce(truth="Croup", lockbox=True), osce(truth="Measles"))
    loader = ScenarioLoaderMedQA(write_rows(tmp_path / "m.jsonl", *rows))
    assert [scenario.diagnosis for scenario in loader.scenarios] == ["Gout", "Measles"]
    assert loader.get_scenario(2).diagnosis == "Measles"
    with pytest.raises(CaseError, match="scenario 1 is in the lockbox; MedQA has rows 0-2"):
        loader.get_scenario(1)
    with pytest.raises(CaseError, match="scenario 3 does not exist; MedQA has rows 0-2"):
        loader.get_scenario(3)


def test_a_nejm_scenario_has_its_image(tmp_path: Path) -> None:
    loader = ScenarioLoaderNEJM(write_rows(tmp_path / "n.jsonl", nejm()))
    assert loader.get_scenario(0).image_url == "https://example.org/view?id=7&width=300"


def test_the_plain_loader_reads_the_bundled_cases() -> None:
    first: Case = ScenarioLoader().get_scenario(0).case
    assert first.dataset == "OpenOSCE_Demo"


def test_an_image_address_that_cannot_be_taken_apart_is_still_part_of_the_identity() -> None:
    odd, other = case_of(nejm(image_url="https://[x")), case_of(nejm(image_url="https://[y"))
    assert odd.image == "https://[x"
    assert odd.id != other.id
