"""Choosing admissions: each rule, the spread over chapters, and that only the seed decides."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from mimic_rows import SALT, Ward, settings, ward

from agentclinic.errors import InputError
from agentclinic.generate.mimic import Chosen, choose, load_salt
from agentclinic.generate.mimic.icd import Kind, chapter, dotted, vague


def chosen(folder: Path, limit: int | None = None, **changes: object) -> Chosen:
    return choose(settings(folder, limit, **changes), SALT)


def codes(choice: Chosen) -> list[tuple[str, int]]:
    return [(one.code, one.version) for one in choice.admissions]


def why_not(folder: Path, **changes: object) -> dict[str, int]:
    return dict(chosen(folder, None, **changes).coverage.excluded)


@pytest.mark.parametrize(
    ("code", "version", "name", "kind"),
    [
        ("0389", 9, "Infectious and parasitic diseases", Kind.DISEASE),
        ("1400", 9, "Neoplasms", Kind.DISEASE),
        ("25000", 9, "Endocrine, nutritional and metabolic", Kind.DISEASE),
        ("2859", 9, "Blood and immune mechanism", Kind.DISEASE),
        ("3453", 9, "Nervous system", Kind.DISEASE),
        ("3669", 9, "Eye", Kind.DISEASE),
        ("38861", 9, "Ear", Kind.DISEASE),
        ("41071", 9, "Circulatory system", Kind.DISEASE),
        ("6820", 9, "Skin and subcutaneous tissue", Kind.DISEASE),
        ("78650", 9, "Symptoms and abnormal findings", Kind.SYMPTOM),
        ("9999", 9, "Injury and poisoning", Kind.DISEASE),
        ("V5811", 9, "Factors influencing health status", Kind.FACTOR),
        ("E8859", 9, "External causes", Kind.EXTERNAL),
        ("V4361", 10, "External causes", Kind.EXTERNAL),
        ("E1165", 10, "Endocrine, nutritional and metabolic", Kind.DISEASE),
        ("C7A00", 10, "Neoplasms", Kind.DISEASE),
        ("D3A00", 10, "Neoplasms", Kind.DISEASE),
        ("D500", 10, "Blood and immune mechanism", Kind.DISEASE),
        ("H59019", 10, "Eye", Kind.DISEASE),
        ("H6000", 10, "Ear", Kind.DISEASE),
        ("M1A00X0", 10, "Musculoskeletal system and connective tissue", Kind.DISEASE),
        ("O9A112", 10, "Pregnancy and childbirth", Kind.DISEASE),
        ("R079", 10, "Symptoms and abnormal findings", Kind.SYMPTOM),
        ("T8242XA", 10, "Injury and poisoning", Kind.DISEASE),
        ("U071", 10, "Codes for special purposes", Kind.DISEASE),
        ("Y92009", 10, "External causes", Kind.EXTERNAL),
        ("Z5111", 10, "Factors influencing health status", Kind.FACTOR),
        ("41071", 10, "Unknown", Kind.UNKNOWN),
        ("I214", 9, "Unknown", Kind.UNKNOWN),
        ("", 10, "Unknown", Kind.UNKNOWN),
        ("٣09", 9, "Unknown", Kind.UNKNOWN),
    ],
)
def test_the_version_decides_the_chapter_of_a_code(code: str, version: int, name: str, kind: Kind) -> None:
    assert chapter(code, version) == (name, kind)


def test_codes_are_dotted_as_people_write_them() -> None:
    written = [dotted("I214", 10), dotted("41071", 9), dotted("E8859", 9), dotted("V5811", 9), dotted("I10", 10)]
    assert written == ["I21.4", "410.71", "E885.9", "V58.11", "I10"]


@pytest.mark.parametrize(
    ("title", "is_vague"),
    [
        ("Pneumonia, unspecified organism", True),
        ("Other and unspecified hyperlipidemia", True),
        ("Depressive disorder, not elsewhere classified", True),
        ("Acute pancreatitis", False),
        ("Another thing altogether", False),
        ("Subdural hemorrhage following injury without mention of open intracranial wound", False),
    ],
)
def test_titles_that_say_other_or_unspecified_are_vague(title: str, is_vague: bool) -> None:
    assert vague(title) is is_vague


def test_each_patient_gives_one_admission_with_its_principal_diagnosis(tmp_path: Path) -> None:
    made = Ward()
    person = made.patient()
    made.stay(person, ("N10", 10), ("I10", 10), admitted="2150-01-01 10:00:00")
    made.stay(person, ("I214", 10), ("N10", 10), admitted="2150-05-01 10:00:00")
    choice = chosen(made.write(tmp_path))
    assert len(choice.admissions) == 1
    assert codes(choice)[0] in {("N10", 10), ("I214", 10)}
    assert dict(choice.coverage.excluded) == {"another stay of the same patient was chosen": 1}


def test_a_title_is_looked_up_by_code_and_version(tmp_path: Path) -> None:
    made = Ward()
    made.stay(made.patient(), ("3004", 9))
    (one,) = chosen(made.write(tmp_path)).admissions
    assert one.title == "Dysthymic disorder"
    assert one.chapter == "Mental and behavioural"


def test_the_order_of_rows_does_not_make_a_diagnosis_principal(tmp_path: Path) -> None:
    made = Ward()
    stay = made.stay(made.patient())
    for place, code in ((2, "I10"), (1, "N10"), (3, "D62")):
        made.row(
            "hosp/diagnoses_icd",
            subject_id=stay.subject,
            hadm_id=stay.hadm,
            seq_num=place,
            icd_code=code,
            icd_version=10,
        )
    assert codes(chosen(made.write(tmp_path))) == [("N10", 10)]


@pytest.mark.parametrize(
    ("code", "kind", "reason", "flag"),
    [
        (("R079", 10), "URGENT", "principal diagnosis is a symptom or finding", "include_symptoms"),
        (("78650", 9), "URGENT", "principal diagnosis is a symptom or finding", "include_symptoms"),
        (("Z5111", 10), "URGENT", "principal diagnosis is a factor, not a disease", "include_symptoms"),
        (("V5811", 9), "URGENT", "principal diagnosis is a factor, not a disease", "include_symptoms"),
        (("E8859", 9), "URGENT", "principal diagnosis is an external cause", "include_symptoms"),
        (("J189", 10), "URGENT", "title says other or unspecified", "include_unspecified"),
        (("N10", 10), "ELECTIVE", "planned admission", "include_elective"),
        (("N10", 10), "SURGICAL SAME DAY ADMISSION", "planned admission", "include_elective"),
    ],
)
def test_what_is_left_out_by_default_can_be_included(
    tmp_path: Path, code: tuple[str, int], kind: str, reason: str, flag: str
) -> None:
    made = Ward()
    made.stay(made.patient(), code, kind=kind)
    folder = made.write(tmp_path)
    assert why_not(folder) == {reason: 1}
    taken = chosen(folder, include_unspecified=True, **{flag: True} if flag != "include_unspecified" else {})
    assert codes(taken) == [code]


def test_a_disease_coded_at_an_earlier_admission_is_left_out(tmp_path: Path) -> None:
    made = Ward()
    person = made.patient()
    made.stay(person, ("J189", 10), ("N10", 10), admitted="2149-01-01 10:00:00")
    made.stay(person, ("N10", 10), admitted="2150-01-01 10:00:00")
    folder = made.write(tmp_path)
    recurrent = "principal code was already coded at an earlier admission"
    assert why_not(folder) == {"title says other or unspecified": 1, recurrent: 1}
    assert codes(chosen(folder, include_recurrent=True)) == [("N10", 10)]


def test_a_disease_coded_later_or_under_the_other_version_does_not_count_as_earlier(tmp_path: Path) -> None:
    made = Ward()
    person = made.patient()
    made.stay(person, ("J189", 10), ("3004", 10), admitted="2149-01-01 10:00:00")
    made.stay(person, ("3004", 9), admitted="2150-01-01 10:00:00")
    made.stay(person, ("J189", 10), ("3004", 9), admitted="2151-01-01 10:00:00")
    assert codes(chosen(made.write(tmp_path))) == [("3004", 9)]


def test_single_takes_admissions_with_exactly_one_diagnosis(tmp_path: Path) -> None:
    choice = chosen(ward().write(tmp_path), mode="single")
    assert sorted(codes(choice)) == [("E1110", 10), ("L03115", 10)]
    assert dict(choice.coverage.excluded)["more than one diagnosis"] == 5


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (("I21",), {("I214", 10)}),
        (("i21.4",), {("I214", 10)}),
        (("577",), {("5770", 9)}),
        (("9:5770",), {("5770", 9)}),
        (("acute pancreatitis",), {("5770", 9), ("K8510", 10)}),
        (("PANCREATITIS biliary",), {("K8510", 10)}),
        (("I21", "cellulitis"), {("I214", 10), ("L03115", 10)}),
    ],
)
def test_targets_are_beginnings_of_codes_or_words_in_titles(
    tmp_path: Path, targets: tuple[str, ...], expected: set[tuple[str, int]]
) -> None:
    assert set(codes(chosen(ward().write(tmp_path), mode="targets", targets=",".join(targets)))) == expected


@pytest.mark.parametrize("target", ["I99", "10:577", "pancreat", "cellulitis of the moon"])
def test_a_target_without_any_match_is_an_error(tmp_path: Path, target: str) -> None:
    with pytest.raises(InputError, match=f"target {target}: no code begins with it"):
        chosen(ward().write(tmp_path), mode="targets", targets=f"I21,{target}")


def test_an_admission_that_cannot_be_used_is_counted_not_dropped(tmp_path: Path) -> None:
    made = Ward()
    made.stay(made.patient())
    made.stay(made.patient(), ("K999", 10))
    made.stay(made.patient(), ("41071", 10))
    made.stay(950_000_000, ("N10", 10))
    reasons = why_not(made.write(tmp_path))
    assert reasons == {
        "no principal diagnosis": 1,
        "principal code without a title": 2,
        "patient not in the table of patients": 1,
    }


def _many(rare: int = 2, common: int = 30) -> Ward:
    made = Ward()
    for _ in range(common):
        made.stay(made.patient(), ("I214", 10))
    for _ in range(rare):
        made.stay(made.patient(), ("L03115", 10))
    for _ in range(rare + 3):
        made.stay(made.patient(), ("N10", 10))
    return made


def test_rare_chapters_are_represented(tmp_path: Path) -> None:
    choice = chosen(_many().write(tmp_path), 9)
    rows = {row.chapter: row for row in choice.coverage.chapters}
    assert {name: row.chosen for name, row in rows.items()} == {
        "Skin and subcutaneous tissue": 2,
        "Genitourinary system": 4,
        "Circulatory system": 3,
    }
    assert rows["Circulatory system"].available == rows["Circulatory system"].eligible == 30
    assert dict(choice.coverage.excluded) == {"beyond the limit": 28}


def test_a_larger_limit_adds_to_a_smaller_one(tmp_path: Path) -> None:
    folder = _many().write(tmp_path)
    whole = chosen(folder).admissions
    assert len(whole) == 37
    for limit in (1, 5, 12, 36):
        assert chosen(folder, limit).admissions == whole[:limit]


def test_the_seed_decides_and_the_order_of_the_rows_does_not(tmp_path: Path) -> None:
    forwards = chosen(_many().write(tmp_path / "one"), 10)
    backwards = chosen(_many().write(tmp_path / "two", reverse=True), 10)
    assert forwards == backwards
    assert chosen(tmp_path / "one", 10, seed=1).admissions != forwards.admissions


def test_a_patient_of_two_chapters_is_taken_once(tmp_path: Path) -> None:
    made = Ward()
    for _ in range(12):
        person = made.patient()
        made.stay(person, ("I214", 10), admitted="2150-01-01 10:00:00")
        made.stay(person, ("N10", 10), admitted="2150-06-01 10:00:00")
    choice = chosen(made.write(tmp_path))
    assert len(choice.admissions) == len({one.subject_id for one in choice.admissions}) == 12
    assert {one.chapter for one in choice.admissions} == {"Circulatory system", "Genitourinary system"}


def test_the_numbers_in_the_report_add_up(tmp_path: Path) -> None:
    report = chosen(ward().write(tmp_path), 3).coverage
    assert report.admissions == report.chosen + sum(count for _, count in report.excluded) == 7
    assert report.as_dict()["patients"] == 6
    lines = report.lines()
    assert lines[0].split() == ["chapter", "available", "eligible", "patients", "chosen"]
    assert "7 admissions of 6 patients, 3 chosen. Not chosen:" in lines


def test_admissions_that_are_done_can_be_left_out(tmp_path: Path) -> None:
    choice = chosen(ward().write(tmp_path))
    rest = choice.without({choice.admissions[0].key})
    assert rest.admissions == choice.admissions[1:]
    assert rest.coverage == choice.coverage


def test_keys_depend_on_the_salt_and_show_no_identifier(tmp_path: Path) -> None:
    folder = ward().write(tmp_path)
    keys = [one.key for one in chosen(folder).admissions]
    assert len(set(keys)) == 6
    assert keys == [one.key for one in chosen(folder).admissions]
    other = choose(settings(folder), "another salt of the tests")
    assert not set(keys) & {one.key for one in other.admissions}
    shown = repr(chosen(folder))
    assert SALT not in shown
    assert "90000000" not in shown
    assert "92000000" not in shown


def test_a_salt_is_made_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "salt"
    first = load_salt(path)
    assert len(first) == 64
    assert load_salt(path) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["salt"]
    assert load_salt(tmp_path / "other") != first


def test_an_empty_salt_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "salt").write_text("\n")
    with pytest.raises(InputError, match="contains no salt"):
        load_salt(tmp_path / "salt")


def test_a_salt_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        load_salt(tmp_path / "no such folder" / "salt")
    assert os.listdir(tmp_path) == []  # noqa: PTH208
