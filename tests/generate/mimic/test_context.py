"""The context of an admission: only rows of this stay and these hours, values as written, no hint of the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mimic_rows import NOTE, SALT, Stay, Ward, settings, ward

from agentclinic.errors import InputError
from agentclinic.generate.mimic import choose, source_cases
from agentclinic.generate.mimic.context import age
from agentclinic.generate.source import SourceCase


def contexts(folder: Path, **changes: Any) -> list[SourceCase]:
    wanted = settings(folder, **changes)
    return list(source_cases(wanted, choose(wanted, SALT)))


@pytest.fixture
def made() -> Ward:
    return Ward()


@pytest.fixture
def stay(made: Ward) -> Stay:
    """A stay of a patient with pyelonephritis, from 10 o'clock on 4 March 2150 for four days."""
    return made.stay(made.patient(), ("N10", 10), ("D62", 10))


def only(made: Ward, folder: Path, **changes: Any) -> SourceCase:
    (case,) = contexts(made.write(folder), **changes)
    return case


def each(made: Ward, folder: Path, fill: Sequence[Callable[[Stay], object]], **changes: Any) -> list[SourceCase]:
    """A case from each of several stays like `stay`, which differ in what was added to them."""
    stays = [made.stay(made.patient(), ("N10", 10), ("D62", 10)) for _ in fill]
    for one, add in zip(stays, fill, strict=True):
        add(one)
    found = {name: case for case in contexts(made.write(folder), **changes) for name in case.identifiers}
    return [found[str(one.subject)] for one in stays]


def values(case: SourceCase) -> list[str]:
    return [lab.value for lab in case.labs]


def test_a_lab_keeps_value_unit_range_flag_time_and_row(made: Ward, stay: Stay, tmp_path: Path) -> None:
    row = stay.lab(51301, "17.80", unit="K/uL", low="4.0", high="10.0", flag="abnormal", hours=1.5)
    (lab,) = only(made, tmp_path).labs
    assert asdict(lab) == {
        "name": "White Blood Cells",
        "value": "17.80",
        "unit": "K/uL",
        "low": "4.0",
        "high": "10.0",
        "flag": "abnormal",
        "group": "Blood Hematology",
        "hours": 1.5,
        "rows": (f"labevents:{row}",),
        "repeats": 0,
    }


def test_only_the_first_hours_count(made: Ward, tmp_path: Path) -> None:
    times = [(hours, hadm) for hours in (-25, -23.9, 0, 23.9, 24, 24.1, 80) for hadm in (None, "")]
    cases = each(
        made, tmp_path, [partial(Stay.lab, item=51301, value="17.8", hours=hours, hadm=hadm) for hours, hadm in times]
    )
    for (hours, hadm), case in zip(times, cases, strict=True):
        kept = [round(hours, 2)] if -24 <= hours <= 24 else []
        assert [lab.hours for lab in case.labs] == kept, (hours, hadm)


def test_the_hours_can_be_chosen(made: Ward, stay: Stay, tmp_path: Path) -> None:
    for item, hours in ((51301, -30), (51222, -3), (50912, 5), (50813, 30)):
        stay.lab(item, str(abs(hours)), hours=hours)
    folder = made.write(tmp_path)
    assert values(contexts(folder, hours=4, hours_before=4)[0]) == ["3"]
    assert values(contexts(folder, hours=48, hours_before=48)[0]) == ["30", "3", "5", "30"]


def test_another_admissions_rows_are_never_taken(made: Ward, stay: Stay, tmp_path: Path) -> None:
    stay.lab(51301, "11.1", hadm=stay.hadm + 1)
    stay.lab(51222, "22.2")
    assert values(only(made, tmp_path)) == ["22.2"]


def test_another_patients_rows_are_never_taken(made: Ward, stay: Stay, tmp_path: Path) -> None:
    other = made.stay(made.patient(), ("N10", 10))
    other.lab(51301, "99.9", hadm="")
    stay.lab(51301, "11.1", hadm="")
    assert sorted(map(values, contexts(made.write(tmp_path)))) == [["11.1"], ["99.9"]]


def test_rows_without_an_admission_belong_to_the_stay_that_was_current(made: Ward, tmp_path: Path) -> None:
    person = made.patient()
    made.stay(person, ("J189", 10), admitted="2150-03-01 10:00:00", days=3)  # until 10:00 on 4 March
    second = made.stay(person, ("N10", 10), admitted="2150-03-04 15:00:00", days=0.5)  # until 03:00 on 5 March
    made.stay(person, ("J189", 10), admitted="2150-03-05 06:00:00")
    second.lab(51301, "1", hours=-6, hadm="")  # still in the first stay
    second.lab(51222, "2", hours=-4, hadm="")  # between: the emergency department
    second.lab(50912, "3", hours=4, hadm="")
    second.lab(50813, "4", hours=16, hadm="")  # already in the third
    assert values(only(made, tmp_path)) == ["2", "3"]


