"""Orders in the short and loose words of doctors are read as the same in plain words."""

from __future__ import annotations

import pytest

from agentclinic.cases.matcher.order_items import items
from agentclinic.cases.matcher.order_text import one_line


def reads(order: str) -> list[object]:
    """What each item of an order is read as."""
    return [(item.read.by_kind, item.read.words, item.read.sides) for item in items(one_line(order))]


@pytest.mark.parametrize(
    ("order", "in_plain_words"),
    [
        ("AS OCT", "anterior segment OCT"),
        ("AS-OCT both eyes", "anterior segment OCT both eyes"),
        ("C3/4", "C3, C4"),
        ("CTA COW", "CTA head"),
        ("ECoG", "electrocochleography"),
        ("HRM", "esophageal manometry"),
        ("NIHSS", "neurological examination"),
        ("NIH stroke scale", "neurological examination"),
        ("PET bloods", "bloods"),
        ("PR tone", "anal tone"),
        ("ESR, TAB", "ESR, temporal artery biopsy"),
        ("TOE", "transesophageal echocardiogram"),
        ("abdominal u/s", "abdominal ultrasound"),
        ("pelvic U/S", "pelvic ultrasound"),
        ("MRI brain w gad", "MRI brain with gadolinium"),
        ("MRI + gad", "MRI with gadolinium"),
        ("MRI brain w/o gad", "MRI brain without gadolinium"),
        ("MRI brain w/wo gad", "MRI brain with and without gadolinium"),
        ("LP w/ opening pressure", "lumbar puncture with opening pressure"),
        ("power in arms vs legs", "power in arms and legs"),
        ("kappa:lambda ratio", "kappa lambda ratio"),
        ("R knee X-ray", "right knee X-ray"),
        ("L. wrist X-ray", "left wrist X-ray"),
        ("anti-IF", "intrinsic factor antibodies"),
        ("B12, IF abs", "B12, intrinsic factor antibodies"),
        ("IF/GPC antibodies", "intrinsic factor antibodies, parietal cell antibodies"),
        ("BC, UCx", "blood cultures, urine culture"),
        ("bcx2, SCx", "blood cultures, sputum culture"),
        ("urine MC&S", "urine culture"),
        ("U+E", "U&E"),
        ("G&S", "blood group"),
        ("T&C", "blood group"),
        ("X-match", "blood group"),
        ("group and save", "blood group"),
        ("group and Rh", "blood group"),
        ("ASA/APAP levels", "salicylate level, acetaminophen level"),
        ("ACL, B2GP1, LA", "anticardiolipin, B2GP1, lupus anticoagulant"),
        ("ESR/PV", "ESR, plasma viscosity"),
        ("abdo exam, PV", "abdominal exam, pelvic exam"),
        ("BP, PR, RR", "blood pressure, pulse rate, respiratory rate"),
        ("abdo exam, PR", "abdominal exam, rectal exam"),
        ("BM aspirate", "bone marrow aspirate"),
        ("BMA", "bone marrow"),
        ("U&E, BM", "U&E, fingerstick glucose"),
        ("JVP, HS", "JVP, heart sounds"),
        ("nystagmus, HIT", "nystagmus, head impulse test"),
        ("HINTS-plus", "head impulse test, nystagmus, test of skew"),
        ("eFAST", "bedside ultrasound"),
        ("FBC, lap", "FBC, laparoscopy"),
        ("blood film, flow", "blood film, flow cytometry"),
        ("ALK, EGFR", "ALK, EGFR mutation"),
    ],
)
def test_abbreviations_are_written_out(order: str, in_plain_words: str) -> None:
    assert reads(order) == reads(in_plain_words)


def test_an_abbreviation_that_is_read_by_itself_is_written_out_for_its_heading() -> None:
    assert [item.text for item in items(one_line("HRCT chest"))] == ["high resolution ct chest"]


