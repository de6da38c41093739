from __future__ import annotations

import re
from dataclasses import replace

import pytest
from helpers import EVERY, FEW, bundled_cases

from agentclinic.cases.completion import _searched, completed, completed_chart, completion, is_completed
from agentclinic.cases.matcher.orders import asked_of_chart, asked_of_measurement
from agentclinic.cases.model import Case, Door, Fact, Section
from agentclinic.lint import physiology
from agentclinic.lint.chart import Chart
from agentclinic.lint.quality import CHECKS
from agentclinic.vocabulary.normals import normal_of, normals, turnaround


def bundled() -> list[Case]:
    return [case for name in ("OpenOSCE", "OpenOSCE_1", "OpenOSCE_Demo") for case in bundled_cases(name, lockbox=True)]


def chart(person: str, *results: tuple[str, str], story: tuple[Fact, ...] = ()) -> Case:
    facts = tuple(
        Fact(
            "Test_Results/" + heading.replace(" ", "_"),
            Section.EXAMINATION if "Examination" in heading else Section.TESTS,
            tuple(heading.split(" / ")),
            text,
        )
        for heading, text in results
    )
    return Case("c1", "Own", 0, Door(f"Assess a {person}.", f"{person}"), {}, {}, "Gout", (*story, *facts))


def value(case: Case, heading: str) -> str | None:
    heads = set(normal.headings if (normal := normal_of(tuple(heading.split(" / ")))) else (heading,))
    return next((fact.text for fact in completed(case) if " / ".join(fact.heads) in heads), None)


def number(case: Case, heading: str) -> float:
    found = re.match(r"[\d.]+", value(case, heading) or "")
    assert found, heading
    return float(found[0])


MAN, WOMAN = "50-year-old man", "30-year-old woman"


def test_the_table_has_every_heading_of_every_bundled_chart() -> None:
    headings = {fact.heads for case in bundled() for fact in case.exam_facts}
    assert {heads for heads in headings if normal_of(heads) is None} == set()


def test_no_heading_stands_in_two_entries() -> None:
    every = [heading for entry in normals() for heading in entry.headings]
    assert sorted(every) == sorted(set(every))


def test_drawn_numbers_lie_within_the_reference_range_that_is_written_beside_them() -> None:
    range_ = re.compile(r"\(ref (?:(?P<low>[\d.]+)-(?P<high>[\d.]+)|<(?P<below>[\d.]+)|>(?P<above>[\d.]+))")
    for entry in normals():
        for groups in ((), ("female",), ("child",), ("infant", "child")):
            spread = entry.spread(groups)
            for form in entry.forms(groups) if spread else ():
                if spread and (stated := range_.search(form)):
                    low, high = stated["low"] or stated["above"] or 0, stated["high"] or stated["below"] or 1e9
                    assert float(low) <= spread.low <= spread.high <= float(high), (entry.heading, groups, form)


def test_a_result_is_the_same_whenever_it_is_asked_for_and_differs_between_cases() -> None:
    case = chart(MAN, ("TSH", "2.0 mIU/L (ref 0.4-4.0)"))
    assert completed(case) == completed(replace(case, scenario_id=7, dataset="Copy"))
    more = chart(MAN, ("TSH", "2.0 mIU/L (ref 0.4-4.0)"), ("Lipase", "30 U/L (ref 13-60)"))
    assert value(case, "Ferritin") == value(more, "Ferritin"), "whatever else is known"
    assert value(case, "Ferritin") != value(replace(case, id="c2"), "Ferritin")


@pytest.mark.parametrize(
    ("charted", "other"),
    [
        ("Lipase", "Lipase"),
        ("Head CT / Findings", "CT Head / Findings"),
        ("NT proBNP", "BNP"),
        ("Serum HCG quantitative", "Beta hCG"),
        ("Hemoglobin A1c", "HbA1c"),
        ("Antinuclear antibody titer", "ANA"),
    ],
)
def test_what_the_chart_holds_under_any_name_is_not_completed(charted: str, other: str) -> None:
    assert value(chart(WOMAN), other) is not None
    assert value(chart(WOMAN, (charted, "Normal")), other) is None


