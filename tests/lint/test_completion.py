"""What `data check --quality` lists for charts that are completed with normal results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentclinic.cases.model import Case, Door, Fact, Section
from agentclinic.lint.quality import OF_COMPLETED, check_quality

ED = "emergency department"


def case(*results: tuple[str, str], truth: str = "Gout", dataset: str = "OpenOSCE", **annotations: Any) -> Case:
    facts = tuple(
        Fact(
            "Test_Results/" + heading.replace(" / ", "/").replace(" ", "_"),
            Section.TESTS,
            tuple(heading.split(" / ")),
            text,
        )
        for heading, text in results
    )
    return Case(
        "c", dataset, 0, Door("Assess a man.", "50-year-old man"), {}, {}, truth, facts, annotations=annotations
    )


def found(checked: Case) -> list[tuple[str, str]]:
    codes = {"probable_result_missing", "heading_not_in_table", "result_too_late"}
    return [(problem.code, problem.path) for problem in check_quality(checked) if problem.code in codes]


def test_what_the_truth_probably_makes_abnormal_must_be_in_the_chart() -> None:
    problems = [problem.message for problem in check_quality(case()) if problem.code == "probable_result_missing"]
    assert any("uric acid" in message for message in problems)
    charted = [p.message for p in check_quality(case(("Uric Acid", "9.1 mg/dL (ref 3.5-7.2)")))]
    assert not any("uric acid" in message.lower() for message in charted if "no result of" in message)


def test_a_heading_of_one_chart_alone_is_listed() -> None:
    unusual = case(("Serum Xyzamine", "4 mg/dL"), truth="Unknown disease")
    assert found(unusual) == [("heading_not_in_table", "Test_Results/Serum_Xyzamine")]


@pytest.mark.parametrize(("setting", "late"), [(ED, True), ("hospital ward", False)])
def test_nothing_that_decides_the_case_stays_pending(setting: str, late: bool) -> None:
    culture, path = (
        ("Joint Fluid Analysis / Culture", "Growth of Staphylococcus aureus"),
        "Test_Results/Joint_Fluid_Analysis/Culture",
    )
    keys = [{"any_of": [path], "role": "discriminating", "weight": 5}]
    excluded = [{"name": "Septic arthritis", "excluded_by": [path]}]
    checked = case(culture, truth="Unknown disease", setting=setting, Key_Findings=keys, Must_Not_Miss=excluded)
    expected = [("result_too_late", "Key_Findings[0]"), ("result_too_late", "Must_Not_Miss[0]")]
    assert found(checked) == (expected if late else [])
    stained = replace(
        checked, annotations={**checked.annotations, "Key_Findings": [{**keys[0], "any_of": ["Patient_Actor/History"]}]}
    )
    assert ("result_too_late", "Key_Findings[0]") not in found(stained)


def test_a_culture_does_not_grow_longer_than_the_case_lasts() -> None:
    blood = case(("Blood Cultures / Findings", "No growth at 5 days"), truth="Unknown disease", setting="hospital ward")
    assert found(blood) == [("result_too_late", "Test_Results/Blood_Cultures/Findings")]


def test_other_data_sets_are_not_checked_for_this() -> None:
    assert OF_COMPLETED
    assert found(case(("Serum Xyzamine", "4 mg/dL"), dataset="MedQA")) == []


def test_what_decides_a_case_can_be_had_in_its_setting() -> None:
    scan, strip = ("CT Head / Findings", "Mass"), ("Capillary Glucose", "32 mmol/L")
    blood = ("Blood Cultures / Findings", "Gram-negative rods")

    def decided_by(result: tuple[str, str], setting: str) -> list[tuple[str, str]]:
        path = "Test_Results/" + result[0].replace(" / ", "/").replace(" ", "_")
        finding = {"finding": "x", "role": "discriminating", "any_of": [path]}
        checked = case(result, truth="Frobisher fever", setting=setting, Key_Findings=[finding])
        return [problem for problem in found(checked) if problem[0] == "result_too_late"]

    late = [("result_too_late", "Key_Findings[0]")]
    assert decided_by(scan, "hospital ward") == decided_by(strip, "rural clinic") == []
    assert decided_by(scan, "rural clinic") == decided_by(scan, "district hospital") == late
    assert decided_by(blood, "district hospital") == late, "taken, but not back in time"
    assert decided_by(strip, "telephone") == late


def test_what_cannot_be_ordered_in_a_setting_need_not_be_in_the_chart() -> None:
    def missing(setting: str) -> bool:
        return any(
            "no result of Serum uric acid" in problem.message for problem in check_quality(case(setting=setting))
        )

    assert missing("hospital ward")
    assert not missing("rural clinic")
