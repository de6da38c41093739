"""Cases with another patient's chart: what stays, what comes from elsewhere, and whose chart it may be."""

from __future__ import annotations

from itertools import starmap
from pathlib import Path
from typing import Any

import pytest
from helpers import case_of, nejm, osce
from memory_support import story_rows

from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases, select
from agentclinic.errors import InputError
from agentclinic.learn.shuffle import CHART_OF, apart, names, partners, with_chart_of
from agentclinic.privacy import DataClass
from agentclinic.results.run_cases import read_cases, write_cases


def stories() -> list[Case]:
    return [case_of(row, "stories", number) for number, row in enumerate(story_rows())]


def shuffled(case: Case, other: Case, data_class: DataClass = DataClass.PUBLIC) -> Case:
    return with_chart_of(other, case, data_class)


def test_door_and_truth_stay_and_everything_that_is_told_is_the_other_patients(tmp_path: Path) -> None:
    gout, appendicitis, *_ = stories()
    made = shuffled(gout, appendicitis)
    assert (made.door, made.diagnosis, made.scenario_id) == (gout.door, gout.diagnosis, gout.scenario_id)
    assert made.exam == appendicitis.exam
    told = {fact.text for fact in made.facts}
    assert told - {"55-year-old man"} == {fact.text for fact in appendicitis.facts} - {"19-year-old woman"}
    assert made.id not in (gout.id, appendicitis.id)
    assert made.dataset == "stories with shuffled charts"
    assert made.annotations[CHART_OF] == appendicitis.name

    write_cases(tmp_path, [made])
    assert read_cases(tmp_path) == [made], "a run folder gives the same case back"


def test_of_the_annotations_only_the_case_its_twin_and_its_answer_key_stay() -> None:
    key = {"accept": ["Podagra"], "partial": [], "reject": []}
    kept: dict[str, Any] = {"case_id": "one", "twin_of": "two", "Answer_Key": key}
    own = case_of(osce(**kept, Key_Findings=[{"any_of": ["x"]}], lockbox=True), "own")
    made = shuffled(own, case_of(osce(truth="Gout", case_id="other", history_source="codes"), "own"))
    assert made.annotations == {**kept, CHART_OF: "other", "data_class": "public", "history_source": "codes"}
    assert made.answer_key.accept == ("Podagra",)
    assert not made.symptoms_on_record, "that is a fact about the chart"


def test_the_class_of_the_data_is_kept_in_the_row() -> None:
    gout, appendicitis, *_ = stories()
    assert shuffled(gout, appendicitis, DataClass.CREDENTIALED).data_class is DataClass.CREDENTIALED


@pytest.mark.parametrize("prose", [True, False])
def test_a_nejm_case_takes_text_and_image_and_keeps_its_own_age_and_sex(prose: bool) -> None:
    told = "You are a 9-year-old girl. Your ear has been red since May."
    theirs: dict[str, Any] = {
        "patient_info": told if prose else {"Who": "a 9-year-old girl", "Story": "Her ear is red."}
    }
    other = case_of(nejm(**theirs, physical_exams="Ear: red.", image_url="https://example.org/ear"), "NEJM")
    made = shuffled(case_of(nejm(), "NEJM"), other)
    assert made.door == case_of(nejm(), "NEJM").door
    assert made.diagnosis == "Frobisher fever"
    assert made.image == "https://example.org/ear"
    said = " ".join(fact.text for fact in made.facts)
    assert "ear" in said
    assert "toe" not in said.lower()
    if prose:
        assert "9-year-old" not in str(made.patient)


def test_no_case_gets_its_twins_chart_or_one_that_fits_its_answer_and_sex_and_age_fit_where_they_can() -> None:
    cases = select(load_cases("OpenOSCE", {}))[:24]
    found = partners(cases, seed=1)
    assert found.keys() == {case.id for case in cases}
    for case in cases:
        other = found[case.id]
        assert other.name not in (case.name, case.annotations["twin_of"])
        assert not names(other.diagnosis, case)
    assert partners(cases, seed=1) == found
    assert partners(cases, seed=2) != found
    men = [case for case in cases if "man" in case.door.demographics.split()]
    assert sum("man" in found[case.id].door.demographics.split() for case in men) > 0.8 * len(men)
    assert max(list(found.values()).count(case) for case in cases) <= 2, "one chart is not used for all"


def test_near_copies_and_other_names_of_the_diagnosis_are_not_apart() -> None:
    gout, appendicitis, *_ = stories()
    copy = case_of(osce(patient=gout.patient, tests=gout.exam["Test_Results"], truth="Pseudogout"), "stories", 7)
    named = case_of(osce(truth="Gouty arthritis"), "stories", 8)
    accepts = case_of(osce(truth="Frobisher fever", Answer_Key={"accept": ["Gout"]}), "stories", 9)
    are_apart = apart([gout, appendicitis, copy, named, accepts])
    assert are_apart(gout, appendicitis)
    assert not any(starmap(are_apart, [(gout, gout), (gout, copy), (gout, named), (accepts, gout)]))


def test_cases_that_all_have_one_diagnosis_cannot_be_shuffled() -> None:
    cases = [case_of(osce(patient={"History": f"Story {number}"}), "same", number) for number in range(3)]
    with pytest.raises(InputError, match="same/0: every other chosen case is its twin, a near copy or"):
        partners(cases, 0)