def test_completed_facts_have_paths_of_their_own() -> None:
    case = bundled_cases("OpenOSCE_Demo")[0]
    added = completed(case)
    assert all(is_completed(fact.path) for fact in added)
    assert len({fact.path for fact in added}) == len(added)
    assert not any(is_completed(fact.path) for fact in case.facts)


def test_results_depend_on_sex_and_age() -> None:
    assert value(chart(WOMAN), "PSA") is None
    assert value(chart(MAN), "PSA") is not None
    assert value(chart(MAN), "Pelvic Ultrasound / Findings") is None
    assert value(chart(MAN), "Beta hCG") == "<5 mIU/mL (negative)"
    child, man = chart("3-year-old boy"), chart(MAN)
    assert number(child, "Liver Function Tests / Alkaline Phosphatase") > 130
    assert number(man, "Liver Function Tests / Alkaline Phosphatase") < 110
    assert number(child, "Basic Metabolic Panel / Creatinine") < 0.65
    assert number(chart("4-month-old girl"), "Vital Signs / Heart Rate") > 100
    assert number(chart("5-week-old boy"), "Vital Signs / Head Circumference") < 40
    assert value(chart("4-month-old girl"), "Peak Expiratory Flow") is None


def test_the_fetus_is_only_in_pregnant_women() -> None:
    assert value(chart("28-year-old woman, 32 weeks pregnant"), "Obstetric Ultrasound / Findings")
    assert value(chart(WOMAN), "Obstetric Ultrasound / Findings") is None


def test_red_cell_indices_follow_from_the_chart() -> None:
    case = chart(WOMAN, ("Complete Blood Count / Hemoglobin", "7.5 g/dL"), ("Complete Blood Count / MCV", "68 fL"))
    cells, volume = number(case, "Complete Blood Count / RBC"), number(case, "Complete Blood Count / Hematocrit")
    assert volume == pytest.approx(22.4, abs=0.2)
    assert cells == pytest.approx(10 * volume / 68, abs=0.06)
    assert number(case, "Complete Blood Count / MCH") == pytest.approx(75 / cells, rel=0.03)


@pytest.mark.parametrize("every", EVERY)
def test_white_cell_kinds_add_up_to_a_hundred(every: int) -> None:
    for case in bundled()[::every]:
        everything = completed_chart(case)
        kinds = ("Neutrophils", "Lymphocytes", "Monocytes", "Eosinophils", "Basophils")
        shares = [f.text for f in everything if f.heads[0] == "Complete Blood Count" and f.heads[-1] in kinds]
        if all("%" in share for share in shares):
            assert sum(float(share.partition("%")[0]) for share in shares) <= 101, case.name


def test_blood_gases_agree_with_serum_bicarbonate_and_saturation() -> None:
    case = chart(MAN, ("Basic Metabolic Panel / Bicarbonate", "12 mmol/L"))
    saturation = Fact("V/S", Section.VITALS, ("Vital Signs", "Oxygen Saturation"), "91% on room air")
    case = replace(case, facts=(*case.facts, saturation))
    assert number(case, "Arterial Blood Gas / HCO3") == pytest.approx(12, abs=1)
    assert number(case, "Arterial Blood Gas / pCO2") == pytest.approx(26, abs=2), "Winter's formula"
    assert number(case, "Arterial Blood Gas / pH") < 7.33
    assert 55 < number(case, "Arterial Blood Gas / pO2") < 70


