"""What reaches a doctor, the history it keeps, and replies as turns."""

from __future__ import annotations

from agentclinic.cases.model import Door
from agentclinic.clinic.doctor import History, Incoming, door_text, turn_of, utterance
from agentclinic.models.base import Reply
from agentclinic.results.turn import Disclosure, Provenance, Usage
from agentclinic.results.utterance import LONGEST, Action


def test_incoming_words_are_shown_with_their_speaker() -> None:
    assert Incoming("Patient", "It hurts.").line == "Patient: It hurts."
    assert Incoming("", "Begin.").line == "Begin."


def test_history_keeps_entries_verbatim_each_followed_by_a_blank_line() -> None:
    history = History()
    assert (history.text, history.shown()) == ("", "(nothing yet)")
    history.add("", "one\ntwo ")
    history.add("Patient", "three")
    assert history.text == "one\ntwo \n\nPatient: three\n\n"
    assert history.shown() == "one\ntwo \n\nPatient: three"


def test_history_as_a_chat_alternates_without_labels() -> None:
    history = History()
    for speaker, words in (
        ("Doctor", "Pain?"),
        ("Patient", "No."),
        ("Doctor", "Order."),
        ("Measurement", "RESULTS: 1"),
    ):
        history.add(speaker, words)
    as_patient = [(m.role, m.content) for m in history.messages("Patient", newest="Fever?")]
    assert as_patient == [
        ("user", "Pain?"),
        ("assistant", "No."),
        ("user", "Order.\n\nRESULTS: 1\n\nFever?"),
    ]


def test_a_turn_adds_what_reached_the_doctor_and_what_it_said() -> None:
    history = History()
    history.add_turn(Incoming("", "Begin."), "Where?")
    history.add_turn(Incoming("Patient", "Here."), "REQUEST TEST: CBC")
    assert history.text == "Doctor: Where?\n\nPatient: Here.\n\nDoctor: REQUEST TEST: CBC\n\n", "no opening"


def test_a_reply_becomes_a_turn_with_all_it_carries_and_only_a_doctors_has_an_action() -> None:
    reply = Reply(
        "REQUEST TEST: CBC",
        usage=Usage(1, 2, 3, 4),
        disclosures=(Disclosure("blood", Provenance.CHART),),
        notes=("clipped",),
    )
    said = utterance(reply, turn=3)
    assert (said.turn, said.role, said.text, said.action) == (3, "doctor", reply.text, Action("test", "CBC"))
    assert (said.usage, said.disclosures, said.notes) == (reply.usage, reply.disclosures, reply.notes)
    assert turn_of(reply, turn=3, role="patient").action is None


def test_the_door_is_the_objective_with_demographics_if_known() -> None:
    assert door_text(Door("Assess him.", "40-year-old man")) == "Patient: 40-year-old man\nObjective: Assess him."
    assert door_text(Door("Assess him.", "")) == "Assess him."


def test_a_reply_that_is_too_long_is_cut_and_kept_as_it_was() -> None:
    reply = Reply("No fever. " * 10_000)
    turn = turn_of(reply, turn=1, role="patient")
    assert (len(turn.text) <= LONGEST, turn.raw, turn.slips) == (True, reply.text, ("too_long",))
    short = turn_of(Reply("No fever."), turn=1, role="patient")
    assert (short.text, short.raw, short.slips) == ("No fever.", None, ())