def test_the_first_of_a_repeated_test_is_kept_and_the_others_are_counted(
    made: Ward, stay: Stay, tmp_path: Path
) -> None:
    stay.lab(50912, "2.0", hours=9)
    first = stay.lab(50912, "1.1", hours=-1)
    stay.lab(50912, "1.7", hours=3)
    (lab,) = only(made, tmp_path).labs
    assert (lab.value, lab.rows, lab.repeats) == ("1.1", (f"labevents:{first}",), 2)


AS_WRITTEN: tuple[tuple[str, str, str, str | None], ...] = (
    ("007.50", "7.5", "", "007.50"),
    (">1.050", "", "", ">1.050"),
    ("___", "141", "IF FASTING, 70-100 NORMAL.", "141"),
    ("", "", "NEG.", "NEG"),
    ("", "", "<0.01.  CTROPNT > 0.10 NG/ML SUGGESTS ACUTE MI.", "<0.01"),
    ("", "", ">182*.", ">182"),
    ("", "", "1+*.", "1+"),
    ("", "", "6-10.", "6-10"),
    ("", "", "VERY LOW*.", "VERY LOW"),
    ("", "", "CONSISTENT WITH A MONOCLONAL BAND.", None),
    ("", "", "___", None),
    ("___", "", "NEG.", None),
    ("___", "", "", None),
    ("12 ___", "", "", None),
    ("HOLD.  DISCARD GREATER THAN 4 HOURS OLD.", "", "", None),
    ("", "", "UNABLE TO REPORT.", None),
    ("", "", "2 VERIFIED BY SMEAR.", None),
)


def test_a_value_is_shown_as_written_or_not_at_all(made: Ward, tmp_path: Path) -> None:
    fill = [
        partial(Stay.lab, item=50912, value=value, number=number, comments=comments)
        for value, number, comments, _ in AS_WRITTEN
    ]
    for row, case in zip(AS_WRITTEN, each(made, tmp_path, fill), strict=True):
        assert values(case) == ([] if row[-1] is None else [row[-1]]), row


def test_an_unreadable_result_gives_way_to_the_next(made: Ward, stay: Stay, tmp_path: Path) -> None:
    stay.lab(50912, "___", number="", hours=1)
    stay.lab(50912, "1.4", hours=2)
    (lab,) = only(made, tmp_path).labs
    assert (lab.value, lab.repeats) == ("1.4", 0)


def test_a_stored_tube_is_not_a_result(made: Ward, stay: Stay, tmp_path: Path) -> None:
    stay.lab(50887, "5")
    stay.lab(51999, "5")  # an item that has no name
    assert only(made, tmp_path).labs == ()


def test_the_same_name_in_blood_and_urine_is_two_tests(made: Ward, stay: Stay, tmp_path: Path) -> None:
    made.row("hosp/d_icd_diagnoses", icd_code="N10", icd_version=10, long_title="Acute pyelonephritis")
    for item, fluid in ((1, "Blood"), (2, "Urine"), (3, "Q")):
        made.row("hosp/d_labitems", itemid=item, label="Glucose", fluid=fluid, category="Chemistry")
        stay.lab(item, f"{item}00")
    case = only(made, tmp_path)
    assert [(lab.group, lab.value) for lab in case.labs] == [
        ("Blood Chemistry", "100"),
        ("Urine Chemistry", "200"),
        ("Other Chemistry", "300"),
    ]


def test_cultures_have_organisms_and_sensitivities(made: Ward, stay: Stay, tmp_path: Path) -> None:
    rows = stay.culture(
        "URINE", "URINE CULTURE", organism="ESCHERICHIA COLI", sensitivities=[("GENTAMICIN", "S"), ("AMPICILLIN", "R")]
    )
    (one,) = only(made, tmp_path).cultures
    assert (one.specimen, one.test, one.organism) == ("URINE", "URINE CULTURE", "ESCHERICHIA COLI")
    assert one.sensitivities == (("AMPICILLIN", "R"), ("GENTAMICIN", "S"))
    assert one.rows == tuple(f"microbiologyevents:{row}" for row in rows)
    assert one.hours == 1


