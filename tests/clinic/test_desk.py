"""The exact patient, laboratory and judge of a solvable world, in ordinary encounters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from solvable_support import CHEST_PAIN, case_with, played, said_to, words

from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.desk import NOT_ON_THE_LIST, by_name
from agentclinic.clinic.prompts import load_prompts
from agentclinic.results.record import Record
from agentclinic.worlds.model import DEFER, World

pytestmark = pytest.mark.anyio

HEARTBURN = case_with("Gastroesophageal reflux disease", {"Heartburn": True, "Crackles": True, "D-dimer": True})
RIGHT = "DIAGNOSIS READY: Gastroesophageal reflux disease"


def actions(record: Record) -> list[str | None]:
    assert record.regret is not None
    return [turn.action for turn in record.regret.turns]


def kinds(record: Record) -> list[str]:
    assert record.regret is not None
    return [turn.kind for turn in record.regret.turns]


def world_of(case: Case) -> World:
    assert case.drawn is not None
    return case.drawn.world


@pytest.mark.parametrize(
    ("asked", "speaker", "answer"),
    [
        ("Heartburn?", "patient", "Heartburn: yes."),
        ("Do you have an acid taste?", "patient", "Heartburn: yes."),
        ("Have you felt any chest pressure?", "patient", "Chest pressure: no."),
        ("REQUEST TEST: Crackles", "measurement", "RESULTS: Crackles: present."),
        ("REQUEST TEST: chest wall palpation", "measurement", "RESULTS: Chest wall tenderness: absent."),
        ("REQUEST TEST: D-dimer", "measurement", "RESULTS: D-dimer: raised."),
        ("REQUEST TEST: ECG", "measurement", "RESULTS: Electrocardiogram: no ST elevation."),
        ("REQUEST TEST: Heartburn", "measurement", "RESULTS: Heartburn: yes."),
        ("I would like to know your troponin.", "patient", "Troponin: normal."),
    ],
)
async def test_answers_are_exact_for_patient_and_laboratory(asked: str, speaker: str, answer: str) -> None:
    record = await said_to(HEARTBURN, asked, RIGHT)
    assert words(record, speaker) == [answer]
    assert {"patient", "measurement"} - {speaker} == {r for r in ("patient", "measurement") if not words(record, r)}
    assert record.status == "diagnosed"


@pytest.mark.parametrize(
    ("asked", "first"),
    [("Palpitations or heartburn?", "Palpitations: no."), ("REQUEST TEST: troponin and D-dimer", "Troponin: normal.")],
)
async def test_of_several_names_only_the_first_counts_and_is_paid_for(asked: str, first: str) -> None:
    record = await said_to(HEARTBURN, asked, RIGHT)
    assert [text.removeprefix("RESULTS: ") for text in (*words(record, "patient"), *words(record, "measurement"))] == [
        first
    ]
    assert actions(record)[:-1] == [first.partition(":")[0]]
    world = world_of(HEARTBURN)
    assert record.regret is not None
    assert record.regret.utility == pytest.approx(100 - world.cost(first.partition(":")[0]))


@pytest.mark.parametrize("asked", ["How are you today?", "REQUEST TEST: MRI of the knee"])
async def test_words_without_a_name_are_told_so_and_still_cost_the_turn(asked: str) -> None:
    record = await said_to(HEARTBURN, asked, RIGHT)
    (answer,) = (*words(record, "patient"), *words(record, "measurement"))
    assert answer.removeprefix("RESULTS: ") == NOT_ON_THE_LIST
    assert (actions(record)[0], kinds(record)[0], record.num_turns) == (None, "wasted", 2)
    assert record.regret is not None
    assert record.regret.utility == 100 - world_of(HEARTBURN).costs.turn


async def test_a_repeated_item_is_answered_again_costs_again_and_wastes_the_turn() -> None:
    record = await said_to(HEARTBURN, "REQUEST TEST: D-dimer", "REQUEST TEST: D dimer test", RIGHT)
    assert words(record, "measurement") == ["RESULTS: D-dimer: raised."] * 2
    assert actions(record)[:2] == ["D-dimer", "D-dimer"]
    assert kinds(record)[1] == "wasted"
    cost = world_of(HEARTBURN).cost("D-dimer")
    assert record.regret is not None
    assert record.regret.turns[1].regret == pytest.approx(cost)
    assert record.regret.utility == pytest.approx(100 - 2 * cost)
    assert (record.regret.price, record.regret.minutes) == (20, 120)
    assert record.test_economics_totals is not None
    assert record.test_economics_totals["total_estimated_cost_usd"] == 20


@pytest.mark.parametrize(
    "said", ["REQUEST IMAGES", "Request test: troponin", "Diagnosis ready - reflux", "DIAGNOSIS READY:"]
)
async def test_images_near_tokens_and_empty_tokens_waste_the_turn(said: str) -> None:
    record = await said_to(HEARTBURN, said, RIGHT)
    assert (actions(record)[0], kinds(record)[0]) == (None, "wasted")
    assert len(words(record, "clinic")) == 1
    assert record.regret is not None
    assert record.regret.turns[0].regret == world_of(HEARTBURN).costs.turn
    assert record.regret.utility == 100 - world_of(HEARTBURN).costs.turn
    assert record.correct is True


async def test_a_doctor_can_defer() -> None:
    record = await said_to(HEARTBURN, f"DIAGNOSIS READY: {DEFER}")
    assert (record.status, record.correct) == ("diagnosed", False)
    assert record.regret is not None
    assert (record.regret.ending, record.regret.utility) == (DEFER, 30)
    assert record.judgement is not None
    assert record.judgement.reason == "the doctor deferred"


@pytest.mark.parametrize("name", ["GERD", "acid reflux disease", "It is GERD."])
async def test_a_synonym_is_the_diagnosis(name: str) -> None:
    record = await said_to(HEARTBURN, f"DIAGNOSIS READY: {name}")
    assert record.regret is not None
    assert (record.correct, record.regret.ending) == (True, "Gastroesophageal reflux disease")


@pytest.mark.parametrize("name", ["GERD or panic disorder", "Gout", "GERD, else DEFER", "chest pain of unknown cause"])
async def test_a_diagnosis_that_names_two_diseases_or_none_is_no_answer(name: str) -> None:
    record = await said_to(HEARTBURN, f"DIAGNOSIS READY: {name}")
    assert (record.status, record.correct) == ("diagnosed", False)
    assert record.regret is not None
    assert (record.regret.ending, record.regret.utility, kinds(record)) == (None, -40, ["no_answer"])
    assert record.judgement is not None
    assert record.judgement.reason == "it does not name exactly one disease of the menu"


async def test_another_disease_of_the_menu_is_wrong_at_the_price_of_that_error() -> None:
    case = case_with("Acute myocardial infarction")
    for said, worth in (("Costochondritis", -80), ("Panic disorder", -20)):
        record = await said_to(case, f"DIAGNOSIS READY: {said}")
        assert record.regret is not None
        assert (record.correct, record.regret.utility) == (False, worth)
    assert record.judgement is not None
    assert record.judgement.reason == "another disease of the menu"


@pytest.mark.parametrize("world", ["chest-pain", "headache"])
async def test_the_turn_limit_leaves_eight_turns_beyond_the_findings(world: str) -> None:
    (case,) = load_cases(f"Solvable:{world}", count=1)
    limit = len(world_of(case).findings) + 8
    record = await said_to(case, "Hm.", "Let me think.", "Well.")
    assert (record.status, record.num_turns, record.max_infs) == ("max_infs_reached", limit, limit)
    assert record.correct is False
    assert kinds(record) == ["wasted"] * (limit - 1) + ["no_answer"]
    assert record.regret is not None
    given = world_of(case)
    assert record.regret.utility == pytest.approx(given.utilities.no_answer - (limit - 1) * given.costs.turn)
    assert f"within {limit} turns" in case.door.told


async def test_words_on_the_last_turn_that_are_no_action_may_be_corrected_once() -> None:
    lines = ["Hm, let me think."] * (world_of(HEARTBURN).turns - 1)
    record = await said_to(HEARTBURN, *lines, "Diagnosis ready: GERD", RIGHT)
    assert (record.status, record.correct, record.num_turns) == ("diagnosed", True, len(lines) + 1)
    assert record.regret is not None
    assert record.regret.utility == pytest.approx(100 - (len(lines) + 1))
    assert kinds(record) == ["wasted"] * (len(lines) + 1) + ["stopped_early"]


async def test_patient_and_laboratory_overhear_each_other_and_are_called_exact() -> None:
    record = await said_to(HEARTBURN, "Heartburn?", "REQUEST TEST: ECG", RIGHT)
    assert record.patient_hist == record.measurement_hist
    assert "Measurement: RESULTS: Electrocardiogram: no ST elevation." in (record.patient_hist or "")
    assert {record.patient_llm, record.measurement_llm, record.moderator_llm} == {"exact"}
    assert record.simulator is None
    assert (record.usage or {}).keys() == {"doctor"}, "no other role asks a model"
    assert record.judgement is not None
    assert record.judgement.decided_by == "code"


async def test_what_was_disclosed_is_in_the_record_with_its_place_in_the_chart() -> None:
    record = await said_to(HEARTBURN, "Heartburn?", "REQUEST TEST: ECG", "Anything else?", RIGHT)
    told = [turn.disclosures for turn in record.transcript or () if turn.role in ("patient", "measurement")]
    assert [[(d.topic, d.provenance.value, d.paths) for d in each] for each in told] == [
        [("Heartburn", "chart", ("Patient_Actor/Symptoms/Heartburn",))],
        [("Electrocardiogram", "chart", ("Test_Results/Electrocardiogram",))],
        [],
    ]


def test_the_judge_compares_names_and_knows_no_medicine() -> None:
    assert HEARTBURN.drawn is not None
    verdict = by_name(HEARTBURN.drawn, "Gastroesophageal reflux disease", "Barrett esophagus from acid")
    assert (verdict.correct, verdict.relation, verdict.decided_by) == (False, None, "code")
    other = by_name(HEARTBURN.drawn, "Acute myocardial infarction", "heart attack")
    assert (other.correct, other.relation, other.correct_lenient) == (True, "same", True)


# --- nothing about the truth ----------------------------------------------------------------------------------------


async def test_two_cases_that_differ_only_in_disease_and_findings_look_the_same_before_the_first_answer() -> None:
    for marks in ("", ",hidden", ",invented", ",invented,hidden"):
        first, *others = load_cases(f"{CHEST_PAIN}{marks}", count=30)
        assert len({case.diagnosis for case in others}) > 3
        assert {(case.door.told, case.door.demographics) for case in others} == {
            (first.door.told, first.door.demographics)
        }


async def test_an_answer_depends_on_that_finding_alone() -> None:
    """Cases of other diseases whose other findings are all the opposite hear the same words."""
    assert HEARTBURN.drawn is not None
    for name in world_of(HEARTBURN).findings:
        flipped = {f: held if f == name else not held for f, held in HEARTBURN.drawn.findings.items()}
        other = replace(HEARTBURN, diagnosis="Panic disorder", drawn=replace(HEARTBURN.drawn, findings=flipped))
        heard = [(await said_to(case, f"REQUEST TEST: {name}", RIGHT)).doctor_hist for case in (HEARTBURN, other)]
        assert heard[0] == heard[1]


async def test_the_clinics_own_lines_are_those_of_the_prompt_file() -> None:
    record = await said_to(HEARTBURN, "REQUEST IMAGES", RIGHT)
    assert words(record, "clinic") == [load_prompts()["doctor"].text("images_off")]


async def test_a_case_that_was_drawn_is_played_whole() -> None:
    (record,) = await played(doctor="ask_everything")
    (case,) = load_cases(CHEST_PAIN, count=1)
    assert case.drawn is not None
    world = world_of(case)
    said = [t.removeprefix("RESULTS: ") for r in ("patient", "measurement") for t in words(record, r)]
    assert sorted(said) == sorted(f"{n}: {one.says(case.drawn.findings[n])}." for n, one in world.findings.items())
