"""What a diagnosis adds to the truth must be supported by the chart."""

from __future__ import annotations

import pytest

from agentclinic.vocabulary import support
from agentclinic.vocabulary.compare import STRICT, Relation, compare

UNRELATED = "Seen at the clinic."
# The cue's key, a diagnosis that adds it, the truth, and a chart that supports it without naming it.
STATEMENTS = [
    ("alcohol", "Alcoholic pancreatitis", "Pancreatitis", "Drinks a bottle of vodka a day."),
    ("gallstone", "Gallstone pancreatitis", "Pancreatitis", "Ultrasound: stones in the gallbladder."),
    ("cholelithiasis", "Pancreatitis due to cholelithiasis", "Pancreatitis", "Ultrasound: gallbladder calculi."),
    ("nonsteroidal", "NSAID-induced gastric ulcer", "Gastric ulcer", "Takes ibuprofen for back pain."),
    ("aspirin", "Gastritis due to aspirin", "Gastritis", "Takes salicylates every day."),
    ("smoking", "Lung cancer due to smoking", "Lung cancer", "Forty pack-years."),
    ("diabete", "Gastroparesis due to diabetes", "Gastroparesis", "Takes metformin."),
    ("autoimmune", "Autoimmune hemolytic anemia", "Hemolytic anemia", "Direct Coombs test positive."),
    ("occupational", "Occupational asthma", "Asthma", "Worse on days in the factory."),
    ("streptococcus", "Streptococcal pharyngitis", "Pharyngitis", "ASO titer raised."),
    ("staphylococcus", "Staphylococcal cellulitis", "Cellulitis", "Swab grows S. aureus."),
    ("gonococcus", "Gonococcal urethritis", "Urethritis", "Gram-negative diplococci in the smear."),
    ("escherichia", "Escherichia coli pyelonephritis", "Pyelonephritis", "Urine grows coli."),
    ("clostridioide", "Diarrhea due to Clostridioides difficile", "Diarrhea", "Finished clindamycin last week."),
    ("tuberculosis", "Tuberculous pericarditis", "Pericarditis", "Sputum positive for acid-fast bacilli."),
    ("chlamydia", "Chlamydial cervicitis", "Cervicitis", "Pain on urination."),
    ("bacteria", "Bacterial conjunctivitis", "Conjunctivitis", "Purulent discharge from both eyes."),
    ("leg", "Deep vein thrombosis of the leg", "Deep vein thrombosis", "The calf is swollen."),
    ("cardiembolic", "Cardioembolic cerebral infarction", "Cerebral infarction", "ECG: fibrillation of the atria."),
    ("malignant", "Malignant phyllodes tumor", "Phyllodes tumor", "Biopsy: invasion of the stroma."),
    ("metastasis", "Metastatic melanoma", "Melanoma", "CT: secondaries in the liver."),
    ("borderline", "Borderline ovarian tumor", "Ovarian tumor", "Histology: borderline."),
    ("invasive", "Invasive breast cancer", "Breast cancer", "Biopsy: infiltrating growth."),
    ("nodule", "Nodular melanoma", "Melanoma", "A raised, dome-shaped lesion."),
    ("tuberculoid", "Tuberculoid leprosy", "Leprosy", "Biopsy: granulomas."),
    ("lepromatous", "Lepromatous leprosy", "Leprosy", "Leonine face."),
    ("lacunar", "Lacunar cerebral infarction", "Cerebral infarction", "MRI: infarct of the thalamus."),
    ("hereditary", "Hereditary pancreatitis", "Pancreatitis", "Two cousins have it as well."),
    ("newborn", "Sepsis of the newborn", "Sepsis", "Three days old, born preterm."),
]
# The same for guesses, which need less support.
GUESSES = [
    ("cancer", "Pleural effusion, likely lung cancer", "Pleural effusion", "Weight loss and cachexia."),
    ("paraneoplastic", "Myelitis, likely paraneoplastic", "Myelitis", "CT: a mass in the left lung."),
    ("congenital", "Cataract, likely congenital", "Cataract", "Cloudy lens since birth."),
    ("traumatic", "Cataract, likely traumatic", "Cataract", "A collision on the football field last year."),
    ("posttraumatic", "Osteoarthritis, likely posttraumatic", "Osteoarthritis", "Fell from a ladder years ago."),
    ("drug", "Urticaria, likely drug-induced", "Urticaria", "A new medication since Monday."),
    ("postinfectious", "Arthritis, likely postinfectious", "Arthritis", "Began with gastroenteritis abroad."),
    ("postviral", "Cough, likely postviral", "Cough", "Had a cold last month."),
    ("postoperative", "Ileus, likely postoperative", "Ileus", "Underwent hip replacement last week."),
    ("ischemia", "Cardiomyopathy, likely ischemic", "Cardiomyopathy", "Coronary stents placed."),
    ("allergy", "Conjunctivitis, likely allergic", "Conjunctivitis", "Worse when there is pollen."),
    ("stress", "Psoriasis, likely stress-induced", "Psoriasis", "Her divorce was last month."),
    ("exercize", "Rhabdomyolysis, likely exercise-induced", "Rhabdomyolysis", "After a running contest."),
]


@pytest.mark.parametrize(("cue", "diagnosis", "truth", "chart"), [*STATEMENTS, *GUESSES])
def test_a_cue_in_the_chart_supports_what_a_diagnosis_adds(cue: str, diagnosis: str, truth: str, chart: str) -> None:
    assert compare(diagnosis, truth, chart=chart).relation is Relation.NARROWER_CONSISTENT
    unsupported = compare(diagnosis, truth, chart=UNRELATED)
    assert unsupported.relation is Relation.NARROWER_UNSUPPORTED
    assert cue in unsupported.reason


def test_every_cue_has_an_example() -> None:
    assert [cue for cue, *_ in STATEMENTS] == list(support._CUES)
    assert [cue for cue, *_ in GUESSES] == list(support._GUESS_CUES)


@pytest.mark.parametrize(
    ("diagnosis", "truth", "shown", "not_shown"),
    [
        ("Acute hepatitis A", "Acute hepatitis", "Anti-HAV IgM positive", "Anti-HAV IgM negative"),
        ("Acute hepatitis B", "Acute hepatitis", "HBsAg positive", "HBsAg negative"),
        ("Acute hepatitis C", "Acute hepatitis", "HCV RNA detected", "HCV RNA not detected"),
        ("Hemophilia A", "Hemophilia", "Factor VIII low", "Factor IX low"),
        ("Hemophilia B", "Hemophilia", "Factor IX low", "Factor VIII low"),
    ],
)
def test_a_type_is_supported_by_its_laboratory_name(diagnosis: str, truth: str, shown: str, not_shown: str) -> None:
    assert compare(diagnosis, truth, chart=shown).relation in STRICT
    assert compare(diagnosis, truth, chart=not_shown).relation is Relation.NARROWER_UNSUPPORTED
