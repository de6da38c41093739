"""The encounter, branch by branch, with scripted roles."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace

import anyio
import pytest
from fakes import NEJM, OSCE, Listening, Meeting, Scripted, assigned, case_of

from agentclinic.builtin import Builtin
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.encounter import Clinic, Seat, Transcript, encounter
from agentclinic.clinic.payloads import DoctorPayload
from agentclinic.clinic.prompts import load_prompts
from agentclinic.doctors.plain import PlainDoctor
from agentclinic.models import base
from agentclinic.models.base import Image, ModelError, Reply, Request
from agentclinic.results.record import Status
from agentclinic.results.turn import Disclosure, Provenance
from agentclinic.results.utterance import Action
from agentclinic.runs.human import Leave

pytestmark = pytest.mark.anyio

LAST_TURN = load_prompts()["doctor"].text("last_turn")
ERRORS = sorted(
    (
        error
        for error in vars(base).values()
        if isinstance(error, type) and issubclass(error, ModelError) and error is not ModelError
    ),
    key=lambda error: error.kind,
)


def spoken(transcript: Transcript) -> list[tuple[int, str, str]]:
    return [(turn.turn, turn.role, turn.text) for turn in transcript.turns]


async def test_questions_go_to_the_patient_tests_to_the_laboratory_and_a_diagnosis_ends_it() -> None:
    meeting = Meeting(
        Scripted("Where does it hurt?", "REQUEST TEST: CBC", "DIAGNOSIS READY: Migraine"),
        Scripted("Here."),
        Scripted("Hemoglobin 13"),
    )
    transcript = await meeting.hold()
    assert spoken(transcript) == [
        (1, "doctor", "Where does it hurt?"),
        (1, "patient", "Here."),
        (2, "doctor", "REQUEST TEST: CBC"),
        (2, "measurement", "RESULTS: Hemoglobin 13"),
        (3, "doctor", "DIAGNOSIS READY: Migraine"),
    ]
    assert [seconds is not None and 0 <= seconds < 60 for seconds in transcript.seconds] == [True] * 5
    assert [turn.action for turn in transcript.turns if turn.role == "doctor"] == [
        Action("question", "Where does it hurt?"),
        Action("test", "CBC"),
        Action("diagnosis", "Migraine"),
    ]
    assert (transcript.status, transcript.diagnosis, transcript.num_turns) == (Status.DIAGNOSED, "Migraine", 3)
    assert transcript.fault is None


async def test_each_doctor_prompt_holds_the_whole_dialogue_and_the_newest_reply() -> None:
    doctor = Scripted("Where does it hurt?", "REQUEST TEST: CBC", "DIAGNOSIS READY: Migraine")
    await Meeting(doctor, Scripted("Here."), Scripted("fine")).hold()
    first, second, third = doctor.prompts
    assert "Here." not in first
    assert second.index("Doctor: Where does it hurt?") < second.index("Patient: Here.")
    assert third.index("Patient: Here.") < third.index("Doctor: REQUEST TEST: CBC") < third.index("RESULTS: fine")


async def test_histories_are_kept_verbatim_with_a_blank_line_after_each_entry() -> None:
    meeting = Meeting(
        Scripted("Any *pain*?\nWhere?", "Please REQUEST TEST: CBC now", "DIAGNOSIS READY: Migraine"),
        Scripted("Yes, {notes} here. "),
        Scripted("RESULTS: 13"),
    )
    await meeting.hold()
    told = "Doctor: Any *pain*?\nWhere?\n\nPatient: Yes, {notes} here. \n\n"
    tested = "Doctor: Please REQUEST TEST: CBC now\n\nMeasurement: RESULTS: 13\n\n"
    assert meeting.doctor_role.history == told + tested + "Doctor: DIAGNOSIS READY: Migraine\n\n"
    assert meeting.patient_role.history.text == told + tested
    assert meeting.lab_role.history.text == told + tested


async def test_the_doctor_is_told_to_commit_on_the_last_turn_only_and_gets_no_reply_to_it() -> None:
    doctor = Scripted("One?", "Two?", "REQUEST TEST: CBC")
    transcript = await Meeting(doctor, Scripted("1", "2"), Scripted(), limit=3).hold()
    assert [LAST_TURN in prompt for prompt in doctor.prompts] == [False, False, True]
    assert transcript.status is Status.MAX_INFS_REACHED
    assert transcript.diagnosis is None
    assert transcript.num_turns == 3
    assert spoken(transcript)[-1] == (3, "doctor", "REQUEST TEST: CBC")


async def test_a_diagnosis_on_the_last_turn_counts() -> None:
    transcript = await Meeting(Scripted("DIAGNOSIS READY: Migraine"), limit=1).hold()
    assert (transcript.status, transcript.num_turns) == (Status.DIAGNOSED, 1)


async def test_the_payload_has_turn_limit_and_exchanges_but_not_the_truth() -> None:
    disclosed = (Disclosure("headache", Provenance.CHART, ("Patient_Actor/History",)),)
    doctor = Scripted("Where?", "DIAGNOSIS READY: Flu")
    await Meeting(doctor, Scripted(Reply("Here.", disclosures=disclosed)), limit=2).hold()
    payload = doctor.requests[1].payload
    assert isinstance(payload, DoctorPayload)
    assert (payload.turn, payload.limit, payload.last) == (2, 2, True)
    assert [(e.kind, e.content, e.reply, e.disclosures) for e in payload.exchanges] == [
        ("question", "Where?", "Here.", (Disclosure("headache", Provenance.CHART),))
    ]
    assert "Migraine" not in repr(payload)


async def test_a_doctor_cannot_tell_completed_results_from_charted_ones() -> None:
    told = (
        Disclosure("CBC", Provenance.CHART, ("Test_Results/CBC/WBC",)),
        Disclosure("CBC", Provenance.DEFAULT_NORMAL, ("Completed/Test_Results/CBC/RDW",)),
        Disclosure("Lipase", Provenance.DEFAULT_NORMAL, ("Completed/Test_Results/Lipase",)),
    )
    doctor = Scripted("REQUEST TEST: CBC, lipase", "DIAGNOSIS READY: Flu")
    transcript = await Meeting(doctor, Scripted(), Scripted(Reply("RESULTS: fine", disclosures=told)), limit=2).hold()
    payload = doctor.requests[1].payload
    assert isinstance(payload, DoctorPayload)
    assert payload.exchanges[0].disclosures == (
        Disclosure("CBC", Provenance.CHART),
        Disclosure("Lipase", Provenance.CHART),
    )
    assert transcript.turns[1].disclosures == told, "the record says"


async def test_the_patient_remembers_what_it_told_and_goes_on_with_the_story() -> None:
    doctor = Scripted("What brings you in?", "Anything else?", "Anything else?", "DIAGNOSIS READY: Flu")
    case = load_cases("OpenOSCE_Demo")[0]
    transcript = await Meeting(doctor, Builtin(), Scripted(), case=case).hold()
    told = [d.paths for turn in transcript.turns if turn.role == "patient" for d in turn.disclosures]
    assert all(told)
    assert len({path for paths in told for path in paths}) == sum(map(len, told)), "nothing is told twice"
    payload = doctor.requests[1].payload
    assert isinstance(payload, DoctorPayload)
    assert payload.exchanges[0].disclosures[0].paths == (), "the doctor does not learn which facts"


IMAGE = Image(str(NEJM["image_url"]))


@pytest.mark.parametrize("again", [False, True])
async def test_images_once_shown_stay_in_view_without_being_repeated(again: bool) -> None:
    second = "REQUEST IMAGES" if again else "REQUEST TEST: biopsy"
    doctor = Scripted("Hello?", "REQUEST IMAGES", second, "Itchy?", "DIAGNOSIS READY: Psoriasis")
    lab = Scripted() if again else Scripted("none")
    transcript = await Meeting(doctor, Scripted("Hi", "Yes"), lab, case_of(NEJM), images=True).hold()
    shown = [request.messages[-1].images for request in doctor.requests]
    assert shown == [(), (), (IMAGE,), (IMAGE,), (IMAGE,)]
    assert transcript.turns[3].role == "clinic"
    assert transcript.turns[3].usage is None
    assert "attached" in transcript.turns[3].text


@pytest.mark.parametrize(("row", "images"), [(NEJM, False), (OSCE, True), (OSCE, False)])
async def test_a_request_for_images_that_cannot_be_shown_is_answered(row: dict[str, object], images: bool) -> None:
    doctor = Scripted("REQUEST IMAGES", "DIAGNOSIS READY: Psoriasis")
    transcript = await Meeting(doctor, case=case_of(row), images=images).hold()
    assert "No images can be shown" in transcript.turns[1].text
    assert transcript.turns[1].text in doctor.prompts[1]
    assert doctor.requests[1].messages[-1].images == ()
    assert transcript.num_turns == 2


async def test_only_a_doctor_who_may_request_images_is_told_about_them() -> None:
    suffix = load_prompts()["doctor"].text("images_suffix")
    for images in (True, False):
        doctor = Scripted("DIAGNOSIS READY: Psoriasis")
        await Meeting(doctor, case=case_of(NEJM), images=images).hold()
        assert (suffix in doctor.requests[0].messages[0].content) is images


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.kind)
async def test_a_doctor_that_fails_is_at_fault_only_for_its_own_doing(error: type[ModelError]) -> None:
    transcript = await Meeting(Scripted("Hello?", error("went wrong")), Scripted("Hi")).hold()
    own = error.kind in ("refused", "context_too_long", "malformed")
    assert transcript.status is (Status.DOCTOR_FAILED if own else Status.MODEL_FAILED)
    assert transcript.fault is not None
    assert (transcript.fault.role, transcript.fault.error, transcript.fault.message) == (
        "doctor",
        error.kind,
        "went wrong",
    )
    assert transcript.num_turns == 1


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.kind)
@pytest.mark.parametrize("role", ["patient", "measurement"])
async def test_a_failing_patient_or_laboratory_is_never_the_doctors_fault(role: str, error: type[ModelError]) -> None:
    failing = Scripted(error("went wrong"))
    if role == "patient":
        meeting = Meeting(Scripted("Hello?"), failing)
    else:
        meeting = Meeting(Scripted("REQUEST TEST: CBC"), Scripted(), failing)
    transcript = await meeting.hold()
    assert transcript.status is Status.MODEL_FAILED
    assert transcript.fault is not None
    assert (transcript.fault.role, transcript.fault.error) == (role, error.kind)
    assert transcript.num_turns == 1


class Sleeping:
    name = "sleeping"

    async def reply(self, request: Request) -> Reply:
        await anyio.sleep_forever()
        raise AssertionError


@pytest.mark.parametrize("role", ["doctor", "patient", "measurement"])
async def test_an_encounter_over_its_time_limit_is_missing_data(role: str) -> None:
    doctor = Scripted("REQUEST TEST: CBC" if role == "measurement" else "Hello?")
    meeting = Meeting(Sleeping() if role == "doctor" else doctor, Sleeping(), Sleeping(), seconds=0.2)
    transcript = await meeting.hold()
    assert transcript.status is Status.MODEL_FAILED
    assert transcript.fault is not None
    assert (transcript.fault.role, transcript.fault.error) == (role, "encounter_timeout")
    assert "0.2 s" in transcript.fault.message


async def test_a_programming_error_in_a_model_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        await Meeting(Scripted(ZeroDivisionError())).hold()


async def test_a_person_leaving_ends_the_encounter_without_an_outcome() -> None:
    with pytest.raises(Leave):
        await Meeting(Scripted(Leave())).hold()


async def test_the_system_prompt_never_changes_and_most_of_each_prompt_was_sent_before() -> None:
    case = load_cases("OpenOSCE_Demo")[0]
    questions = [
        "What brings you here today?",
        "When did it begin?",
        "REQUEST TEST: Vital Signs",
        "Do you have nausea?",
        "Have you vomited?",
        "REQUEST TEST: Abdominal examination",
        "Do you have diarrhea?",
        "REQUEST TEST: Complete blood count",
        "Any operations in the past?",
        "Do you take any medicine?",
        "REQUEST TEST: Abdominal ultrasound",
        "DIAGNOSIS READY: Acute appendicitis",
    ]
    doctor = Scripted(*questions)
    transcript = await Meeting(doctor, Builtin(), Builtin(), case, limit=12).hold()
    assert transcript.num_turns == 12
    assert len({request.messages[0] for request in doctor.requests}) == 1
    prompts = ["\n".join(m.content for m in request.messages) for request in doctor.requests]
    repeated = sum(len(os.path.commonprefix([a, b])) for a, b in itertools.pairwise(prompts))  # noqa: RUF071
    assert repeated / sum(len(prompt) for prompt in prompts[1:]) >= 0.85


async def test_builtin_roles_reach_a_diagnosis() -> None:
    case = load_cases("OpenOSCE_Demo")[0]
    doctor = Listening(Builtin())
    transcript = await Meeting(doctor, Builtin(), Builtin(), case).hold()
    assert transcript.status is Status.DIAGNOSED
    assert transcript.differential is not None
    assert all(turn.disclosures for turn in transcript.turns if turn.role in ("patient", "measurement"))


async def test_a_prompt_file_without_notes_placeholder_still_announces_the_last_turn() -> None:
    prompts = load_prompts()
    bare = replace(prompts["doctor"], texts={**prompts["doctor"].texts, "user_prompt_template": "{history} {reply}"})
    doctor = Scripted("DIAGNOSIS READY: Migraine")
    meeting = Meeting(doctor, limit=1, prompts=replace(prompts, files={**prompts.files, "doctor": bare}))
    await meeting.hold()
    assert doctor.prompts[0].endswith(LAST_TURN)


# Slips in a chat.


def in_chat(*said: str, patient: Scripted | None = None, limit: int = 5) -> Meeting:
    meeting = Meeting(Scripted(*said), patient or Scripted(*["I see."] * 9), limit=limit)
    meeting.doctor_role = PlainDoctor(assigned(meeting.case.door, meeting.doctor, limit))
    return meeting


async def held(meeting: Meeting) -> Transcript:
    clinic = Clinic(meeting.case, meeting.patient_role, meeting.lab_role, meeting.prompts["doctor"])
    return await encounter(Seat(clinic, meeting.limit), meeting.doctor_role)


async def test_a_near_token_is_answered_by_the_clinic_with_the_exact_form_and_the_turn_counts() -> None:
    meeting = in_chat("Diagnosis ready: Migraine", "DIAGNOSIS READY: Migraine")
    transcript = await held(meeting)
    assert [(turn.turn, turn.role) for turn in transcript.turns] == [(1, "doctor"), (1, "clinic"), (2, "doctor")]
    assert "DIAGNOSIS READY: Migraine" in transcript.turns[1].text
    assert (transcript.status, transcript.diagnosis, transcript.num_turns) == (Status.DIAGNOSED, "Migraine", 2)
    assert transcript.turns[0].slips == ("near_token",)
    assert meeting.patient.requests == [], "the patient never heard it"  # type: ignore[attr-defined]
    second = meeting.doctor.requests[1].messages  # type: ignore[attr-defined]
    assert [message.role for message in second] == ["system", "user"], "a model that sees its mistake repeats it"
    assert transcript.turns[1].text in second[-1].content
    assert "Doctor: Diagnosis ready: Migraine" in meeting.doctor_role.history, "the record has it all"


async def test_a_token_without_a_name_is_asked_for_its_name() -> None:
    transcript = await held(in_chat("DIAGNOSIS READY:", "DIAGNOSIS READY: Flu"))
    assert (transcript.turns[1].role, "the name after it" in transcript.turns[1].text) == ("clinic", True)
    assert transcript.diagnosis == "Flu"


async def test_after_a_near_token_on_the_last_turn_the_doctor_may_answer_once_more() -> None:
    transcript = await held(in_chat("Pain?", "Diagnosis ready: Flu", "DIAGNOSIS READY: Flu", limit=2))
    assert (transcript.status, transcript.diagnosis, transcript.num_turns) == (Status.DIAGNOSED, "Flu", 2)
    stubborn = await held(in_chat("Pain?", "Diagnosis ready: Flu", "Diagnosis ready: Flu", limit=2))
    assert (stubborn.status, stubborn.diagnosis) == (Status.MAX_INFS_REACHED, None)
    asked = await held(in_chat("Pain?", "And at night?", limit=2))
    assert asked.status is Status.MAX_INFS_REACHED, "a question on the last turn is not asked again"


async def test_words_for_others_are_cut_and_neither_heard_nor_remembered() -> None:
    raw = "REQUEST TEST: CBC\nMeasurement: RESULTS: unheard of\nDoctor: DIAGNOSIS READY: Flu"
    meeting = in_chat(raw, "DIAGNOSIS READY: Migraine")
    meeting.lab = meeting.lab_role.model = Scripted("Hemoglobin 13.2 g/dL")
    transcript = await held(meeting)
    assert (transcript.turns[0].text, transcript.turns[0].raw) == ("REQUEST TEST: CBC", raw)
    assert transcript.diagnosis == "Migraine"
    assert "unheard of" not in str(meeting.doctor.requests[1])  # type: ignore[attr-defined]


async def test_a_doctor_that_repeats_itself_is_told_and_in_the_end_asked_to_commit() -> None:
    meeting = in_chat(*["Pain?"] * 6, "DIAGNOSIS READY: Flu", limit=9)
    transcript = await held(meeting)
    said = [turn.slips for turn in transcript.turns if turn.role == "doctor"]
    assert said == [(), *[("repeated",)] * 5, ()]
    newest = [request.messages[-1].content for request in meeting.doctor.requests]  # type: ignore[attr-defined]
    texts = meeting.prompts["doctor"].texts
    assert [texts["chat_repeated"] in text for text in newest] == [False, False, True, True, True, False, False]
    assert [texts["chat_stuck"] in text for text in newest] == [False] * 5 + [True, True]


async def test_the_newest_message_alone_holds_counter_and_expectation() -> None:
    meeting = in_chat("Pain?", "Where?", "DIAGNOSIS READY: Flu", limit=3)
    await held(meeting)
    first, second, last = (request.messages for request in meeting.doctor.requests)  # type: ignore[attr-defined]
    assert [message.role for message in last] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "1 of 3" in first[-1].content
    assert "1 of 3" not in str(second)
    assert "DIAGNOSIS READY:" in last[-1].content


# The seat without a doctor.


async def test_a_seat_driven_by_hand_gives_the_same_transcript_as_the_loop() -> None:
    said = ("Where does it hurt?", "REQUEST TEST: CBC", "REQUEST IMAGES", "diagnosis ready: Flu", "Request test: x")

    def meeting() -> Meeting:
        return in_chat(*said, patient=Scripted("Left."), limit=4)

    looped, by_hand = meeting(), meeting()
    looped.lab_role.model = by_hand.lab_role.model = Scripted("13", "13")
    transcript = await held(looped)
    seat = Seat(Clinic(by_hand.case, by_hand.patient_role, by_hand.lab_role, by_hand.prompts["doctor"]), 4)
    waiting = list(said)
    assert not seat.observe().last
    while not seat.done:
        assert seat.observe().turn == min(6 - len(waiting), 4)
        await seat.act(waiting.pop(0))
    assert waiting == []
    assert seat.observe().last
    assert [turn.model_copy(update={"usage": None}) for turn in seat.transcript.turns] == [
        turn.model_copy(update={"usage": None}) for turn in transcript.turns
    ]
    assert seat.transcript.exchanges == transcript.exchanges
    assert seat.history.text == looped.doctor_role.history
    assert (seat.transcript.status, transcript.status) == (Status.MAX_INFS_REACHED,) * 2


async def test_a_seat_is_done_when_the_patient_fails() -> None:
    meeting = Meeting(Scripted(), Scripted(base.ServerError("down")))
    seat = Seat(meeting.build(), 5)
    await seat.act("Where does it hurt?")
    assert seat.done
    assert seat.transcript.fault is not None
    assert (seat.transcript.fault.role, seat.transcript.status) == ("patient", Status.MODEL_FAILED)
    with pytest.raises(RuntimeError, match="the encounter is over"):
        await seat.act("Hello?")