def test_two_organisms_in_one_specimen_are_two_results(made: Ward, stay: Stay, tmp_path: Path) -> None:
    stay.culture(organism="ESCHERICHIA COLI", sensitivities=[("GENTAMICIN", "S")], specimen_id=7)
    stay.culture(organism="PROTEUS MIRABILIS", sensitivities=[("GENTAMICIN", "R")], specimen_id=7)
    found = {one.organism: one.sensitivities for one in only(made, tmp_path).cultures}
    assert found == {"ESCHERICHIA COLI": (("GENTAMICIN", "S"),), "PROTEUS MIRABILIS": (("GENTAMICIN", "R"),)}


def test_a_second_bottle_with_the_same_result_adds_no_line(made: Ward, stay: Stay, tmp_path: Path) -> None:
    rows = [*stay.culture(comments="NO GROWTH.  "), *stay.culture(comments="NO GROWTH.  ", hours=2)]
    (one,) = only(made, tmp_path).cultures
    assert (one.comment, one.organism) == ("NO GROWTH.", "")
    assert one.rows == tuple(f"microbiologyevents:{row}" for row in rows)


CULTURES: tuple[tuple[str, str | None], ...] = (
    ("NO GROWTH.  ", "NO GROWTH."),
    ("No virus found.  Performed by ___ Test.  Please repeat.", "No virus found. Please repeat."),
    ("GRAM POSITIVE COCCI.  REPORTED BY PHONE TO ___ @ 10:30.", "GRAM POSITIVE COCCI."),
    ("REPORTED BY PHONE TO ___.  GRAM NEGATIVE ROD(S).", "GRAM NEGATIVE ROD(S)."),
    ("NO GROWTH ON 2150-03-06.  NO GROWTH.", "NO GROWTH."),
    ("___", None),
    ("___ CFU/ML.  Performed by EIA.", None),
    ("TEST CANCELLED, PATIENT CREDITED.  ", None),
    ("", None),
)


def test_an_unreadable_culture_is_left_out_rather_than_called_negative(made: Ward, tmp_path: Path) -> None:
    cases = each(made, tmp_path, [partial(Stay.culture, comments=comments) for comments, _ in CULTURES])
    for (comments, shown), case in zip(CULTURES, cases, strict=True):
        assert [one.comment for one in case.cultures] == ([] if shown is None else [shown]), comments


def test_a_cancelled_culture_is_left_out(made: Ward, stay: Stay, tmp_path: Path) -> None:
    stay.culture(organism="CANCELLED")
    assert only(made, tmp_path).cultures == ()


def test_a_specimen_counts_by_when_it_was_taken(made: Ward, tmp_path: Path) -> None:
    times = (23, 25, None)
    cases = each(made, tmp_path, [partial(Stay.culture, comments="NO GROWTH.", hours=at, hadm="") for at in times])
    assert [[one.hours for one in case.cultures] for case in cases] == [[23], [], [None]]


def test_a_specimen_with_a_date_but_no_time_counts_if_the_whole_day_does(
    made: Ward, stay: Stay, tmp_path: Path
) -> None:
    stay.culture(comments="NO GROWTH.", hours=None)
    folder = made.write(tmp_path)
    assert len(contexts(folder, hours=14)[0].cultures) == 1  # until midnight
    assert len(contexts(folder, hours=13)[0].cultures) == 0


def test_vital_signs_come_from_triage_and_are_completed_from_the_first_round(
    made: Ward, stay: Stay, tmp_path: Path
) -> None:
    stay.triage("Flank pain", temperature="38.9", heartrate="118", sbp="92", dbp="60", pain="unable")
    stay.vitals(hours=-1, temperature="101.1", heartrate="99", o2sat="95", resprate="22", pain="7")
    stay.vitals(hours=-2, o2sat="94", sbp="140", dbp="90")
    signs = {one.name: (one.value, one.unit, one.hours) for one in only(made, tmp_path).vitals}
    assert signs == {
        "Temperature": ("38.9", "°C", -4),
        "Heart Rate": ("118", "bpm", -4),
        "Blood Pressure": ("92/60", "mmHg", -4),
        "Oxygen Saturation": ("94", "%", -2),
        "Respiratory Rate": ("22", "breaths/min", -1),
        "Pain (0-10)": ("7", "", -1),
    }


def test_an_impossible_vital_sign_is_left_out(made: Ward, stay: Stay, tmp_path: Path) -> None:
    stay.triage(
        "Flank pain", temperature="9.8", heartrate="1180", o2sat="9", resprate="180", sbp="60", dbp="92", pain="13"
    )
    assert only(made, tmp_path).vitals == ()