@pytest.mark.parametrize(
    ("order", "ordered"),
    [
        ("results of the pending blood cultures", "blood cultures"),
        ("hourly urine output", "urine output"),
        ("troponin q3h", "troponin"),
        ("abdo USS ?intussusception", "abdominal ultrasound"),
        ("respiratory PCR for viruses and bacteria", "respiratory PCR"),
        ("transvaginal ultrasound by a senior sonographer with probe pressure", "sliding sign transvaginal ultrasound"),
        ("ear examination in mum's arms", "ear examination"),
        ("heart sounds, keeping him on his mother's lap", "heart sounds"),
        ("chest exam and look for clubbing", "chest exam, clubbing"),
        ("please look for ketones", "ketones"),
        ("chest X-ray compared to prior", "chest X-ray"),
        ("peak flow at work and at home", "peak flow"),
        ("chest X-ray after thoracentesis", "chest X-ray"),
        ("glucose after an 8-hour fast", "fasting glucose"),
        ("urinalysis with reflex culture", "urinalysis"),
    ],
)
def test_why_when_and_by_whom_is_no_part_of_what_is_ordered(order: str, ordered: str) -> None:
    assert reads(order) == reads(ordered)


@pytest.mark.parametrize(
    ("order", "image"),
    [
        ("CT abdomen, arterial and portal venous phases", "CT abdomen"),
        ("CT head, no contrast", "CT head without contrast"),
        ("CT abdomen pelvis PO/IV contrast", "CT abdomen pelvis"),
        ("AP/lat chest film", "chest film"),
        ("shoulder X-ray AP and axillary views", "shoulder X-ray"),
        ("XR C-spine flex/ext", "C-spine X-ray"),
        ("abdominal X-ray left lateral decubitus view", "abdominal X-ray"),
        ("gastrografin follow-through with films at 24h", "gastrografin follow-through"),
        ("pelvic ultrasound with Doppler of the ovaries", "pelvic ultrasound of the ovaries"),
        ("color duplex of the carotids", "duplex of the carotids"),
        ("CT-guided lumbar puncture", "lumbar puncture"),
        ("CT angiogram aorta with ECG gating", "CT angiogram aorta"),
        ("ECG including right-sided leads V4R", "ECG"),
        ("pelvic ultrasound with sliding sign", "sliding sign pelvic ultrasound"),
    ],
)
def test_how_an_image_is_taken_is_no_other_image(order: str, image: str) -> None:
    assert reads(order) == reads(image)


@pytest.mark.parametrize(
    ("order", "images"),
    [
        ("transthoracic and transoesophageal echo", "transthoracic echocardiogram, transesophageal echocardiogram"),
        ("CT or MR venogram", "CT venogram, MR venogram"),
        ("CT body", "CT chest abdomen pelvis"),
        ("CTA arch to vertex", "CT angiography head, CT angiography neck"),
        ("CTA abdo/pelvis", "CT angiography abdomen"),
        ("CT chest with pulmonary angiography", "CT pulmonary angiography"),
        ("vessel wall MRI", "MR angiography"),
        ("MRI brain with contrast including pituitary and cavernous sinus", "MRI cavernous sinus"),
        ("MRI brain and IAMs", "MRI internal auditory canals"),
        ("MRI brain/cord", "MRI brain, MRI spine"),
        ("L/S spine X-ray", "lumbar spine X-ray"),
        ("MRI C/T spine", "MRI cervical spine, MRI thoracic spine"),
        ("power (L4, L5, S1)", "power"),
        ("sensation C5-T1", "sensation"),
        ("obs scan", "obstetric ultrasound"),
        ("USS growth/liquor/dopplers", "obstetric ultrasound"),
        ("CTG, MCA dopplers", "CTG, obstetric ultrasound"),
        ("TVS", "transvaginal ultrasound"),
        ("USS KUB", "renal ultrasound"),
        ("MSK ultrasound of the shoulder", "ultrasound of the shoulder"),
        ("B-scan of both eyes", "ocular ultrasound"),
        ("pelvic veins ultrasound", "iliac vein ultrasound"),
        ("IVC ultrasound", "abdominal ultrasound"),
        ("leg duplex and IVC", "leg duplex, iliac vein ultrasound"),
        ("doppler r/o DVT", "leg vein ultrasound"),
        ("ultrasound of temporal and axillary arteries", "ultrasound of temporal and axillary artery"),
        ("RLQ ultrasound", "appendix ultrasound"),
        ("ultrasound for appendicitis", "appendix ultrasound"),
        ("UGI contrast", "upper GI contrast study"),
        ("upper gastrointestinal contrast series", "upper GI contrast study"),
        ("barium follow through", "upper GI contrast study"),
    ],
)
def test_what_is_imaged_is_written_out(order: str, images: str) -> None:
    assert reads(order) == reads(images)