def test_further_linked_values() -> None:
    case = chart(
        "70-year-old woman",
        *(("C Reactive Protein", "120 mg/L (ref <5)"), ("TSH", "0.01 mIU/L (ref 0.4-4.0)")),
        *(("Basic Metabolic Panel / Sodium", "124 mmol/L"), ("Basic Metabolic Panel / Glucose", "90 mg/dL")),
        *(("Basic Metabolic Panel / BUN", "14 mg/dL"), ("Basic Metabolic Panel / Creatinine", "1.8 mg/dL")),
        *(("Liver Function Tests / Total Bilirubin", "0.4 mg/dL"), ("Coagulation / INR", "2.4")),
        story=(Fact("P", Section.PAST, ("Past",), "Type 2 diabetes for ten years"),),
    )
    assert number(case, "ESR") > 40
    assert number(chart(MAN, ("C Reactive Protein", "120 mg/L (ref <5)")), "Coagulation / Fibrinogen") > 400
    assert number(case, "Free T4") > 1.8
    assert number(case, "Serum Osmolality") == pytest.approx(258, abs=5)
    assert number(case, "Basic Metabolic Panel / eGFR") == pytest.approx(30, abs=2), "CKD-EPI 2021"
    assert number(case, "Direct Bilirubin") <= 0.4
    assert number(case, "Coagulation / Prothrombin Time") > 25
    assert number(case, "HbA1c") > 6.4
    iron, capacity = number(case, "Iron Studies / Serum Iron"), number(case, "Iron Studies / TIBC")
    assert number(case, "Iron Studies / Transferrin Saturation") == pytest.approx(100 * iron / capacity, abs=1)
    pale = chart(
        WOMAN,
        *(("Complete Blood Count / Hemoglobin", "7.5 g/dL"), ("Iron Studies / TIBC", "470 µg/dL (ref 250-425)")),
        *(("Liver Function Tests / Total Protein", "9.8 g/dL"), ("Liver Function Tests / Albumin", "3.0 g/dL")),
    )
    assert number(pale, "Erythropoietin") > 40
    assert number(pale, "Transferrin") == 376
    assert value(pale, "Eye Examination / Conjunctival Pallor") == "Pale on both sides"
    assert value(pale, "General Appearance / Pallor") == "Pale"
    assert number(pale, "Globulin") == pytest.approx(6.8)
    kidneys = chart(
        MAN, ("Complete Blood Count / Hemoglobin", "7.5 g/dL"), ("Basic Metabolic Panel / Creatinine", "4.5 mg/dL")
    )
    assert number(kidneys, "Erythropoietin") < 26


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("Light makes the pain worse", "Turns away from bright light"),
        ("Light does not bother her more than usual", "Not troubled by bright light"),
        ("Bright light does not bother her", "Not troubled by bright light"),
    ],
)
def test_bright_light_troubles_those_who_say_so(told: str, found: str) -> None:
    case = chart(WOMAN, story=(Fact("P", Section.SYMPTOMS, ("Symptoms",), told),))
    assert value(case, "Neurological Examination / Photophobia") == found


def test_the_electrocardiogram_has_the_charted_rate_and_rhythm() -> None:
    rate = Fact("V/H", Section.VITALS, ("Vital Signs", "Heart Rate"), "118 bpm")
    case = replace(chart(MAN), facts=(rate,))
    assert (value(case, "Electrocardiogram / Findings") or "").startswith("Sinus tachycardia at 118 per minute")
    heard = chart(MAN, ("Cardiovascular Examination / Auscultation", "Irregularly irregular rhythm, no murmur"))
    assert "Atrial fibrillation" in (value(heard, "Electrocardiogram / Findings") or "")


def test_an_examination_charted_as_a_whole_is_left_as_it_is() -> None:
    whole = chart(MAN, ("Neurological Examination / Findings", "Drowsy, left arm weak"))
    assert value(whole, "Neurological Examination / Mental Status") is None
    assert value(whole, "Neurological Examination / Dix-Hallpike Maneuver"), "a maneuver of its own"
    part = chart(MAN, ("Neurological Examination / Mental Status", "Drowsy"))
    assert value(part, "Neurological Examination / Reflexes")
    assert value(part, "Neurological Examination / Consciousness") is None, "says the same"


def test_a_normal_image_does_not_contradict_a_charted_one() -> None:
    ill = chart(MAN, ("Abdominal Ultrasound / Findings", "Gallbladder wall 6 mm thick, stones in its neck"))
    assert value(ill, "CT Abdomen and Pelvis / Findings") is None
    answer = completion(ill).answer("CT Abdomen and Pelvis / Findings")
    assert ([fact.heads[0] for fact in answer.facts], answer.own) == (["Abdominal Ultrasound"], False)
    well = chart(MAN, ("Abdominal Ultrasound / Findings", "Normal, no stones"))
    assert value(well, "CT Abdomen and Pelvis / Findings")


