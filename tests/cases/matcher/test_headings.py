"""An order by a chart's heading returns everything below that heading, and nothing of another organ or specimen."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

import pytest
from helpers import EVERY, FEW, bundled_cases

from agentclinic.cases.facts import exam_facts
from agentclinic.cases.matcher import asked_of_measurement
from agentclinic.cases.matcher.order_words import joined, reading, same_site
from agentclinic.cases.model import JSON, Fact, Section
from agentclinic.vocabulary.tests import table

Facts = tuple[Fact, ...]
Heads = tuple[str, ...]

SYNONYMS = {
    "Complete Blood Count": ("CBC", "full blood count"),
    "Basic Metabolic Panel": ("BMP", "U&Es"),
    "Liver Function Tests": ("LFTs", "liver panel"),
    "Electrocardiogram": ("ECG", "12-lead EKG"),
    "Echocardiogram": ("echo", "TTE"),
    "C Reactive Protein": ("CRP", "serum CRP"),
    "Chest X-ray": ("CXR", "chest radiograph"),
    "Urinalysis": ("UA", "urine dipstick"),
    "Lumbar Puncture": ("LP", "spinal tap"),
    "Coagulation": ("coags", "clotting studies"),
    "ESR": ("sed rate", "erythrocyte sedimentation rate"),
    "Creatine Kinase": ("CK", "CPK"),
    "Upper Endoscopy": ("EGD", "gastroscopy"),
    "Arterial Blood Gas": ("ABG",),
    "CT Pulmonary Angiography": ("CTPA",),
    "Lipid Panel": ("lipids",),
    "TSH": ("thyroid stimulating hormone",),
    "HbA1c": ("hemoglobin A1c",),
    "Joint Fluid Analysis": ("arthrocentesis", "aspiration of the joint"),
    "Beta hCG": ("pregnancy test",),
    "Brain MRI": ("MRI of the brain", "MRI of the head"),
    "MRI Brain": ("MRI of the brain", "MRI of the head"),
    "CT Head": ("head CT without contrast",),
    "Blood Cultures": ("blood culture x2",),
    "Holter Monitor": ("24-hour ECG",),
    "Leg Vein Ultrasound": ("lower extremity venous Doppler", "duplex ultrasound of the leg veins"),
    "Renal Ultrasound": ("ultrasound of the kidneys",),
    "Polysomnography": ("sleep study",),
    "Interferon Gamma Release Assay": ("QuantiFERON", "IGRA"),
    "Cardiovascular Examination": ("cardiac exam", "heart exam"),
    "Respiratory Examination": ("lung exam", "chest examination"),
    "Abdominal Examination": ("exam of the abdomen", "GI exam"),
    "Neurological Examination": ("neuro exam",),
    "Skin Examination": ("exam of the skin", "dermatologic exam"),
    "Genitourinary Examination": ("GU exam",),
    "Musculoskeletal Examination": ("MSK exam",),
    "Eye Examination": ("ophthalmic exam",),
    "ENT Examination": ("ear, nose and throat exam",),
    "Vital Signs": ("vitals",),
    "Pelvic Examination": ("gynecological exam",),
    "Mental Status Examination": ("psychiatric examination", "MSE"),
}
"""Other names that doctors use."""


@lru_cache(maxsize=1)
def charts() -> tuple[Facts, ...]:
    """The bundled charts, each once."""
    names = ("OpenOSCE_1", "OpenOSCE_Demo", "OpenOSCE")
    return tuple(dict.fromkeys(case.exam_facts for name in names for case in bundled_cases(name, lockbox=True)))


@lru_cache(maxsize=1)
def every_heading() -> Facts:
    """One chart with every heading of the bundled charts, all normal."""
    keys: dict[Heads, Section] = {fact.heads: fact.section for facts in charts() for fact in facts}
    facts: dict[Heads, Fact] = {}
    for heads, section in keys.items():
        if not any(other != heads and other[: len(heads)] == heads for other in keys):
            value: JSON = "Normal"
            for head in reversed(heads):
                value = {head.replace(" ", "_"): value}
            facts[heads] = exam_facts(value, "Test_Results" if section is Section.TESTS else "Examination", section)[0]
    return tuple(facts.values())


def headings(facts: Facts) -> dict[Heads, set[str]]:
    """Each heading, with those above it, and the paths of the facts below it."""
    below: dict[Heads, set[str]] = defaultdict(set)
    for fact in facts:
        for depth in range(1, len(fact.heads) + 1):
            below[fact.heads[:depth]].add(fact.path)
    return below


def told(order: str, facts: Facts) -> set[str]:
    return {fact.path for answer in asked_of_measurement(order, facts) for fact in answer.facts}


def in_other_words(heading: str, *, examination: bool) -> Iterator[str]:
    """Natural ways to order a heading."""
    low = heading.lower()
    yield f"Please check the {low}."
    if examination:
        yield f"I would like to perform a {low}, please" if "examination" in low else f"{low} please"
    else:
        image = re.fullmatch(r"(.*) (x-ray|ultrasound|mri|ct|culture)", low)
        sited = image is not None and reading(image[1]).of("sites")
        yield f"{image[2]} of the {image[1]}" if image and sited else f"Could you order a {low}?"
    yield from SYNONYMS.get(heading, ())


SAME = (
    {"24-Hour Holter", "Ambulatory ECG 24h", "Holter Monitor"},
    {"ANA", "Antinuclear Antibodies"},
    {"Abdominal Examination / Flank", "Abdominal Examination / Flanks"},
    {"Audiogram", "Pure Tone Audiogram", "Pure Tone Audiometry"},
    {"Bone Marrow", "Bone Marrow Biopsy"},
    {"Complement C4", "Complement / C4"},
    {"CT Abdomen Pelvis", "CT Abdomen and Pelvis"},
    {"Haptoglobin", "Hemolysis Studies / Haptoglobin"},
    {"LDH", "Hemolysis Studies / LDH"},
    {"Lumbar Puncture", "Cerebrospinal Fluid"},
    {"NT proBNP", "NT-proBNP"},
    {"Peripheral Blood Smear", "Peripheral Smear", "Hemolysis Studies / Blood Smear"},
    {"Slit Lamp", "Eye Examination / Slit Lamp"},
    {"Vitamin D / 25-OH", "Vitamin D 25-OH"},
)
"""Headings of different charts that mean the same."""


def of_the_same(heads: Heads, facts: Facts) -> set[str]:
    """The facts below headings that mean the same as one."""
    alike = set().union(*(same for same in SAME if same & {heads[0], " / ".join(heads)}))
    return {fact.path for fact in facts if alike & {fact.heads[0], " / ".join(fact.heads)}}


@pytest.mark.parametrize("every", EVERY)
def test_a_heading_ordered_by_its_own_name_returns_exactly_what_is_below_it(every: int) -> None:
    for facts in charts()[::every]:
        for heads, below in headings(facts).items():
            given = told(": ".join(heads), facts)
            assert below <= given, heads
            assert given <= below | of_the_same(heads, facts), (heads, given - below)


@pytest.mark.parametrize("every", EVERY)
def test_a_heading_ordered_in_other_words_returns_all_below_it_and_nothing_of_another_organ(every: int) -> None:
    for facts in charts()[::every]:
        by_path = {fact.path: fact for fact in facts}
        for heads, below in headings(facts).items():
            if len(heads) > 1:
                continue
            examination = all(by_path[path].section is not Section.TESTS for path in below)
            for order in in_other_words(heads[0], examination=examination):
                given = told(order, facts)
                assert below <= given, (order, below - given)
                for path in given - below:
                    assert same_organ(heads, by_path[path].heads), (order, path)


def same_organ(asked: Heads, given: Heads) -> bool:
    """Whether two headings are about the same organ and fluid, as far as they name one."""
    wanted, found = (joined(map(reading, heads)) for heads in (asked, given))
    sites = [(a, b) for a in wanted.of("sites") for b in found.of("sites")]
    fluids = [read.of("specimens") - {"blood"} for read in (wanted, found)]
    return (not sites or any(same_site(a, b) for a, b in sites)) and fluids[0] == fluids[1]


def test_in_a_chart_with_every_heading_each_returns_only_itself() -> None:
    facts = every_heading()
    for heads, below in headings(facts).items():
        given = told(": ".join(heads), facts)
        assert below <= given, heads
        if reading(heads[-1]).named:  # "Skin Examination: Findings" orders the whole examination
            assert given <= below | of_the_same(heads, facts), (heads, given - below)


HOW = ("ultrasound", "CT", "MRI", "X-ray", "biopsy", "culture", "aspiration", "endoscopy")
TISSUES = frozenset({"lesion", "soft tissue", "wound"})
"""They say nothing about the organ: "biopsy of the mass"."""


def of_another_organ(site: str, how: str, facts: Facts) -> list[Heads]:
    return [
        fact.heads
        for answer in asked_of_measurement(f"{how} of the {site}", facts)
        for fact in answer.facts
        if (sites := joined(map(reading, fact.heads)).of("sites")) and not any(same_site(site, s) for s in sites)
    ]


@pytest.mark.parametrize("how", HOW)
def test_an_order_for_one_organ_never_returns_another(how: str) -> None:
    for site in table()["sites"]:
        if site not in TISSUES:
            assert of_another_organ(site, how, every_heading()) == [], site


@pytest.mark.parametrize("every", FEW)
def test_no_bundled_chart_reports_an_image_of_another_organ(every: int) -> None:
    tested: dict[tuple[Heads, ...], Facts] = {}
    for chart in charts():
        # Only what an image or a specimen could be mistaken for.
        read = {fact: joined(map(reading, fact.heads)) for fact in chart if fact.section is Section.TESTS}
        facts = tuple(fact for fact, named in read.items() if named.of("modalities") or named.of("tests"))
        tested.setdefault(tuple(fact.heads for fact in facts), facts)
    for facts in [*tested.values()][::every]:
        shown = {how for fact in facts for head in fact.heads for how in HOW if re.search(rf"\b{how}\b", head, re.I)}
        for how in shown:
            for site in table()["sites"]:
                if site not in TISSUES:
                    assert of_another_organ(site, how, facts) == [], (how, site)


def chart_of(row: str) -> Facts:
    """A chart of OpenOSCE 1 by its row: a19 is the nineteenth of the first 24."""
    return bundled_cases("OpenOSCE_1", lockbox=True)["abcd".index(row[0]) * 24 + int(row[1:]) - 1].exam_facts


@pytest.mark.parametrize("row", ["a09", "a19", "d05", "d06", "d07", "d12", "d18", "d21", "d24"])
def test_a_skin_examination_includes_every_region_of_the_skin(row: str) -> None:
    below = {fact.path for fact in chart_of(row) if fact.heads[0] == "Skin Examination"}
    assert len(below) > 1
    assert told("Skin examination", chart_of(row)) == below


@pytest.mark.parametrize("row", ["c05", "c06", "c18", "c23"])
def test_a_genitourinary_examination_includes_the_rectal_examination(row: str) -> None:
    assert any("Rectal" in path for path in told("Genitourinary examination", chart_of(row)))


@pytest.mark.parametrize(
    "order",
    ["scrotal ultrasound", "ocular ultrasound", "carotid ultrasound", "pelvic ultrasound", "small bowel series"],
)
def test_an_image_without_a_site_in_its_heading_is_of_what_its_text_describes(order: str) -> None:
    assert told(order, chart_of("a19")) == set()
    assert told("ultrasound of the heart", chart_of("a19")) == {"Test_Results/Bedside_Ultrasound/Findings"}