def test_the_outpatient_measurement_nearest_to_admission_counts(made: Ward, stay: Stay, tmp_path: Path) -> None:
    person = stay.subject
    for day, name, value in (
        ("2150-02-01", "Weight (Lbs)", "151.5"),
        ("2149-12-01", "Weight (Lbs)", "149"),
        ("2150-03-20", "Weight (Lbs)", "120"),
        ("2147-01-01", "Height (Inches)", "64"),
        ("2150-03-03", "Blood Pressure Sitting", "132/74"),
        ("2150-03-03", "eGFR", "55"),
    ):
        made.measured(person, day, name, value)
    case = only(made, tmp_path)
    assert [(one.name, one.value, one.unit, one.group, one.hours) for one in case.vitals] == [
        ("Blood Pressure Sitting (earlier, outpatient)", "132/74", "mmHg", "Vital_Signs", -24),
        ("Weight", "151.5", "lb", "Body_Measurements", -744),
    ]


def test_earlier_diagnoses_are_those_of_earlier_stays(made: Ward, tmp_path: Path) -> None:
    person = made.patient()
    made.stay(person, ("J189", 10), ("I10", 10), ("E8859", 9), admitted="2148-01-01 10:00:00")
    made.stay(person, ("J189", 10), admitted="2149-01-01 10:00:00")
    made.stay(person, ("N10", 10), ("D62", 10))
    made.stay(person, ("R079", 10), admitted="2151-01-01 10:00:00")
    case = only(made, tmp_path)
    assert case.past == ("Pneumonia, unspecified organism", "Essential (primary) hypertension")
    assert (case.history_source, case.story) == ("codes", ())


def test_an_earlier_diagnosis_that_names_this_one_is_left_out(made: Ward, tmp_path: Path) -> None:
    person = made.patient()
    made.stay(person, ("J189", 10), ("K8510", 10), ("I10", 10), admitted="2148-01-01 10:00:00")
    made.stay(person, ("5770", 9))
    assert only(made, tmp_path).past == ("Essential (primary) hypertension", "Pneumonia, unspecified organism")


def test_the_other_codes_of_the_stay_are_told_apart_from_earlier_ones(tmp_path: Path) -> None:
    made = Ward()
    subject = made.patient()
    made.stay(subject, ("J189", 10), admitted="2149-01-02 08:00:00")
    made.stay(subject, ("N10", 10), ("D62", 10), ("I10", 10), ("D62", 10))
    case = only(made, tmp_path)
    assert case.past == ("Pneumonia, unspecified organism",)
    assert case.coded == ("Acute posthemorrhagic anemia", "Essential (primary) hypertension")


def test_a_note_gives_its_history_and_nothing_about_the_outcome(made: Ward, tmp_path: Path) -> None:
    stay = made.stay(made.patient(), ("K8510", 10))
    stay.triage("Abd pain")
    stay.note(NOTE)
    case = only(made, tmp_path)
    assert case.history_source == "note"
    assert case.story == (
        "Chief complaint: Abdominal pain",
        "History of present illness: the patient is a woman who came with two days of epigastric pain after a heavy "
        "meal. The pain goes through to the back. She vomited twice. She was told that she has gallstones.",
        "Past medical history: Hypertension; Cholelithiasis",
        "Family history: Mother with gallstones.",
    )
    assert case.drugs == ("Lisinopril 10 mg PO DAILY", "Omeprazole 20 mg PO DAILY")
    told = " ".join((*case.story, *case.drugs)).lower()
    for never in ("ercp", "pancreatitis", "ct showed", "oxycodone", "fluids", "___", "tender", "92/60"):
        assert never not in told


SENTENCES = (
    ("She has had fever for two days.", True),
    ("___ with fever for two days.", True),
    ("She was seen at ___ for fever.", True),
    ("She denies dysuria.", True),
    ("Her friend ___ thinks so too.", False),
    ("It began on 2150-03-02.", False),
    ("It was acute pyelonephritis.", False),
    ("A kidney infection was suspected: pyelonephritis.", False),
    ("CT abdomen showed stranding of the left kidney.", False),
    ("Labs were notable for a white count of 18.", False),
    ("She was found to have a fever of 103.", False),
)


def test_sentences_with_gaps_results_or_the_diagnosis_are_cut(made: Ward, tmp_path: Path) -> None:
    note = "Chief Complaint:\nFlank pain\n\nHistory of Present Illness:\nIt hurts. {} It still hurts.\n"
    cases = each(made, tmp_path, [partial(Stay.note, text=note.format(sentence)) for sentence, _ in SENTENCES])
    for (sentence, told), case in zip(SENTENCES, cases, strict=True):
        story = " ".join(case.story)
        assert story.startswith("Chief complaint: Flank pain History of present illness: It hurts.")
        assert story.endswith("It still hurts.")
        said = story.removeprefix("Chief complaint: Flank pain History of present illness: ")
        assert (len(said.split(". ")) == 3) is told, sentence