@pytest.mark.parametrize(
    ("order", "tests"),
    [
        ("skin and lymph node biopsies", "skin biopsy, lymph node biopsy"),
        ("skin biopsy for DIF", "skin biopsy for immunofluorescence"),
        ("skin biopsy of the blister edge for DIF", "skin biopsy of the blister edge, direct immunofluorescence"),
        ("biopsy of the iliopsoas", "biopsy of the muscle"),
        ("psoas aspiration", "muscle aspiration"),
        ("needle biopsy of the infected disc", "disc biopsy"),
        ("drainage of the pleural fluid", "pleural fluid"),
        ("stool test for calprotectin", "stool calprotectin"),
        ("oligoclonal bands (CSF/serum)", "CSF oligoclonal bands, serum oligoclonal bands"),
        ("cryptococcal antigen (CSF)", "CSF cryptococcal antigen"),
        ("HSV PCR CSF", "CSF HSV PCR"),
        ("HSV PCR CSF/blood", "CSF HSV PCR, blood HSV PCR"),
        ("EBV PCR in blood and CSF", "blood EBV PCR, CSF EBV PCR"),
        ("throat and rectal swabs for PCR", "throat swab PCR, rectal swab PCR"),
        ("CMV PCR of blood and urine", "CMV PCR of blood"),
        ("urine dip, CRP, cultures", "urine dip, CRP, blood cultures"),
        ("lipase, cultures", "lipase, blood cultures"),
        ("UA (cath)", "urinalysis"),
        ("urine for proteinuria", "urinalysis"),
        ("UA including pH", "urinalysis"),
        ("urine colour on standing", "urine colour"),
        ("NG tube output", "gastric aspirate appearance"),
        ("CSF red cells from first and last tubes", "CSF red cells"),
        ("CSF glucose with serum", "CSF glucose, serum glucose"),
        ("CSF biomarkers", "CSF amyloid and tau"),
    ],
)
def test_what_is_taken_is_read_with_where_it_is_from(order: str, tests: str) -> None:
    assert reads(order) == reads(tests)


@pytest.mark.parametrize(
    ("order", "tests"),
    [
        ("HSV PCR with Ct value", "HSV PCR"),
        ("CXR, AFB culture", "CXR, sputum AFB culture"),
        ("IGRA, sputum NAAT", "IGRA, sputum TB PCR"),
        ("TB microscopy and culture", "TB microscopy, TB culture"),
        ("TB culture & microscopy", "TB microscopy, TB culture"),
        ("sputum AFB x3", "sputum acid-fast smear, second sputum acid-fast smear"),
        ("sputum bacterial and mycobacterial cultures", "sputum culture and mycobacterial cultures"),
        ("pernasal swab", "pertussis PCR"),
        ("NP swab culture", "nasopharyngeal culture"),
        ("culture of nasopharyngeal swab", "nasopharyngeal culture"),
        ("CXR, viral PCR", "CXR, respiratory viral PCR"),
        ("LP with cell count, PCR", "LP with cell count, HSV PCR"),
        ("CSF viral PCR + serology", "CSF viral PCR and viral serology"),
        ("Cryptosporidium and Cyclospora PCR", "stool pathogen PCR"),
        ("stool ova, cysts and parasites", "stool ova and parasites"),
        ("urine hCG, GC/CT", "urine hCG, chlamydia and gonorrhea PCR"),
        ("GC/chlamydia NAAT", "chlamydia and gonorrhea NAAT"),
        ("urethral chlamydia PCR", "urine chlamydia PCR"),
        ("speculum with swabs", "speculum, high vaginal swab"),
        ("throat swab, rapid antigen test", "throat swab, rapid strep"),
    ],
)
def test_germs_are_read_with_how_they_are_looked_for(order: str, tests: str) -> None:
    assert reads(order) == reads(tests)


