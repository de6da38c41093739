"""Taking replies back: the encounter continues as if they had never been given."""

from __future__ import annotations

import pytest
from fakes import NEJM, Meeting, Scripted, case_of

from agentclinic.clinic.encounter import Transcript
from agentclinic.models.base import Image, Reply
from agentclinic.results.turn import Usage
from agentclinic.runs.human import Rewind, Tape

pytestmark = pytest.mark.anyio

IMAGE = Image(str(NEJM["image_url"]))


def spoken(transcript: Transcript) -> list[tuple[int, str, str]]:
    return [(turn.turn, turn.role, turn.text) for turn in transcript.turns]


async def test_a_doctor_who_goes_back_meets_everything_as_it_was() -> None:
    doctor = Scripted("One?", "REQUEST TEST: CBC", Rewind(), "Two?", "DIAGNOSIS READY: Migraine", name="human")
    meeting = Meeting(doctor, Scripted("1", "2"), Scripted("13"))
    transcript = await meeting.hold(Tape())
    assert spoken(transcript) == [
        (1, "doctor", "One?"),
        (1, "patient", "1"),
        (2, "doctor", "Two?"),
        (2, "patient", "2"),
        (3, "doctor", "DIAGNOSIS READY: Migraine"),
    ]
    assert [e.content for e in transcript.exchanges] == ["One?", "Two?"]
    assert "CBC" not in meeting.patient_role.history.text + meeting.lab_role.history.text + meeting.doctor_role.history
    # The question asked again is the very same request: same history, same newest reply, same turn.
    assert doctor.requests[3] == doctor.requests[1]


async def test_a_doctor_can_go_back_to_the_door_and_images_are_forgotten_on_the_way() -> None:
    doctor = Scripted("REQUEST IMAGES", "Itchy?", Rewind(), Rewind(), "DIAGNOSIS READY: Psoriasis", name="human")
    meeting = Meeting(doctor, Scripted("Yes"), case=case_of(NEJM), images=True)
    transcript = await meeting.hold(Tape())
    assert spoken(transcript) == [(1, "doctor", "DIAGNOSIS READY: Psoriasis")]
    assert doctor.requests[1].messages[-1].images == (IMAGE,)
    assert doctor.requests[3] == doctor.requests[1]
    assert doctor.requests[4] == doctor.requests[0]


async def test_going_back_at_the_door_asks_again() -> None:
    doctor = Scripted(Rewind(), "DIAGNOSIS READY: Migraine", name="human")
    transcript = await Meeting(doctor).hold(Tape())
    assert doctor.requests[0] == doctor.requests[1]
    assert transcript.num_turns == 1


async def test_a_patient_who_goes_back_answers_the_earlier_question_again() -> None:
    differing = Reply("Two?", usage=Usage(5, 5), notes=("a note",))
    doctor = Scripted("One?", "REQUEST TEST: CBC", differing, "Three?", "DIAGNOSIS READY: Migraine")
    patient = Scripted("1", "2", Rewind(), "two", name="human")
    meeting = Meeting(doctor, patient, Scripted("13"))
    transcript = await meeting.hold(Tape())
    assert spoken(transcript) == [
        (1, "doctor", "One?"),
        (1, "patient", "1"),
        (2, "doctor", "REQUEST TEST: CBC"),
        (2, "measurement", "RESULTS: 13"),
        (3, "doctor", "Two?"),
        (3, "patient", "two"),
        (4, "doctor", "DIAGNOSIS READY: Migraine"),
    ]
    kept = transcript.turns[4]
    assert (kept.usage, kept.notes) == (differing.usage, differing.notes)
    assert patient.requests[3] == patient.requests[1]
    assert "Patient: 2\n" not in meeting.doctor_role.history + meeting.lab_role.history.text
    assert "Patient: 2" not in doctor.prompts[4]
    assert "Patient: two" in doctor.prompts[4]


async def test_a_patient_may_take_several_answers_back() -> None:
    doctor = Scripted("One?", "Two?", "Three?", "DIAGNOSIS READY: Migraine")
    transcript = await Meeting(doctor, Scripted("1", "2", Rewind(), Rewind(), "one", name="human")).hold(Tape())
    assert spoken(transcript) == [
        (1, "doctor", "One?"),
        (1, "patient", "one"),
        (2, "doctor", "DIAGNOSIS READY: Migraine"),
    ]
