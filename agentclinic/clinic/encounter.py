"""One case, one doctor, until it ends. Knows nothing of files, runs or scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import anyio
import anyio.lowlevel

from agentclinic.cases.model import Case
from agentclinic.clinic.payloads import Exchange
from agentclinic.clinic.prompts import Prompt
from agentclinic.clinic.roles import Measurement, Patient
from agentclinic.doctors.plain import Doctor, Heard
from agentclinic.models import recording
from agentclinic.models.base import OWN_FAULTS, Disclosure, Image, ModelError, Reply, Rewind, Usage
from agentclinic.results.actions import Action, parse_action
from agentclinic.results.differential import Differential


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
    details: Mapping[str, Any] | None = None


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
    clinic: Clinic, doctor: Doctor, limit: int, *, seconds: float | None = None, own_time: bool = False
) -> Transcript:
    """Let the doctor work on the case for at most `limit` turns and `seconds`.

    A model that fails ends it with a fault. `own_time`: time spent in the doctor is the doctor's own doing
    (a user's program) rather than an endpoint's.
    """
    talk = _Talk(clinic, doctor, limit)
    with anyio.move_on_after(seconds) as scope:
        try:
            await talk.hold()
        except ModelError as error:
            own = talk.speaker == "doctor" and error.kind in OWN_FAULTS
            talk.fail(own, error.kind, str(error))
    if scope.cancelled_caught:
        own = talk.speaker == "doctor" and own_time
        talk.fail(own, "encounter_timeout", f"the encounter took longer than {seconds:g} s")
    return talk.transcript


@dataclass(frozen=True)
class _Moment:
    """Everything as it was before somebody spoke, for going back."""

    speaker: str
    heard: Heard
    turns: int
    exchanges: int
    doctor: object
    patient: str
    measurement: str
    requests: recording.Asked


class _Talk:
    """The dialogue under way."""

    def __init__(self, clinic: Clinic, doctor: Doctor, limit: int) -> None:
        self.transcript = Transcript()
        self.speaker = "doctor"
        """Who is to speak, or speaks."""
        self._clinic = clinic
        self._doctor = doctor
        self._limit = limit
        self._heard = Heard("", clinic.doctor_prompt.text("opening"))
        self._moments: list[_Moment] = []

    async def hold(self) -> None:
        """Utterance by utterance: the doctor speaks, whoever is addressed replies, until the doctor is through."""
        through = False
        while not through:
            await anyio.lowlevel.checkpoint()  # builtin roles never wait: let the others have their turn
            self._moments.append(self._now())
            try:
                if self.speaker == "doctor":
                    through = await self._act()
                else:
                    await self._reply()
            except Rewind:
                self._go_back()

    async def _act(self) -> bool:
        """The doctor's part of a turn; True when the encounter ends with it."""
        turn = self.transcript.num_turns + 1
        last = turn == self._limit
        said = await self._doctor.act(self._heard, tuple(self.transcript.exchanges), turn=turn, last=last)
        action = parse_action(said.text)
        self.transcript.turns.extend(_turn(turn, aside.role, aside.reply) for aside in said.asides)
        self.transcript.turns.append(_turn(turn, "doctor", said, action))
        if action.kind == "diagnosis":
            self.transcript.status, self.transcript.diagnosis = Status.DIAGNOSED, action.content
            return True
        self.speaker = _ADDRESSEE[action.kind]
        return last

    async def _reply(self) -> None:
        """The other part: whoever the doctor addressed."""
        said = self.transcript.turns[-1]
        action = parse_action(said.text)
        self._heard, reply = await respond(self._clinic, action, said.text, self.transcript)
        self.transcript.turns.append(_turn(said.turn, self.speaker, reply))
        self.transcript.exchanges.append(Exchange(action.kind, action.content, reply.text, reply.disclosures))
        self.speaker = "doctor"

    def fail(self, own: bool, error: str, message: str) -> None:
        """End with a fault of whoever was to speak."""
        self.transcript.status = Status.DOCTOR_FAILED if own else Status.MODEL_FAILED
        self.transcript.fault = Fault(self.speaker, error, message)

    def _now(self) -> _Moment:
        return _Moment(
            self.speaker,
            self._heard,
            len(self.transcript.turns),
            len(self.transcript.exchanges),
            self._doctor.state(),
            self._clinic.patient.history.text,
            self._clinic.measurement.history.text,
            recording.requests_made(),
        )

    def _go_back(self) -> None:
        """Forget everything since whoever asks for it last began to speak; without such a moment, ask again."""
        moment = self._moments.pop()
        earlier = [index for index, past in enumerate(self._moments) if past.speaker == self.speaker]
        if earlier and moment.doctor is not None:
            moment = self._moments[earlier[-1]]
            del self._moments[earlier[-1] :]
        del self.transcript.turns[moment.turns :]
        del self.transcript.exchanges[moment.exchanges :]
        self._heard = moment.heard
        self._doctor.restore(moment.doctor)
        self._clinic.patient.history.text = moment.patient
        self._clinic.measurement.history.text = moment.measurement
        recording.forget_requests_since(moment.requests)


_ADDRESSEE = {"question": "patient", "test": "measurement", "images": "clinic"}


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
        reply.details,
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
