"""One case and one doctor, until the encounter ends. Knows nothing of files, runs or scores."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from agentclinic.cases.model import Case
from agentclinic.clinic.doctor import Doctor, Incoming
from agentclinic.clinic.laboratory import Laboratory
from agentclinic.clinic.patient import Patient
from agentclinic.clinic.prompts import Prompt, fill
from agentclinic.models.base import OWN_FAULTS, Image, ModelError
from agentclinic.results.actions import Action
from agentclinic.results.differential import Differential
from agentclinic.results.record import Fault, Status
from agentclinic.results.turn import Exchange, Turn

_ADDRESSEE = {"question": "patient", "test": "measurement", "images": "clinic", "none": "clinic"}


@dataclass(frozen=True)
class Clinic:
    """Everyone the doctor meets in one encounter."""

    case: Case
    patient: Patient
    laboratory: Laboratory
    doctor_prompt: Prompt
    """For what the clinic itself says: that images are shown, or that there are none."""
    images: bool = False
    """Whether the doctor may ask for images."""


@dataclass
class Transcript:
    """What happened in an encounter."""

    turns: list[Turn] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    status: Status = Status.MAX_INFS_REACHED
    diagnosis: str | None = None
    fault: Fault | None = None
    speaker: str = "doctor"
    """Whose turn it is to speak, and so who is at fault if the encounter fails now."""
    seconds: list[float | None] = field(default_factory=list)
    """For each of `turns`, how long it took; None for an aside, whose time is in that of the words it led to."""
    _since: float = field(default_factory=time.perf_counter, repr=False)

    def add(self, *turns: Turn) -> None:
        """Add what was said just now: any asides, and then the words."""
        now = time.perf_counter()
        self.turns += turns
        self.seconds += [*(None for _ in turns[1:]), round(now - self._since, 3)]
        self._since = now

    @property
    def num_turns(self) -> int:
        """Turns the doctor took."""
        return len({turn.turn for turn in self.turns if turn.role == "doctor"})

    @property
    def differential(self) -> Differential | None:
        """The doctor's last differential, if it gave one."""
        given = [turn.differential for turn in self.turns if turn.differential]
        return given[-1] if given else None

    def fail(self, error: str, message: str, *, own: bool, traceback: str | None = None) -> None:
        """End with a fault of the current speaker; `own` if a doctor's failure is its own doing."""
        self.status = Status.DOCTOR_FAILED if own and self.speaker == "doctor" else Status.MODEL_FAILED
        self.fault = Fault(self.speaker, error, message, traceback)


async def encounter(
    clinic: Clinic, doctor: Doctor, limit: int, *, seconds: float | None = None, own_time: bool = False
) -> Transcript:
    """Let the doctor work on the case for at most `limit` turns and `seconds`.

    A model that fails ends the encounter with a fault. `own_time`: a doctor that takes too long is itself at fault (a
    custom program), not an endpoint.
    """
    transcript = Transcript()
    with anyio.move_on_after(seconds) as scope:
        try:
            await _converse(clinic, doctor, limit, transcript)
        except ModelError as error:
            transcript.fail(error.kind, str(error), own=error.kind in OWN_FAULTS, traceback=error.traceback)
    if scope.cancelled_caught:
        transcript.fail("encounter_timeout", f"the encounter took longer than {seconds:g} s", own=own_time)
    return transcript


async def _converse(clinic: Clinic, doctor: Doctor, limit: int, transcript: Transcript) -> None:
    incoming = Incoming("", clinic.doctor_prompt.text("opening"))
    for turn in range(1, limit + 1):
        await anyio.lowlevel.checkpoint()  # builtin roles never wait: give other encounters a chance to run
        action = await _act(doctor, incoming, transcript, turn=turn, last=turn == limit)
        if turn == limit and action.kind == "none":
            # There is no next turn in which to put it right: the clinic answers, and the doctor may answer that.
            incoming = await _answered(clinic, transcript)
            action = await _act(doctor, incoming, transcript, turn=turn, last=True)
        if action.kind == "diagnosis":
            transcript.status, transcript.diagnosis = Status.DIAGNOSED, action.content
            return
        if turn < limit:
            incoming = await _answered(clinic, transcript)


async def _act(doctor: Doctor, incoming: Incoming, transcript: Transcript, *, turn: int, last: bool) -> Action:
    """Let the doctor take a turn, or take its last one again."""
    transcript.speaker = "doctor"
    *aside, said = await doctor.act(incoming, tuple(transcript.exchanges), turn=turn, last=last)
    transcript.add(*aside, said)
    assert said.action is not None, "a doctor's utterance carries its action"
    return said.action


async def _answered(clinic: Clinic, transcript: Transcript) -> Incoming:
    """Answer the doctor's last utterance and add the answer to the transcript."""
    said = transcript.turns[-1]
    assert said.action is not None
    transcript.speaker = _ADDRESSEE[said.action.kind]
    incoming, reply = await _respond(clinic, said.action, said, tuple(transcript.exchanges))
    transcript.add(reply)
    transcript.exchanges.append(Exchange(said.action.kind, said.action.content, reply.text, reply.disclosures))
    return incoming


async def _respond(
    clinic: Clinic, action: Action, said: Turn, exchanges: tuple[Exchange, ...]
) -> tuple[Incoming, Turn]:
    """Answer the doctor; patient and laboratory overhear what the other was told."""
    if action.kind == "question":
        reply = await clinic.patient.answer(said.text, exchanges, turn=said.turn)
        clinic.laboratory.overhear("Doctor", said.text)
        clinic.laboratory.overhear("Patient", reply.text)
        return Incoming("Patient", reply.text), reply
    if action.kind == "test":
        reply = await clinic.laboratory.report(action.content, said.text, turn=said.turn)
        clinic.patient.overhear("Doctor", said.text)
        clinic.patient.overhear("Measurement", reply.text)
        return Incoming("Measurement", reply.text), reply
    shown: tuple[Image, ...] = ()
    if action.kind == "images":
        shown = (Image(clinic.case.image),) if clinic.images and clinic.case.image else ()
        text = clinic.doctor_prompt.text("images_shown" if shown else "images_off")
    else:
        text = fill(clinic.doctor_prompt.text(_unclear(action.content)), form=action.content)
    return Incoming("Clinic", text, shown), Turn(turn=said.turn, role="clinic", text=text)


def _unclear(form: str) -> str:
    """The clinic's answer to words that are no action, by the exact form of what was meant."""
    if not form:
        return "said_nothing"
    return "name_missing" if form.endswith(":") else "exact_form"