@pytest.mark.parametrize(
    ("order", "values"),
    [
        ("bone profile", "calcium, phosphate, ALP, albumin"),
        ("transaminases", "ALT, AST"),
        ("bilirubin (total/direct)", "total and direct bilirubin"),
        ("bilirubin fractions", "total and direct bilirubin"),
        ("bilirubin (fractionated)", "total and direct bilirubin"),
        ("immunoglobulins", "serum IgG, serum IgA, serum IgM"),
        ("liver and renal function tests", "liver function, renal function"),
        ("KCNQ1/KCNH2/SCN5A panel", "gene panel"),
        ("venous gas", "venous blood gas"),
        ("venous plasma glucose", "glucose"),
        ("LDH, haptoglobin, smear", "LDH, haptoglobin, blood smear"),
        ("CBC and smear", "CBC, blood smear"),
        ("erythrocyte PBG deaminase", "PBG deaminase"),
        ("Lp(a)", "lipoprotein a"),
        ("1,25-OH vitamin D", "calcitriol"),
        ("25(OH)D3", "25-hydroxyvitamin D"),
        ("epinephrine (adrenaline) challenge", "epinephrine challenge"),
        ("plasma mets", "plasma metanephrines"),
        ("plasma metanephrines/cats", "plasma metanephrines, plasma catecholamines"),
        ("24h urine metanephrines and catecholamines", "urine catecholamine metabolites"),
        ("24-hour UPEP", "24-hour urine protein, urine protein electrophoresis"),
        ("24h protein", "24-hour urine protein"),
        ("spot U Na", "spot urine sodium"),
        ("24h urine protein/creatinine", "24-hour urine protein, urine creatinine"),
        ("urine protein:creatinine", "urine protein creatinine ratio"),
        ("spot urine ACR or PCR", "urine albumin creatinine ratio, urine protein creatinine ratio"),
        ("urine ACR and PCR", "urine albumin creatinine ratio, urine protein creatinine ratio"),
        ("urine PCR", "urine protein creatinine ratio"),
        ("spot PCR", "urine protein creatinine ratio"),
        ("paired serum/urine osmolality", "serum osmolality, urine osmolality"),
    ],
)
def test_panels_and_values_are_written_out(order: str, values: str) -> None:
    assert reads(order) == reads(values)


@pytest.mark.parametrize(
    ("order", "tests"),
    [
        ("trial of 100% O2 12 L/min by mask during an attack", "oxygen trial"),
        ("spirometry pre/post bronchodilator", "spirometry bronchodilator response"),
        ("evoked potentials (visual, somatosensory)", "visual evoked potentials, somatosensory evoked potentials"),
        ("NCS of the median and ulnar nerves", "nerve conduction studies"),
        ("hydrogen breath test for lactose and fructose malabsorption", "lactose breath test, fructose breath test"),
        ("allergy skin testing", "skin prick test"),
        ("CSF tap test", "gait after removal of 40 ml spinal fluid"),
        ("pulmonary capillary wedge pressure", "right heart catheterization"),
        ("resting and ambulatory oxygen saturation", "oxygen saturation, walk test"),
        ("stand test", "standing ECG"),
    ],
)
def test_tests_of_function_are_written_out(order: str, tests: str) -> None:
    assert reads(order) == reads(tests)


