"""The public MIMIC-IV demo, end to end: enough admissions, every number traced to a row, no one identifiable."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest
from helpers import PUBLIC
from mimic_rows import SALT, settings

from agentclinic.generate.mimic import Chosen, choose, source_cases
from agentclinic.generate.source import SourceCase
from agentclinic.privacy import DataClass

DEMO = PUBLIC / "mimic-iv-demo"
pytestmark = pytest.mark.skipif(not DEMO.is_dir(), reason="the MIMIC-IV demo is not at ../shared/data/mimic-iv-demo")


@lru_cache(maxsize=1)
def made() -> tuple[Chosen, list[SourceCase]]:
    choice = choose(settings(DEMO), SALT)
    return choice, list(source_cases(settings(DEMO), choice))


def table(name: str) -> list[dict[str, str]]:
    with gzip.open(DEMO / f"hosp/{name}.csv.gz", "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_demo_gives_more_than_fifty_admissions_of_as_many_patients() -> None:
    choice, cases = made()
    assert len(cases) == len(choice.admissions) == len({one.subject_id for one in choice.admissions}) >= 50
    assert choice.coverage.admissions == 275
    assert choice.coverage.chosen + sum(count for _, count in choice.coverage.excluded) == 275
    assert len({case.truth.chapter for case in cases}) >= 10
    assert {case.data_class for case in cases} == {DataClass.OPEN_DEMO}
    assert Counter(case.history_source for case in cases)["note"] == 0
    # Nearly every case has something to find out.
    assert sum(len(case.labs) >= 20 for case in cases) >= 0.9 * len(cases)


def test_every_chosen_admission_follows_the_rules() -> None:
    choice, _ = made()
    stays = {row["hadm_id"]: row for row in table("admissions")}
    diagnoses = table("diagnoses_icd")
    principal = {row["hadm_id"]: row for row in diagnoses if row["seq_num"] == "1"}
    for one in choice.admissions:
        stay, coded = stays[str(one.hadm_id)], principal[str(one.hadm_id)]
        assert stay["admission_type"] not in {"ELECTIVE", "SURGICAL SAME DAY ADMISSION"}
        assert (coded["icd_code"].strip(), coded["icd_version"]) == (one.code, str(one.version))
        assert "unspecified" not in one.title.lower()
        earlier = [
            row
            for row in diagnoses
            if row["subject_id"] == stay["subject_id"] and stays[row["hadm_id"]]["admittime"] < stay["admittime"]
        ]
        assert not [
            row for row in earlier if (row["icd_code"], row["icd_version"]) == (coded["icd_code"], coded["icd_version"])
        ]


def test_every_lab_is_a_row_of_this_patient_in_these_hours() -> None:
    from datetime import datetime, timedelta

    choice, cases = made()
    rows = {row["labevent_id"]: row for row in table("labevents")}
    stays = {row["hadm_id"]: row for row in table("admissions")}
    checked = 0
    for admission, case in zip(choice.admissions, cases, strict=True):
        start = datetime.fromisoformat(stays[str(admission.hadm_id)]["admittime"])
        for lab in case.labs:
            (source,) = lab.rows
            row = rows[source.removeprefix("labevents:")]
            assert row["subject_id"] == str(admission.subject_id)
            assert row["hadm_id"] in {"", str(admission.hadm_id)}
            assert abs(datetime.fromisoformat(row["charttime"]) - start) <= timedelta(hours=24)
            assert lab.value in (row["value"].strip(), row["valuenum"]) or row["comments"].strip().startswith(lab.value)
            assert lab.unit in (row["valueuom"].strip(), "")
            assert (lab.low, lab.high, lab.flag) == (row["ref_range_lower"], row["ref_range_upper"], row["flag"])
            checked += 1
    assert checked > 3000


def test_every_organism_and_sensitivity_is_a_row_of_this_patient() -> None:
    choice, cases = made()
    rows = {row["microevent_id"]: row for row in table("microbiologyevents")}
    found = 0
    for admission, case in zip(choice.admissions, cases, strict=True):
        for culture in case.cultures:
            own = [rows[source.removeprefix("microbiologyevents:")] for source in culture.rows]
            assert {row["subject_id"] for row in own} == {str(admission.subject_id)}
            assert {row["hadm_id"] for row in own} <= {"", str(admission.hadm_id)}
            assert {row["org_name"] for row in own} == {culture.organism}
            pairs = {(row["ab_name"], row["interpretation"]) for row in own}
            assert set(culture.sensitivities) <= pairs
            found += bool(culture.sensitivities)
    assert found >= 5


def test_no_one_can_be_identified_and_no_gap_shows() -> None:
    _, cases = made()
    for case in cases:
        shown = repr(case)
        assert "___" not in shown
        assert not [one for one in case.identifiers if one in shown]
        assert case.age is None or 18 <= case.age <= 90


def test_modes_on_the_demo() -> None:
    assert not choose(settings(DEMO, mode="single"), SALT).admissions  # the demo has no such admission
    hearts = choose(settings(DEMO, mode="targets", targets="I21,410,9:428"), SALT).admissions
    assert hearts
    assert all(one.code.startswith(("I21", "410", "428")) for one in hearts)


@pytest.mark.slow
def test_the_cache_changes_nothing(tmp_path: Path) -> None:
    choice, cases = made()
    cached = settings(DEMO, cache_dir=str(tmp_path / "cache"))
    assert choose(cached, SALT) == choice
    assert list(source_cases(cached, choice)) == cases
    assert list(source_cases(cached, choice)) == cases
