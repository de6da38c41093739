"""The planning engine, step by step as the specification numbers them, with planner replies good and bad."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from fakes import Scripted, assigned
from policy_support import ASKED, DOOR, Planning, plan, policy, replied

from agentclinic.builtin import Builtin
from agentclinic.clinic.doctor import Dialogue, Incoming, Observation
from agentclinic.doctors.planner.engine import Decision, DifferentialDiagnosisEngine
from agentclinic.doctors.planner.payloads import PlannerPayload
from agentclinic.doctors.planner.prompting import Baseline, decimals
from agentclinic.doctors.planner.schema import Discriminators, WeightedDifferential
from agentclinic.models.base import (
    AuthError,
    ConnectError,
    ContextTooLongError,
    Image,
    MalformedError,
    ModelError,
    NotAllowedHereError,
    Purpose,
    QuotaError,
    RateLimitError,
    RefusedError,
    Reply,
    Request,
    RequestTimeout,
    ServerError,
    UnknownModelError,
)
from agentclinic.models.structured import format_of, parse
from agentclinic.results.turn import Exchange, Usage

pytestmark = pytest.mark.anyio

SURE = "+5 +5 +5 ?1"  # confidence 0.97, coverage 0.94
FAIR = "+5 +2 -3 ?5"  # confidence 0.63, coverage 0.67
OPEN = "?5 ?5 ?5 ?5"  # confidence 0.5, coverage 0
AGAINST = "-5 -5 -5 -5"
TELLS = [{"request": "REQUEST TEST: Lumbar puncture", "tells_apart": ["A", "B"]}]


def malformed(text: str) -> MalformedError:
    """What a model raises if its text is not a plan."""
    error = MalformedError("no usable PlannerReply", text=text)
    error.usage = Usage(10, 5, 0, 0)
    return error


# Step 1: the case so far.


async def test_step_1_in_a_transcript_the_planner_is_told_door_dialogue_and_latest_reply() -> None:
    planning = Planning(plan(A=OPEN), dialogue="transcript")
    test = Exchange("test", "CT head", "RESULTS: no bleeding.")
    await planning.turn(3, (ASKED, test))
    (request,) = planning.model.requests
    assert request.purpose is Purpose.PLANNER
    assert [message.role for message in request.messages] == ["system", "user"]
    user = request.messages[-1].content
    assert "35-year-old woman" in user
    assert "Assess a patient with headache." in user
    dialogue = "Doctor: What brings you here?\nPatient: My head throbs.\nDoctor: REQUEST TEST: CT head"
    assert f"[Dialogue]\n{dialogue}\n" in user
    assert "[Latest reply]\n" in user
    assert user.count("RESULTS: no bleeding.") == 1
    assert "Turn 3 of 20" in user
    assert "3 to 5 diagnoses, each with at least 4 findings" in user
    assert "script" not in user


async def test_step_1_what_the_clinic_itself_answers_has_its_own_speaker() -> None:
    planning = Planning(plan(A=OPEN), dialogue="transcript")
    await planning.turn(4, (Exchange("images", "REQUEST IMAGES", "Here."), Exchange("none", "x", "What?"), ASKED))
    dialogue = "Doctor: REQUEST IMAGES\nClinic: Here.\nDoctor: x\nClinic: What?\nDoctor: What brings you here?"
    assert f"[Dialogue]\n{dialogue}\n" in planning.model.prompts[0]


async def test_step_1_a_policy_without_words_for_a_chat_gets_a_transcript() -> None:
    model = Scripted(replied(plan(A=OPEN)))
    worded = policy().model_copy(update={"chat_task": ""})
    engine = DifferentialDiagnosisEngine(assigned(DOOR, model), worded)
    await engine.decide(Observation(Incoming("Patient", ASKED.reply), (ASKED,), 2))
    assert "[Dialogue]\nDoctor: What brings you here?\n" in model.prompts[0]
    assert "35-year-old woman" in model.prompts[0]


async def test_step_1_in_a_chat_the_dialogue_is_messages_and_the_task_is_in_the_newest_alone() -> None:
    planning = Planning(plan(A=OPEN))
    test = Exchange("test", "CT head", "RESULTS: no bleeding.")
    silent = Exchange("none", "", "Write one question.")
    await planning.turn(4, (ASKED, test, silent))
    (system, *dialogue, newest) = planning.model.requests[0].messages
    assert system.role == "system"
    assert system.content.startswith(planning.engine.policy.system_base)
    assert "Patient: 35-year-old woman\nObjective: Assess a patient with headache." in system.content
    assert "\n\n\n" not in system.content, "no gap where the script would be"
    assert [(message.role, message.content) for message in dialogue] == [
        ("user", planning.engine.policy.chat_opening),
        ("assistant", "What brings you here?"),
        ("user", "My head throbs."),
        ("assistant", "REQUEST TEST: CT head"),
        ("user", "RESULTS: no bleeding."),
        ("assistant", "(The physician said nothing.)"),
    ]
    assert newest.role == "user"
    assert newest.content.startswith("Write one question.\n\n[Task]\nTurn 4 of 20. ")
    assert "3 to 5 diagnoses, each with at least 4 findings" in newest.content


async def test_step_1_the_prompt_says_if_nothing_has_been_said_yet() -> None:
    chat, transcript = Planning(plan(A=OPEN)), Planning(plan(A=OPEN), dialogue="transcript")
    for planning in (chat, transcript):
        await planning.turn(1, ())
        assert len(planning.model.requests[0].messages) == 2
        assert "Begin." not in planning.model.prompts[0], "the clinic's opening words are not a reply"
    assert "nothing has been said yet.\n\n[Task]" in chat.model.prompts[0]
    assert "(nothing has been said yet)" in transcript.model.prompts[0]
    assert "(none yet)" in transcript.model.prompts[0]


@pytest.mark.parametrize(("dialogue", "task"), [("chat", "[Task]"), ("transcript", "[Latest reply]")])
async def test_step_1_the_prompt_grows_at_its_end_so_that_a_cache_can_reuse_it(dialogue: Dialogue, task: str) -> None:
    planning = Planning(*[plan(A=OPEN)] * 2, dialogue=dialogue)
    more = Exchange("question", "Since when?", "For two days.")
    await planning.turn(2, (ASKED,))
    await planning.turn(3, (ASKED, more))
    first, second = ("\n\n".join(m.content for m in request.messages) for request in planning.model.requests)
    assert second.startswith(first.split(f"\n\n{task}")[0])


async def test_step_1_images_once_shown_stay_in_view() -> None:
    planning = Planning(*[plan(A=OPEN)] * 3)
    await planning.turn(1, ())
    rash = Incoming("Clinic", "Here.", (Image("https://images.example/rash.jpg"),))
    await planning.engine.decide(Observation(rash, (Exchange("images", "REQUEST IMAGES", "Here."),), 2))
    await planning.turn(3)
    assert [len(request.messages[-1].images) for request in planning.model.requests] == [0, 1, 1]


async def test_step_1_a_biased_doctor_plans_with_its_bias() -> None:
    planning = Planning(plan(A=OPEN), bias="You trust your first idea.")
    await planning.turn()
    assert planning.model.requests[0].messages[0].content.endswith("You trust your first idea.")


async def test_the_planner_knows_the_script_only_with_the_full_baseline() -> None:
    told = (Exchange("question", "History", "SCRIPT"),)
    for baseline, knows in [(None, False), (Baseline("full", "SCRIPT", told), True)]:
        planning = Planning(plan(A=OPEN), baseline=baseline)
        decision = await planning.turn()
        written = Planning(plan(A=OPEN), baseline=baseline, dialogue="transcript")
        await written.turn()
        assert ("SCRIPT" in written.model.prompts[0]) is knows
        (request,) = planning.model.requests
        assert isinstance(request.payload, PlannerPayload)
        assert ("SCRIPT" in request.messages[0].content) is knows
        assert not any("SCRIPT" in message.content for message in request.messages[1:])
        assert (request.payload.baseline == told) is knows
        assert ("planner_baseline full" in decision.notes) is knows


# Steps 2 and 3: the weighted differential and its numbers.


async def test_steps_2_and_3_a_good_plan_costs_one_request_and_shows_every_number() -> None:
    planning = Planning(plan(A=FAIR, B=OPEN))
    decision = await planning.turn()
    assert len(planning.model.requests) == 1
    assert planning.model.requests[0].repair is False, "the engine alone decides about trying again"
    assert decision.kind == "plan"
    assert decision.notes.startswith("[Planning Notes]\n")
    assert "1. A: confidence 0.63, coverage 0.67. Not known: thing 3.\n" in decision.notes
    assert decision.remarks == ()
    assert decision.usage == Usage(10, 5, 0, 0, requests=1)
    assert decision.details["hypotheses"][0] == {
        "diagnosis": "A",
        "confidence": 0.6333,
        "coverage": 0.6667,
        "support": 7,
        "contradiction": 3,
        "unknown": 5,
        "findings": [
            ["thing 0", 5, "present", "present"],
            ["thing 1", 2, "present", "present"],
            ["thing 2", 3, "present", "absent"],
            ["thing 3", 5, "present", "unknown"],
        ],
    }
    assert decision.details["margin"] == pytest.approx(0.1333, abs=1e-4)
    assert (decision.details["requirement"], decision.details["next_requirement"]) == (4, 4)
    assert json.loads(json.dumps(decision.details)) == decision.details


@pytest.mark.parametrize(
    ("changes", "expected", "remark"),
    [
        ({"observed": "not assessed"}, [5, "present", "unknown"], "observed 'not assessed' taken as unknown"),
        ({"observed": "unknown"}, [5, "present", "unknown"], None),
        ({"observed": "no fever"}, [5, "present", "absent"], "observed 'no fever' taken as absent"),
        ({"observed": "abnormal"}, [5, "present", "unknown"], "observed 'abnormal' taken as unknown"),
        ({"observed": True}, [5, "present", "present"], "observed True taken as present"),
        ({"observed": False}, [5, "present", "absent"], "observed False taken as absent"),
        ({"observed": None}, [5, "present", "unknown"], None),
        ({"weight": 17}, [5, "present", "present"], "weight 17 taken as 5"),
        ({"weight": 0}, [1, "present", "present"], "weight 0 taken as 1"),
        ({"weight": "high"}, [1, "present", "present"], "weight 'high' taken as 1"),
        ({"expected": "negative"}, [5, "absent", "present"], "expected 'negative' taken as absent"),
    ],
    ids=str,
)
async def test_step_3_odd_states_and_weights_are_read_with_care_and_a_remark(
    changes: dict[str, Any], expected: list[Any], remark: str | None
) -> None:
    given = json.loads(plan(A="+5 +5 +5 +5"))
    given["hypotheses"][0]["findings"][0] |= changes
    decision = await Planning(json.dumps(given)).turn(1)
    assert decision.details["hypotheses"][0]["findings"][0] == ["thing 0", *expected]
    assert any(remark in said for said in decision.remarks) if remark else decision.remarks == ()
    assert remark is None or remark not in decision.notes, "the doctor need not know"


async def test_step_3_the_notes_say_what_became_of_the_plan_and_the_record_has_every_correction() -> None:
    given = json.loads(plan(A="+5 +5 +5 +5 +5 +5", B="+1 +1 +1 +1 +1 +1"))
    for hypothesis in given["hypotheses"]:
        for finding in hypothesis["findings"]:
            finding["observed"] = "not assessed"
    planning = Planning(SHORT, json.dumps(given))
    decision = await planning.turn(1)
    assert len(decision.remarks) == 14
    noted = [line for line in decision.notes.splitlines() if line.startswith("Note: ")]
    assert noted == ["Note: plan sent back once: 2 of 2 diagnoses list fewer than 4 findings."]


async def test_step_2_hypotheses_beyond_the_maximum_are_cut_with_a_remark() -> None:
    planning = Planning(plan(A=OPEN, B=OPEN, C=OPEN), plan(A=OPEN, B=OPEN), max_differentials=2)
    decision = await planning.turn()
    assert [h.diagnosis for h in decision.hypotheses] == ["A", "B"]
    assert "3 hypotheses, only the first 2 are kept" in decision.remarks
    assert "Left out" not in planning.model.requests[0].messages[-1].content
    await planning.turn(3)
    assert planning.model.requests[1].messages[-1].content.endswith("Left out: C.")


async def test_step_2_synonyms_are_one_diagnosis() -> None:
    decision = await Planning(plan(Migraine=OPEN, migraine_headache=OPEN, B=OPEN)).turn()
    assert [h.diagnosis for h in decision.hypotheses] == ["Migraine", "B"]
    assert "migraine headache: named before as Migraine, taken as one" in decision.remarks


async def test_step_2_duplicate_findings_do_not_meet_the_requirement() -> None:
    doubled = json.loads(plan(A="+5 +5 +5 +5"))
    for finding, name in zip(
        doubled["hypotheses"][0]["findings"], ["nausea", "Nausea", "queasy", "vomiting"], strict=True
    ):
        finding["finding"] = name
    planning = Planning(json.dumps(doubled), plan(A="+5 +5 +5 +5"))
    decision = await planning.turn(1)
    assert "plan sent back once: 1 of 1 diagnoses list fewer than 4 findings" in decision.remarks
    assert len(planning.model.requests) == 2


# Step 4: the early finish.


@dataclass(frozen=True)
class Finish:
    """A plan, when it comes, and whether it ends the encounter."""

    hypotheses: dict[str, str]
    ends: bool
    turn: int = 2
    exchanges: tuple[Exchange, ...] = (ASKED,)
    settings: dict[str, Any] = field(default_factory=dict)
    also: str = "Y Z"
    """Further diagnoses, with everything against them: a plan with fewer than three cannot finish."""


FINISHES = {
    "sure and alone ahead": Finish({"A": SURE, "B": OPEN}, True),
    "the first turn": Finish({"A": SURE, "B": OPEN}, False, turn=1),
    "the first turn, even with dialogue": Finish({"A": SURE, "B": OPEN}, False, turn=1, exchanges=(ASKED,)),
    "no dialogue yet": Finish({"A": SURE, "B": OPEN}, False, exchanges=()),
    "confidence exactly at the threshold": Finish({"A": "+5 +2 -2 -1", "B": AGAINST}, True),  # 7 of 10
    "confidence just under the threshold": Finish({"A": "+5 +2 -2 -2", "B": AGAINST}, False),  # 7 of 11
    "coverage exactly 0.6": Finish({"A": "+2 +4 ?2 ?2", "B": AGAINST}, True),
    "coverage just under 0.6": Finish({"A": "+2 +4 ?2 ?3", "B": AGAINST}, False),
    "high confidence, low coverage": Finish({"A": "+5 ?1 ?1 ?4", "B": AGAINST}, False),
    "a tie": Finish({"A": SURE, "B": SURE}, False),
    "a tie, with no margin demanded": Finish(
        {"A": SURE, "B": SURE}, False, settings={"confidence_close_threshold": 0.0}
    ),
    "margin exactly 0.12": Finish(  # 25 of 25 against 22 of 25
        {"A": "+5 +5 +5 +5 +5", "B": "+5 +5 +5 +5 +2 -3"}, False
    ),
    "margin just over 0.12": Finish({"A": "+5 +5 +5 +5 +5", "B": "+5 +5 +5 +5 +1 -4"}, True),
    "as many diagnoses as needed": Finish({"A": SURE, "B": AGAINST}, True, settings={"min_diagnoses": 2}, also=""),
    "too few diagnoses": Finish({"A": SURE, "B": AGAINST}, False, also=""),
    "a single diagnosis": Finish({"A": SURE}, False, also=""),
    "a single diagnosis, if one is enough": Finish({"A": SURE}, True, settings={"min_diagnoses": 1}, also=""),
    "a single diagnosis that is not sure": Finish({"A": FAIR}, False, settings={"min_diagnoses": 1}, also=""),
    "the leader named last": Finish({"B": OPEN, "C": AGAINST, "A": SURE}, True),
    "a higher threshold": Finish({"A": SURE, "B": OPEN}, False, settings={"finish_early_if_confident": 1.0}),
    "a wider margin": Finish({"A": SURE, "B": OPEN}, False, settings={"confidence_close_threshold": 0.5}),
}


@pytest.mark.parametrize("case", FINISHES.values(), ids=FINISHES)
async def test_step_4_the_early_finish(case: Finish) -> None:
    hypotheses = {**case.hypotheses, **dict.fromkeys(case.also.split(), AGAINST)}
    decision = await Planning(plan(**hypotheses), **case.settings).turn(case.turn, case.exchanges)
    assert decision.kind == ("finish" if case.ends else "plan")
    assert decision.diagnosis == ("A" if case.ends else None)
    if case.ends:
        top = decision.hypotheses[0]
        numbers = f"confidence {top.confidence:.2f}, margin {decision.details['margin']:.2f}, coverage"
        assert f"early finish: A with {numbers} {top.coverage:.2f}" in decision.remarks
        assert decision.differential is not None
        assert decision.differential.source == "planner_score"


async def test_step_4_a_plan_with_too_few_diagnoses_says_why_it_does_not_finish() -> None:
    decision = await Planning(plan(A=SURE, B=AGAINST)).turn()
    assert decision.remarks == ("no early finish: the plan has 2 of at least 3 diagnoses",)
    assert "Note: no early finish: the plan has 2 of at least 3 diagnoses." in decision.notes


async def test_step_4_diagnoses_left_out_do_not_count() -> None:
    some = plan(A=SURE, B=AGAINST, C="-5 -5")
    assert (await Planning(some, some).turn()).kind == "plan"


# Step 5: discriminators.


def asked_for(request: Request) -> set[str]:
    """What the plan is to contain."""
    assert request.schema is not None
    return set(format_of(request.schema).schema["properties"])


async def test_the_schema_has_the_numbers_of_the_policy() -> None:
    planning = Planning(plan(A=FAIR, B=FAIR, C=AGAINST), max_differentials=6, min_symptoms_per_disease=3)
    await planning.turn()
    schema = planning.model.requests[0].schema
    assert schema is not None
    asked = format_of(schema).schema
    hypotheses = asked["properties"]["hypotheses"]
    findings = asked["$defs"]["PlannedHypothesis"]["properties"]["findings"]
    assert (hypotheses["minItems"], hypotheses["maxItems"]) == (3, 6)
    assert (findings["minItems"], findings["maxItems"]) == (3, 5)


async def test_step_5_discriminators_for_close_hypotheses_come_in_the_same_request() -> None:
    planning = Planning(plan(TELLS, A=FAIR, B=FAIR, C=AGAINST))
    decision = await planning.turn()
    assert len(planning.model.requests) == 1
    assert asked_for(planning.model.requests[0]) == {"hypotheses", "danger", "discriminators"}
    assert planning.engine.policy.discriminators_with_plan in planning.model.requests[0].messages[0].content
    assert "Too close to call (within 0.12): A, B.\nBest next step: REQUEST TEST: Lumbar puncture\n" in decision.notes
    assert decision.details["close"] == ["A", "B"]
    assert decision.details["discriminators"] == TELLS


@pytest.mark.parametrize(
    ("hypotheses", "close"),
    [
        ({"A": "+5 +5 +5 +5 +5", "B": "+5 +5 +5 +5 +2 -3"}, ["A", "B"]),  # 1.00 and 0.88: exactly at the margin
        ({"A": FAIR, "B": AGAINST}, []),
        ({"A": FAIR}, []),
    ],
    ids=["at the margin", "far apart", "alone"],
)
async def test_step_5_hypotheses_up_to_and_at_the_margin_are_close(
    hypotheses: dict[str, str], close: list[str]
) -> None:
    decision = await Planning(plan(TELLS, **hypotheses)).turn()
    assert decision.details["close"] == close
    assert ("Too close to call" in decision.notes) is bool(close)
    assert f"Best next step: {TELLS[0]['request']}\n" in decision.notes, "close or not"
    assert decision.details["discriminators"] == TELLS


async def test_step_5_a_planner_that_names_no_discriminators_is_noted() -> None:
    decision = await Planning(plan(A=FAIR, B=FAIR)).turn()
    assert "the planner named nothing that tells them apart" in decision.remarks


async def test_step_5_of_many_discriminators_three_are_kept() -> None:
    many = [{"request": f"Question {n}?"} for n in range(1, 9)]
    decision = await Planning(plan(many, A=FAIR, B=FAIR)).turn()
    assert [found.request for found in decision.discriminators] == ["Question 1?", "Question 2?", "Question 3?"]


def apart(request: str) -> Reply:
    text = json.dumps({"discriminators": [{"request": request, "tells_apart": ["A", "B"]}]})
    return Reply(text, parsed=parse(text, Discriminators), usage=Usage(7, 3, 0, 0))


async def test_step_5_asked_for_separately_they_cost_an_extra_request() -> None:
    planning = Planning(plan(A=FAIR, B=FAIR), apart("Does light hurt?"), discriminators="separate")
    decision = await planning.turn()
    planner, discriminator = planning.model.requests
    assert (planner.purpose, discriminator.purpose) == (Purpose.PLANNER, Purpose.DISCRIMINATOR)
    assert asked_for(planner) == {"hypotheses", "danger"}
    assert "discriminators" not in format_of(WeightedDifferential).schema["properties"]
    assert "discriminators" not in planner.messages[-1].content
    assert "too close to call: A, B" in discriminator.messages[-1].content
    assert "Best next step: Does light hurt?\n" in decision.notes
    assert decision.usage == Usage(17, 8, 0, 0, requests=2)


async def test_step_5_asked_for_separately_only_if_it_is_close() -> None:
    planning = Planning(plan(A=FAIR, B=AGAINST), discriminators="separate")
    await planning.turn()
    assert len(planning.model.requests) == 1


@pytest.mark.parametrize(
    "error",
    [
        malformed("Well..."),
        RefusedError("no"),
        ContextTooLongError("too long"),
        ServerError("500"),
        RequestTimeout("60"),
    ],
    ids=lambda e: e.kind,
)
async def test_step_5_without_an_answer_the_plan_still_stands(error: ModelError) -> None:
    planning = Planning(plan(A=FAIR, B=FAIR), error, discriminators="separate")
    decision = await planning.turn()
    assert decision.kind == "plan"
    assert f"no discriminators: {error.kind}" in decision.remarks
    assert "Too close to call" in decision.notes
    assert decision.usage.requests == 2


async def test_step_5_off_means_neither_asked_for_nor_shown() -> None:
    planning = Planning(plan(TELLS, A=FAIR, B=FAIR), discriminators="off")
    decision = await planning.turn()
    (request,) = planning.model.requests
    assert asked_for(request) == {"hypotheses", "danger"}
    assert "discriminators" not in request.messages[-1].content
    assert decision.discriminators == ()
    assert "Best next step" not in decision.notes
    assert "Too close to call" in decision.notes
    assert decision.remarks == ()


async def test_step_5_a_task_of_ones_own_may_say_where_discriminators_are_asked_for() -> None:
    model = Scripted(replied(plan(A=OPEN)))
    shipped = policy()
    worded = shipped.model_copy(update={"chat_task": f"{shipped.chat_task} {{discriminators}}"})
    engine = DifferentialDiagnosisEngine(assigned(DOOR, model), worded)
    await engine.decide(Observation(Incoming("Patient", ASKED.reply), (ASKED,), 2))
    system, *_, task = model.requests[0].messages
    assert task.content.endswith(shipped.discriminators_with_plan)
    assert shipped.discriminators_with_plan not in system.content


async def test_step_5_what_was_done_is_no_next_step() -> None:
    tells = [*TELLS, {"request": "Does light hurt?", "tells_apart": ["A", "B"]}]
    ordered = Exchange("test", "lumbar puncture", "RESULTS: not available.")
    planning = Planning(plan(tells, A=FAIR, B=FAIR), plan(TELLS, A=FAIR, B=FAIR))
    decision = await planning.turn(3, (ASKED, ordered))
    assert "Best next step: Does light hurt?\n" in decision.notes
    decision = await planning.turn(3, (ASKED, ordered))
    assert "Best next step: find out about thing 3\n" in decision.notes, "what is not known of the leader"


# The notes.


async def test_the_notes_have_three_hypotheses_two_unknowns_each_with_its_direction_and_the_danger() -> None:
    given = json.loads(plan(A=FAIR, B=AGAINST, C=OPEN, D=OPEN))
    given["hypotheses"][0]["findings"] += [
        {"finding": "fever", "weight": 5, "expected": "absent", "observed": "unknown"},
        {"finding": "rash", "weight": 1, "expected": "present", "observed": "unknown"},
    ]
    given["danger"] = "Meningitis"
    decision = await Planning(json.dumps(given)).turn()
    assert decision.notes.splitlines() == [
        "[Planning Notes]",
        "Scores from 0 to 1, not probabilities; 0.5 means nothing is known.",
        "1. A: confidence 0.60, coverage 0.48. Not known: thing 3; absence of fever.",
        "2. C: confidence 0.50, coverage 0.00. Not known: thing 0; thing 1.",
        "3. D: confidence 0.50, coverage 0.00. Not known: thing 0; thing 1.",
        "Too close to call (within 0.12): A, C, D.",
        "Best next step: find out about thing 3",
        "Dangerous and not yet excluded: Meningitis.",
        "Use these notes as you see fit, and do not quote them.",
    ]


async def test_a_danger_that_leads_is_not_mentioned_again() -> None:
    given = json.loads(plan(A=FAIR, B=OPEN)) | {"danger": "a"}
    assert "Dangerous" not in (await Planning(json.dumps(given)).turn()).notes


async def test_on_the_first_turn_there_are_no_notes_while_all_are_equal() -> None:
    alike = plan(A=OPEN, B=OPEN, C=OPEN)
    assert (await Planning(alike).turn(1, ())).notes == ""
    assert (await Planning(alike).turn(2)).notes != ""
    assert (await Planning(plan(A=FAIR, B=OPEN, C=OPEN)).turn(1, ())).notes != ""
    relaxed = plan(A="?1 ?1 ?1", B="?1 ?1 ?1")
    assert "Note: requirement relaxed" in (await Planning(relaxed, relaxed).turn(1, ())).notes


@pytest.mark.parametrize(
    ("numbers", "digits"),
    [
        ([0.65, 0.53], 2),
        ([0.654, 0.526], 3),  # not close, but 0.65 - 0.53 would be
        ([0.6251, 0.5049], 4),  # ahead by 0.1202: not close, but 0.625 - 0.505 would be
        ([0.699, 0.2], 3),  # 0.70 would be sure
    ],
)
def test_what_is_printed_never_contradicts_who_is_close_or_sure(numbers: list[float], digits: int) -> None:
    assert decimals(numbers, 0.12, 0.7) == digits


# Step 6: relaxation and restoration.

SHORT = plan(A="+5 +5 +5", B="+1 ?1 ?1")
ENOUGH = plan(A="+5 +5 +5 ?1", B="+1 ?1 ?1 ?1", C=AGAINST)


async def test_step_6_too_few_findings_are_sent_back_and_then_the_requirement_is_relaxed() -> None:
    planning = Planning(SHORT, SHORT)
    decision = await planning.turn(1)
    first, second = planning.model.requests
    assert second.messages[:-2] == first.messages, "what was sent once can be reused"
    assert [m.role for m in second.messages[-2:]] == ["assistant", "user"]
    assert second.messages[-2].content == SHORT
    assert "2 of 2 diagnoses list fewer than 4 findings" in second.messages[-1].content
    assert "at least 4 different findings" in second.messages[-1].content
    assert decision.kind == "plan"
    because = "because 2 of 2 diagnoses list fewer than 4 findings"
    assert f"Note: requirement relaxed from 4 to 3 findings per diagnosis, {because}." in decision.notes
    assert (decision.details["requirement"], decision.details["next_requirement"]) == (4, 3)
    assert planning.engine.requirement == 3
    assert decision.usage == Usage(20, 10, 0, 0, requests=2)


async def test_step_6_a_plan_corrected_after_being_sent_back_relaxes_nothing() -> None:
    planning = Planning(SHORT, ENOUGH)
    decision = await planning.turn(1)
    assert decision.remarks == ("plan sent back once: 2 of 2 diagnoses list fewer than 4 findings",)
    assert planning.engine.requirement == 4


async def test_step_6_the_requirement_falls_to_three_within_a_plan_and_comes_back_by_one_a_turn() -> None:
    three, six = plan(A="+5 +5 +5"), plan(A="+5 +5 +5 ?1 ?1 ?1")
    planning = Planning(three, three, three, six, six, six, min_symptoms_per_disease=6)
    seen: list[tuple[str, int, int]] = []
    for turn in range(1, 6):
        decision = await planning.turn(turn, ())
        seen.append((decision.kind, decision.requirement, decision.next_requirement))
    assert seen == [("plan", 6, 3), ("plan", 3, 4), ("plan", 4, 5), ("plan", 5, 6), ("plan", 6, 6)]


async def test_step_6_the_requirement_falls_no_further_than_the_plan_needs() -> None:
    some = plan(A="+5 +5 +5 +5 +5", B="+1 ?1 ?1 ?1", C="+1 ?1")
    decision = await Planning(some, some, min_symptoms_per_disease=6).turn(1, ())
    assert [h.diagnosis for h in decision.hypotheses] == ["A", "B"], "C has too few in any case"
    assert decision.next_requirement == 4
    assert any("relaxed from 6 to 4" in remark for remark in decision.remarks)


async def test_step_6_the_notes_say_that_the_requirement_is_restored() -> None:
    planning = Planning(SHORT, SHORT, ENOUGH, ENOUGH)
    await planning.turn(1)
    again = await planning.turn(2, ())
    assert "Note: 4 findings per diagnosis are asked for again from now on." in again.notes
    assert "at least 3 findings" in planning.model.prompts[2], "what is asked for now"
    settled = await planning.turn(3, ())
    assert settled.remarks == ()
    assert "at least 4 findings" in planning.model.prompts[3]


async def test_step_6_never_below_three_and_diagnoses_with_fewer_are_left_out() -> None:
    some = plan(A="+5 +5 +5", B="+1 ?1")
    planning = Planning(*[some] * 4)
    await planning.turn(1)
    decision = await planning.turn(2, ())
    assert [h.diagnosis for h in decision.hypotheses] == ["A"]
    assert "B: left out, fewer than 3 findings" in decision.remarks
    assert not any("relaxed" in remark for remark in decision.remarks)
    assert planning.engine.requirement == 3


async def test_step_6_with_two_findings_each_there_is_no_plan_even_after_relaxing() -> None:
    two = plan(A="+5 +5", B="+5 +5")
    decision = await Planning(two, two).turn()
    assert decision.kind == "fallback"
    assert decision.next_requirement == 3
    assert any("relaxed from 4 to 3" in remark for remark in decision.remarks)
    assert any("relaxed from 4 to 3" in line for line in decision.notes.splitlines())


async def test_step_6_the_builtin_planner_relaxes_and_recovers_like_any_other() -> None:
    """No disease of the knowledge base lists twenty findings."""
    engine = DifferentialDiagnosisEngine(assigned(DOOR, Builtin()), policy(min_symptoms_per_disease=20))
    first = await engine.decide(Observation(Incoming("", "")))
    again = await engine.decide(Observation(Incoming("", ""), turn=2))
    assert (first.kind, again.kind) == ("plan", "plan")
    assert first.requirement == 20
    assert first.next_requirement < 20
    assert again.requirement == first.next_requirement


# Step 7: the fallback.

TRUNCATED = ENOUGH[: len(ENOUGH) // 2]
BAD = {
    "prose": (malformed("The patient may have migraine."), "it contains no JSON object"),
    "truncated JSON": (malformed(TRUNCATED), "its JSON is broken or incomplete"),
    "another object": (malformed('{"answer": 42}'), "hypotheses: field required"),
    "nothing": (malformed(""), "it contains no JSON object"),
    "a list of names": (malformed('{"hypotheses": ["Migraine"]}'), "hypotheses.0: "),
    "a finding without a name": (
        malformed('{"hypotheses": [{"diagnosis": "A", "findings": [{"finding": " ", "weight": 1}]}]}'),
        "hypotheses.0.findings.0.finding: ",
    ),
    "a diagnosis without a name": (malformed('{"hypotheses": [{"diagnosis": " ", "findings": []}]}'), "diagnosis: "),
    "an empty list": (replied('{"hypotheses": []}'), "no diagnosis was named"),
    "a model that knows no schema": (Reply("I have no idea.", usage=Usage(10, 5, 0, 0)), "it contains no JSON object"),
}


@pytest.mark.parametrize(("answer", "why"), BAD.values(), ids=BAD)
async def test_step_7_a_planner_that_fails_twice_is_unavailable_for_the_turn(
    answer: Reply | MalformedError, why: str
) -> None:
    planning = Planning(answer, answer, ENOUGH)
    decision = await planning.turn()
    assert len(planning.model.requests) == 2, "never more than two requests a turn"
    assert why in planning.model.prompts[1], "the planner is told what is wrong"
    assert decision.kind == "fallback"
    assert decision.notes.startswith("[Planning Notes]\nThe planner is temporarily unavailable.")
    assert "ask an open question" in decision.notes
    assert why in decision.notes
    assert any(remark.startswith("planner unavailable: ") and why in remark for remark in decision.remarks)
    assert decision.details["decision"] == "fallback"
    assert (decision.details["hypotheses"], decision.details["margin"]) == ([], None)
    assert decision.differential is None
    assert decision.usage == Usage(20, 10, 0, 0, requests=2)
    assert decision.next_requirement == 4, "only too few findings relax the requirement"
    retried = await planning.turn(3)
    assert retried.kind == "finish", "the next turn plans again"


@pytest.mark.parametrize(("answer", "why"), BAD.values(), ids=BAD)
async def test_step_7_a_single_failure_is_fixed_by_sending_it_back(answer: Reply | MalformedError, why: str) -> None:
    planning = Planning(answer, plan(A=FAIR, B=AGAINST))
    decision = await planning.turn()
    assert decision.kind == "plan"
    assert decision.remarks[0].startswith("plan sent back once: ")
    assert why in decision.remarks[0]
    second = planning.model.requests[1]
    said = [m.content for m in second.messages[4:] if m.role == "assistant"]
    text = answer.text
    assert said == ([text] if text else []), "an empty answer is not sent back as a message"


def failed(error: ModelError) -> ModelError:
    """An error after two tries that cost nothing."""
    error.usage = Usage(0, 0, 0, 0, requests=2, retries=1)
    return error


FAILURES = {
    "refused": (RefusedError("no"), "the model refused"),
    "too long": (ContextTooLongError("8192"), "the model found the case too long"),
    "server": (failed(ServerError("500")), "the endpoint failed (server)"),
    "connection": (failed(ConnectError("gone")), "the endpoint failed (connection)"),
    "timeout": (failed(RequestTimeout("60 s")), "the endpoint failed (timeout)"),
    "rate limit": (failed(RateLimitError("429")), "the endpoint failed (rate_limit)"),
}


@pytest.mark.parametrize(("error", "why"), FAILURES.values(), ids=FAILURES)
async def test_step_7_a_refusal_or_a_failing_endpoint_is_not_asked_again_in_the_same_turn(
    error: ModelError, why: str
) -> None:
    planning = Planning(error, ENOUGH)
    decision = await planning.turn()
    assert len(planning.model.requests) == 1
    assert decision.kind == "fallback"
    assert decision.notes.startswith("[Planning Notes]\nThe planner is temporarily unavailable.")
    assert f"planner unavailable: {why}" in decision.remarks
    assert decision.usage == (error.usage or Usage()), "an unknown cost is not zero"
    assert (await planning.turn(3)).kind == "finish", "the next turn plans again"


async def test_step_7_an_endpoint_that_fails_after_a_bad_plan_also_leads_to_the_fallback() -> None:
    decision = await Planning(malformed("Well..."), failed(ServerError("500"))).turn()
    assert decision.kind == "fallback"
    assert decision.usage == Usage(10, 5, 0, 0, requests=3, retries=1)


@pytest.mark.parametrize(
    "error",
    [AuthError("key"), QuotaError("empty"), UnknownModelError("gone"), NotAllowedHereError("elsewhere")],
    ids=lambda e: e.kind,
)
@pytest.mark.parametrize("before", [(), (plan(A=FAIR, B=FAIR),)], ids=["the plan", "the discriminators"])
async def test_no_fallback_hides_an_error_that_every_request_would_meet(
    error: ModelError, before: tuple[str, ...]
) -> None:
    with pytest.raises(type(error)):
        await Planning(*before, error, discriminators="separate").turn()


async def test_notes_from_the_endpoint_are_recorded_but_not_shown_to_the_doctor() -> None:
    reply = replied(plan(A=FAIR, B=AGAINST))
    noted = Reply(reply.text, parsed=reply.parsed, notes=("answered by chat completions",))
    decision: Decision = await Planning(noted).turn()
    assert decision.remarks == ("answered by chat completions",)
    assert "chat completions" not in decision.notes


@pytest.mark.parametrize("rules", [True, False])
async def test_the_notes_have_advice_what_the_last_order_broke_and_the_rules_if_the_prompt_lacks_them(
    rules: bool,
) -> None:
    planning = Planning(plan(A=FAIR), RefusedError("no"), rules=rules)
    for _ in range(2):
        decision = await planning.engine.decide(
            Observation(Incoming("Patient", "Yes."), (ASKED,), 2), broken=("one test per turn",)
        )
        assert "Your last order broke a rule: one test per turn." in decision.notes
        assert ("Rules: Order one test per turn" in decision.notes) is rules
        assert decision.notes.endswith(planning.engine.policy.advice)