@pytest.mark.parametrize(
    ("order", "examinations"),
    [
        ("weigh the baby", "weight"),
        ("lying and sitting BP", "lying and standing blood pressure"),
        ("sitting/standing BP", "lying and standing blood pressure"),
        ("vital signs, weight and growth", "vital signs, weight, growth chart"),
        ("hearing / otoscopy", "hearing, otoscopy"),
        ("blood pressure lying and sitting", "blood pressure lying and standing"),
        ("BP lying/sitting", "BP lying and standing"),
        ("L/S BP", "lying and standing blood pressure"),
        ("postural obs", "lying and standing blood pressure"),
        ("BP in arms and legs", "four-limb blood pressure"),
        ("BP 4 limbs", "four-limb blood pressure"),
        ("pre and post ductal saturations", "oxygen saturation, postductal oxygen saturation"),
        ("SpO2 in right hand and either foot", "oxygen saturation, postductal oxygen saturation"),
        ("Beck's triad: JVP, heart sounds, BP", "JVP, heart sounds, BP"),
        ("Beck's triad", "JVP, heart sounds, BP"),
        ("Cushing reflex", "BP, heart rate, respiratory rate"),
        ("airway exam", "stridor, throat exam"),
        ("airway for soot", "stridor, throat exam"),
        ("throat without using a tongue depressor", "throat"),
        ("breath odour (ketones)", "breath odour"),
        ("stony dullness", "chest percussion"),
        ("JVP, Kussmaul", "JVP, Kussmaul sign"),
        ("AS murmur", "murmur"),
        ("auscultate the carotids for bruits", "carotid bruits"),
        ("radials and femorals", "radials, femoral pulses"),
        ("tympany", "abdominal percussion"),
        ("guarding, rigidity", "guarding, guarding"),
        ("abdomen for hepatosplenomegaly", "abdomen, hepatosplenomegaly"),
        ("JVP, ascites, pedal oedema", "JVP, shifting dullness, pedal oedema"),
        ("hernial orifices (inguinal, femoral, umbilical)", "hernial orifices"),
        ("hernial orifices including femoral canal", "hernial orifices"),
        ("testicular and hernia exam", "testicular exam, hernia examination"),
        ("hernia and genital examination", "genital exam, hernia examination"),
        ("anal tone and squeeze", "anal tone"),
    ],
)
def test_vital_signs_and_the_trunk_are_examined_in_plain_words(order: str, examinations: str) -> None:
    assert reads(order) == reads(examinations)


@pytest.mark.parametrize(
    ("order", "examinations"),
    [
        ("neck for crepitus", "neck for subcutaneous emphysema"),
        ("wound for crepitus", "wound for soft tissue crepitus"),
        ("wound for necrosis", "wound for tissue necrosis"),
        ("blisters, crepitus", "bullae, soft tissue crepitus"),
        ("draw around the rash", "repeat skin examination"),
        ("tumbler test", "skin rash"),
        ("zoster rash", "skin rash"),
        ("portal of entry", "skin"),
        ("knee portals", "knee"),
        ("ankle and sacral oedema", "ankle oedema, sacral oedema"),
        ("oedema of the face and hands", "facial oedema, hand oedema"),
        ("cervical and axillary lymph nodes", "lymph nodes"),
        ("cervical nodes, axillae", "cervical nodes, axillary nodes"),
        ("palpate the neck", "neck palpation"),
        ("thyroid, eyes, hands", "thyroid, eyes, hands, tremor"),
        ("neurological examination with mental status", "neurological examination"),
        ("CN III, IV, VI", "cranial nerves"),
        ("pupils in light and dark", "pupils, pupils in dim light"),
        ("fields test with confrontation", "visual fields"),
        ("vibration with 128 Hz tuning fork", "vibration sense"),
        ("ulnar nerve function", "strength, sensation"),
        ("neurovascular exam of the hand", "distal pulses, capillary refill, power, sensation of the hand"),
        ("feel the neck and temporal muscles", "pericranial muscles"),
        ("active and passive range of motion", "range of motion"),
        ("look between the toes", "examine the toes"),
        ("neuro exam with attention to gait", "neuro exam including gait"),
    ],
)
def test_skin_nerves_and_limbs_are_examined_in_plain_words(order: str, examinations: str) -> None:
    assert reads(order) == reads(examinations)
