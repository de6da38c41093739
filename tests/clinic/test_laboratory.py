"""Language models as the laboratory: they choose, and code writes the results from the chart."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
from fakes import Scripted
from helpers import EVERY, bundled_cases
from simulator_support import CASE, Choosing, ids

from agentclinic.cases.completion import completion
from agentclinic.cases.model import Case, Fact, Section
from agentclinic.clinic.laboratory import Laboratory, matched, results_line
from agentclinic.clinic.patient import Simulator
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.clinic.pending import hours_for
from agentclinic.clinic.prompts import load_prompt
from agentclinic.models.base import MalformedError, RefusedError
from agentclinic.results.turn import Provenance, Turn
from agentclinic.vocabulary.base import knowledge

pytestmark = pytest.mark.anyio


def laboratory(model: Scripted, simulator: Simulator, **more: Any) -> Laboratory:
    return Laboratory(CASE, model, load_prompt("measurement"), simulator=simulator, dialogue="chat", **more)


async def test_a_laboratory_that_lies_cannot_invent_a_value() -> None:
    model = Choosing("")
    role = laboratory(model, "grounded")
    (hemoglobin,) = ids(role, "Hemoglobin")
    model._answers = [json.dumps({"items": [hemoglobin], "not_in_chart": ["Hemoglobin 4.1 g/dL", "Troponin 900"]})]
    reply = await role.report("Complete blood count", "REQUEST TEST: Complete blood count")
    assert reply.text == "RESULTS: Complete Blood Count: Hemoglobin: 13.2 g/dL."
    assert reply.disclosures[0].provenance is Provenance.CHART
    assert reply.raw is not None


async def test_what_the_chart_lacks_is_reported_as_configured() -> None:
    answer = json.dumps({"items": [], "not_in_chart": ["Troponin"]})
    unavailable = await laboratory(Choosing(answer), "grounded").report("Troponin", "REQUEST TEST: Troponin")
    assert (unavailable.text, unavailable.disclosures[0].provenance) == (
        "RESULTS: Troponin not available.",
        Provenance.UNAVAILABLE,
    )
    normal = laboratory(Choosing(answer), "grounded", missing_test="normal")
    assert (await normal.report("Troponin", "REQUEST TEST: Troponin")).text == "RESULTS: NORMAL READINGS"


async def test_a_voiced_laboratory_asks_no_model_at_all() -> None:
    model = Scripted()
    reply = await laboratory(model, "voiced").report("Lipase", "REQUEST TEST: Lipase", turn=3)
    assert reply.text == "RESULTS: Lipase: 30 U/L."
    assert (model.requests, reply.turn) == ([], 3)
    assert reply.usage is not None
    assert reply.usage.requests == 0


@pytest.mark.parametrize("error", [MalformedError("broken", text="{"), RefusedError("declined")])
async def test_a_laboratory_model_that_does_not_choose_leaves_it_to_the_matcher(error: MalformedError) -> None:
    reply = await laboratory(Choosing(error), "grounded").report("Lipase", "REQUEST TEST: Lipase")
    assert reply.text == "RESULTS: Lipase: 30 U/L."
    assert reply.notes[0].startswith("chosen by the matcher: ")
    assert reply.slips == (error.kind,)


# --- completed charts and late results ------------------------------------------------------------------------------


def cased(**annotations: Any) -> Case:
    return replace(CASE, annotations={**CASE.annotations, **annotations})


async def reported(request: str, case: Case = CASE, **more: Any) -> Turn:
    """What a laboratory without a language model says to an order."""
    prompt = load_prompt("measurement")
    role = Laboratory(case, Scripted(), prompt, simulator="voiced", dialogue="chat", **more)
    return await role.report(request, f"REQUEST TEST: {request}")


async def test_a_missing_test_is_completed_in_the_words_of_a_charted_one() -> None:
    reply = await reported("Troponin", missing_test="completed")
    assert re.fullmatch(r"RESULTS: Troponin: \d+ ng/L, high-sensitivity \(ref <14\)\.", reply.text)
    (told,) = reply.disclosures
    assert (told.provenance, told.paths) == (Provenance.DEFAULT_NORMAL, ("Completed/Test_Results/Troponin",))
    assert (await reported("Troponin", missing_test="completed")).text == reply.text, "the same again"


async def test_a_panel_has_charted_and_completed_items_in_its_usual_order() -> None:
    reply = await reported("Complete blood count", missing_test="completed")
    order = [reply.text.index(f"{item}:") for item in ("Hemoglobin", "Hematocrit", "MCV", "Platelets")]
    assert order == sorted(order)
    assert "Hemoglobin: 13.2 g/dL" in reply.text
    assert {part.provenance for part in reply.disclosures} == {Provenance.CHART, Provenance.DEFAULT_NORMAL}
    charted = next(part for part in reply.disclosures if part.provenance is Provenance.CHART)
    assert not any(path.startswith("Completed/") for path in charted.paths)


async def test_rare_items_are_reported_only_if_named() -> None:
    assert "MCHC" not in (await reported("Complete blood count", missing_test="completed")).text
    assert "MCHC: " in (await reported("MCHC", missing_test="completed")).text


async def test_a_test_of_no_table_stays_unavailable() -> None:
    assert "not available" in (await reported("Serum xyzamine", missing_test="completed")).text


async def test_a_completed_image_does_not_replace_a_charted_one_of_the_same_region() -> None:
    ill = Fact("Test_Results/CT_Head", Section.TESTS, ("CT Head", "Findings"), "3 cm mass in the left frontal lobe")
    case = replace(CASE, facts=(*CASE.facts, ill))
    reply = await reported("MRI brain", case, missing_test="completed")
    assert "3 cm mass in the left frontal lobe" in reply.text
    assert reply.disclosures[0].provenance is Provenance.CHART_EQUIVALENT


async def test_a_grounded_laboratory_chooses_among_charted_and_completed_results() -> None:
    model = Choosing(json.dumps({"items": ["r999"], "not_in_chart": []}))
    role = laboratory(model, "grounded", missing_test="completed")
    added = len(role._by_id) + 1
    model._answers = [json.dumps({"items": [f"r{added}"], "not_in_chart": []})]
    reply = await role.report("Troponin", "REQUEST TEST: Troponin")
    assert reply.text.startswith("RESULTS: Troponin: ")
    asked = "\n".join(message.content for message in model.requests[0].messages)
    assert f"r{added}: Troponin: " in asked
    assert "Ferritin" not in asked, "only what the order names"


async def test_a_free_laboratory_is_shown_the_chart_alone() -> None:
    model = Scripted("RESULTS: Troponin not available.")
    role = laboratory(model, "free", missing_test="completed")
    await role.report("Troponin", "REQUEST TEST: Troponin")
    assert "not available" in role.system_prompt


@pytest.mark.parametrize(
    ("setting", "request_", "pending"),
    [
        ("emergency department", "Blood cultures", True),
        ("hospital ward", "Blood cultures", False),
        ("emergency department", "Skin biopsy", True),
        ("primary care", "Skin biopsy", True),
        ("emergency department", "Antinuclear antibodies", True),
        ("primary care", "Antinuclear antibodies", False),
        ("emergency department", "Troponin", False),
        ("emergency department", "Anti-xyz receptor antibody", True),
        (None, "Blood cultures", False),
    ],
)
@pytest.mark.parametrize("charted", [True, False])
async def test_what_is_pending_depends_on_the_test_and_the_setting_alone(
    setting: str | None, request_: str, pending: bool, charted: bool
) -> None:
    case = cased(setting=setting)
    if charted:
        fact = Fact(f"Test_Results/{request_}", Section.TESTS, (request_, "Findings"), "Strange findings")
        case = replace(case, facts=(*case.facts, fact))
    reply = await reported(request_, case, missing_test="completed", pending_results=True)
    assert reply.text.endswith(": taken, result pending.") == pending
    assert (Provenance.PENDING in {part.provenance for part in reply.disclosures}) == pending
    if pending:
        assert reply.disclosures[0].paths == (), "nothing was told"
        again = await reported(request_, case, missing_test="completed", pending_results=True)
        assert again.text == reply.text, "it stays pending"
    else:
        plain = await reported(request_, case, missing_test="completed")
        assert plain.text == reply.text


async def test_a_case_may_have_its_own_horizon() -> None:
    case = cased(setting="emergency department", horizon_hours=100)
    assert (
        "pending" not in (await reported("Blood cultures", case, missing_test="completed", pending_results=True)).text
    )


async def test_microscopy_of_a_culture_is_reported_at_once() -> None:
    fact = Fact(
        "Test_Results/Sputum_Culture",
        Section.TESTS,
        ("Sputum Culture", "Findings"),
        "Gram stain: many neutrophils, Gram-positive diplococci; culture: Streptococcus pneumoniae",
    )
    case = replace(cased(setting="emergency department"), facts=(*CASE.facts, fact))
    reply = await reported("Sputum culture", case, pending_results=True)
    assert "Gram-positive diplococci" in reply.text
    assert "pneumoniae" not in reply.text
    assert reply.text.endswith("Sputum Culture: taken, result pending.")


# --- whether there is a result does not depend on the chart ---------------------------------------------------------


@lru_cache(maxsize=1)
def alike() -> list[list[Case]]:
    """The largest groups of patients who can have the same tests and wait equally long."""
    groups: dict[object, list[Case]] = {}
    for case in bundled_cases(lockbox=True):
        groups.setdefault((hours_for(case), completion(case).not_offered), []).append(case)
    return sorted(groups.values(), key=len, reverse=True)[:4]


def state(case: Case, name: str) -> frozenset[str]:
    payload = LaboratoryPayload(case.exam_facts, name, "completed", completion(case), hours_for(case))
    _, disclosures = results_line(matched(payload), payload)
    withheld = {Provenance.UNAVAILABLE: "unavailable", Provenance.PENDING: "pending"}
    return frozenset(withheld.get(one.provenance, "given") for one in disclosures)


@pytest.mark.parametrize("every", EVERY)
def test_every_test_is_given_pending_or_unavailable_alike_in_like_patients(every: int) -> None:
    """Each test in four of the patients of one group, which differ from test to test."""
    draw = random.Random(0)
    odd = {}
    charted = {fact.heads[0] for case in bundled_cases(lockbox=True) for fact in case.exam_facts}
    names = sorted(charted | {test.name for test in knowledge().tests.values()})
    for place, name in enumerate(names[::every]):
        group = alike()[place % len(alike())]
        found = {case.name: state(case, name) for case in draw.sample(group, 4)}
        if len(set(found.values())) > 1:
            odd[name] = found
    assert odd == {}


@pytest.mark.parametrize(
    "name",
    [
        *("CT abdomen and pelvis", "Laryngoscopy", "Slit lamp", "Lumbar puncture", "Urinalysis", "Colonoscopy"),
        *("Stool PCR", "Vitamin B12 and Folate", "Dengue NS1 and IgM", "Viral PCR of a Skin Lesion", "Bone Marrow"),
    ],
)
def test_tests_with_many_spellings_and_parts_are_alike_in_all_like_patients(name: str) -> None:
    for group in alike():
        assert len({state(case, name) for case in group}) == 1
        assert "unavailable" not in state(group[0], name)


def test_a_late_part_is_pending_whether_the_chart_has_it_or_not() -> None:
    ill = next(case for case in bundled_cases() if case.name.endswith("d15"))
    payload = LaboratoryPayload(ill.exam_facts, "Lumbar puncture", "completed", completion(ill), hours_for(ill))
    text, _ = results_line(matched(payload), payload)
    assert "Gram Stain: Gram-positive diplococci" in text
    assert text.endswith("Lumbar Puncture, Culture: taken, result pending.")


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        ("Colonoscopy", "Colonoscopy: Findings: Normal. Colonoscopy, Biopsy: taken, result pending."),
        ("histology of the colon", "Colonoscopy, Biopsy: taken, result pending."),
        ("ENA", "ENA: taken, result pending."),
        ("Lumbar puncture", "Lumbar Puncture: WBC: 3. Lumbar Puncture, Culture: taken, result pending."),
        ("Dexamethasone 10 mg IV", "Dexamethasone 10 mg IV: a treatment, not a test."),
    ],
)
async def test_what_is_pending_is_named_by_its_part_or_as_it_was_ordered(request_: str, reply: str) -> None:
    heads = {
        ("Colonoscopy", "Findings"): "Normal",
        ("Colonoscopy", "Biopsy"): "Crypt abscesses",
        ("Autoimmune Panel", "Scl 70"): "Negative",
        ("Autoimmune Panel", "Anti Ro"): "Negative",
        ("Lumbar Puncture", "WBC"): "3",
        ("Lumbar Puncture", "Culture"): "No growth",
    }
    facts = tuple(Fact(f"Test_Results/{'/'.join(head)}", Section.TESTS, head, text) for head, text in heads.items())
    case = replace(cased(setting="emergency department"), facts=facts)
    assert (await reported(request_, case, pending_results=True)).text == f"RESULTS: {reply}"


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        ("renal ultrasound", "Abdominal Ultrasound: Findings: Kidney cortex bright."),
        ("24-hour urine metanephrines", "Urine Catecholamine Metabolites: Collection under way."),
        ("electrophysiology study", "Electrophysiology study not available."),
        (
            "Transoesophageal echocardiography, transthoracic echocardiography",
            "Transesophageal Echocardiogram: Findings: Mass of 9 mm. Echocardiogram: Findings: Normal.",
        ),
        (
            "SARS-CoV-2 PCR and antibodies, adenovirus PCR",
            "Respiratory Viral PCR: Findings: Adenovirus and SARS-CoV-2 not detected. "
            "SARS-CoV-2 Antibodies: IgG positive.",
        ),
    ],
)
async def test_a_test_is_reported_for_itself_and_not_replaced_by_another(request_: str, reply: str) -> None:
    heads = {
        ("Abdominal Ultrasound", "Findings"): "Kidney cortex bright",
        ("Urine Catecholamine Metabolites",): "Collection under way",
        ("Electrocardiogram", "Findings"): "Regular at 188 per minute",
        ("Echocardiogram", "Findings"): "Normal",
        ("Transesophageal Echocardiogram", "Findings"): "Mass of 9 mm",
        ("Respiratory Viral PCR", "Findings"): "Adenovirus and SARS-CoV-2 not detected",
        ("SARS-CoV-2 Antibodies",): "IgG positive",
    }
    facts = tuple(Fact(f"Test_Results/{'/'.join(head)}", Section.TESTS, head, text) for head, text in heads.items())
    assert (await reported(request_, replace(CASE, facts=facts), missing_test="completed")).text == f"RESULTS: {reply}"