def test_a_history_ends_where_the_hospital_begins(made: Ward, tmp_path: Path) -> None:
    begins = ("In the ED, vitals were 99.", "On arrival to the floor she slept.", "ED course: fluids.")
    note = "History of Present Illness:\nIt hurts. {} Then she felt better.\n\nAllergies: none\n"
    for case in each(made, tmp_path, [partial(Stay.note, text=note.format(here)) for here in begins]):
        assert case.story == ("History of present illness: It hurts.",)


def test_a_note_without_a_history_leaves_the_story_to_triage(made: Ward, stay: Stay, tmp_path: Path) -> None:
    stay.triage("Flank pain, N/V, Transfer, PYELONEPHRITIS, ___")
    stay.note("Brief Hospital Course:\nAll went well.\n\nDischarge Diagnosis:\nAcute pyelonephritis\n")
    case = only(made, tmp_path)
    assert (case.history_source, case.story) == ("triage", ("Flank pain", "N/V"))


def test_triage_words_that_only_name_the_diagnosis_are_not_a_story(made: Ward, stay: Stay, tmp_path: Path) -> None:
    stay.triage("Pyelonephritis")
    case = only(made, tmp_path)
    assert (case.history_source, case.story) == ("none", ())


def test_how_the_patient_arrived(made: Ward, tmp_path: Path) -> None:
    walked = made.stay(made.patient(), ("N10", 10))
    walked.triage("Flank pain", transport="WALK IN")
    made.stay(made.patient(), ("N10", 10), location="PACU")
    arrivals = {case.arrival for case in contexts(made.write(tmp_path))}
    assert arrivals == {"came through the emergency department on foot", ""}


@pytest.mark.parametrize(
    ("anchor", "years", "expected"),
    [(60, 0, 60), (60, 3, 63), (60, -2, 58), (88, 1, 89), (88, 5, 90), (91, 0, 90), (91, 4, 90)],
)
def test_age_counts_from_the_anchor_and_stops_at_90(anchor: int, years: int, expected: int) -> None:
    assert age(anchor, 2150, datetime(2150 + years, 6, 1)) == expected


@pytest.mark.parametrize(("anchor", "years"), [(-1, 0), (250, 0), (20, -30), (60, 99)])
def test_an_age_that_no_one_has_is_refused(anchor: int, years: int) -> None:
    with pytest.raises(InputError, match=r"hosp/patients: .* give an impossible age"):
        age(anchor, 2150, datetime(2150 + years, 6, 1))


def test_an_age_that_cannot_be_known_is_none() -> None:
    assert age(91, 2150, datetime(2145, 1, 1)) is None
    assert age(None, 2150, datetime(2150, 1, 1)) is None


def test_identifiers_are_listed_and_appear_nowhere_else(tmp_path: Path) -> None:
    for case in contexts(ward().write(tmp_path)):
        assert {"2150-03-04", "2150-03-08"} <= set(case.identifiers)
        shown = repr(case)
        assert "identifiers" not in shown
        assert not [one for one in case.identifiers if one in shown]
        assert "2150" not in shown


def test_stays_and_notes_have_identifiers_too(made: Ward, stay: Stay, tmp_path: Path) -> None:
    number = stay.triage("Flank pain")
    stay.note(NOTE)
    listed = only(made, tmp_path).identifiers
    assert {str(stay.subject), str(stay.hadm), str(number), f"{stay.subject}-DS-1"} <= set(listed)


def test_the_truth_is_set_and_appears_nowhere_else(tmp_path: Path) -> None:
    for case in contexts(ward().write(tmp_path)):
        assert case.truth.title
        assert case.truth.code
        assert case.truth.chapter
        told = repr((case.story, case.past, case.drugs, case.labs, case.vitals, case.cultures, case.arrival))
        assert case.truth.title.lower() not in told.lower()
        assert case.truth.code not in told


def test_many_admissions_come_in_the_order_chosen(tmp_path: Path) -> None:
    made = Ward()
    for number in range(300):
        made.stay(made.patient(), ("N10", 10)).lab(51301, str(number))
    wanted = settings(made.write(tmp_path))
    choice = choose(wanted, SALT)
    cases = list(source_cases(wanted, choice))
    assert [case.key for case in cases] == [one.key for one in choice.admissions]
    by_key = {one.key: one.subject_id for one in choice.admissions}
    first = made.rows["hosp/patients"][0]["subject_id"]
    assert all(case.labs[0].value == str(by_key[case.key] - int(str(first))) for case in cases)
