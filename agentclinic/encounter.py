"""One case, one doctor, until it ends. Knows nothing of files, runs or scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from agentclinic.agents.doctor import Doctor, Heard
from agentclinic.agents.prompts import Prompt
from agentclinic.agents.protocol import Action, parse_action
from agentclinic.agents.roles import Measurement, Patient
from agentclinic.cases.model import Case
from agentclinic.differential import Differential
from agentclinic.models.base import OWN_FAULTS, Disclosure, Image, ModelError, Reply, Usage
from agentclinic.models.payloads import Exchange


class Status(StrEnum):
    """How an encounter ended."""

    DIAGNOSED = "diagnosed"
    MAX_INFS_REACHED = "max_infs_reached"
    DOCTOR_FAILED = "doctor_failed"
    MODEL_FAILED = "model_failed"
    JUDGE_FAILED = "judge_failed"


@dataclass(frozen=True)
class Fault:
    """Who failed, and how."""

    role: str
    error: str
    """Kind of a `ModelError`, or the name of an exception raised by a user's doctor."""
    message: str


@dataclass(frozen=True)
class Turn:
    """One utterance of the dialogue."""

    turn: int
    """Counted from 1; a doctor's utterance and the reply to it share the number."""
    role: str
    text: str
    action: str | None = None
    """What a doctor's utterance did."""
    usage: Usage | None = None
    disclosures: tuple[Disclosure, ...] = ()
    differential: Differential | None = None
    notes: tuple[str, ...] = ()


@dataclass
class Transcript:
    """What happened in an encounter."""

    turns: list[Turn] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    status: Status = Status.MAX_INFS_REACHED
    diagnosis: str | None = None
    fault: Fault | None = None

    @property
    def num_turns(self) -> int:
        """Turns the doctor took."""
        return sum(turn.role == "doctor" for turn in self.turns)

    @property
    def differential(self) -> Differential | None:
        """The doctor's last differential, when it gave any."""
        given = [turn.differential for turn in self.turns if turn.differential]
        return given[-1] if given else None


@dataclass(frozen=True)
class Clinic:
    """Everybody the doctor meets in one encounter."""

    case: Case
    patient: Patient
    measurement: Measurement
    doctor_prompt: Prompt
    """For what the clinic itself says: that images are shown or are not to be had."""
    images: bool = False
    """Whether the doctor may ask for images."""


async def encounter(
    clinic: Clinic, doctor: Doctor, limit: int, on_turn: Callable[[Turn], None] | None = None
) -> Transcript:
    """Let the doctor work on the case for at most `limit` turns. A failing model ends it with a fault."""
    transcript = Transcript()

    def note(turn: Turn) -> None:
        transcript.turns.append(turn)
        if on_turn:
            on_turn(turn)

    heard = Heard("", clinic.doctor_prompt.text("opening"))
    role = "doctor"
    try:
        for number in range(1, limit + 1):
            role = "doctor"
            last = number == limit
            said = await doctor.act(heard, tuple(transcript.exchanges), turn=number, last=last)
            action = parse_action(said.text)
            note(_turn(number, "doctor", said, action))
            if action.kind == "diagnosis":
                transcript.status, transcript.diagnosis = Status.DIAGNOSED, action.content
                break
            if last:
                break
            role = _addressee(action)
            heard, reply = await respond(clinic, action, said.text, transcript)
            note(_turn(number, role, reply))
            transcript.exchanges.append(Exchange(action.kind, action.content, reply.text, reply.disclosures))
    except ModelError as error:
        own = role == "doctor" and error.kind in OWN_FAULTS
        transcript.status = Status.DOCTOR_FAILED if own else Status.MODEL_FAILED
        transcript.fault = Fault(role, error.kind, str(error))
    return transcript


def _addressee(action: Action) -> str:
    return {"question": "patient", "test": "measurement", "images": "clinic"}[action.kind]


def _turn(number: int, role: str, reply: Reply, action: Action | None = None) -> Turn:
    return Turn(
        number,
        role,
        reply.text,
        action.kind if action else None,
        None if role == "clinic" else reply.usage,
        reply.disclosures,
        reply.differential,
        reply.notes,
    )


async def respond(clinic: Clinic, action: Action, words: str, transcript: Transcript) -> tuple[Heard, Reply]:
    """Answer one action of the doctor; patient and laboratory each overhear what the other was told."""
    if action.kind == "question":
        reply = await clinic.patient.answer(words, tuple(transcript.exchanges))
        clinic.measurement.overhear(f"Doctor: {words}")
        clinic.measurement.overhear(f"Patient: {reply.text}")
        return Heard("Patient", reply.text), reply
    if action.kind == "test":
        reply = await clinic.measurement.report(action.content, words)
        clinic.patient.overhear(f"Doctor: {words}")
        clinic.patient.overhear(f"Measurement: {reply.text}")
        return Heard("Measurement", reply.text), reply
    if clinic.images and clinic.case.image:
        reply = Reply(clinic.doctor_prompt.text("images_shown"))
        return Heard("Clinic", reply.text, (Image(clinic.case.image),)), reply
    reply = Reply(clinic.doctor_prompt.text("images_off"))
    return Heard("Clinic", reply.text), reply
