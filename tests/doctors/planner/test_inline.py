"""Plan and utterance in one reply: what is sent, what is recorded, and what counts if the plan is no good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes import Listening, Meeting, Scripted, assigned, plan_of
from policy_support import Json, plan, policy
from runs_support import asked, run_here, settings_for
from scripted_server import ScriptedServer

from agentclinic.builtin import Builtin
from agentclinic.clinic.doctor import REPEATS_BEFORE_COMMITTING
from agentclinic.clinic.encounter import Seat, Transcript, encounter
from agentclinic.clinic.prompts import load_prompts
from agentclinic.doctors.planner.engine import DifferentialDiagnosisEngine, PolicyDoctor
from agentclinic.doctors.planner.payloads import InlinePayload
from agentclinic.doctors.planner.schema import PlanThenSpeak, WeighThenSpeak
from agentclinic.errors import ConfigError
from agentclinic.models.base import AuthError, MalformedError, Purpose, Reply, ServerError
from agentclinic.models.structured import InvalidReplyError, format_of, parse
from agentclinic.results.record import Record
from agentclinic.results.turn import NOTHING_ASKED, Usage
from agentclinic.runs.build import Models
from agentclinic.runs.plan import make_plan
from agentclinic.runs.play import play

pytestmark = pytest.mark.anyio

INLINE: Json = {"doctor_test_policy_enabled": True, "doctor_test_policy_mode": "inline"}
AGAINST = "-5 -5 -5 -5"
SURE = {"Migraine": "+5 +5 +5 ?1", "Meningitis": AGAINST, "Sinusitis": AGAINST}
FAIR = {"Migraine": "+5 ?5 ?5 ?5", "Meningitis": "+4 ?5 ?5 ?5", "Sinusitis": AGAINST}
SHORT = {"Migraine": "+5 +5"}
USAGE = Usage(10, 5, 0, 0)


def both(utterance: str, **hypotheses: str) -> str:
    """A reply with a plan and an utterance."""
    tells = [{"request": "Does light hurt?"}]
    return json.dumps({**json.loads(plan(tells, **hypotheses)), "utterance": utterance})


def replied(text: str, shape: Any = PlanThenSpeak) -> Reply | MalformedError:
    """What an endpoint makes of a text: a parsed reply, or an error that has the text."""
    try:
        return Reply(text, parsed=parse(text, shape), usage=USAGE)
    except InvalidReplyError:
        error = MalformedError("no usable reply", text=text)
        error.usage = USAGE
        return error


class Consultation:
    """An encounter with a doctor that plans inline; a text is read as an endpoint would."""

    def __init__(self, *answers: str | Exception, patient: int = 1, limit: int = 20, **settings: Any) -> None:
        shape = WeighThenSpeak if settings.get("discriminators") == "off" else PlanThenSpeak
        self.model = Scripted(*(replied(said, shape) if isinstance(said, str) else said for said in answers))
        self.meeting = Meeting(self.model, patient=Scripted(*["It throbs."] * patient), limit=limit)
        self.settings = settings

    async def held(self) -> Transcript:
        clinic = self.meeting.build()
        doctor, limit = self.meeting.doctor_role, self.meeting.limit
        assignment = assigned(self.meeting.case.door, self.model, limit)
        engine = DifferentialDiagnosisEngine(assignment, policy(**self.settings))
        return await encounter(Seat(clinic, limit), PolicyDoctor(doctor, engine, inline=doctor))


def by_role(transcript: Transcript, role: str) -> list[Any]:
    return [turn for turn in transcript.turns if turn.role == role]


ASKS, ENDS = both("What is it?", **FAIR), both("DIAGNOSIS READY: Flu", **FAIR)


async def test_plan_and_utterance_take_one_request_a_turn() -> None:
    consultation = Consultation(ASKS, ENDS)
    transcript = await consultation.held()
    assert transcript.diagnosis == "Flu"
    assert len(consultation.model.requests) == transcript.num_turns == 2
    planned, said = by_role(transcript, "planner"), by_role(transcript, "doctor")
    assert [turn.text for turn in said] == ["What is it?", "DIAGNOSIS READY: Flu"]
    assert [turn.usage for turn in planned] == [USAGE, USAGE]
    assert [turn.usage for turn in said] == [NOTHING_ASKED, NOTHING_ASKED], "counted once, with the plan"
    assert planned[0].details["hypotheses"][0]["diagnosis"] == "Migraine"
    assert planned[0].details["discriminators"] == [{"request": "Does light hurt?", "tells_apart": []}]
    assert consultation.meeting.doctor_role.history.startswith("Doctor: What is it?\n\nPatient: It throbs.")


async def test_the_request_is_the_doctors_own_with_the_plan_asked_for_as_well() -> None:
    consultation = Consultation(ASKS, ENDS)
    await consultation.held()
    file, doctor = policy(), consultation.meeting.doctor_role
    for request in consultation.model.requests:
        assert request.purpose is Purpose.DOCTOR
        assert request.repair is False, "the engine alone decides about trying again"
        system = request.messages[0].content
        assert system.startswith(f"{doctor.system_prompt}\n\n{file.inline_system}")
        assert system.endswith(f"Rules: {' '.join(file.rules)}")
        newest = request.messages[-1].content
        assert "3 to 5 diagnoses, each with at least 4 findings" in newest
        assert file.discriminators_with_plan in system
        assert file.discriminators_with_plan not in newest
        assert '"danger": "...", "discriminators": [' in system, "the form in short"
        assert request.described
        assert isinstance(request.payload, InlinePayload)
        assert request.payload.doctor.exchanges == request.payload.planner.exchanges
    first, second = consultation.model.requests
    assert first.messages[0] == second.messages[0], "static text comes first"
    assert "It throbs." in json.dumps([m.content for m in second.messages])


@pytest.mark.parametrize("discriminators", ["with_plan", "off"])
async def test_the_utterance_comes_last_in_the_schema(discriminators: str) -> None:
    consultation = Consultation(ASKS, ENDS, discriminators=discriminators)
    await consultation.held()
    (shape,) = {request.schema for request in consultation.model.requests}
    assert shape is not None
    fields = list(format_of(shape).schema["properties"])
    asked = ["discriminators"] if discriminators == "with_plan" else []
    assert fields == ["hypotheses", "danger", *asked, "utterance"]


async def test_a_sure_plan_overrides_the_utterance() -> None:
    transcript = await Consultation(ASKS, both("REQUEST TEST: CT head", **SURE)).held()
    assert transcript.diagnosis == "Migraine"
    last = by_role(transcript, "doctor")[-1]
    assert (last.text, last.notes) == ("DIAGNOSIS READY: Migraine", ("early finish by the planner",))


async def test_a_bad_plan_is_sent_back_and_the_second_utterance_counts() -> None:
    consultation = Consultation(both("What?", **SHORT), ASKS, ENDS)
    transcript = await consultation.held()
    assert by_role(transcript, "doctor")[0].text == "What is it?"
    assert by_role(transcript, "planner")[0].usage == USAGE + USAGE
    sent_back = consultation.model.requests[1].messages
    assert (sent_back[-2].role, sent_back[-2].content) == ("assistant", both("What?", **SHORT))
    assert "1 of 1 diagnoses list fewer than 4 findings" in sent_back[-1].content


BAD = {
    "too few findings": both("What is it?", **SHORT),
    "no diagnosis": both("What is it?"),
    "a plan of another shape": '{"plan": "Migraine", "utterance": "What is it?"}',
    "prose": "What is it?",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_without_a_usable_plan_the_utterance_still_counts(bad: str) -> None:
    consultation = Consultation(bad, bad, ENDS)
    transcript = await consultation.held()
    assert by_role(transcript, "doctor")[0].text == "What is it?"
    planned = by_role(transcript, "planner")[0]
    assert planned.details["decision"] == "fallback"
    assert any(note.startswith("planner unavailable: ") for note in planned.notes)
    assert len(consultation.model.requests) == 3, "two for the first turn, and one for the second"


async def test_the_utterance_of_the_first_try_counts_if_the_second_has_none() -> None:
    transcript = await Consultation(BAD["too few findings"], ENDS[:40], ENDS).held()
    assert by_role(transcript, "doctor")[0].text == "What is it?"


@pytest.mark.parametrize(
    "answers",
    [(ENDS[:40], ENDS[:40]), (ServerError("500"),), (both(" ", **FAIR),)],
    ids=["broken JSON twice", "an endpoint error", "a plan and no words"],
)
async def test_without_an_utterance_the_doctor_is_asked_on_its_own_with_the_notes(answers: tuple[Any, ...]) -> None:
    consultation = Consultation(*answers, "What is it?", ENDS)
    consultation.model._answers[len(answers)] = Reply("What is it?", usage=USAGE)
    transcript = await consultation.held()
    own = consultation.model.requests[len(answers)]
    assert own.schema is None
    planned, said = by_role(transcript, "planner")[0], by_role(transcript, "doctor")[0]
    assert planned.text in own.messages[-1].content
    assert (said.text, said.usage) == ("What is it?", USAGE)


async def test_a_fatal_error_is_not_hidden() -> None:
    transcript = await Consultation(AuthError("key")).held()
    assert transcript.fault is not None
    assert transcript.fault.error == "auth"


async def test_diagnoses_that_were_left_out_are_in_the_next_request() -> None:
    consultation = Consultation(both("Where does it hurt?", **FAIR), ENDS, max_differentials=2, min_diagnoses=2)
    await consultation.held()
    first, second = consultation.model.prompts
    assert "Left out" not in first
    assert "Your last plan named too many diagnoses. Left out: Sinusitis." in second


async def test_broken_rules_are_in_the_next_request() -> None:
    consultation = Consultation(both("REQUEST TEST: MRI brain and CT chest", **FAIR), ENDS)
    consultation.meeting.lab = Scripted("RESULTS: normal")
    transcript = await consultation.held()
    rule = "one test per turn (MRI brain, CT chest at once)"
    assert f"rule broken: {rule}" in by_role(transcript, "doctor")[0].notes
    first, second = consultation.model.prompts
    assert "broke a rule" not in first
    assert f"Your last order broke a rule: {rule}." in second


async def test_on_the_last_turn_the_doctor_is_told_so() -> None:
    consultation = Consultation(ASKS, ENDS, limit=2)
    await consultation.held()
    reminder = consultation.meeting.prompts["doctor"].text("last_turn")
    assert [reminder in prompt for prompt in consultation.model.prompts] == [False, True]


async def test_a_doctor_that_does_not_commit_on_the_last_turn_is_asked_on_its_own() -> None:
    consultation = Consultation(ASKS, ASKS, "DIAGNOSIS READY: Flu", limit=2)
    consultation.model._answers[2] = Reply("DIAGNOSIS READY: Flu", usage=USAGE)
    transcript = await consultation.held()
    assert transcript.diagnosis == "Flu"
    assert [request.schema is None for request in consultation.model.requests] == [False, False, True]


async def test_a_doctor_that_goes_round_in_circles_is_asked_on_its_own_to_commit() -> None:
    asked = REPEATS_BEFORE_COMMITTING + 2  # the first time, the repetitions it is allowed, and one more
    consultation = Consultation(*[ASKS] * (asked + 1), "DIAGNOSIS READY: Flu", patient=asked)
    consultation.model._answers[-1] = Reply("DIAGNOSIS READY: Flu", usage=USAGE)
    transcript = await consultation.held()
    assert transcript.diagnosis == "Flu"
    *planned, own = consultation.model.requests
    assert own.schema is None
    assert all(request.schema for request in planned)


# In runs.


async def test_an_inline_run_counts_its_requests_for_the_doctor(server: ScriptedServer, tmp_path: Path) -> None:
    text = load_prompts()["doctor"].bias("recency")
    lines = ["What is it?", "REQUEST TEST: Complete blood count", "DIAGNOSIS READY: Migraine"]
    rules = [
        {"match": {"purpose": "doctor", "nth": number}, "reply": both(line, **FAIR)}
        for number, line in enumerate(lines, start=1)
    ]
    server.control(rules=rules)
    settings = settings_for(server, tmp_path / "out", scenarios="0", doctor_bias="recency", **INLINE)
    _, (record,) = await run_here(settings)
    assert (record["status"], record["num_turns"]) == ("diagnosed", 3)
    assert (asked(server, "doctor"), asked(server, "planner")) == (3, 0), "one request a turn"
    assert record["usage"]["doctor"]["requests"] == 3
    assert "planner" not in record["usage"]
    tokens = [turn["usage"]["input_tokens"] for turn in record["transcript"] if turn["role"] in ("planner", "doctor")]
    assert sum(tokens) == record["usage"]["doctor"]["input_tokens"]
    for entry in server.log():
        if entry["purpose"] == "doctor":
            assert json.dumps(text)[1:-1] in json.dumps(entry["body"])


async def played(**run: Any) -> tuple[Record, int]:
    """A builtin unit, and the requests its doctor made."""
    chosen = plan_of(**{"scenarios": "0", **run})
    listening = Listening(Builtin())

    class Counted(Models):
        def for_role(self, role: str) -> Any:
            return listening if role in ("doctor", "planner") else super().for_role(role)

    async with Counted(chosen.settings) as models:
        return await play(chosen, chosen.units[0], models), len(listening.requests)


@pytest.mark.parametrize("doctor", ["plain", "history_only"])
async def test_builtin_roles_say_the_same_inline_in_half_the_requests(doctor: str) -> None:
    separate, twice = await played(doctor=doctor, doctor_test_policy_enabled=True)
    inline, once = await played(doctor=doctor, **INLINE)

    def told(record: Record) -> list[tuple[Any, ...]]:
        return [(turn.role, turn.text, turn.details) for turn in record.transcript or ()]

    assert told(inline) == told(separate)
    assert inline.differential == separate.differential
    finished = any("early finish" in note for turn in inline.transcript or () for note in turn.notes)
    assert once == inline.num_turns
    assert twice == 2 * once - finished
    assert (inline.usage or {})["doctor"]["requests"] == once


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        ({**INLINE, "doctor": "uncertainty"}, "works with the plain doctor, and uncertainty .* use separate"),
        ({**INLINE, "doctor": "mine.py:Mine"}, r"works with the plain doctor, and mine\.py:Mine .* use separate"),
        ({**INLINE, "planner_baseline": "full"}, "would show the doctor the patient's script; use door, or separate"),
        ({"doctor_test_policy_mode": "inline"}, "no effect without doctor_test_policy_enabled; set both"),
    ],
)
def test_what_cannot_be_planned_inline_is_refused(run: Json, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        plan_of(**run)


def test_a_separate_request_for_discriminators_is_refused_inline(tmp_path: Path) -> None:
    (tmp_path / "test_policy.json").write_text('{"differential_settings": {"discriminators": "separate"}}')
    settings = settings_for(None, tmp_path, prompts_dir=str(tmp_path), **INLINE)
    with pytest.raises(ConfigError, match=r"discriminators separate takes a second request.* use with_plan or off"):
        make_plan(settings)