def test_a_finding_charted_elsewhere_is_not_contradicted() -> None:
    ill = chart(MAN, ("Neurological Examination / Motor", "No drift; reflexes equal; right plantar response equivocal"))
    assert value(ill, "Neurological Examination / Reflexes") is None
    answer = completion(ill).answer("Neurological Examination / Reflexes")
    assert [fact.heads[-1] for fact in answer.facts] == ["Motor"]
    well = chart(MAN, ("Neurological Examination / Motor", "No drift"))
    assert value(well, "Neurological Examination / Reflexes")
    liver = chart(MAN, ("Lymph Node Examination / Findings", "No enlarged nodes; liver 4 cm below the ribs"))
    assert all(
        "liver" not in fact.text.lower() for fact in completed(liver) if fact.heads[0] == "Abdominal Examination"
    )


def test_sex_is_the_patients_not_that_of_who_came_along() -> None:
    case = replace(chart(MAN), door=Door("Assess a 50-year-old man brought by his daughter.", MAN))
    assert value(case, "PSA") is not None
    assert value(case, "Pelvic Ultrasound / Findings") is None


def test_abnormal_spinal_fluid_is_not_completed_with_normal_values() -> None:
    ill = chart(MAN, ("Lumbar Puncture / WBC", "2150 cells/µL (94% neutrophils)"))
    assert value(ill, "Lumbar Puncture / Appearance") is None
    assert value(ill, "Cerebrospinal Fluid / HSV PCR") == "Not detected"


@pytest.mark.parametrize("every", FEW)
def test_completed_charts_of_all_bundled_cases_pass_the_checks_of_physiology(every: int) -> None:
    checks = [check for check in CHECKS if check.__module__ == physiology.__name__]
    assert len(checks) > 10
    for case in bundled()[::every]:
        before = {(p.code, p.path) for check in checks for p in check(Chart(case))}
        # Completed items of a panel are checked with the charted ones.
        facts = (replace(fact, path=fact.path.removeprefix("Completed/")) for fact in completed_chart(case))
        whole = replace(case, facts=(*case.patient_facts, *facts))
        found = [p for check in checks for p in check(Chart(whole)) if (p.code, p.path) not in before]
        assert found == [], case.name


@pytest.mark.parametrize(
    ("test", "least", "most"),
    [
        ("Blood Cultures", 48, 120),
        ("Sputum Mycobacterial Culture", 336, 2000),
        ("Lumbar Puncture Gram Stain", 0, 6),
        ("Skin Biopsy", 100, 200),
        ("Gene Panel", 300, 1000),
        ("ANA", 48, 72),
        ("Acetylcholine receptor antibodies", 73, 200),
        ("Troponin", 0, 6),
        ("CT Head", 0, 6),
        ("HIV Antigen Antibody", 0, 6),
        ("Procalcitonin", 0, 6),
        ("B-type natriuretic peptide", 0, 6),
        ("C-Peptide", 48, 72),
    ],
)
def test_how_long_results_take(test: str, least: float, most: float) -> None:
    assert least <= turnaround(test).hours <= most


def test_a_study_that_the_author_calls_normal_is_completed_beside_an_abnormal_one() -> None:
    ill = chart(MAN, ("CT Chest / Findings", "A mass of 4 cm in the right upper lobe"))
    other = "CT Pulmonary Angiography / Findings"
    assert not completion(ill).answer(other).own
    normal = replace(ill, annotations={**ill.annotations, "Normal_Studies": [other]})
    assert completion(normal).answer(other).own


def test_a_test_that_the_chart_has_under_another_name_is_restated() -> None:
    case = chart(
        MAN,
        ("NT-proBNP", "680 pg/mL (ref <125)"),
        ("Spirometry / FVC", "2.60 L (63% predicted)"),
        ("Urine Drug Screen", "Positive for cocaine"),
    )
    assert number(case, "BNP") == round(680 / 6)
    assert value(case, "Forced Vital Capacity") == "63% of predicted"
    assert (
        value(case, "Blood Alcohol and Urine Drug Screen") == "Alcohol: Undetectable; drug screen: positive for cocaine"
    )
    assert all(completion(case).answer(name).own for name in ("BNP", "Forced Vital Capacity"))


