"""A doctor with a planner: in runs, with good and bad endpoints, and combined with everything else."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from fakes import NEJM, OSCE, Listening, Meeting, Scripted, assigned, case_of, plan_of
from policy_support import Json, plan, policy, replied
from runs_support import asked, own_cases, run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.builtin import Builtin
from agentclinic.clinic.encounter import Clinic, Seat, Transcript, encounter
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import load_prompts
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.doctors.planner.engine import DifferentialDiagnosisEngine, PolicyDoctor
from agentclinic.doctors.planner.prompting import rules_line
from agentclinic.errors import ConfigError, InputError
from agentclinic.results.record import Record
from agentclinic.results.turn import Source
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play
from agentclinic.runs.resume import plan_again
from agentclinic.scoring.calibration import calibration
from agentclinic.scoring.information import requests
from agentclinic.scoring.rows import row_of

pytestmark = pytest.mark.anyio

SURE = plan(Migraine="+5 +5 +5 ?1", Meningitis="-5 -5 -5 -5", Sinusitis="-5 -5 -5 -5")
FAIR = plan([{"request": "Does light hurt?"}], Migraine="+5 ?5 ?5 ?5", Meningitis="+4 ?5 ?5 ?5")
ON: Json = {"doctor_test_policy_enabled": True}


def planner(reply: str, **match: Any) -> Json:
    return {"match": {"purpose": "planner", **match}, "reply": reply}


def bodies(server: ScriptedServer, *purposes: str) -> list[Json]:
    return [entry["body"] for entry in server.log() if not purposes or entry["purpose"] in purposes]


def turns(record: Json, role: str) -> list[Json]:
    return [turn for turn in record["transcript"] if turn["role"] == role]


async def run_on(server: ScriptedServer, tmp_path: Path, *rules: Json, **settings: Any) -> list[Json]:
    """Records of a run with every role at the server and the policy on; one scenario by default."""
    server.control(rules=list(rules))
    _, written = await run_here(settings_for(server, tmp_path / "out", **{"scenarios": "0", **ON, **settings}))
    return written


# What a turn costs and what is recorded.


async def test_every_doctor_turn_is_one_planner_request_and_one_of_the_doctor(
    server: ScriptedServer, tmp_path: Path
) -> None:
    (record,) = await run_on(server, tmp_path, planner(FAIR))
    assert record["status"] == "diagnosed"
    assert record["test_policy"] == "test_policy"
    assert record["num_turns"] == asked(server, "doctor") == asked(server, "planner") == 4
    assert asked(server, "discriminator") == 0
    planned, said = turns(record, "planner"), turns(record, "doctor")
    assert [turn["turn"] for turn in planned] == [turn["turn"] for turn in said] == [1, 2, 3, 4]
    doctor_bodies = bodies(server, "doctor")
    for number, turn in enumerate(planned):
        assert turn["text"].startswith("[Planning Notes]")
        assert json.dumps(turn["text"])[1:-1] in json.dumps(doctor_bodies[number]), "the doctor saw what is recorded"
        assert turn["details"]["decision"] == "plan"
        assert turn["details"]["hypotheses"][0]["diagnosis"] == "Migraine"
        assert turn["details"]["discriminators"] == [{"request": "Does light hurt?", "tells_apart": []}]
        assert turn["differential"]["source"] == "planner_score"
        assert turn["usage"]["requests"] == 1
    assert record["usage"]["planner"]["requests"] == 4
    assert record["usage"]["planner"]["input_tokens"] == sum(turn["usage"]["input_tokens"] for turn in planned)
    assert "planner" in record["cost_usd"]
    assert "[Planning Notes]" not in record["doctor_hist"], "notes are not part of the dialogue"
    assert "[Planning Notes]" not in record["patient_hist"]


async def test_an_early_finish_says_the_diagnosis_in_the_doctors_name(server: ScriptedServer, tmp_path: Path) -> None:
    (record,) = await run_on(server, tmp_path, planner(SURE))
    assert (record["status"], record["diagnosis_text"], record["num_turns"]) == ("diagnosed", "Migraine", 2)
    assert (asked(server, "planner"), asked(server, "doctor")) == (2, 1), "never on the first turn"
    last = turns(record, "doctor")[-1]
    assert (last["text"], last["action"]["kind"]) == ("DIAGNOSIS READY: Migraine", "diagnosis")
    assert last["notes"] == ["early finish by the planner"]
    assert last["usage"]["requests"] == 0
    assert turns(record, "planner")[-1]["details"]["decision"] == "finish"
    assert record["doctor_hist"].endswith("Doctor: DIAGNOSIS READY: Migraine\n\n")
    assert record["differential"]["source"] == "planner_score"


# Endpoints of every kind.


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("structured", [True, False])
async def test_with_structured_output_or_json_in_the_prompt(
    server: ScriptedServer, tmp_path: Path, api: str, structured: bool
) -> None:
    rule = planner(SURE) if structured else {**planner(SURE), "fault": "reject_format"}
    (record,) = await run_on(server, tmp_path, rule, runtime={"llm_api": api})
    assert record["diagnosis_text"] == "Migraine"
    sent = bodies(server, "planner")
    forms = [body.get("text" if api == "responses" else "response_format") is not None for body in sent]
    # Refused with greatest lengths and without them, then not sent again.
    assert forms == ([True, True] if structured else [True, True, False, False])
    assert ["JSON schema" in json.dumps(body) for body in sent] == [not form for form in forms], "sent once"
    assert all('{\\"hypotheses\\": [' in json.dumps(body) for body in sent), "the form in short"
    for turn in turns(record, "planner"):
        assert ("structured output asked for in the prompt only" in turn["notes"]) is not structured
        assert "prompt only" not in turn["text"]


async def test_with_chat_completions_only(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(responses=False)
    (record,) = await run_on(server, tmp_path, planner(SURE), runtime={"llm_api": "auto"})
    assert record["diagnosis_text"] == "Migraine"
    assert "answered by chat completions" in turns(record, "planner")[0]["notes"]


@pytest.mark.parametrize("fault", ["prose_instead_of_json", "invalid_schema_json", "length"])
async def test_a_bad_plan_costs_at_most_two_requests_a_turn(server: ScriptedServer, tmp_path: Path, fault: str) -> None:
    (record,) = await run_on(server, tmp_path, {"match": {"purpose": "planner"}, "fault": fault})
    assert record["status"] == "diagnosed", "the doctor goes on without it"
    assert asked(server, "planner") == 2 * record["num_turns"]
    for turn in turns(record, "planner"):
        assert turn["details"]["decision"] == "fallback"
        assert "The planner is temporarily unavailable." in turn["text"]
        assert turn["usage"]["requests"] == 2
        assert turn["usage"]["input_tokens"] > 0, "bad answers also cost tokens"


@pytest.mark.parametrize("fault", ["refusal", "content_filter", "context"])
async def test_after_a_refused_plan_the_doctor_continues(server: ScriptedServer, tmp_path: Path, fault: str) -> None:
    (record,) = await run_on(server, tmp_path, {"match": {"purpose": "planner"}, "fault": fault})
    assert record["status"] == "diagnosed"
    assert asked(server, "planner") == record["num_turns"]
    assert {turn["details"]["decision"] for turn in turns(record, "planner")} == {"fallback"}


async def test_after_an_endpoint_error_in_planning_the_doctor_goes_on_and_the_next_turn_plans_again(
    server: ScriptedServer, tmp_path: Path
) -> None:
    failing = {"match": {"purpose": "planner", "nth": [2, 3]}, "fault": "500"}  # both tries of turn 2
    (record,) = await run_on(server, tmp_path, failing, planner(FAIR))
    assert (record["status"], record["fault"]) == ("diagnosed", None)
    planned = turns(record, "planner")
    assert [turn["details"]["decision"] for turn in planned] == ["plan", "fallback", "plan", "plan"]
    assert "planner unavailable: the endpoint failed (server)" in planned[1]["notes"]
    assert "The planner is temporarily unavailable." in json.dumps(bodies(server, "doctor")[1])
    assert planned[1]["usage"]["requests"] == 2, "failed tries are counted"
    assert record["usage"]["planner"]["requests"] == asked(server, "planner") == 5


async def test_a_rejected_key_stops_the_run_and_not_only_the_plan(server: ScriptedServer, tmp_path: Path) -> None:
    server.control(rules=[{"match": {"purpose": "planner"}, "fault": "auth"}])
    _, written = await run_here(settings_for(server, tmp_path / "out", scenarios="0", **ON))
    assert written == [], "the unit counts as not played"
    assert (asked(server, "planner"), asked(server, "doctor")) == (1, 0)


@pytest.mark.slow
async def test_with_a_fifth_of_the_plans_malformed_every_encounter_ends_the_same(
    server: ScriptedServer, tmp_path: Path
) -> None:
    """A hundred cases; the planner, if it works, is sure of appendicitis, and the builtin judge decides."""
    good = plan(Acute_appendicitis="+5 +5 +5 ?1", Crohn_disease="-5 -5 -5 -5", Gastroenteritis="-5 -5 -5 -5")
    lines = ["What is it?", "Since when?", "DIAGNOSIS READY: Acute appendicitis"]
    share = {"purpose": "planner", "probability": 0.05}
    bad = [
        {"match": share, "fault": "prose_instead_of_json"},
        {"match": share, "fault": "invalid_schema_json"},
        {"match": share, "reply": good[: len(good) // 2]},
        {"match": share, "reply": '{"hypotheses": [], "discriminators": []}'},
    ]
    builtin = {f"{role}_llm": "builtin" for role in ("patient", "measurement", "moderator")}
    settings = {"dataset": str(own_cases(tmp_path, 100)), "scenarios": None, "workers": 8, **builtin}
    server.control(doctor=lines)
    clean = await run_on(server, tmp_path / "clean", planner(good), **settings)
    assert asked(server, "planner") == 200
    server.reset()
    server.control(doctor=lines)
    rough = await run_on(server, tmp_path / "rough", *bad, planner(good), **settings)

    def outcome(record: Json) -> tuple[Any, ...]:
        return record["scenario_id"], record["status"], record["diagnosis_text"], record["correct"]

    assert sorted(map(outcome, rough)) == sorted(map(outcome, clean))
    assert {record["correct"] for record in rough} == {True, False}, "some are right, some are wrong"

    planned = [turn for record in rough for turn in turns(record, "planner")]
    again = [turn for turn in planned if any("plan sent back once" in note for note in turn["notes"])]
    fallen = [turn for turn in planned if turn["details"]["decision"] == "fallback"]
    assert 0.1 < len(again) / len(planned) < 0.3
    assert fallen, "some fail twice"
    assert asked(server, "planner") == len(planned) + len(again)
    for turn in planned:
        assert turn["usage"]["requests"] == (2 if turn in again else 1)
        unavailable = any(note.startswith("planner unavailable: ") for note in turn["notes"])
        assert unavailable == (turn in fallen)
        assert ("temporarily unavailable" in turn["text"]) == (turn in fallen)
        others = set(turn["notes"]) - {"answered by chat completions"}  # which a malformed answer makes us prefer
        assert turn in again or not others or turn["details"]["decision"] == "finish"
    shown = [body for body in bodies(server, "doctor") if "temporarily unavailable" in json.dumps(body)]
    assert len(shown) == len(fallen), "each time the doctor was told"


# Off means off.


async def test_off_means_requests_identical_byte_for_byte(server: ScriptedServer, tmp_path: Path) -> None:
    """A run without the policy sends what the plain doctor, driven directly, sends; a policy file changes nothing."""
    settings = settings_for(server, tmp_path / "out", scenarios="0")
    await run_here(settings)
    off = bodies(server, "doctor", "patient", "measurement")
    assert asked(server, "planner") == 0

    server.reset()
    await directly(settings)
    assert bodies(server) == off

    server.reset()
    (tmp_path / "test_policy.json").write_text('{"constraints": {"finish_early_if_confident": 0.1}}')
    await run_here(settings_for(server, tmp_path / "out", scenarios="0", prompts_dir=str(tmp_path)))
    assert bodies(server, "doctor", "patient", "measurement") == off

    server.reset()
    await run_on(server, tmp_path, planner(FAIR))
    on = bodies(server, "doctor", "patient", "measurement")
    assert on != off
    assert [without_notes(body) for body in on] == off, "with the policy on, only rules and notes are added"
    assert rules_line(policy()) in json.dumps(on[0])
    assert not any("Rules:" in turn_text for turn_text in re.findall(r"\[Planning Notes\].*?\"", json.dumps(on)))


async def test_in_the_transcript_form_the_rules_are_in_the_notes(server: ScriptedServer, tmp_path: Path) -> None:
    rules = rules_line(policy())
    for dialogue in ("chat", "transcript"):
        server.reset()
        (record,) = await run_on(server, tmp_path / dialogue, planner(FAIR), dialogue=dialogue)
        system = [body["input"][0]["content"] for body in bodies(server, "doctor")]
        assert all((rules in text) is (dialogue == "chat") for text in system)
        assert all((rules in turn["text"]) is (dialogue == "transcript") for turn in turns(record, "planner"))


async def directly(settings: Any) -> Transcript:
    case, prompts = make_plan(settings).cases[0], load_prompts()
    async with Models(settings) as models:
        roles = {role: models.for_role(role) for role in ("doctor", "patient", "measurement")}
        clinic = Clinic(
            case,
            Patient(case, roles["patient"], prompts["patient"], dialogue="chat"),
            Laboratory(case, roles["measurement"], prompts["measurement"], dialogue="chat"),
            prompts["doctor"],
        )
        doctor = PlainDoctor(assigned(case.door, roles["doctor"]))
        return await encounter(Seat(clinic, 20), doctor)


def without_notes(body: Json) -> Json:
    """A request without the planning rules in its system prompt and the notes in its newest message."""
    rules, advice = (re.escape(json.dumps(text)[1:-1]) for text in (rules_line(policy()), policy().advice))
    text = re.sub(rf"\\n\\n{rules}", "", json.dumps(body))
    cut: Json = json.loads(re.sub(rf"\\n\\n\[Planning Notes\].*?{advice}", "", text))
    return cut


async def test_the_planner_is_shown_the_dialogue_as_the_run_says(server: ScriptedServer, tmp_path: Path) -> None:
    for dialogue, roles in (("chat", ["user", "assistant", "user"]), ("transcript", ["user"])):
        server.reset()
        await run_on(server, tmp_path / dialogue, planner(FAIR), runtime={"llm_api": "chat"}, dialogue=dialogue)
        second = bodies(server, "planner")[1]["messages"]
        assert [message["role"] for message in second if message["role"] != "system"] == roles


# What the planner may know.

HIDDEN: Json = {
    **OSCE,
    "Objective_for_Doctor": "Assess a patient. ATDOOR",
    "Patient_Actor": {"Demographics": "35-year-old woman", "History": "She has a headache INSCRIPT."},
    "Test_Results": {"CT_Head": "INCHART"},
    "Correct_Diagnosis": "HIDDENtruth",
    "Answer_Key": {"accept": ["HIDDENkey"]},
    "Differential": ["HIDDENother"],
    "ICD10": "HIDDENcode",
}


@pytest.mark.parametrize("baseline", ["door", "full"])
async def test_the_planner_sees_the_script_only_with_full_and_never_the_answer(
    server: ScriptedServer, tmp_path: Path, baseline: str
) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps({"OSCE_Examination": HIDDEN}) + "\n")
    settings = {"dataset": str(cases), "planner_baseline": baseline}
    (record,) = await run_on(server, tmp_path, planner(FAIR), **settings)
    planned, said = bodies(server, "planner"), bodies(server, "doctor")
    assert planned
    for body in (*planned, *said):
        assert "HIDDEN" not in json.dumps(body)
        assert "INCHART" not in json.dumps(body)
        assert "ATDOOR" in json.dumps(body)
    assert all(("INSCRIPT" in json.dumps(body)) is (baseline == "full") for body in planned)
    assert not any("INSCRIPT" in json.dumps(body) for body in said)
    basis = "the patient's whole script (planner_baseline full)"
    assert all((basis in turn["text"]) is (baseline == "full") for turn in turns(record, "planner"))
    assert record["planner_baseline"] == baseline


async def test_the_builtin_planner_is_better_informed_with_full() -> None:
    async def coverage(baseline: str) -> float:
        record = await played(planner_baseline=baseline)
        first = next(turn for turn in record.transcript or () if turn.role == "planner")
        assert first.details is not None
        return float(first.details["hypotheses"][0]["coverage"])

    assert await coverage("full") > await coverage("door")


# Combined with everything else.


async def played(**run: Any) -> Record:
    """One builtin unit with the policy on."""
    plan_ = plan_of(**{"scenarios": "0", **ON, **run})
    async with Models(plan_.settings) as models:
        return await play(plan_, plan_.units[0], models)


@pytest.mark.parametrize("doctor", ["plain", "history_only", "uncertainty"])
async def test_any_doctor_with_a_dialogue_can_have_a_planner(
    doctor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the uncertainty doctor keeps its sessions there
    record = await played(doctor=doctor)
    assert record.status == "diagnosed"
    roles = [turn.role for turn in record.transcript or ()]
    assert roles.count("planner") == roles.count("doctor") == record.num_turns
    assert all(roles[place + 1] == "doctor" for place, role in enumerate(roles) if role == "planner")
    asked_for = requests(record)
    assert asked_for is not None
    assert len(asked_for) == (record.num_turns or 0) - 1
    assert all(request.reply and request.reply.role != "planner" for request in asked_for)


async def test_an_early_finish_also_ends_the_uncertainty_doctors_session(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.control(rules=[planner(SURE)], tool="diagnosis_step")
    settings = settings_for(server, tmp_path / "out", scenarios="0", doctor="uncertainty", **ON)
    finished, (record,) = await run_here(settings)
    assert (record["diagnosis_text"], record["num_turns"]) == ("Migraine", 2)
    assert "[Planning Notes]" in json.dumps(bodies(server, "doctor")[0])
    session = json.loads((finished.folder / "diagnosis_sessions" / f"{record['session_id']}.json").read_text())
    assert session["final_diagnosis"] == "Migraine"


async def test_a_custom_doctor_gets_the_notes_with_the_question(server: ScriptedServer, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        textwrap.dedent("""
        class Mine:
            def __init__(self, scenario):
                self.agent_hist = ""

            def inference_doctor(self, question):
                self.agent_hist += f"<<{question}>>"
                return "What is it?" if self.agent_hist.count("<<") < 3 else "DIAGNOSIS READY: Flu"
        """)
    )
    (record,) = await run_on(server, tmp_path, planner(FAIR), doctor=f"{file}:Mine")
    heard = re.findall(r"<<(.*?)>>", record["doctor_hist"], re.DOTALL)
    planned = [turn["text"] for turn in turns(record, "planner")]
    reply = turns(record, "patient")[0]["text"]
    assert heard == [planned[0], f"{reply}\n\n{planned[1]}", f"{reply}\n\n{planned[2]}"]
    server.reset()
    (finished,) = await run_on(server, tmp_path, planner(SURE), doctor=f"{file}:Mine")
    assert (finished["diagnosis_text"], finished["num_turns"]) == ("Migraine", 2)


async def test_a_bias_is_in_the_doctors_prompt_and_in_the_planners(server: ScriptedServer, tmp_path: Path) -> None:
    text = load_prompts()["doctor"].bias("recency")
    await run_on(server, tmp_path, planner(SURE), doctor_bias="recency")
    for body in bodies(server, "planner", "doctor"):
        assert json.dumps(text)[1:-1] in json.dumps(body)


async def test_the_planner_sees_images_once_they_were_shown() -> None:
    meeting = Meeting(
        Scripted("REQUEST IMAGES", "What is it?", "DIAGNOSIS READY: Psoriasis"),
        patient=Scripted("A rash."),
        case=case_of(NEJM),
        images=True,
    )
    thinking = Listening(Builtin())
    engine = DifferentialDiagnosisEngine(assigned(meeting.case.door, thinking), policy(finish_early_if_confident=1.0))
    transcript = await encounter(Seat(meeting.build(), 20), PolicyDoctor(meeting.doctor_role, engine))
    assert transcript.diagnosis == "Psoriasis"
    assert [len(request.messages[-1].images) for request in thinking.requests] == [0, 1, 1]


async def test_broken_rules_are_recorded_and_in_the_next_notes() -> None:
    meeting = Meeting(
        Scripted("REQUEST TEST: MRI brain and CT chest", "REQUEST TEST: frobnication", "DIAGNOSIS READY: Migraine"),
        lab=Scripted("RESULTS: normal", "RESULTS: none"),
    )
    engine = DifferentialDiagnosisEngine(assigned(meeting.case.door, Builtin()), policy(finish_early_if_confident=1.0))
    said = (await encounter(Seat(meeting.build(), 20), PolicyDoctor(meeting.doctor_role, engine))).turns
    doctor = [turn for turn in said if turn.role == "doctor"]
    planned = [turn.text for turn in said if turn.role == "planner"]
    rule = "one test per turn (MRI brain, CT chest at once)"
    assert f"rule broken: {rule}" in doctor[0].notes
    assert any("low cost first" in note for note in doctor[0].notes)
    assert doctor[1].notes == ("rules not checked: the test is not known",)
    assert ["Your last order broke a rule" in text for text in planned] == [False, True, False]
    assert f"Your last order broke a rule: {rule}." in planned[1]
    assert isinstance(meeting.doctor, Scripted)
    assert f"Your last order broke a rule: {rule}." in meeting.doctor.prompts[1]


@pytest.mark.parametrize("advised", [True, False])
async def test_an_order_that_the_notes_advised_breaks_no_rule(advised: bool) -> None:
    order = "REQUEST TEST: Vital signs and cardiovascular examination"
    step = order if advised else "REQUEST TEST: Vital signs"
    planned = plan([{"request": step}], Migraine="+5 ?5 ?5 ?5", Meningitis="+4 ?5 ?5 ?5")
    meeting = Meeting(Scripted(order, "DIAGNOSIS READY: Migraine"), lab=Scripted("RESULTS: normal"))
    engine = DifferentialDiagnosisEngine(
        assigned(meeting.case.door, Scripted(replied(planned), replied(planned))), policy()
    )
    said = (await encounter(Seat(meeting.build(), 20), PolicyDoctor(meeting.doctor_role, engine))).turns
    rule = "one test per turn (Vital signs, Cardiovascular examination at once)"
    assert isinstance(meeting.doctor, Scripted)
    assert ("Your last order broke a rule" in meeting.doctor.prompts[1]) is not advised
    (noted,) = next(turn for turn in said if turn.role == "doctor").notes
    assert noted == (f"rule set aside: {rule}, as the notes advised" if advised else f"rule broken: {rule}")


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        ({**ON, "doctor": "door_only"}, "door_only has no dialogue to plan"),
        ({**ON, "doctor": "full_information"}, "full_information has no dialogue"),
        ({**ON, "doctor": "random_questions"}, "random_questions has no dialogue"),
        ({**ON, "inf_type": "human_doctor"}, "cannot be a person"),
        ({**ON, "doctor_llm": "human"}, "cannot be a person"),
        ({"planner_baseline": "full"}, "planner_baseline has no effect without doctor_test_policy_enabled"),
        ({**ON, "doctor_test_policy": "gone"}, "there is no gone.json"),
        ({**ON, "doctor_bias": "recency"}, "no effect on the builtin doctor"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_played(run: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        plan_of(**run)


# Resuming, replaying and scoring.


async def test_a_changed_policy_file_is_refused_by_name(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    file = prompts / "mine.json"
    file.write_text('{"constraints": {"finish_early_if_confident": 0.8}}')
    named = {"prompts_dir": str(prompts), "doctor_test_policy": "mine", **ON}
    finished, (record,) = await run_here(settings_for(None, tmp_path / "out", scenarios="0", **named))
    assert record["test_policy"] == "mine"
    plan_again(finished.folder)
    file.write_text('{"constraints": {"finish_early_if_confident": 0.9}}')
    with pytest.raises(InputError, match=r"\(policy was"):
        plan_again(finished.folder)


def test_the_policy_is_part_of_the_digest_only_if_it_is_on(tmp_path: Path) -> None:
    (tmp_path / "test_policy.json").write_text('{"constraints": {"finish_early_if_confident": 0.8}}')
    off = [make_plan(settings_for(None, tmp_path, prompts_dir=p)).digest for p in (None, str(tmp_path))]
    assert off[0] == off[1]
    assert "policy" not in off[0]
    on = [make_plan(settings_for(None, tmp_path, prompts_dir=p, **ON)).digest for p in (None, str(tmp_path))]
    assert on[0]["policy"] != on[1]["policy"]


async def test_a_recording_with_bad_plans_replays_to_the_same_records(server: ScriptedServer, tmp_path: Path) -> None:
    recording = tmp_path / "recording.jsonl"
    bad = {"match": {"purpose": "planner", "nth": [2, 5, 6]}, "fault": "prose_instead_of_json"}
    (first,) = await run_on(server, tmp_path, bad, planner(FAIR), record=str(recording))
    server.reset()
    roles = ("doctor", "patient", "measurement", "moderator")
    replay: Json = {f"{role}_llm": f"replay:{recording}" for role in roles} | {"simulator": "free"}
    settings = settings_for(None, tmp_path / "again", scenarios="0", **replay, **ON)
    _, (second,) = await run_here(settings)
    assert asked(server) == 0

    def told(record: Json) -> list[tuple[Any, ...]]:
        return [(t["role"], t["text"], t["notes"], t["details"]) for t in record["transcript"]]

    assert told(second) == told(first)
    kinds = [turn["details"]["decision"] for turn in turns(first, "planner")]
    assert kinds == ["plan", "plan", "plan", "fallback"]


async def test_scores_of_the_planner_are_never_pooled_with_probabilities() -> None:
    records = [await played(scenarios=str(number)) for number in range(3)]
    found = {part.source: part for part in calibration([row_of(record) for record in records]).sources}
    assert found.keys() == {"planner_score", "posterior"}
    assert found[Source.PLANNER_SCORE].scale == "score"
    assert found[Source.POSTERIOR].scale == "probability"


async def test_identical_runs_plan_identically() -> None:
    one, other = await played(scenarios="4"), await played(scenarios="4")
    assert one.model_dump(exclude={"timing"}) == other.model_dump(exclude={"timing"})
