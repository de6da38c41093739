"""What a laboratory that completes missing tests says to orders for tests of specimens, germs, genes and images."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulator_support import CASE

from agentclinic.builtin.roles import report
from agentclinic.cases.completion import completion
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.clinic.payloads import LaboratoryPayload

TESTED = {
    ("Complete Blood Count", "WBC"): "13.6 x10^9/L",
    ("Complete Blood Count", "Neutrophils"): "84%",
    ("Basic Metabolic Panel", "Glucose"): "178 mg/dL",
    ("Basic Metabolic Panel", "Creatinine"): "0.7 mg/dL",
    ("Joint Fluid Analysis", "WBC"): "62,000 cells/µL",
    ("Joint Fluid Analysis", "Glucose"): "92 mg/dL",
    ("Joint Fluid Analysis", "Crystals"): "Needle-shaped",
    ("Joint Fluid Analysis", "Gram Stain"): "No organisms seen",
    ("Cerebrospinal Fluid", "Findings"): "2 cells, protein 36 mg/dL, glucose 62 mg/dL",
    ("Right Heart Catheterization", "Findings"): "Wedge pressure 17 mmHg",
    ("Cardiac Stress Test", "Findings"): "Stopped after four minutes of exercise",
    ("Thyroid Function Tests", "Total T3"): "348 ng/dL",
    ("Stool Studies", "Culture"): "Campylobacter grew",
    ("Iron Studies", "Serum Iron"): "22 µg/dL",
    ("Iron Studies", "TIBC"): "320 µg/dL",
    ("Electrocardiogram", "Findings"): "Sinus rhythm",
}


def charted() -> Case:
    facts = [Fact(f"Test_Results/{'/'.join(heads)}", Section.TESTS, heads, text) for heads, text in TESTED.items()]
    return replace(CASE, facts=(*CASE.patient_facts, *facts))


def reply(order: str) -> str:
    """What is said within the hours of an emergency department."""
    case = charted()
    return report(LaboratoryPayload(case.exam_facts, order, "completed", completion(case), horizon=6)).text


@pytest.mark.parametrize(
    "order",
    [
        "Aspirate left ankle: cell count, crystals, Gram stain, glucose",
        "Right knee joint aspiration for cell count, crystals, Gram stain, glucose",
        "tap of the knee (cell count, crystals, Gram stain, glucose)",
    ],
)
def test_a_list_after_the_tap_of_a_joint_is_about_its_fluid(order: str) -> None:
    text = reply(order)
    assert all(said in text for said in ("62,000 cells", "Needle-shaped", "No organisms seen", "92 mg/dL"))
    assert not any(other in text for other in ("13.6", "178 mg/dL", "Lumbar", "Cerebrospinal", "Sputum"))


@pytest.mark.parametrize(
    ("order", "said", "not_said"),
    [
        ("Stool for ova and parasites, Giardia antigen and culture", ["Stool Culture"], ["specimen", "Sputum"]),
        ("stool: culture, calprotectin", ["Stool Culture", "Calprotectin"], ["Reducing", "Ova"]),
        ("spot urine porphobilinogen, creatinine on the same sample", ["Urine Creatinine"], ["0.7 mg/dL"]),
        ("CSF protein and cell count", ["protein 36 mg/dL"], ["not done"]),
        ("LP: protein, glucose paired with serum", ["glucose 62 mg/dL", "178 mg/dL"], []),
        ("cytology, TSH", ["Cytology: the order does not say of which specimen"], ["Pap", "Urine", "Pleural"]),
        ("Gram stain, TSH", ["No organisms seen", "TSH"], ["Urethral", "Sputum"]),
    ],
)
def test_the_specimen_named_for_a_list_holds_for_all_of_it(order: str, said: list[str], not_said: list[str]) -> None:
    text = reply(order)
    assert all(part in text for part in said), text
    assert not any(part in text for part in not_said), text


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("protein C, S, antithrombin", ["Protein C", "Protein S", "Antithrombin"]),
        ("TSH, coxsackie B and EBV serology", ["TSH", "Coxsackie B", "EBV"]),
        ("nasopharyngeal swab PCR for Bordetella pertussis, Mycoplasma and Chlamydophila", ["Mycoplasma", "Chlamydop"]),
        ("corrected and ionised calcium, LDH", ["Calcium", "Ionized", "LDH"]),
        ("stool: Yersinia and Campylobacter culture", ["Stool Culture"]),
        ("WBC with differential", ["13.6", "Neutrophils: 84%"]),
        ("CT-guided needle biopsy for histology, PD-L1, EGFR, ALK", ["PD-L1", "EGFR", "ALK"]),
        ("magnesium, phosphate, frobnication level", ["Magnesium: ", "Phosphate: "]),
    ],
)
def test_each_of_a_list_is_answered(order: str, names: list[str]) -> None:
    text = reply(order)
    assert all(name in text for name in names), text
    assert not any(denied in text for denied in ("not available", "eGFR"))


@pytest.mark.parametrize(
    "order",
    [
        "cryoglobulins",
        "anti-titin antibodies",
        "FBC, S100B, prealbumin",
        "24-hour urinary free cortisol",
        "KCNQ1/KCNH2/SCN5A panel",
        "APOE genotype",
        "T. pallidum antibodies, Yersinia serology",
        "orthopantomogram",
        "TSH, headache diary",
        "intestinal fatty acid binding protein",
    ],
)
def test_a_test_without_a_normal_result_is_taken_or_arranged_and_not_denied(order: str) -> None:
    text = reply(order)
    assert "result pending" in text or "Non-reactive" in text
    assert not any(denied in text for denied in ("not available", "No result available", "Total Protein", "Sinus"))


@pytest.mark.parametrize(
    ("order", "instead"),
    [
        ("dobutamine stress echo", "Dobutamine stress echo was not done; Cardiac Stress Test"),
        ("free T3", "Free T3 was not done; Thyroid Function Tests: Total T3"),
    ],
)
def test_a_neighboring_test_is_not_passed_off_as_the_one_ordered(order: str, instead: str) -> None:
    assert instead in reply(order)


@pytest.mark.parametrize(
    ("order", "not_said"),
    [
        ("left heart catheterisation with pullback gradient", "Wedge pressure"),
        ("epinephrine (adrenaline) challenge", "Catecholamine"),
        ("CSF flow study", "Cerebrospinal Fluid: "),
        ("chlamydia/gonorrhoea NAAT vulvovaginal swab", "HIV"),
        ("serum tryptase now, at 2 hours and baseline after 24 h", "Examination"),
    ],
)
def test_a_word_inside_a_test_brings_no_other_test(order: str, not_said: str) -> None:
    assert not_said not in reply(order)


def test_results_of_one_report_that_follow_each_other_are_told_under_one_heading() -> None:
    assert "Iron Studies: Serum Iron: 22 µg/dL; TIBC: 320 µg/dL." in reply("CRP, iron, TIBC")


def test_a_value_measured_under_a_condition_is_no_treatment() -> None:
    assert "a treatment" not in reply("repeat lactate after 2 hours of high-flow oxygen")
    assert "a treatment" in reply("high-flow oxygen")


@pytest.mark.parametrize(
    ("order", "said", "not_said"),
    [
        ("Yersinia PCR, TSH", ["Yersinia PCR: taken, result pending"], ["Sputum", "Vaginal"]),
        ("CSF: cells, protein, NMDA-R antibodies", ["NMDA", "result pending"], []),
        ("LGI1, CASPR2 and GABA-B antibodies", ["LGI1: ", "CASPR2: ", "GABA-B antibodies: "], ["No result"]),
        ("lactose and fructose hydrogen breath tests", ["Lactose Breath", "Fructose hydrogen"], []),
        ("pleural tap: pH, LDH, Gram stain", ["No fluid to sample"], ["pending"]),
        ("transvaginal ultrasound of the ovaries, free fluid, appendix", ["Appendix Ultrasound"], ["Examination"]),
        ("standing lumbar X-rays in flexion and extension", ["Lumbar Spine X-ray"], ["Examination"]),
        ("adrenal vein sampling", ["arranged, result pending"], ["Examination"]),
        ("stool culture and ova/cysts/parasites", ["Stool Culture", "Ova and Parasites"], ["Throat", "Skin"]),
        ("urine and serum toxicology", ["Urine Drug Screen", "Ethanol"], ["not available"]),
    ],
)
def test_an_unknown_word_or_place_brings_nothing_else_and_is_not_lost(
    order: str, said: list[str], not_said: list[str]
) -> None:
    text = reply(order)
    assert all(part in text for part in said), text
    assert not any(part in text for part in not_said), text


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("CURB-65, TSH", "CURB-65: a score to work out from the findings, not a test."),
        ("TSH, IV access x2", "IV access x2: not a test."),
        ("TSH, ophthalmology referral", "Ophthalmology referral: not a test."),
        ("TSH, screening of siblings", "Screening of siblings: not a test."),
        ("TSH, insulin infusion 0.1 u/kg/h", "Insulin infusion 0.1 u/kg/h: a treatment, not a test."),
        ("TSH, start acetazolamide", "Start acetazolamide: a treatment, not a test."),
        ("TSH, keep NBM", "Keep NBM: a treatment, not a test."),
    ],
)
def test_scores_treatments_and_arrangements_are_told_from_tests(order: str, said: str) -> None:
    text = reply(order)
    assert said in text
    assert "pending" not in text


@pytest.mark.parametrize(
    ("order", "named"),
    [
        ("LDH/hapto/bili", ("LDH", "Haptoglobin", "Bilirubin")),
        ("HIV, IgE", ("HIV", "Total IgE")),
        ("bcx x3, UCx", ("Blood Cultures", "Urine Culture")),
        ("FBC/CRP/cultures", ("Complete Blood Count", "C Reactive Protein", "Blood Cultures")),
        ("BM, ketones", ("Fingerstick", "Ketones")),
        ("adrenal antibodies", ("21-Hydroxylase",)),
        ("FBC/film", ("Complete Blood Count", "Film")),
        ("vesicle fluid/throat enterovirus PCR", ("Vesicle", "Throat")),
        ("XR knee AP + lat, CXR PA/lat", ("Knee X-ray", "Chest X-ray")),
        ("abdo USS ?appendicitis, TSH", ("Abdominal Ultrasound", "TSH")),
        ("bone marrow bx, BM aspirate", ("Bone Marrow",)),
        ("24h U Ca/Cr", ("24-Hour Urine Calcium", "Creatinine")),
        ("MRI C/T spine", ("MRI Thoracic and Cervical Spine",)),
        ("CT TAP", ("CT Chest and Abdomen",)),
    ],
)
def test_a_list_as_doctors_shorten_it_is_answered_item_by_item(order: str, named: tuple[str, ...]) -> None:
    text = reply(order)
    assert all(name in text for name in named)
    assert not any(denied in text for denied in ("not available", "No result", "does not say"))