def test_an_image_stands_for_another_that_would_contradict_it_and_for_no_other() -> None:
    clear, ill = (
        chart(MAN, ("MRI Brain / Findings", text))
        for text in ("No mass, no restricted diffusion", "3 cm mass on the left")
    )
    assert value(clear, "MRI Brain and Orbits / Findings")
    assert value(ill, "MRI Brain and Orbits / Findings") is None
    # Of other organs, although the names share words.
    pelvis = chart(MAN, ("MRI Abdomen and Pelvis / Findings", "Thick wall of the last loop of small bowel"))
    assert value(pelvis, "MRI Abdomen / Findings")


@pytest.mark.parametrize(
    ("charted", "found", "study", "completed"),
    [
        ("CT Angiography Abdomen", "Aorta with a single lumen and calcified plaque", "Endoscopic Ultrasound", True),
        ("Abdominal Ultrasound", "Liver enlarged, gallbladder without echogenic foci", "ERCP", True),
        ("Abdominal Ultrasound", "Several echogenic foci in the gallbladder", "Endoscopic Ultrasound", False),
        ("CT Abdomen and Pelvis", "3 cm mass in the head of the pancreas", "ERCP", False),
        ("CT Abdomen and Pelvis", "Bile ducts dilated to 14 mm", "Endoscopic Ultrasound", False),
        ("MRI Brain", "Volume loss usual for age, a few bright spots", "CT Perfusion", True),
        ("MRI Brain", "Restricted diffusion in the left temporal lobe", "CT Perfusion", False),
        ("Renal Ultrasound", "4 mm echogenic focus in the right kidney, no widening", "Renal Scintigraphy", True),
        ("Renal Ultrasound", "Left renal pelvis widened", "Renal Scintigraphy", False),
    ],
)
def test_a_study_of_few_organs_stands_back_for_an_image_that_shows_something_of_these(
    charted: str, found: str, study: str, completed: bool
) -> None:
    case = chart(MAN, (f"{charted} / Findings", found))
    assert (value(case, f"{study} / Findings") is not None) == completed


def test_an_abnormal_result_under_another_name_is_not_completed_with_a_normal_one() -> None:
    case = chart(MAN, ("Video Head Impulse Test / Findings", "Corrective eye movements to the left"))
    assert value(case, "Neurological Examination / Head Impulse Test") is None


@pytest.mark.parametrize("every", FEW)
def test_an_entry_that_the_chart_covers_shares_something_with_it(every: int) -> None:
    for case in bundled()[::every]:
        patient = completion(case).patient
        covered = {entry.rank for entry in normals() if patient.covering(entry)}
        may_be = {entry.rank for entry in normals() if patient.may_cover(entry)}
        assert covered <= may_be
        assert len(may_be) < len(normals()) / 2


def test_every_finding_that_speaks_of_an_entry_has_a_piece_of_a_word_that_is_looked_for_first() -> None:
    searches = [_searched(entry.fields["said"]) for entry in normals() if entry.fields.get("said")]
    spoken_of = 0
    for case in bundled():
        for fact in case.exam_facts:
            for pattern, pieces in searches:
                if pattern.search(fact.text):
                    spoken_of += 1
                    assert any(piece in fact.text.lower() for piece in pieces)
    assert spoken_of > len(searches)


@pytest.mark.parametrize(
    ("charted", "normal"),
    [
        (("Lymph Node Examination / Other", "Firm node of 2 cm in the left groin"), "Groins without lump"),
        (("Musculoskeletal Examination / Muscles", "Tender neck muscles"), "Soft, not tender, no crackling"),
        (("Abdominal Examination / Inspection", "Flat, long midline scar of the abdomen"), "None"),
    ],
)
def test_a_normal_finding_does_not_deny_a_sign_that_was_found_at_its_place(
    charted: tuple[str, str], normal: str
) -> None:
    other = {"Groins without lump": "Abdominal Examination / Hernias", "None": "Abdominal Examination / Scar"}
    heading = other.get(normal, "Neck and Collarbone Palpation / Findings")
    assert value(chart(MAN, charted), heading) != normal


def test_a_normal_finding_of_the_other_side_or_another_place_stays() -> None:
    knee = chart(MAN, ("Musculoskeletal Examination / Right Knee", "Large effusion, red and tender"))
    assert value(knee, "Skin Examination / Left Leg")
    scar = chart(MAN, ("Skin Examination / Left Leg", "Pale scar on the calf"))
    assert value(scar, "Abdominal Examination / Scar") == "None"


def test_an_image_does_not_call_an_organ_normal_that_another_image_shows_ill() -> None:
    bright = chart(MAN, ("Abdominal Ultrasound / Findings", "Liver normal, slightly bright kidney cortex"))
    assert value(bright, "Renal Ultrasound / Findings") is None
    clear = chart(MAN, ("Abdominal Ultrasound / Findings", "Small stone in the gallbladder, kidneys without stones"))
    assert value(clear, "Renal Ultrasound / Findings")


def test_one_test_for_a_germ_follows_another() -> None:
    ill = chart(MAN, ("Gastric Biopsy / Findings", "Chronic inflammation with curved rods on the surface"))
    assert value(ill, "Urea Breath Test") == value(ill, "Rapid Urease Test") == "Positive"
    well = chart(MAN, ("Gastric Biopsy / Findings", "No inflammation, no curved rods on the surface"))
    assert value(well, "Urea Breath Test") == "Negative"


def test_a_functional_test_follows_from_what_images_and_examination_show() -> None:
    lungs = chart(MAN, ("CT Chest / Findings", "Emphysema of the upper lobes"))
    assert number(lungs, "Diffusing Capacity") < 75
    weak = chart(MAN, ("Neurological Examination / Motor", "Left foot dorsiflexion 4/5"))
    assert value(weak, "Electromyography / Findings") != "Normal"
    narrow = chart(MAN, ("Spirometry / FEV1", "0.98 L (42% predicted)"), ("Spirometry / FEV1 FVC", "0.45"))
    assert number(narrow, "Peak Expiratory Flow") == 42
    assert "Scooped" in (value(narrow, "Spirometry / Flow Volume Loop") or "")
    short = chart(MAN, ("Walk Test / Findings", "Stops twice short of breath, saturation falls to 88%"))
    assert "not reached" in (value(short, "Cardiac Stress Test / Findings") or "")
    hips = chart(MAN, ("Neurological Examination / Motor", "Shoulders and hips 4/5"))
    assert value(hips, "Neurological Examination / Rising From a Chair") == "Pushes up with both arms"
    pale = ("General Appearance", "Tired, pale"), ("Complete Blood Count / Hemoglobin", "11.2 g/dL")
    assert value(chart(MAN, *pale), "Eye Examination / Conjunctival Pallor") == "Slightly pale on both sides"
    fast = chart(MAN, ("Electrocardiogram / Findings", "Regular narrow rhythm at 188 per minute"))
    assert value(fast, "Electrophysiology Study / Findings") is None


def test_what_the_patient_tells_has_its_say() -> None:
    told = Fact("Past/1", Section.PAST, (), "Seasonal hay fever from birch")
    assert number(chart(MAN, story=(told,)), "Specific IgE / Birch Pollen") > 1
    thirsty = Fact("Symptoms/1", Section.SYMPTOMS, (), "Passes little urine")
    assert number(chart(MAN, story=(thirsty,)), "Vital Signs / Urine Output") < 30
    device = Fact("Medications/1", Section.PAST, (), "Copper intrauterine device")
    assert "Device lies" in (value(chart(WOMAN, story=(device,)), "Transvaginal Ultrasound / Findings") or "")
    at_ease = Fact("Symptoms/1", Section.SYMPTOMS, (), "Bright light does not bother her")
    assert (
        value(chart(WOMAN, story=(at_ease,)), "Neurological Examination / Photophobia")
        == "Not troubled by bright light"
    )


def test_special_signs_agree_with_the_finding_that_they_seek() -> None:
    left = "Left Side Lying Auscultation / Findings"
    crunch = chart(MAN, (left, "Crunching noise in time with the heartbeat, gone on sitting up"))
    assert (value(crunch, "Cardiovascular Examination / Hamman Sign") or "").startswith("Crunching noise")
    lying = chart(MAN, ("Vital Signs / Blood Pressure", "74/42 mmHg"))
    assert "too low to stand" in (value(lying, "Vital Signs / Blood Pressure Standing") or "")


def test_what_the_urine_holds_agrees_with_its_weight() -> None:
    thin = chart(MAN, ("Urinalysis / Specific Gravity", "1.003"))
    assert number(thin, "Osmolality / Urine") < 200
    tingling = Fact("Symptoms/2", Section.SYMPTOMS, (), "Tingling of the thumb and first fingers at night")
    signs = value(chart(MAN, story=(tingling,)), "Musculoskeletal Examination / Tinel and Phalen Signs")
    assert signs == "Both bring on tingling of the thumb and first fingers"
    cough = Fact("Symptoms/4", Section.SYMPTOMS, (), "Dry cough for three days")
    assert value(chart(MAN, story=(cough,)), "Respiratory Examination / Cough") == "Dry, now and then"
    low = Fact("Symptoms/3", Section.SYMPTOMS, (), "Mood low since the illness began")
    assert value(chart(MAN, story=(low,)), "Mental Status Examination / Rating Scale") == "PHQ-9 score 11"


def test_a_ratio_agrees_with_its_parts() -> None:
    for case in (chart(MAN), chart(MAN, ("Aldosterone Renin Ratio", "8 (ref <20)"))):
        share = number(case, "Renin and Aldosterone / Aldosterone") / 1.4
        ratio = 8 if case.exam_facts else number(case, "Aldosterone Renin Ratio")
        assert ratio == pytest.approx(share, abs=1)


def test_an_operation_on_the_belly_leaves_a_scar() -> None:
    def scar(told: str) -> str | None:
        return value(chart(WOMAN, story=(Fact("Past/0", Section.PAST, (), told),)), "Abdominal Examination / Scar")

    assert (
        scar("Caesarean section four years ago") == scar("Appendix removed at 20") == "Old operation scar, well healed"
    )
    assert scar("Appendix never removed") == scar("Tonsils removed at 6") == "None"


def test_children_are_measured_by_their_age() -> None:
    newborn, toddler = chart("5-week-old boy"), chart("18-month-old boy")
    assert 35 < number(newborn, "Vital Signs / Head Circumference") < 41
    assert 45 < number(toddler, "Vital Signs / Head Circumference") < 50
    assert 53 < number(newborn, "Vital Signs / Height") < 57
    assert 80 < number(toddler, "Vital Signs / Height") < 85
    assert value(toddler, "Mental Status Examination / Rating Scale") is None


def test_ketones_of_the_blood_go_with_those_of_the_urine() -> None:
    for urine, least, most in (("Negative", 0, 0.5), ("1+", 0.6, 1), ("3+", 3, 4)):
        assert least < number(chart(MAN, ("Urinalysis / Ketones", urine)), "Beta-Hydroxybutyrate") < most


def test_who_cannot_stand_on_a_foot_does_not_turn_in_two_steps() -> None:
    lame = chart(MAN, ("Neurological Examination / Romberg", "Not testable, cannot put weight on the left foot"))
    for sign in ("Gait", "Tandem Gait", "Timed Up and Go", "Turning", "Rising From a Chair"):
        assert value(lame, f"Neurological Examination / {sign}") is None


ILL = (
    ("Complete Blood Count / Hemoglobin", "9.1 g/dL (ref 13.5-17.5)"),
    ("Abdominal Ultrasound / Findings", "Gallbladder wall 6 mm thick, stones in its neck"),
    ("Neurological Examination / Motor", "Left arm weak"),
)


@pytest.mark.parametrize(
    "order",
    ["CBC", "CT of the abdomen", "Neurological exam", "Full physical exam", "Troponin", "Throat swab", "Babinski sign"],
)
def test_an_order_is_answered_as_if_the_whole_chart_were_completed_first(order: str) -> None:
    added = completion(chart(MAN, *ILL))
    assert asked_of_chart(order, added.chart) == asked_of_measurement(order, added.everything)


def test_an_order_for_one_test_does_not_read_the_examination_for_the_rest_of_the_table() -> None:
    patient = completion(chart(WOMAN, *ILL)).patient
    assert asked_of_chart("Serum sodium", completion(chart(WOMAN, *ILL)).chart)
    assert "_denied_at" not in vars(patient)
    assert completion(chart(WOMAN, *ILL)).everything
    assert "_denied_at" in vars(patient)
